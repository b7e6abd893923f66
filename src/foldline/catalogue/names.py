"""Normalise the many names of one model.

`anthropic:claude-sonnet-4-5`, `openrouter/anthropic/claude-sonnet-4.5`, `claude-sonnet-4-5-20250929` and
`us.anthropic.claude-sonnet-4-5-20250929-v1:0` are the same model. The rules are in `docs/models.md`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

# Makers of models, in the order in which a name without a provider is looked up.
MAKERS: Final = (
    "anthropic", "openai", "google", "xai", "mistral", "deepseek", "moonshotai", "zai", "minimax", "alibaba",
    "cohere", "llama", "xiaomi", "stepfun", "perplexity", "inception", "upstage",
)  # fmt: skip

# Names of providers that people, SDKs and gateways use -> the name in the catalogue.
_PROVIDERS: Final = {
    "gemini": "google", "google-gla": "google", "google-genai": "google", "google-ai": "google",
    "vertex": "google-vertex", "vertex_ai": "google-vertex", "vertexai": "google-vertex",
    "google-vertex-anthropic": "google-vertex",
    "x-ai": "xai", "grok": "xai", "mistralai": "mistral", "moonshot": "moonshotai", "kimi": "moonshotai",
    "z-ai": "zai", "zhipu": "zai", "zhipuai": "zai", "zai-org": "zai", "thudm": "zai", "minimaxai": "minimax",
    "qwen": "alibaba", "dashscope": "alibaba", "deepseek-ai": "deepseek", "meta-llama": "llama",
    "meta": "llama",
    "bedrock": "amazon-bedrock", "aws": "amazon-bedrock", "azure-openai": "azure", "azure_ai": "azure",
    "together": "togetherai", "together_ai": "togetherai", "fireworks": "fireworks-ai",
    "fireworks_ai": "fireworks-ai",
    "copilot": "github-copilot", "hf": "huggingface", "ollama": "ollama-cloud", "cohereai": "cohere",
    "xiaomimimo": "xiaomi",
    "openai-chat": "openai", "openai-responses": "openai", "responses": "openai", "codex": "openai",
    "claude": "anthropic",
}  # fmt: skip

# Providers that Foldline can call; see `providers/choose.py`.
ASKED: Final = (
    "openai", "openai-chat", "openai-responses", "anthropic", "openai-compatible", "anthropic-compatible",
)  # fmt: skip
PROVIDERS: Final = frozenset({*ASKED, *_PROVIDERS, *_PROVIDERS.values(), *MAKERS})

_DATE: Final = re.compile(r"-(?:20\d{6}|20\d\d-\d\d-\d\d|\d{4})$")
_VERSION: Final = re.compile(r"-v\d+(?::\d+)?$")  # Bedrock
_TAIL: Final = re.compile(r"-(?:latest|default)$")
LONG: Final = re.compile(r"\[1m\]$", re.IGNORECASE)  # Claude Code's suffix for a window of 1M
_REGION: Final = re.compile(r"^(?:us|eu|apac|jp|au|ca|global|us-gov)\.(?=[a-z])")
_MAKER_DOT: Final = re.compile(
    r"^(?:anthropic|meta|mistral|openai|deepseek|moonshotai?|minimax|google|qwen|zai)\.(?=[a-z])"
)
_ENDPOINT: Final = re.compile(r"@(?=https?://).*$")
_ROUTE: Final = re.compile(r":(?:free|extended|beta|thinking|nitro|floor|online|exacto)$")  # OpenRouter

# Names with a colon but without a provider: `llama3:8b`, a route, a fine-tuned model.
_NO_PROVIDER: Final = re.compile(r"[^:]*:(?:\d+\w?|free|extended|beta|thinking|)|ft:.*", re.IGNORECASE)
TUNED: Final = re.compile(r"(?:openai[:/])?ft:([^:]+):", re.IGNORECASE)  # OpenAI's fine-tuned models


class SplitName(NamedTuple):
    """A model's name in its parts: the provider's name in the catalogue (None: not named), and the model."""

    provider: str | None
    model: str


def provider_name(name: str) -> str:
    """Return the catalogue's name of a provider."""
    name = name.strip().lower()
    return _PROVIDERS.get(name, name)


def normal(name: str, *, dated: bool = False) -> str:
    """Return a model's name in lower case without region, date, version and route, with dots as dashes.

    `dated` keeps the date and `[1m]`. The function is idempotent.
    """
    name = name.strip().lower()
    while True:
        shorter = _ENDPOINT.sub("", name)
        shorter = _REGION.sub("", shorter)
        shorter = _MAKER_DOT.sub("", shorter)
        for tail in (_ROUTE, _VERSION, _TAIL, *(() if dated else (LONG, _DATE))):
            shorter = tail.sub("", shorter)
        shorter = shorter.replace("@", "-").replace(".", "-").replace("_", "-")
        if shorter == name:
            return name
        name = shorter


def take_apart(name: str) -> list[SplitName]:
    """Return the readings of a model's name, the most literal first.

    `provider:model` names a provider, and so may each part before a slash; gateways use several.
    `openai-compatible:NAME@URL` names only the model.
    """
    name = _ENDPOINT.sub("", name.strip())
    provider, colon, rest = name.partition(":")
    if not colon or "/" in provider or _NO_PROVIDER.fullmatch(name):
        provider, rest = "", name
    named = provider_name(provider) if provider and provider.lower() != "openai-compatible" else None
    readings = [SplitName(named, rest)]
    while "/" in rest:
        head, _, rest = rest.partition("/")
        if named is None:
            named = provider_name(head)
            readings.append(SplitName(named, rest))
        else:
            readings += [SplitName(named, rest), SplitName(provider_name(head), rest)]
    if named is not None:
        readings.append(SplitName(None, rest))
    return readings
