"""The models of the service: those of the configuration, where a vendor's own are, and who writes summaries.

Every provider of the service is made here (the gateway's apart, which sends a request on as it came), so that
no conversation and no key goes to a place that `foldline serve` was not told.
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
BY_RULE: Final = (UPSTREAM, OFFLINE)  # any other word of `[serve] summaries` is a provider's name
IMPATIENT: Final = Patience(attempts=2, first=0.2, longest=2.0, timeout=120.0)  # somebody may be waiting
OPENROUTER: Final = "openrouter"
_PUBLIC: Final = ServeSettings().openai_upstream


class Models:
    """The configured models, each connected at its first use; requests choose among them by name."""

    def __init__(self, serve: ServeSettings, known: Settings) -> None:
        self._serve = serve
        self._known = known
        self._asked: dict[str, Provider] = {}
        usual = known.named_model(serve.model)
        self.usual = usual
        names = ([usual] if usual else []) + list(known.models)
        self.names: tuple[str, ...] = tuple(dict.fromkeys(names))

    def chosen(self, name: str | None) -> str:
        """Return the name of a configured model (None: the usual one); raises InputError for any other."""
        if name is None and self.usual is None:
            raise InputError("no model is configured: start the service with --model, or set [serve] model")
        if name is not None and name not in self.names:
            known = ", ".join(self.names) or "none"
            raise InputError(f"no model {name!r} is configured ([serve] model, [models]); there is {known}")
        return name or self.usual or ""

    def provider(self, name: str) -> Provider:
        """Return a configured model to ask; raises ProviderError where it cannot be asked."""
        known = self._asked.get(name)
        if known is None:
            why = providers.missing(name)
            if why:
                raise ProviderError(why, kind="auth", provider=name)
            known = self._asked[name] = Retrying(self.made(name))
        return known

    def made(self, name: str, *, key: str | None = None, info: ModelInfo | None = None) -> Provider:
        """Return a provider of its own for a model, at the place that the service was told.

        `key` is the one that pays (None: the service's), `info` what is known of the model.
        """
        info = info or self._known.model_info(name, self._serve.window)
        return providers.get(name, base_url=self._serve.url_of(name), api_key=key, info=info)

    def made_for(self, name: str, *, key: str | None = None, window: int | None = None) -> Provider:
        """Return a provider of its own for a model that a request names.

        A configured one is paid with the service's key. Any other is a vendor's own, at the place that the
        service was told: `openai:NAME`, `anthropic:NAME`, or with a slash as Moldable and OpenRouter write
        them. Raises InputError for any other.
        """
        info = self._known.model_info(name, window or self._serve.window)
        if name in self.names:
            return self.made(name, info=info)
        return self.made(self._vendors(name), key=key, info=info)

    def _vendors(self, name: str) -> str:
        """Return a vendor's own model as `vendor:name`."""
        vendor, _, model = (
            name.replace("/", ":", 1).partition(":") if ":" not in name else name.partition(":")
        )
        if vendor == OPENROUTER and model:
            if self._serve.openai_upstream == _PUBLIC:
                raise InputError(
                    f"model {name!r}: start the service with --openai-upstream https://openrouter.ai/api/v1"
                )
            return f"openai:{model}"
        if vendor not in ("openai", "anthropic") or "@" in model or not model:
            raise InputError(
                f"model {name!r}: write openai:NAME or anthropic:NAME; the service's settings say where"
            )
        return f"{vendor}:{model}"

    def summarizer(self, name: str | None) -> Summarizer:
        """Return who writes the summaries of a session that goes on with this model."""
        known = None if name is None or name not in self.names else name
        info = None if known is None else self._known.model_info(known, self._serve.window)
        try:
            return written_by(
                self._serve, lambda: None if known is None else self.made(known, info=info), info
            )
        except (ProviderError, InputError) as error:
            log.warning("summaries are written without a model: %s", error)
            return OfflineSummarizer()

    async def close(self) -> None:
        """Close the connections to the models."""
        for provider in self._asked.values():
            await provider.close()
        self._asked.clear()


# ---- who writes summaries: the model that is asked, another, or code alone


def written_by(
    serve: ServeSettings, upstream: Callable[[], Provider | None], info: ModelInfo | None
) -> Summarizer:
    """Return who writes: `upstream` makes the provider of the model that is asked, None where it cannot."""
    who = serve.summaries
    if who == OFFLINE:
        return OfflineSummarizer()
    if who != UPSTREAM:
        return ModelSummarizer(providers.get(who, base_url=serve.url_of(who)), patience=IMPATIENT)
    provider = upstream()
    if provider is None:
        return OfflineSummarizer()
    window, price = (None, None) if info is None else (info.window, info.price)
    return ModelSummarizer(provider, window=window, price=price, patience=IMPATIENT)


def give(session: Session, summarizer: Summarizer) -> None:
    """Have a session's summaries written so from now on."""
    session.summarizer = summarizer
    closing(session)


def closing(session: Session) -> Session:
    """Have a session close its summariser's connections when it is closed; return the session."""
    if isinstance(session.summarizer, ModelSummarizer):
        session.at_close(session.summarizer.close)
    return session
