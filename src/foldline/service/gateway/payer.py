"""Who pays for a summary: the request at hand, or the one that began the draft. No session keeps its key."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextvars import ContextVar
from typing import Final

from foldline import providers
from foldline.catalogue import ModelInfo
from foldline.errors import ProviderError
from foldline.providers import Call, Delta, Provider, Reply
from foldline.service.gateway.endpoint import Endpoint
from foldline.service.gateway.upstream import Headers
from foldline.service.tenants import bearer

# Each request is a task of its own, and a draft a task that it begins: both find here what came with it.
_at_hand: ContextVar[Headers | None] = ContextVar("foldline_headers_at_hand", default=None)


def pays(headers: Headers) -> None:
    """Have the summaries of this task, and of the drafts that it begins, asked for with these headers."""
    _at_hand.set(headers)


class PaidByRequest:
    """A model that is asked with the key of the request at hand; it holds none itself.

    A task that no request of the gateway began has no key here: it is refused, and code writes the summary.
    """

    def __init__(self, model: str, endpoint: Endpoint, url: str, info: ModelInfo | None) -> None:
        self.name: Final = f"{endpoint.vendor}-compatible:{model}"
        self.dialect: Final = endpoint.dialect
        self._url = url
        self._info = info

    def _provider(self) -> Provider:
        headers = _at_hand.get()
        if headers is None:
            raise ProviderError("no request with a key is at hand", kind="auth", provider=self.name)
        sent = dict(headers)
        key = sent.get("x-api-key") or bearer(sent.get("authorization", "")) or None
        return providers.get(
            self.name, base_url=self._url, api_key=key, dialect=self.dialect, info=self._info
        )

    async def complete(self, call: Call) -> Reply:
        """Ask for a whole reply; see `Provider`."""
        provider = self._provider()
        try:
            return await provider.complete(call)
        finally:
            await provider.close()

    async def stream(self, call: Call) -> AsyncGenerator[Delta | Reply]:
        """Yield the whole reply at once: nobody reads a summary while it is written."""
        yield await self.complete(call)

    async def close(self) -> None:
        """Do nothing: each call closes its own connection."""
