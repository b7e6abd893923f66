"""Reads a reply while it is passed to the client, so that it can be stored."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final, cast

from foldline.core.log.codec import decode
from foldline.service.gateway.endpoint import Endpoint

READ_MOST: Final = 64 * 1024 * 1024  # bytes of a reply that are read; the rest of a larger one only passes
READ_EVENTS: Final = 500_000  # events of a stream that are read; long replies have one per token
SLICE: Final = 64 * 1024  # bytes that are read before other tasks run
IDENTITY: Final = "identity"  # the encoding that is requested: no other one is read
_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")  # of an event
_CUT: Final = 3  # bytes of a separator that can be at the end of a piece


class ReplyReader:
    """Reads a reply, whole or streamed, from the bytes that pass."""

    def __init__(self, endpoint: Endpoint, *, streamed: bool, coding: str = "") -> None:
        self._endpoint = endpoint
        self._streamed = streamed
        self._assembler = endpoint.assembler()
        self._buffer = bytearray()
        self._searched = 0  # bytes of the buffer without the end of an event
        self._size = 0
        self._count = 0  # of events
        self._unreadable = coding not in ("", IDENTITY)
        self.begun = False  # the reply or an error has begun
        self.ended = False  # the reply is complete, with its usage
        self.error: Any = None

    async def feed(self, piece: bytes) -> None:
        """Read the next bytes; other tasks run between slices."""
        for at in range(0, 0 if self._unreadable else len(piece), SLICE):
            if at:
                await asyncio.sleep(0)
            self._read(piece[at : at + SLICE])
            if self._unreadable:
                break
        self.begun = self.begun or self._unreadable

    def _read(self, plain: bytes) -> None:
        self._size += len(plain)
        if self._size > READ_MOST:
            self._unreadable = self.begun = True  # the rest only passes
            self._buffer.clear()
            return
        self._buffer += plain
        if self._streamed:
            self._take_events()

    @property
    def as_events(self) -> bool:
        """Whether the reply is a stream: some servers declare plain JSON as one."""
        return self._streamed and (self.begun or not self._buffer.lstrip().startswith(b"{"))

    def plain(self) -> bytes:
        """Return the body of a reply that is not a stream; empty if it cannot be read."""
        return b"" if self._unreadable else bytes(self._buffer)

    def whole(self) -> dict[str, Any] | None:
        """Return the reply; None if it is incomplete or cannot be read."""
        if self._unreadable or self.error is not None:
            return None
        try:
            reply = self._assembler.whole() if self.as_events else decode(bytes(self._buffer))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        return cast("dict[str, Any]", reply) if isinstance(reply, dict) and reply else None

    def _take_events(self) -> None:
        """Take every complete event, which ends with an empty line. No byte is searched twice."""
        buffer, taken = self._buffer, 0
        for end in _END.finditer(buffer, self._searched):
            self._count += 1
            if self._count > READ_EVENTS:
                self._unreadable = True
                break
            event, taken = bytes(buffer[taken : end.start()]), end.end()
            lines = [line[5:] for line in event.splitlines() if line.startswith(b"data:")]
            data = b"\n".join(line.removeprefix(b" ") for line in lines)
            if data == b"[DONE]":
                self.ended = True
            elif data:
                self._take_event(data)
        del buffer[:taken]
        self._searched = max(0, len(buffer) - _CUT)

    def _take_event(self, data: bytes) -> None:
        try:
            value = decode(data)
        except (ValueError, RecursionError):  # anything but JSON only passes
            return
        if not isinstance(value, dict):
            return
        fields = cast("dict[str, Any]", value)
        kind = fields.get("type")
        if kind not in self._endpoint.opening:
            failed = kind in ("error", "response.failed") or (kind is None and fields.get("error"))
            if failed and not self.begun:
                self.error = fields.get("response", fields) if kind == "response.failed" else fields
            self.begun = True
        try:
            for _ in self._assembler.take(fields):
                pass
        except (KeyError, TypeError, AttributeError, ValueError):
            self._unreadable = True
        last = self._endpoint.is_last is not None and self._endpoint.is_last(fields)
        self.ended = self.ended or last or kind in self._endpoint.closing
