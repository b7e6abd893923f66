"""The models that the API may ask: those of the configuration, and no others."""

from __future__ import annotations

import logging

from foldline import providers
from foldline.config import ServeSettings, Settings
from foldline.errors import InputError, ProviderError
from foldline.providers import Provider, Retrying
from foldline.service.summaries import written_by
from foldline.summarizers import OfflineSummarizer, Summarizer

log = logging.getLogger("foldline")


class Models:
    """The configured models, each connected at its first use; requests choose among them by name."""

    def __init__(self, serve: ServeSettings, known: Settings) -> None:
        self._serve = serve
        self._known = known
        self._asked: dict[str, Provider] = {}
        usual = serve.model or known.model
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
            known = self._asked[name] = Retrying(self._made(name))
        return known

    def _made(self, name: str) -> Provider:
        info = self._known.model_info(name, self._serve.window)
        return providers.get(name, base_url=self._url(name), info=info)

    def _url(self, name: str) -> str | None:
        """Return where a vendor's own models are, as `foldline serve` was told."""
        urls = {"openai": self._serve.openai_upstream, "anthropic": self._serve.anthropic_upstream}
        url = urls.get(name.partition(":")[0])
        return None if url is None else url.rstrip("/").removesuffix("/v1") + "/v1"

    def summarizer(self, name: str | None) -> Summarizer:
        """Return who writes the summaries of a session that goes on with this model."""
        known = None if name is None or name not in self.names else name
        info = None if known is None else self._known.model_info(known, self._serve.window)
        try:
            return written_by(
                self._serve.summaries, lambda: None if known is None else self._made(known), info
            )
        except (ProviderError, InputError) as error:
            log.warning("summaries are written without a model: %s", error)
            return OfflineSummarizer()

    async def close(self) -> None:
        """Close the connections to the models."""
        for provider in self._asked.values():
            await provider.close()
        self._asked.clear()
