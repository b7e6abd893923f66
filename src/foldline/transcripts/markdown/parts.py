"""Turn a speaker's section into records: text, quoted thoughts and output, calls and results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from foldline.transcripts.markdown.escapes import CALL, RESULT, RULE, THOUGHT, unescaped
from foldline.transcripts.markdown.marks import SpeakerMark
from foldline.transcripts.records import CompactionRecord, Record
from foldline.transcripts.shared import chat
from foldline.transcripts.shared.injected import is_injected
from foldline.transcripts.shared.prose import Words

Lines = list[tuple[Words, bool]]  # a line, and whether it is code


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


def records(mark: SpeakerMark, lines: Lines, line: int, *, quotes: bool) -> Iterator[Record]:
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
    if piece.kind == "text":
        return False
    if piece.kind in ("quote", "thought"):
        return bool(text.strip())
    return not code and bool(text.strip())


def _spoken(mark: SpeakerMark, pieces: list[_Piece]) -> Iterator[Record]:
    """Yield one message of what was said, thought and called without an interruption."""
    text = "\n\n".join(piece.text for piece in pieces if piece.kind == "text")
    at = pieces[0].line if pieces else 0
    if mark.role == "assistant":
        calls = [
            chat.call(one.call, one.name, _fenced_lines(one.lines)) for one in pieces if one.kind == "call"
        ]
        thoughts = "\n\n".join(piece.text for piece in pieces if piece.kind == "thought")
        payload = chat.reply(text, thoughts, calls)
        stop = mark.stop or ("tools" if calls else "end")
        if not chat.is_empty(payload):
            yield chat.heard(payload, at, at=mark.at, model=mark.model, stop=stop)
    elif text:
        role = "system" if mark.role == "system" else "user"
        injected = mark.role in ("tool", "injected") or (role == "user" and is_injected(text))
        yield chat.heard({"role": role, "content": text}, at, at=mark.at, injected=injected)


def _output(mark: SpeakerMark, piece: _Piece) -> Record:
    """Make the record of a result that names its call; a quote, which names none, is an injected message."""
    if piece.kind == "result":
        payload: dict[str, Any] = chat.answer(piece.call, _fenced_lines(piece.lines))
        return chat.heard(payload, piece.line, at=mark.at, failed=piece.failed)
    payload = {"role": "user", "content": f"[Output]\n{piece.text}"}
    return chat.heard(payload, piece.line, at=mark.at, injected=True)


def _fenced(lines: Lines) -> str:
    return _fenced_lines([words.text for words, _ in lines])


def _fenced_lines(lines: list[str]) -> str:
    """Return the text inside a fence, or the text itself if there is no fence around it."""
    body = "\n".join(lines).strip("\n").split("\n")
    if len(body) >= 2 and body[0].lstrip().startswith(("```", "~~~")):
        return "\n".join(body[1:-1])
    return "\n".join(body)
