"""Lists of messages in an API's form: a JSON list, an object around one, or JSON lines.

The plain form is that of recorded sessions: a `{"meta"}` line, then role, text, calls and call_id per line.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from foldline import dialects
from foldline.core.log.messages import Message
from foldline.dialects.payload import fields_of, items_of
from foldline.dialects.responses.items import KINDS
from foldline.errors import DialectError, FormatError
from foldline.transcripts.codex_items import is_models
from foldline.transcripts.forms.flat import plain_payload
from foldline.transcripts.forms.lists import Decoded, decode_list, form_of
from foldline.transcripts.lines import Row, read_document, read_rows, text_or
from foldline.transcripts.payloads import message_record
from foldline.transcripts.records import (
    CompactionRecord,
    FactRecord,
    MessageRecord,
    Record,
    WarningRecord,
    not_a_message,
    reason_of,
)

_OTHERS = {"projectHash": "a Gemini CLI session", "info": "an OpenCode export"}
_GEMINI = "contents"  # what a request to Gemini calls its messages
_FOREIGN = "foreign"  # lines of a form that no dialect has
_PLAIN_ROLES = ("system", "user", "assistant", "tool")
_SHAPES = 64  # distinct message shapes used to detect the dialect; more add nothing


def read_json(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read a JSON list of messages, or an object with `messages` (and `system`, `tools`, `model`).

    Raises FormatError with the index of the first bad message: a list with one error is refused whole.
    """
    value, note = read_document(stream, name)
    if note:
        yield WarningRecord(1, note)
    holder: dict[str, Any] = fields_of(value) or {"messages": value}
    if whose := next((agent for key, agent in _OTHERS.items() if key in holder), ""):
        raise FormatError(
            f"{whose} needs its messages at the end of the file, here they come first", where=name
        )
    messages = holder.get("messages", holder.get(_GEMINI))
    if not isinstance(messages, list):
        raise FormatError('needs a list of messages under "messages"', where=name)
    with _refused(name):
        found = decode_list(items_of(messages), text_or(holder.get("dialect")) or None)
    yield FactRecord("format", {"format": "json", "dialect": found.dialect})
    yield from _around(Row(holder, 1), found.dialect)
    yield from _records(found, range(1, len(items_of(messages)) + 1))


@contextmanager
def _refused(name: str) -> Generator[None]:
    """Raise FormatError for a list that cannot be read."""
    try:
        yield
    except (DialectError, RecursionError) as error:
        raise FormatError(reason_of(error), where=name) from error


def _records(found: Decoded, lines: Sequence[int]) -> Iterator[Record]:
    """Yield the messages of a list that was read; `lines` has the line of each of its elements."""
    yield from (WarningRecord(0, text) for text in found.warnings)
    yield from (MessageRecord(message, line=lines[index]) for index, message in found.placed)


def read_jsonl(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read one message per line; a first line without a role may hold `system`, `tools`, `model` and more."""
    start = stream.tell()
    with _refused(name):
        dialect = _dialect_of_lines(stream)
        codec = dialects.get(dialect) if dialect != _FOREIGN else None
    stream.seek(start)
    if codec is None:
        yield from _foreign_lines(stream, name)
        return
    yield FactRecord("format", {"format": "jsonl", "dialect": dialect})
    reply: list[Row] = []  # items of one reply, not decoded yet
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
            yield from _around(row, dialect)
        else:
            yield from _decoded(codec, [row])
    yield from _decoded(codec, reply)


def _foreign_lines(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read the lines of a form that no dialect has, all at once: a result may be for any line before."""
    rows: list[Row] = []
    around: list[Record] = []
    for item in read_rows(stream):
        if isinstance(item, WarningRecord):
            around.append(item)
        elif "role" not in item and form_of(item) is None and _is_header(item):
            around += _around(item)
        else:
            rows.append(item)
    with _refused(name):
        found = decode_list(rows)
    yield FactRecord("format", {"format": "jsonl", "dialect": found.dialect})
    yield from around
    yield from _records(found, [row.line for row in rows])


def _decoded(codec: dialects.Dialect, rows: list[Row]) -> Iterator[MessageRecord | WarningRecord]:
    """Read a message, or the items of one reply; a bad one becomes a warning, the others stay together."""
    sound: list[Row] = []
    message: Message | None = None
    for row in rows:
        try:
            message = codec.decode(row)
            sound.append(row)
        except (DialectError, RecursionError) as error:
            yield not_a_message(error, row.line)
    if message is not None:
        yield MessageRecord(message if len(sound) == 1 else codec.decode(sound), line=sound[0].line)


def _is_header(value: Row) -> bool:
    """Return whether a line without a role describes the session."""
    return str(value.get("type")) not in KINDS and any(
        key in value for key in ("system", "tools", "dialect", "model", "title")
    )


def _around(holder: Row, dialect: str = "") -> Iterator[FactRecord]:
    """Yield what an object or header line says besides the messages."""
    instruction = holder.inner("systemInstruction") or holder.inner("system_instruction")
    system = holder.get("system") or instruction.get("parts")
    system = system if dialect == dialects.BEDROCK_CONVERSE else _as_system(system)
    for kind in ("title", "model", "window", "note", "system", "tools"):
        if value := system if kind == "system" else holder.get(kind):
            yield FactRecord(kind, {kind: value}, holder.line)


def _as_system(system: Any) -> Any:
    """Return a system prompt; blocks without a type, as Gemini has them, become text."""
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
    """Return what tells a message's dialect: role, keys and the types of its blocks."""
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
        if summary:  # that an agent continued from
            before = boundary.count("pre_tokens") if boundary is not None else None
            at, line = item.time("at"), item.line
            yield CompactionRecord(item.text("text"), tokens_before=before, at=at, line=line)
        elif item.get("role") != "boundary":
            yield from _plain(item)
        boundary = item if item.get("role") == "boundary" else None
    if boundary is not None:
        yield FactRecord("boundary", {"tokens_before": boundary.count("pre_tokens")}, boundary.line)


def _plain(row: Row) -> Iterator[Record]:
    """Read a line: a message, the meta line's facts, or a warning."""
    role = row.get("role")
    if role is None and isinstance(row.get("meta"), dict):
        yield FactRecord("session", row["meta"], row.line)
        yield from row.inner("meta").facts(model="model")
    elif role not in _PLAIN_ROLES:
        yield WarningRecord(row.line, f"the plain form has no role {str(role)[:40]!r} (left out)")
    elif not isinstance(row.get("text", ""), str):
        yield WarningRecord(row.line, "text is not a string (left out)")
    else:
        yield message_record(plain_payload(row), row.line)
