"""A connection of the server, which ends where the head of a request does not come in time."""

from __future__ import annotations

import asyncio
from typing import Final, cast

from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_SECONDS: Final = 20.0  # that a client may take to send the head of a request
IDLE_SECONDS: Final = 1.0  # that an idle client may take to send another request when its worker stops


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


class YieldingConnection(PatientConnection):
    """A connection of one of several workers: when that stops, its client goes on at another one.

    A client that is idle may send at any moment, so that closing at once would break its request. It is
    answered, and told to close; who stays idle for a while is left.
    """

    _stopping = False

    def shutdown(self) -> None:
        """End what is under way, and wait for the next request of an idle client."""
        self._stopping = True
        if self._idle:
            self.loop.call_later(IDLE_SECONDS, self._leave)
        else:
            self._close_behind()

    def data_received(self, data: bytes) -> None:
        """Read; behind this request the client is to go elsewhere."""
        super().data_received(data)
        if self._stopping and not self._idle:
            self._close_behind()

    @property
    def _idle(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        return cycle is None or cycle.response_complete

    def _close_behind(self) -> None:
        if self.cycle.keep_alive:
            self.cycle.keep_alive = False
            headers = self.cycle.scope["headers"]
            self.cycle.scope["headers"] = [*headers, CLOSE_HEADER]  # the answer then has it too

    def _leave(self) -> None:
        if self._idle and not self.transport.is_closing():
            super().shutdown()
