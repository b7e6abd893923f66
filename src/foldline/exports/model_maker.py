"""Name the provider of a model as the agents name it in their replies."""

from __future__ import annotations

from foldline.catalogue.names import MAKERS, take_apart
from foldline.core.log.messages import Native

_FAMILIES = {
    "claude": "anthropic", "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "codex": "openai",
    "gemini": "google", "grok": "xai", "mistral": "mistral", "devstral": "mistral", "deepseek": "deepseek",
    "kimi": "moonshotai", "glm": "zai", "minimax": "minimax", "qwen": "alibaba",
}  # fmt: skip
_APIS = {"anthropic": "anthropic-messages", "google": "google-generative-ai", "openai": "openai-responses"}
_DIALECT_APIS = {"openai-chat": "openai-completions", "openai-responses": "openai-responses"}


def provider_of(model: str, native: Native | None, *, signed: bool = False) -> tuple[str, str]:
    """Return the provider and the API of a model by its name: ("anthropic", "anthropic-messages").

    A reply with a signature came from Anthropic's API, whatever the model's name. The provider is "unknown"
    if nothing names it.
    """
    if signed:
        return "anthropic", _APIS["anthropic"]
    asked = next((reading for reading in take_apart(model) if reading.provider), None)
    bare = model.rpartition("/")[2].lower()
    maker = asked.provider if asked else next((m for f, m in _FAMILIES.items() if bare.startswith(f)), None)
    if maker is None or (asked is None and maker not in MAKERS):
        return "unknown", _DIALECT_APIS.get(native.dialect if native else "", "openai-completions")
    return maker, _APIS.get(maker, "openai-completions")
