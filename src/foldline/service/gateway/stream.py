"""A reply on its way to the client, read beside it so that it can be stored."""

from __future__ import annotations

import zlib
from typing import Any, Final, cast

from foldline.core.log.codec import decode
from foldline.service.gateway.endpoint import Endpoint

READ_MOST: Final = 64 * 1024 * 1024  # bytes of a reply that are read; a larger one goes on unread
READABLE: Final = ("identity", "gzip", "deflate")


class ReplyReader:
    """Reads a reply, whole or streamed, out of the bytes that pass."""

    def __init__(self, endpoint: Endpoint, *, streamed: bool, coding: str = "") -> None:
        self._wire = endpoint
        self._streamed = streamed
        self._inflate = _inflater(coding)
        self._assembler = endpoint.assembler()
        self._buffer = bytearray()
        self._size = 0
        self._lost = coding not in ("", *READABLE)
        self.begun = False  # the model answers, or an error came
        self.ended = False  # nothing of the reply is to come, its usage neither
        self.error: Any = None

    def feed(self, piece: bytes) -> None:
        """Read the next bytes."""
        if self._lost:
            self.begun = True
            return
        try:
            plain = self._inflate.decompress(piece) if self._inflate else piece
        except zlib.error:
            self._lost = self.begun = True
            return
        self._size += len(plain)
        if self._size > READ_MOST:
            self._lost = self.begun = True
            self._buffer.clear()
            return
        self._buffer += plain
        if self._streamed:
            self._events()

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
        """Take every event whose end has come: an empty line."""
        buffer = self._buffer
        while (found := _end(buffer)) is not None:
            end, after = found
            event = bytes(buffer[:end])
            del buffer[:after]
            data = b"\n".join(_data(line) for line in event.splitlines() if line.startswith(b"data:"))
            if data == b"[DONE]":
                self.ended = True
            elif data:
                self._take(data)

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
        self.ended = self.ended or kind in self._wire.closing


def _end(buffer: bytearray) -> tuple[int, int] | None:
    """Return where the first event ends and the next begins; None where no end has come."""
    found = [
        (place, place + len(mark))
        for mark in (b"\n\n", b"\r\n\r\n", b"\r\r")
        if (place := buffer.find(mark)) >= 0
    ]
    return min(found) if found else None


def _data(line: bytes) -> bytes:
    return line[5:].removeprefix(b" ")


def _inflater(coding: str) -> Any:
    if coding == "gzip":
        return zlib.decompressobj(31)
    return zlib.decompressobj() if coding == "deflate" else None
