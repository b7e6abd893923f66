"""Chats in Markdown: who speaks stands in a heading or a bold label, output is quoted. Our own export is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from foldline.transcripts.base import About, Record, Warned
from foldline.transcripts.markdown.marks import SpeakerMark, mark
from foldline.transcripts.markdown.parts import records
from foldline.transcripts.prose import Fence, Words, prose

_TITLE = re.compile(r"#\s+(.+)")
_FACTS = re.compile(r"session `(?P<id>[^`]+)`(?: · model (?P<model>\S+))?")


def read_markdown(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a chat in Markdown, one speaker's section in memory at a time; messages become `openai-chat` payloads."""
    yield About("format", {"format": "markdown", "dialect": "openai-chat"})
    fence = Fence()
    chat = _Chat()
    for item in prose(stream):
        if isinstance(item, Warned):
            yield item
            continue
        found = None if fence.open else mark(item.text)
        if found is not None and chat.counts(found):
            yield from chat.flush()
            chat.begin(found, item)
        else:
            chat.add(item, code=fence.take(item))
    if fence.open:
        yield Warned(fence.line, "a code fence that is never closed: all after it was read as its text")
    yield from chat.flush()


class _Chat:
    """The section that is being read; before the first speaker, what the file says of itself."""

    def __init__(self) -> None:
        self._mark: SpeakerMark | None = None
        self._level: int | None = None
        self._lines: list[tuple[Words, bool]] = []
        self._line = 1
        self._ours = False  # our own export: it writes headings alone, and quotes nothing but thoughts

    def counts(self, found: SpeakerMark) -> bool:
        """Whether a mark begins a section: a label does, and a heading of the level that the first one had."""
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


def _preamble(lines: list[Words]) -> Iterator[About]:
    """The title and what else stands before the first speaker."""
    rest: list[str] = []
    for words in lines:
        if (found := _TITLE.match(words.text)) and not rest:
            yield About("title", {"title": found[1].strip()}, words.number)
        elif facts := _FACTS.match(words.text):
            yield About("session", {"id": facts["id"]}, words.number)
            if facts["model"]:
                yield About("model", {"model": facts["model"]}, words.number)
        elif words.text.strip():
            rest.append(words.text)
    if rest:
        yield About("preamble", {"text": "\n".join(rest)}, lines[0].number)
