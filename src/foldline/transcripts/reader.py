"""Read any transcript: detect its format, call its reader, and refuse an unreadable file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from foldline.dialects import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, UI_MESSAGE
from foldline.errors import FormatError
from foldline.transcripts.aider import read_aider
from foldline.transcripts.claude_code import read_claude_code
from foldline.transcripts.codex import read_codex
from foldline.transcripts.coop import read_coop
from foldline.transcripts.copilot import read_copilot
from foldline.transcripts.foldline_log import read_own
from foldline.transcripts.gemini import read_gemini
from foldline.transcripts.gencode import read_gencode
from foldline.transcripts.klaude import read_klaude
from foldline.transcripts.markdown import read_markdown
from foldline.transcripts.message_lists import read_json, read_jsonl, read_plain
from foldline.transcripts.moldable import read_moldable
from foldline.transcripts.opencode import read_opencode
from foldline.transcripts.payloads import finished
from foldline.transcripts.pi import read_pi
from foldline.transcripts.records import MAX_LINE, FactRecord, Record, ResultImages, WarningRecord
from foldline.transcripts.sniff import sniff
from foldline.transcripts.source import is_cut_off, make_rewindable, open_transcript

_HEAD = 64 * 1024
_HEAD_LINES = 4
_MEBIBYTE = 1024 * 1024

_Reader = Callable[[BinaryIO, str], Iterator[Record | ResultImages]]

_READERS: dict[str, tuple[str, _Reader]] = {
    "json": ("", read_json),
    "jsonl": ("", read_jsonl),
    "foldline": ("", read_own),
    "plain": (OPENAI_CHAT, read_plain),
    "pi": (ANTHROPIC, read_pi),
    "claude-code": (ANTHROPIC, read_claude_code),
    "codex": (OPENAI_RESPONSES, read_codex),
    "copilot-cli": (OPENAI_CHAT, read_copilot),
    "gemini-cli": (OPENAI_CHAT, read_gemini),
    "opencode": (OPENAI_CHAT, read_opencode),
    "klaude-code": (OPENAI_CHAT, read_klaude),
    "coop": (ANTHROPIC, read_coop),
    "gencode": (ANTHROPIC, read_gencode),
    "moldable": (UI_MESSAGE, read_moldable),
    "aider": (OPENAI_CHAT, read_aider),
    "markdown": (OPENAI_CHAT, read_markdown),
}
"""The dialect of a format's messages ("": its reader yields it), and the reader."""

FORMATS = tuple(_READERS)
"""The formats that `read` knows: JSON lists and objects, JSON lines, Foldline's own, and agents' formats."""


def read(source: str | Path | BinaryIO, *, name: str = "") -> Iterator[Record]:
    """Read a session file as records, in the order of the conversation, in O(entry) memory.

    `source` is a path, "-" for standard input, or an open binary stream (left open); errors show `name`.
    The first record is `FactRecord("format")`. The file is opened and its format detected at once; records
    are read as they are taken. Raises FormatError (file and line) if nothing can be read; a line that can be
    skipped becomes a `WarningRecord`.
    """
    if isinstance(source, str | Path):
        stream, opened = open_transcript(source), True
        name = name or ("standard input" if str(source) == "-" else str(source))
    else:
        stream, opened = make_rewindable(source, name), False
    try:
        kind = format_of(stream, name)
    except BaseException:
        if opened:
            stream.close()
        raise
    return _records(stream, kind, name, close=opened)


def _records(stream: BinaryIO, kind: str, name: str, *, close: bool) -> Iterator[Record]:
    """Yield the records of one reader; raise FormatError if a file yields only warnings."""
    first: WarningRecord | None = None
    readable, last = False, 0
    try:
        dialect, reader = _READERS[kind]
        if dialect:
            yield FactRecord("format", {"format": kind, "dialect": dialect})
        for record in finished(reader(stream, name)):
            if isinstance(record, WarningRecord):
                first = first or record
            elif record.line:
                readable = True
            last = max(last, record.line)
            yield record
        if is_cut_off(stream):
            yield WarningRecord(max(last, 1), "the gzip file is cut off after this line; the rest is lost")
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror or error}", where=name) from error
    finally:
        if close:
            stream.close()
    if first and not readable:
        raise FormatError(
            f"nothing in this file can be read; first problem: {first.text}", where=name, line=first.line
        )


def format_of(stream: BinaryIO, name: str) -> str:
    """Name the format of an open file; the stream keeps its position.

    Raises FormatError if it is too short or cannot be read.
    """
    start = stream.tell()
    try:
        return sniff(_head(stream, name), name)
    except FormatError as error:
        if is_cut_off(stream):
            text = "the gzip file is cut off before the first whole message: download or copy it again"
            raise FormatError(text, where=name) from error
        raise
    finally:
        stream.seek(start)


def _head(stream: BinaryIO, name: str) -> bytes:
    """Read enough to detect the format: 64 KiB, or a few whole lines if they are long."""
    try:
        head = stream.read(_HEAD)
        pieces, size, breaks = [head], len(head), head.count(b"\n")
        while head.lstrip()[:1] == b"{" and breaks < _HEAD_LINES and size < MAX_LINE:
            piece = stream.read(_MEBIBYTE)
            if not piece:
                break
            pieces.append(piece)
            size, breaks = size + len(piece), breaks + piece.count(b"\n")
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror or error}", where=name) from error
    return b"".join(pieces)
