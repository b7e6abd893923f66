"""The models of the service: the configured ones, the vendors' own, and the writers of summaries.

Every provider of the service except the gateway's is created here, so that conversations and keys are sent
only to the addresses configured for `foldline serve`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from foldline import providers
from foldline.catalogue import ModelInfo
from foldline.config import ServeSettings, Settings
from foldline.errors import InputError, ProviderError
from foldline.providers import Patience, Provider, Retrying
from foldline.session.session import Session
from foldline.summarizers import ModelSummarizer, OfflineSummarizer, Summarizer

log = logging.getLogger("foldline")

UPSTREAM: Final = "upstream"
OFFLINE: Final = "offline"
BY_RULE: Final = (UPSTREAM, OFFLINE)  # any other value of `[serve] summaries` is a provider's name
IMPATIENT: Final = Patience(attempts=2, first=0.2, longest=2.0, timeout=120.0)  # a user may be waiting
OPENROUTER: Final = "openrouter"
_PUBLIC: Final = ServeSettings().openai_upstream


class Models:
    """The configured models, each connected at its first use."""

    def __init__(self, serve: ServeSettings, settings: Settings) -> None:
        self._serve = serve
        self._known = settings
        self._connected: dict[str, Provider] = {}
        default = settings.named_model(serve.model)
        self.usual = default
        names = ([default] if default else []) + list(settings.models)
        self.names: tuple[str, ...] = tuple(dict.fromkeys(names))

    def chosen(self, name: str | None) -> str:
        """Return the name of a configured model (None: the default); raises InputError for any other."""
        if name is None and self.usual is None:
            raise InputError("no model is configured: start the service with --model, or set [serve] model")
        if name is not None and name not in self.names:
            available = ", ".join(self.names) or "none"
            raise InputError(
                f"no model {name!r} is configured ([serve] model, [models]); configured: {available}"
            )
        return name or self.usual or ""

    def provider(self, name: str) -> Provider:
        """Return the provider of a configured model; raises ProviderError if it cannot be used."""
        connected = self._connected.get(name)
        if connected is None:
            why = providers.missing(name)
            if why:
                raise ProviderError(why, kind="auth", provider=name)
            connected = self._connected[name] = Retrying(self.made(name))
        return connected

    def made(self, name: str, *, key: str | None = None, info: ModelInfo | None = None) -> Provider:
        """Return a new provider for a model at its configured address, with a `key` (None: the service's)."""
        info = info or self._known.model_info(name, self._serve.window)
        return providers.get(name, base_url=self._serve.url_of(name), api_key=key, info=info)

    def made_for(self, name: str, *, key: str | None = None, window: int | None = None) -> Provider:
        """Return a new provider for a model that a request names.

        A configured model uses the service's key. A vendor's model is `openai:NAME`, `anthropic:NAME`, or
        has a slash as in Moldable and OpenRouter. Raises InputError for anything else.
        """
        info = self._known.model_info(name, window or self._serve.window)
        if name in self.names:
            return self.made(name, info=info)
        return self.made(self._vendor_model(name), key=key, info=info)

    def _vendor_model(self, name: str) -> str:
        """Return the name of a vendor's model as `vendor:name`."""
        vendor, _, model = (name if ":" in name else name.replace("/", ":", 1)).partition(":")
        if vendor == OPENROUTER and model:
            if self._serve.openai_upstream == _PUBLIC:
                raise InputError(
                    f"model {name!r}: start the service with --openai-upstream https://openrouter.ai/api/v1"
                )
            return f"openai:{model}"
        if vendor not in ("openai", "anthropic") or "@" in model or not model:
            raise InputError(
                f"model {name!r}: use openai:NAME or anthropic:NAME; the service's settings say where"
            )
        return f"{vendor}:{model}"

    def summarizer(self, name: str | None) -> Summarizer:
        """Return the summarizer for a session that continues with this model."""
        configured = None if name is None or name not in self.names else name
        info = None if configured is None else self._known.model_info(configured, self._serve.window)
        try:
            return written_by(
                self._serve, lambda: None if configured is None else self.made(configured, info=info), info
            )
        except (ProviderError, InputError) as error:
            log.warning("summaries are written without a model, by rule: %s", error)
            return OfflineSummarizer()

    async def close(self) -> None:
        """Close the connections to the models."""
        for provider in self._connected.values():
            await provider.close()
        self._connected.clear()


# ---- summarizers: the model of the request, another model, or rules


def written_by(
    serve: ServeSettings, upstream: Callable[[], Provider | None], info: ModelInfo | None
) -> Summarizer:
    """Return the configured summarizer; `upstream` makes the provider of the request's model, or None."""
    writer = serve.summaries
    if writer == OFFLINE:
        return OfflineSummarizer()
    if writer != UPSTREAM:
        return ModelSummarizer(providers.get(writer, base_url=serve.url_of(writer)), patience=IMPATIENT)
    provider = upstream()
    if provider is None:
        return OfflineSummarizer()
    window, price = (None, None) if info is None else (info.window, info.price)
    return ModelSummarizer(provider, window=window, price=price, patience=IMPATIENT)


def give(session: Session, summarizer: Summarizer) -> None:
    """Set the summarizer of a session and close its connections with the session."""
    session.summarizer = summarizer
    closing(session)


def closing(session: Session) -> Session:
    """Close a session's summarizer when the session is closed; return the session."""
    if isinstance(session.summarizer, ModelSummarizer):
        session.at_close(session.summarizer.close)
    return session
