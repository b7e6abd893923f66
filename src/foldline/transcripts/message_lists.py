"""Lists of messages in an API's form: a JSON list, an object with one, or JSON lines.

The plain form is that of recorded sessions: a `{"meta"}` line, then role, text, calls and call_id per line.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from foldline import dialects
from foldline.dialects.payload import fields_of, items_of
from foldline.dialects.responses.items import KINDS, is_models
from foldline.errors import DialectError, FormatError
from foldline.transcripts.forms.flat import plain_payload
from foldline.transcripts.forms.lists import Decoded, decode_list, form_of
from foldline.transcripts.lines import Row, read_document, read_rows, text_or
from foldline.transcripts.payloads import decode_rows, message_record, reason_of
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord

_OTHERS = {"projectHash": "a Gemini CLI session", "info": "an OpenCode export"}
_GEMINI = "contents"  # the messages in a request to Gemini
_FOREIGN = "foreign"  # lines in a form of another library
_PLAIN_ROLES = ("system", "user", "assistant", "tool")
_SHAPES = 64  # distinct message shapes used to detect the dialect; more add nothing


def read_json(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read a JSON list of messages, or an object with `messages` (and `system`, `tools`, `model`).

    Raises FormatError with the index of the first bad message: one error refuses the whole list.
    """
    value, note = read_document(stream, name)
    if note:
        yield WarningRecord(1, note)
    holder: dict[str, Any] = fields_of(value) or {"messages": value}
    if kind := next((kind for key, kind in _OTHERS.items() if key in holder), ""):
        raise FormatError(
            f"looks like {kind}, which must have its messages at the end; here they come first", where=name
        )
    messages = holder.get("messages", holder.get(_GEMINI))
    if not isinstance(messages, list):
        raise FormatError('needs a list of messages under "messages"', where=name)
    with _as_format_error(name):
        decoded = decode_list(items_of(messages), text_or(holder.get("dialect")) or None)
    yield FactRecord("format", {"format": "json", "dialect": decoded.dialect})
    yield from _facts(Row(holder, 1), decoded.dialect)
    yield from _records(decoded, range(1, len(items_of(messages)) + 1))


@contextmanager
def _as_format_error(name: str) -> Generator[None]:
    """Turn the errors of an unreadable list into FormatError."""
    try:
        yield
    except (DialectError, RecursionError) as error:
        raise FormatError(reason_of(error), where=name) from error


def _records(decoded: Decoded, lines: Sequence[int]) -> Iterator[Record]:
    """Yield the messages of a decoded list; `lines` has the line of each element."""
    yield from (WarningRecord(0, text) for text in decoded.warnings)
    yield from (MessageRecord(message, line=lines[index]) for index, message in decoded.placed)


def read_jsonl(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read one message per line; a first line without a role may hold `system`, `tools`, `model` and more."""
    start = stream.tell()
    with _as_format_error(name):
        dialect = _dialect_of_lines(stream)
        codec = dialects.get(dialect) if dialect != _FOREIGN else None
    stream.seek(start)
    if codec is None:
        yield from _foreign_lines(stream, name)
        return
    yield FactRecord("format", {"format": "jsonl", "dialect": dialect})
    reply: list[Row] = []  # the items of a reply so far
    for item in read_rows(stream):
        row = item if isinstance(item, Row) else None
        if row is not None and dialect == dialects.OPENAI_RESPONSES and is_models(row):
            reply.append(row)
            continue
        yield from _decoded(codec, reply)
        reply = []
        if row is None:
            yield cast("WarningRecord", item)
        elif "role" not in row and _is_header(row):
            yield from _facts(row, dialect)
        else:
            yield from _decoded(codec, [row])
    yield from _decoded(codec, reply)


def _foreign_lines(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read lines in a form of another library, all at once: a result may answer any earlier line."""
    rows: list[Row] = []
    facts: list[Record] = []
    for item in read_rows(stream):
        if isinstance(item, WarningRecord):
            facts.append(item)
        elif "role" not in item and form_of(item) is None and _is_header(item):
            facts += _facts(item)
        else:
            rows.append(item)
    with _as_format_error(name):
        decoded = decode_list(rows)
    yield FactRecord("format", {"format": "jsonl", "dialect": decoded.dialect})
    yield from facts
    yield from _records(decoded, [row.line for row in rows])


def _decoded(codec: dialects.Dialect, rows: list[Row]) -> Iterator[MessageRecord | WarningRecord]:
    decoded = yield from decode_rows(codec, rows)
    if decoded is not None:
        message, valid_rows = decoded
        yield MessageRecord(message, line=valid_rows[0].line)


def _is_header(row: Row) -> bool:
    """Return whether a line without a role describes the session."""
    return str(row.get("type")) not in KINDS and any(
        key in row for key in ("system", "tools", "dialect", "model", "title")
    )


def _facts(holder: Row, dialect: str = "") -> Iterator[FactRecord]:
    """Yield the facts in an object or header line."""
    instruction = holder.inner("systemInstruction") or holder.inner("system_instruction")
    system = holder.get("system") or instruction.get("parts")
    system = system if dialect == dialects.BEDROCK_CONVERSE else _as_system(system)
    for kind in ("title", "model", "window", "note", "system", "tools"):
        if value := system if kind == "system" else holder.get(kind):
            yield FactRecord(kind, {kind: value}, holder.line)


def _as_system(system: Any) -> Any:
    """Return a system prompt; Gemini's blocks, which have no type, become text."""
    blocks = [Row(fields_of(block)) for block in items_of(system)]
    if not blocks or any("type" in block for block in blocks):
        return system
    return "\n\n".join(block.text("text") for block in blocks if block.text("text"))


def _dialect_of_lines(stream: BinaryIO) -> str:
    """Detect the dialect of JSON lines from one message of each shape, to keep memory small."""
    samples: dict[tuple[Any, ...], dict[str, Any]] = {}
    for item in read_rows(stream):
        if not isinstance(item, Row):
            continue
        if form_of(item) is not None:
            return _FOREIGN
        if "role" not in item and str(item.get("type")) not in KINDS:
            if item.text("dialect"):
                return item.text("dialect")
        elif isinstance(item.get("role", ""), str):
            samples.setdefault(_shape(item), item)
        if len(samples) >= _SHAPES:
            break
    return dialects.detect(list(samples.values()))


def _shape(row: Row) -> tuple[Any, ...]:
    """Return the features that show a message's dialect: role, keys and the types of its blocks."""
    blocks = {block.text("type") for block in row.rows("content")}
    return (row.text("role"), row.text("type"), frozenset(row), frozenset(blocks))


# ---- the plain form


def read_plain(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a plain session; messages become `openai-chat` payloads, `summary` a `CompactionRecord`."""
    boundary: Row | None = None
    for item in read_rows(stream):
        if isinstance(item, WarningRecord):
            yield item
            continue
        summary = item.get("role") == "summary"
        if boundary is not None and not summary:
            yield FactRecord("boundary", {"tokens_before": boundary.count("pre_tokens")}, boundary.line)
        if summary:
            before = boundary.count("pre_tokens") if boundary is not None else None
            at, line = item.time("at"), item.line
            yield CompactionRecord(item.text("text"), tokens_before=before, at=at, line=line)
        elif item.get("role") != "boundary":
            yield from _plain(item)
        boundary = item if item.get("role") == "boundary" else None
    if boundary is not None:
        yield FactRecord("boundary", {"tokens_before": boundary.count("pre_tokens")}, boundary.line)


def _plain(row: Row) -> Iterator[Record]:
    """Read a line as a message, as the meta line's facts, or as a warning."""
    role = row.get("role")
    if role is None and isinstance(row.get("meta"), dict):
        yield FactRecord("session", row["meta"], row.line)
        yield from row.inner("meta").facts(model="model")
    elif role not in _PLAIN_ROLES:
        yield WarningRecord(row.line, f"unknown role of the plain form: {str(role)[:40]!r} (left out)")
    elif not isinstance(row.get("text", ""), str):
        yield WarningRecord(row.line, "text is not a string (left out)")
    else:
        yield message_record(plain_payload(row), row.line)
