"""Chats in Markdown, such as our own export: a heading or bold label names the speaker, output is quoted.

A section is the text of one speaker. Its pieces (text, quoted thoughts and output, calls, results) become
messages.
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
    TextLine,
    read_mark,
    text_lines,
    unescaped,
)
from foldline.transcripts.payloads import message_record
from foldline.transcripts.records import CompactionRecord, FactRecord, Record, WarningRecord

_TITLE = re.compile(r"#\s+(.+)")
_FACTS = re.compile(r"session `(?P<id>[^`]+)`(?: · model (?P<model>\S+))?")

Lines = list[tuple[TextLine, bool]]  # a line, and whether it is code


def read_markdown(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a Markdown chat, one section in memory at a time; messages become `openai-chat` payloads."""
    fence = Fence()
    chat = _Chat()
    for item in text_lines(stream):
        if isinstance(item, WarningRecord):
            yield item
            continue
        speaker = None if fence.open else read_mark(item.text)
        if speaker is not None and chat.starts_section(speaker):
            yield from chat.flush()
            chat.begin(speaker, item)
        else:
            chat.add(item, code=fence.take(item))
    if fence.open:
        yield WarningRecord(fence.line, "a code fence is never closed; everything after it is read as code")
    yield from chat.flush()


class _Chat:
    """Collects the lines of a section; before the first speaker, those of the preamble."""

    def __init__(self) -> None:
        self._mark: SpeakerMark | None = None
        self._level: int | None = None
        self._lines: list[tuple[TextLine, bool]] = []
        self._line = 1
        self._ours = False  # our own export has only headings as marks, and quotes only thoughts

    def starts_section(self, mark: SpeakerMark) -> bool:
        """Return whether a mark begins a section: a label, or a heading of the same level as the first."""
        if self._mark is None:
            self._ours = any(_FACTS.match(line.text) for line, _ in self._lines)
        return not self._ours if mark.level == 0 else self._level in (None, mark.level)

    def begin(self, mark: SpeakerMark, line: TextLine) -> None:
        self._mark, self._line = mark, line.number
        self._level = self._level or mark.level or None
        self._lines = [(TextLine(line.number, mark.rest), False)] if mark.rest else []

    def add(self, line: TextLine, *, code: bool) -> None:
        self._lines.append((line, code))

    def flush(self) -> Iterator[Record]:
        """Yield the records of the section that ends here."""
        lines, self._lines = self._lines, []
        if self._mark is not None:
            yield from _records(self._mark, lines, self._line, quotes=not self._ours)
        else:
            yield from _preamble([line for line, _ in lines])


def _preamble(lines: list[TextLine]) -> Iterator[FactRecord]:
    """Yield the title and everything else before the first speaker."""
    rest: list[str] = []
    for line in lines:
        if (title_match := _TITLE.match(line.text)) and not rest:
            title = unescaped(title_match[1].strip())
            yield FactRecord("title", {"title": title}, line.number)
        elif session := _FACTS.match(line.text):
            yield FactRecord("session", {"id": session["id"]}, line.number)
            if session["model"]:
                yield FactRecord("model", {"model": session["model"]}, line.number)
        elif line.text.strip():
            rest.append(line.text)
    if rest:
        yield FactRecord("preamble", {"text": "\n".join(rest)}, lines[0].number)


# ---- a section


class _Piece(msgspec.Struct):
    """A piece of a section: text, quote, thought, call or result."""

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
        summary = _fenced([line.text for line, _ in _trimmed(lines)])
        yield CompactionRecord(summary, tokens_before=mark.tokens_before, at=mark.at, line=line)
        return
    all_pieces = _pieces(_trimmed(lines), replying=mark.role == "assistant", quotes=quotes)
    pieces = [piece for piece in all_pieces if piece.text or piece.call]
    if pieces:
        pieces[0].line = line  # the line that names the speaker
    waiting: list[_Piece] = []
    for piece in pieces:
        if piece.kind in ("result", "quote"):
            yield from _message(mark, waiting)
            waiting = []
            yield _output(mark, piece)
        elif any(other.kind == "call" for other in waiting) and piece.kind != "call":
            yield from _message(mark, waiting)
            waiting = [piece]
        else:
            waiting.append(piece)
    yield from _message(mark, waiting)


def _trimmed(lines: Lines) -> Lines:
    """Return a section without the blank lines and rules around it."""
    start, end = 0, len(lines)
    while start < end and _bare(lines[start]):
        start += 1
    while end > start and _bare(lines[end - 1]):
        end -= 1
    return lines[start:end]


def _bare(line: tuple[TextLine, bool]) -> bool:
    return not line[1] and (not line[0].text.strip() or bool(RULE.match(line[0].text)))


def _pieces(lines: Lines, *, replying: bool, quotes: bool) -> list[_Piece]:
    """Cut a section into pieces; only in a reply is a quote a separate piece."""
    pieces: list[_Piece] = []
    for line, code in lines:
        text, at = line.text, line.number
        last = pieces[-1] if pieces else None
        if not code and not quotes and ASIDE.match(text):
            continue
        if not code and (label := CALL.match(text)):
            pieces.append(_Piece("call", at, call=label["id"], name=label["name"]))
        elif not code and (label := RESULT.match(text)):
            pieces.append(_Piece("result", at, call=label["id"], failed=bool(label["failed"])))
        elif replying and not code and _quoted(last, text, quotes=quotes):
            inner = text[1:].removeprefix(" ")
            if last is None or last.kind not in ("quote", "thought") or inner == THOUGHT:
                last = _Piece("thought" if inner == THOUGHT else "quote", at)
                pieces.append(last)
            if inner != THOUGHT:
                last.lines.append(inner)
        else:
            plain_text = text if code or quotes else unescaped(text)
            if last is None or _ended(last, text, code=code):
                pieces.append(_Piece("text", at, [plain_text]))
            else:
                last.lines.append(plain_text)
    return pieces


def _quoted(last: _Piece | None, text: str, *, quotes: bool) -> bool:
    """Return whether a line is quoted output, or begins or continues a thought."""
    if not text.startswith(">"):
        return False
    thinks = text[1:].strip() == THOUGHT or (last is not None and last.kind == "thought")
    return quotes or thinks


def _ended(piece: _Piece, text: str, *, code: bool) -> bool:
    """Return whether a line ends a piece: after a quote, or after the fence of a call or result."""
    in_fence = piece.kind in ("call", "result") and code
    return piece.kind != "text" and not in_fence and bool(text.strip())


def _message(mark: SpeakerMark, pieces: list[_Piece]) -> Iterator[Record]:
    """Yield pieces without an interruption as one message."""
    text = "\n\n".join(piece.text for piece in pieces if piece.kind == "text")
    at = pieces[0].line if pieces else 0
    if mark.role == "assistant":
        calls = [
            payloads.call(piece.call, piece.name, _fenced(piece.lines))
            for piece in pieces
            if piece.kind == "call"
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
    """Return the record of a result; a quote, which names no call, becomes an injected message."""
    if piece.kind == "result":
        payload = payloads.answer(piece.call, _fenced(piece.lines))
        return message_record(payload, piece.line, at=mark.at, failed=piece.failed)
    payload = payloads.user(f"[Output]\n{piece.text}")
    return message_record(payload, piece.line, at=mark.at, injected=True)


def _fenced(lines: list[str]) -> str:
    """Return the text inside a fence, or the text itself if there is no fence around it."""
    body = "\n".join(lines).strip("\n").split("\n")
    if len(body) >= 2 and body[0].lstrip().startswith(("```", "~~~")):
        return "\n".join(body[1:-1])
    return "\n".join(body)
