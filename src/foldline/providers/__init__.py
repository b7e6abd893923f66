"""Models to ask: OpenAI and every server that speaks its APIs, and Anthropic.

    model = providers.get("openai:gpt-5.2")
    reply = await model.complete(Call(messages=messages))

Importing this does not import an SDK; the first call does.
"""

from foldline.providers.base import Call, Delta, Provider, ProviderError, Reply
from foldline.providers.choose import get, missing
from foldline.providers.retry import Patience, Retrying

__all__ = [
    "Call",
    "Delta",
    "Patience",
    "Provider",
    "ProviderError",
    "Reply",
    "Retrying",
    "get",
    "missing",
]
