"""Find a provider by its name: `provider:model`, or `...-compatible:NAME@URL` for any server."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from foldline.catalogue import Catalogue, ModelInfo
from foldline.dialects import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from foldline.errors import InputError, ProviderError, did_you_mean
from foldline.providers.access import Access, installed
from foldline.providers.anthropic import Anthropic
from foldline.providers.base import Call, Delta, Provider, Reply
from foldline.providers.openai.chat import OpenAIChat
from foldline.providers.openai.responses import OpenAIResponses
from foldline.providers.sdk import SDKProvider

OFFLINE: Final = "offline"


class Kind(msgspec.Struct, frozen=True):
    """The part of a provider's name before the colon."""

    package: str
    dialects: tuple[str, ...]  # the first is the default
    variables: tuple[str, ...]
    compatible: bool = False


# OpenAI's and Anthropic's keys are never sent to a server named by URL, which a project's settings may name.
KINDS: Final = {
    "openai": Kind("openai", (OPENAI_CHAT, OPENAI_RESPONSES), ("OPENAI_API_KEY",)),
    "openai-chat": Kind("openai", (OPENAI_CHAT,), ("OPENAI_API_KEY",)),
    "openai-responses": Kind("openai", (OPENAI_RESPONSES,), ("OPENAI_API_KEY",)),
    "anthropic": Kind("anthropic", (ANTHROPIC,), ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")),
    "openai-compatible": Kind(
        "openai", (OPENAI_CHAT, OPENAI_RESPONSES), ("OPENAI_COMPATIBLE_API_KEY",), compatible=True
    ),
    "anthropic-compatible": Kind(
        "anthropic", (ANTHROPIC,), ("ANTHROPIC_COMPATIBLE_API_KEY",), compatible=True
    ),
}
CLASSES: Final[dict[str, type[SDKProvider]]] = {
    OPENAI_CHAT: OpenAIChat,
    OPENAI_RESPONSES: OpenAIResponses,
    ANTHROPIC: Anthropic,
}
_EXAMPLES: Final = (
    "openai:gpt-5.2, anthropic:claude-sonnet-4-5, openai-compatible:NAME@http://127.0.0.1:8080/v1"
)


class Named(msgspec.Struct, frozen=True):
    """A provider's name in its parts."""

    kind: Kind
    model: str
    base_url: str | None = None


def named(name: str) -> Named:
    """Split a provider's name into its parts; raises InputError for an invalid name."""
    prefix, colon, rest = name.partition(":")
    kind = KINDS.get(prefix)
    if kind is None or not colon or not rest:
        hint = did_you_mean(prefix, KINDS) if colon else ""
        raise InputError(
            f"unknown provider {name!r}{hint}; write PROVIDER:MODEL, where PROVIDER is one of "
            f"{', '.join(KINDS)}; for example {_EXAMPLES}"
        )
    if not kind.compatible:
        return Named(kind, rest)
    model, *urls = re.split(r"@(?=https?://)", rest, maxsplit=1)
    url = urls[0] if urls else ""
    if not model or model.endswith("@") or ("@" in model and not url):
        raise InputError(f"{name!r}: write {prefix}:NAME@http://host:port/v1")
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise InputError(
            f"a URL with a password would be shown in output; put the key into {kind.variables[0]}"
        )
    return Named(kind, model, url or None)


def get(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    dialect: str | None = None,
    info: ModelInfo | None = None,
) -> Provider:
    """Find a provider by its name. Nothing is imported, read or connected before the first call.

    `base_url` is another server. Without `api_key` the key is read from a variable: OPENAI_API_KEY,
    ANTHROPIC_API_KEY; for servers named by URL, if they need one, OPENAI_COMPATIBLE_API_KEY or
    ANTHROPIC_COMPATIBLE_API_KEY. `dialect` selects Responses where the server has both APIs. `info` defaults
    to the catalogue's entry for the model. The provider `offline` refuses every call. Raises InputError for
    an unknown name or dialect.
    """
    if name == OFFLINE:
        return OfflineProvider(dialect or OPENAI_CHAT)
    parts = named(name)
    kind = parts.kind
    dialect = dialect or kind.dialects[0]
    if dialect not in kind.dialects:
        raise InputError(f"{name} speaks {' and '.join(kind.dialects)}, not {dialect}")
    url = base_url or parts.base_url
    if kind.compatible and not url:
        raise InputError(f"{name!r} needs the server's URL: NAME@http://host:port/v1, or base_url=")
    access = Access(base_url=url, variables=kind.variables, key=api_key, keyless=kind.compatible)
    return CLASSES[dialect](name, parts.model, access, info or Catalogue().look_up(name))


def missing(name: str, *, api_key: str | None = None) -> str | None:
    """Return why no call to a provider can succeed (no SDK, no key); None if one may.

    Raises InputError for an invalid name.
    """
    if name == OFFLINE:
        return "offline: no model is asked"
    kind = named(name).kind
    if not installed(kind.package):
        return f"{kind.package} is not installed: pip install 'foldline[{kind.package}]'"
    access = Access(variables=kind.variables, key=api_key, keyless=kind.compatible)
    return None if kind.compatible or access.find_key() else f"no key: set {' or '.join(kind.variables)}"


class OfflineProvider:
    """Refuse every call permanently, so that callers fall back to code that needs no model."""

    name = OFFLINE

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect

    async def complete(self, call: Call) -> Reply:
        """Raise ProviderError of kind `auth`, which is not retried."""
        del call
        raise _refusal()

    async def stream(self, call: Call) -> AsyncIterator[Delta | Reply]:
        """Raise ProviderError of kind `auth`, which is not retried."""
        del call
        raise _refusal()
        yield  # makes this a generator, as every stream is

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _refusal() -> ProviderError:
    return ProviderError("no model is asked", kind="auth", provider=OFFLINE)
