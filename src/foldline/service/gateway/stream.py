"""A reply on its way to the client, read beside it so that it can be stored."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final, cast

from foldline.core.log.codec import decode
from foldline.service.gateway.endpoint import Endpoint

READ_MOST: Final = 64 * 1024 * 1024  # bytes of a reply that are read; a larger one goes on unread
READ_EVENTS: Final = 500_000  # of a stream that are read; the longest replies have an event a token
SLICE: Final = 64 * 1024  # bytes that are read before others have their turn
IDENTITY: Final = "identity"  # the coding that is asked for: no other one is read
_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")  # of an event
_CUT: Final = 3  # bytes of it that can stand at the end of a piece


class ReplyReader:
    """Reads a reply, whole or streamed, out of the bytes that pass."""

    def __init__(self, endpoint: Endpoint, *, streamed: bool, coding: str = "") -> None:
        self._wire = endpoint
        self._streamed = streamed
        self._assembler = endpoint.assembler()
        self._buffer = bytearray()
        self._searched = 0  # bytes of the buffer that hold no end of an event
        self._size = 0
        self._count = 0  # of events
        self._lost = coding not in ("", IDENTITY)
        self.begun = False  # the model answers, or an error came
        self.ended = False  # nothing of the reply is to come, its usage neither
        self.error: Any = None

    async def feed(self, piece: bytes) -> None:
        """Read the next bytes; others have their turn between two slices."""
        for at in range(0, 0 if self._lost else len(piece), SLICE):
            if at:
                await asyncio.sleep(0)
            self._read(piece[at : at + SLICE])
            if self._lost:
                break
        self.begun = self.begun or self._lost

    def _read(self, plain: bytes) -> None:
        self._size += len(plain)
        if self._size > READ_MOST:
            self._lose()
            return
        self._buffer += plain
        if self._streamed:
            self._events()

    def _lose(self) -> None:
        """Read no further: the rest goes on unread."""
        self._lost = self.begun = True
        self._buffer.clear()

    @property
    def _as_events(self) -> bool:
        """Whether the reply came as a stream: some servers call plain JSON so."""
        return self._streamed and (self.begun or not self._buffer.lstrip().startswith(b"{"))

    def plain(self) -> bytes:
        """Return what came that is no stream, readable; empty where it cannot be read."""
        return b"" if self._lost else bytes(self._buffer)

    def whole(self) -> dict[str, Any] | None:
        """Return the reply; None where it did not come whole, or cannot be read."""
        if self._lost or self.error is not None:
            return None
        try:
            found = self._assembler.whole() if self._as_events else decode(bytes(self._buffer))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        return cast("dict[str, Any]", found) if isinstance(found, dict) and found else None

    def _events(self) -> None:
        """Take every event whose end has come: an empty line. No byte is searched twice."""
        buffer, taken = self._buffer, 0
        for end in _END.finditer(buffer, self._searched):
            self._count += 1
            if self._count > READ_EVENTS:
                self._lost = True
                break
            event, taken = bytes(buffer[taken : end.start()]), end.end()
            data = b"\n".join(_data(line) for line in event.splitlines() if line.startswith(b"data:"))
            if data == b"[DONE]":
                self.ended = True
            elif data:
                self._take(data)
        del buffer[:taken]
        self._searched = max(0, len(buffer) - _CUT)

    def _take(self, data: bytes) -> None:
        try:
            event = decode(data)
        except (ValueError, RecursionError):  # what is no JSON passes on, and says nothing to us
            return
        if not isinstance(event, dict):
            return
        told = cast("dict[str, Any]", event)
        kind = told.get("type")
        if kind not in self._wire.opening:
            failed = kind in ("error", "response.failed") or (kind is None and told.get("error"))
            if failed and not self.begun:
                self.error = told.get("response", told) if kind == "response.failed" else told
            self.begun = True
        try:
            for _ in self._assembler.take(told):
                pass
        except (KeyError, TypeError, AttributeError, ValueError):
            self._lost = True
        last = self._wire.is_last is not None and self._wire.is_last(told)
        self.ended = self.ended or last or kind in self._wire.closing


def _data(line: bytes) -> bytes:
    return line[5:].removeprefix(b" ")
