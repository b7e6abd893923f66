"""A served model as a provider in this process: the real provider's code with a client without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final, cast

from foldline.catalogue import ModelInfo
from foldline.core.log.codec import decode, encode
from foldline.core.measure.window import Window
from foldline.errors import ProviderError
from foldline.providers.access import Access
from foldline.providers.base import Call, Delta, Provider, Reply
from foldline.providers.choose import CLASSES
from foldline.providers.failures import from_body, scrub_with
from foldline.testing.request import Asked
from foldline.testing.wire import Served, Wire, wait_for

_DATA: Final = b"data: "
_KEY: Final = Access(key="test")
_NONE: Final = scrub_with(())


class AsProvider:
    """Give a served model the methods of a provider (`providers/base.py`)."""

    dialect: str
    name: str

    def _be_provider(self, dialect: str, model: str, window: Window) -> None:
        """Set up the provider of one model in one dialect."""
        self.dialect = dialect
        self.name = f"scripted:{model}"
        client = _Client(cast("Served", self), dialect, self.name)
        info = ModelInfo(self.name, window)
        self._provider: Provider = CLASSES[dialect](self.name, model, _KEY, info, client=client)

    async def complete(self, call: Call) -> Reply:
        """Ask for a whole reply; raises ProviderError as the real provider does."""
        return await self._provider.complete(call)

    def stream(self, call: Call) -> AsyncIterator[Delta | Reply]:
        """Stream a reply piece by piece, the whole Reply last; raises ProviderError."""
        return self._provider.stream(call)

    async def close(self) -> None:
        """Do nothing: there are no connections."""


class _Client:
    """A replacement for an SDK's client, whose `create` methods call the served model."""

    def __init__(self, served: Served, dialect: str, name: str) -> None:
        self._served = served
        self._dialect = dialect
        self._name = name
        self.chat = self.completions = self.responses = self.messages = self

    async def create(self, **fields: Any) -> Any:
        """Send a request; return the reply as a JSON object, or an iterator over the events of its stream."""
        extra: dict[str, Any] = fields.pop("extra_body", None) or {}
        fields.pop("timeout", None)
        body = decode(encode(fields | extra))
        wire = await self._served.answer(Asked(self._dialect, body))
        await wait_for(wire.wait)
        if wire.stall_at == 0:
            await asyncio.sleep(wire.stall)
        if wire.streamed and wire.pieces:
            return _EventStream(self._read(wire))
        if wire.end != "whole":
            raise self._connection_error()
        received = decode(b"".join(wire.pieces))
        if wire.status >= 400:
            raise from_body(received, self._name, _NONE, status=wire.status, headers=dict(wire.headers))
        return received

    async def close(self) -> None:
        """Do nothing."""

    async def _read(self, wire: Wire) -> AsyncGenerator[dict[str, Any]]:
        for index, piece in enumerate(wire.pieces):
            await asyncio.sleep(wire.stall if index and index == wire.stall_at else 0)
            data = piece[piece.index(_DATA) + len(_DATA) :].strip()
            if data == b"[DONE]":
                return
            event = decode(data)
            if event.get("error"):
                raise from_body(event["error"], self._name, _NONE)
            yield event
        if wire.end != "whole":
            raise self._connection_error()

    def _connection_error(self) -> ProviderError:
        return ProviderError("the connection failed: cut off", kind="connection", provider=self._name)


class _EventStream:
    """The events of one stream, with the methods of an SDK's stream."""

    def __init__(self, events: AsyncGenerator[dict[str, Any]]) -> None:
        self._events = events

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self._events

    async def close(self) -> None:
        """Stop reading."""
        await self._events.aclose()
