"""A connection of the server, which ends where the head of a request does not come in time."""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 20.0  # that a client may take to send the head of a request


class PatientConnection(H11Protocol):
    """An HTTP/1.1 connection. uvicorn bounds the pause between two requests, this the time of a head."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read; a head that is whole ends the wait for it."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._end_wait()
        elif self._head is None and self.cycle.response_complete:  # there was a head: else it is waited for
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the wait."""
        self._end_wait()
        super().connection_lost(exc)

    def _should_upgrade(self) -> bool:
        return False  # there are no WebSockets here; uvicorn would warn of each that is asked for

    def _wait(self) -> None:
        self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _end_wait(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None
