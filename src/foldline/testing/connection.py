"""One HTTP connection, which the server can cut, reset or stall at any byte."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Final

import h11
import msgspec

from foldline.testing.wire import Gate, Wire, wait_for

_CHUNK: Final = 65_536  # bytes read at once
_LINGER: Final = struct.pack("ii", 1, 0)  # closing sends RST at once
LARGEST_REQUEST: Final = 64 * 1024 * 1024  # bytes


class Received(msgspec.Struct, frozen=True):
    """A request: method, path without the query, headers in lower case, body."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Handle = Callable[[Received], Awaitable[Wire]]


class Connection:
    """Read requests from one connection and write the handler's responses, until either side closes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handle: Handle) -> None:
        self._reader = reader
        self._writer = writer
        self._handle = handle
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_REQUEST)

    async def run(self) -> None:
        """Serve the connection until it is closed; a client that disconnects is not an error."""
        try:
            with contextlib.suppress(ConnectionError, h11.RemoteProtocolError):
                while (received := await self._receive()) is not None:
                    wire = await self._handle(received)
                    if received.method == "HEAD":  # only the head, with the length of the body
                        wire = msgspec.structs.replace(wire, pieces=(), length=_body_length(wire))
                    if not await self._send(wire):
                        return
                    if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                        return
                    self._http.start_next_cycle()
        except asyncio.CancelledError:
            self._writer.transport.abort()  # do not wait for a client that does not read
            raise
        finally:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def _receive(self) -> Received | None:
        """Read one request; None if the client has closed the connection."""
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    self._writer.write(
                        self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b""
                    )
                self._http.receive_data(await self._reader.read(_CHUNK))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
                path = head.target.decode("latin-1").split("?", 1)[0]
                return Received(head.method.decode("ascii"), path, headers, bytes(body))
            else:
                return None

    async def _send(self, wire: Wire) -> bool:
        """Write a response; return whether the connection stays open."""
        if not await self._pause(wire.wait):
            return False
        if not wire.pieces and wire.end != "whole":
            return self._break_off(wire)
        if wire.stall_at == 0 and not await self._pause(wire.stall):
            return False
        await self._write(self._http.send(_head(wire)))
        for index, piece in enumerate(wire.pieces):
            if index and index == wire.stall_at and not await self._pause(wire.stall):
                return False
            await self._write(self._http.send(h11.Data(data=piece)))
        if wire.end != "whole":
            return self._break_off(wire)
        await self._write(self._http.send(h11.EndOfMessage()))
        return True

    async def _write(self, data: bytes | None) -> None:
        self._writer.write(data or b"")
        await self._writer.drain()

    async def _pause(self, wait: float | Gate) -> bool:
        """Send nothing for a while; return whether the client is still connected."""
        if wait == 0:
            return True
        disconnected = asyncio.create_task(self._wait_for_disconnect())
        waited = asyncio.create_task(wait_for(wait))
        try:
            await asyncio.wait((disconnected, waited), return_when=asyncio.FIRST_COMPLETED)
            return not disconnected.done()
        finally:
            disconnected.cancel()
            waited.cancel()
            await asyncio.gather(disconnected, waited, return_exceptions=True)

    async def _wait_for_disconnect(self) -> None:
        """Return when the client has disconnected; keep the data that it sends before."""
        while data := await self._reader.read(_CHUNK):
            self._http.receive_data(data)

    def _break_off(self, wire: Wire) -> bool:
        if wire.end == "reset":
            connected = self._writer.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
            self._writer.transport.abort()
        return False


def _body_length(wire: Wire) -> int:
    return wire.length if wire.length is not None else sum(map(len, wire.pieces))


def _head(wire: Wire) -> h11.Response:
    headers = [("content-type", wire.content_type), *wire.headers]
    if wire.streamed:
        headers += [("transfer-encoding", "chunked"), ("cache-control", "no-cache")]
    else:
        headers.append(("content-length", str(_body_length(wire))))
    return h11.Response(status_code=wire.status, headers=headers)
