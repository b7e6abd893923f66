"""Lines of text files, decoded and numbered with blank lines and indents, and code fences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from foldline.transcripts.records import MAX_LINE, WarningRecord

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_MEBIBYTE = 1024 * 1024


class Words(NamedTuple):
    """A line without its line break, and its number."""

    number: int
    text: str


def prose(stream: BinaryIO) -> Iterator[Words | WarningRecord]:
    """Yield the lines of a text file, in O(line) memory; invalid UTF-8 is replaced, with a warning."""
    number = 0
    while raw := stream.readline(MAX_LINE + 1):
        number += 1
        if len(raw) > MAX_LINE:
            while not raw.endswith(b"\n") and (raw := stream.readline(_MEBIBYTE)):
                pass
            yield WarningRecord(number, f"skipped: a line may have {MAX_LINE // _MEBIBYTE} MiB at most")
            continue
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            yield WarningRecord(number, f"byte {error.start + 1} is not UTF-8; replaced")
            text = raw.decode("utf-8", "replace")
        yield Words(number, text.rstrip("\r\n"))


class Fence:
    """Whether a line is inside a code fence (CommonMark: closed by at least as many marks as opened it)."""

    def __init__(self) -> None:
        self.line = 0  # the line that opened the fence; 0: none is open
        self._mark = ""

    @property
    def open(self) -> bool:
        """Whether the next line is code."""
        return self.line > 0

    def take(self, words: Words) -> bool:
        """Take the next line; return whether it is code or a fence mark."""
        found = _FENCE.match(words.text)
        if not self.open:
            if found:
                self.line, self._mark = words.number, found[1]
            return self.open
        if found and found[1].startswith(self._mark) and not words.text.strip(" " + self._mark[0]):
            self.line = 0
        return True

    def leave(self) -> None:
        """Close an open fence."""
        self.line = 0
