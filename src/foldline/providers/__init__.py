"""Models to ask: OpenAI and every server that speaks its APIs, and Anthropic."""

from foldline.providers.base import Call, Delta, Provider, ProviderError, Reply

__all__ = ["Call", "Delta", "Provider", "ProviderError", "Reply"]
