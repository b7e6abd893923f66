"""Chats in Markdown, such as our own export: a heading or bold label names the speaker, output is quoted.

A section is what one speaker said. It is cut into pieces (text, quoted thoughts and output, calls, results),
and the pieces become messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Literal

import msgspec

from foldline.transcripts import payloads
from foldline.transcripts.markdown_text import (
    ASIDE,
    CALL,
    RESULT,
    RULE,
    THOUGHT,
    Fence,
    SpeakerMark,
    Words,
    mark,
    prose,
    unescaped,
)
from foldline.transcripts.payloads import message_record
from foldline.transcripts.records import CompactionRecord, FactRecord, Record, WarningRecord

_TITLE = re.compile(r"#\s+(.+)")
_FACTS = re.compile(r"session `(?P<id>[^`]+)`(?: · model (?P<model>\S+))?")

Lines = list[tuple[Words, bool]]  # a line, and whether it is code


def read_markdown(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a Markdown chat, one section in memory at a time; messages become `openai-chat` payloads."""
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
            yield from _records(self._mark, lines, self._line, quotes=not self._ours)
        else:
            yield from _preamble([words for words, _ in lines])


def _preamble(lines: list[Words]) -> Iterator[FactRecord]:
    """Yield the title and whatever comes before the first speaker."""
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


# ---- a section


class _Piece(msgspec.Struct):
    """A stretch of a section: text, quote, thought, call or result."""

    kind: Literal["text", "quote", "thought", "call", "result"]
    line: int
    lines: list[str] = []
    call: str = ""
    name: str = ""
    failed: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")


def _records(mark: SpeakerMark, lines: Lines, line: int, *, quotes: bool) -> Iterator[Record]:
    """Yield a section's records; an empty section yields none. `quotes`: quotes in a reply are output."""
    if mark.role == "folded":
        yield CompactionRecord(
            _fenced(_trimmed(lines)), tokens_before=mark.tokens_before, at=mark.at, line=line
        )
        return
    cut = _pieces(_trimmed(lines), replying=mark.role == "assistant", quotes=quotes)
    pieces = [piece for piece in cut if piece.text or piece.call]
    if pieces:
        pieces[0].line = line  # the line that names the speaker
    waiting: list[_Piece] = []
    for piece in pieces:
        if piece.kind in ("result", "quote"):
            yield from _spoken(mark, waiting)
            waiting = []
            yield _output(mark, piece)
        elif any(one.kind == "call" for one in waiting) and piece.kind != "call":
            yield from _spoken(mark, waiting)
            waiting = [piece]
        else:
            waiting.append(piece)
    yield from _spoken(mark, waiting)


def _trimmed(lines: Lines) -> Lines:
    """Return a section without the blank lines and rules around it."""
    start, end = 0, len(lines)
    while start < end and _bare(lines[start]):
        start += 1
    while end > start and _bare(lines[end - 1]):
        end -= 1
    return lines[start:end]


def _bare(line: tuple[Words, bool]) -> bool:
    return not line[1] and (not line[0].text.strip() or bool(RULE.match(line[0].text)))


def _pieces(lines: Lines, *, replying: bool, quotes: bool) -> list[_Piece]:
    """Cut a section into stretches; only in a reply is a quote a stretch of its own."""
    found: list[_Piece] = []
    for words, code in lines:
        text, at = words.text, words.number
        last = found[-1] if found else None
        if not code and not quotes and ASIDE.match(text):
            continue
        if not code and (label := CALL.match(text)):
            found.append(_Piece("call", at, call=label["id"], name=label["name"]))
        elif not code and (label := RESULT.match(text)):
            found.append(_Piece("result", at, call=label["id"], failed=bool(label["failed"])))
        elif replying and not code and _quoted(last, text, quotes=quotes):
            inner = text[1:].removeprefix(" ")
            if last is None or last.kind not in ("quote", "thought") or inner == THOUGHT:
                last = _Piece("thought" if inner == THOUGHT else "quote", at)
                found.append(last)
            if inner != THOUGHT:
                last.lines.append(inner)
        else:
            said = text if code or quotes else unescaped(text)
            if last is None or _ended(last, text, code=code):
                found.append(_Piece("text", at, [said]))
            else:
                last.lines.append(said)
    return found


def _quoted(last: _Piece | None, text: str, *, quotes: bool) -> bool:
    """Return whether a line is quoted output, or begins or continues a thought."""
    if not text.startswith(">"):
        return False
    thinks = text[1:].strip() == THOUGHT or (last is not None and last.kind == "thought")
    return quotes or thinks


def _ended(piece: _Piece, text: str, *, code: bool) -> bool:
    """Return whether a line ends a stretch: after a quote, or after the fence of a call or result."""
    said = piece.kind in ("call", "result") and code  # a fence goes on
    return piece.kind != "text" and not said and bool(text.strip())


def _spoken(mark: SpeakerMark, pieces: list[_Piece]) -> Iterator[Record]:
    """Yield one message of what was said, thought and called without an interruption."""
    text = "\n\n".join(piece.text for piece in pieces if piece.kind == "text")
    at = pieces[0].line if pieces else 0
    if mark.role == "assistant":
        calls = [
            payloads.call(one.call, one.name, _fenced_lines(one.lines))
            for one in pieces
            if one.kind == "call"
        ]
        thoughts = "\n\n".join(piece.text for piece in pieces if piece.kind == "thought")
        payload = payloads.reply(text, thoughts, calls)
        stop = mark.stop or ("tools" if calls else "end")
        if not payloads.is_empty(payload):
            yield message_record(payload, at, at=mark.at, model=mark.model, stop=stop)
    elif text:
        role = "system" if mark.role == "system" else "user"
        injected = mark.role in ("tool", "injected")
        yield message_record({"role": role, "content": text}, at, at=mark.at, injected=injected)


def _output(mark: SpeakerMark, piece: _Piece) -> Record:
    """Make the record of a result that names its call; a quote, which names none, is an injected message."""
    if piece.kind == "result":
        payload = payloads.answer(piece.call, _fenced_lines(piece.lines))
        return message_record(payload, piece.line, at=mark.at, failed=piece.failed)
    payload = payloads.user(f"[Output]\n{piece.text}")
    return message_record(payload, piece.line, at=mark.at, injected=True)


def _fenced(lines: Lines) -> str:
    return _fenced_lines([words.text for words, _ in lines])


def _fenced_lines(lines: list[str]) -> str:
    """Return the text inside a fence, or the text itself if there is no fence around it."""
    body = "\n".join(lines).strip("\n").split("\n")
    if len(body) >= 2 and body[0].lstrip().startswith(("```", "~~~")):
        return "\n".join(body[1:-1])
    return "\n".join(body)
