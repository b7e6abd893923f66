"""Chats in Markdown, such as our own export: a heading or bold label names the speaker, output is quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from foldline.transcripts.markdown.escapes import unescaped
from foldline.transcripts.markdown.marks import SpeakerMark, mark
from foldline.transcripts.markdown.parts import records
from foldline.transcripts.records import FactRecord, Record, WarningRecord
from foldline.transcripts.shared.prose import Fence, Words, prose

_TITLE = re.compile(r"#\s+(.+)")
_FACTS = re.compile(r"session `(?P<id>[^`]+)`(?: · model (?P<model>\S+))?")


def read_markdown(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a Markdown chat, one section in memory at a time; messages become `openai-chat` payloads."""
    yield FactRecord("format", {"format": "markdown", "dialect": "openai-chat"})
    fence = Fence()
    chat = _Chat()
    for item in prose(stream):
        if isinstance(item, WarningRecord):
            yield item
            continue
        found = None if fence.open else mark(item.text)
        if found is not None and chat.counts(found):
            yield from chat.flush()
            chat.begin(found, item)
        else:
            chat.add(item, code=fence.take(item))
    if fence.open:
        yield WarningRecord(fence.line, "a code fence is never closed; everything after it was read as code")
    yield from chat.flush()


class _Chat:
    """The section being read; before the first speaker, what the file says about itself."""

    def __init__(self) -> None:
        self._mark: SpeakerMark | None = None
        self._level: int | None = None
        self._lines: list[tuple[Words, bool]] = []
        self._line = 1
        self._ours = False  # our own export, which writes only headings and quotes only thoughts

    def counts(self, found: SpeakerMark) -> bool:
        """Return whether a mark begins a section: a label, or a heading of the same level as the first."""
        if self._mark is None:
            self._ours = any(_FACTS.match(words.text) for words, _ in self._lines)
        return not self._ours if found.level == 0 else self._level in (None, found.level)

    def begin(self, found: SpeakerMark, words: Words) -> None:
        """Begin a section."""
        self._mark, self._line = found, words.number
        self._level = self._level or found.level or None
        self._lines = [(Words(words.number, found.rest), False)] if found.rest else []

    def add(self, words: Words, *, code: bool) -> None:
        """Take a line of the section."""
        self._lines.append((words, code))

    def flush(self) -> Iterator[Record]:
        """Yield the section that ends here."""
        lines, self._lines = self._lines, []
        if self._mark is not None:
            yield from records(self._mark, lines, self._line, quotes=not self._ours)
        else:
            yield from _preamble([words for words, _ in lines])


def _preamble(lines: list[Words]) -> Iterator[FactRecord]:
    """Yield the title and whatever stands before the first speaker."""
    rest: list[str] = []
    for words in lines:
        if (found := _TITLE.match(words.text)) and not rest:
            title = unescaped(found[1].strip())
            yield FactRecord("title", {"title": title}, words.number)
        elif facts := _FACTS.match(words.text):
            yield FactRecord("session", {"id": facts["id"]}, words.number)
            if facts["model"]:
                yield FactRecord("model", {"model": facts["model"]}, words.number)
        elif words.text.strip():
            rest.append(words.text)
    if rest:
        yield FactRecord("preamble", {"text": "\n".join(rest)}, lines[0].number)
