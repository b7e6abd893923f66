"""Lists of messages in an API's form: a JSON list, an object around one, or JSON lines.

The plain form is that of recorded sessions: a `{"meta"}` line, then role, text, calls and call_id per line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline import dialects
from foldline.dialects.responses.items import KINDS, role_of
from foldline.errors import DialectError, FormatError
from foldline.transcripts.forms.bare import payload as plain_payload
from foldline.transcripts.forms.lists import Decoded, decode_list, form_of
from foldline.transcripts.lines import (
    Row,
    count_or_none,
    items,
    mapping,
    moment,
    read_document,
    read_rows,
    text_or,
)
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
    holder: dict[str, Any] = mapping(value) or {"messages": value}
    if whose := next((agent for key, agent in _OTHERS.items() if key in holder), ""):
        raise FormatError(
            f"{whose} needs its messages at the end of the file, here they come first", where=name
        )
    messages = holder.get("messages", holder.get(_GEMINI))
    if not isinstance(messages, list):
        raise FormatError('needs a list of messages under "messages"', where=name)
    found = _decoded(items(messages), name, _named(holder))
    yield FactRecord("format", {"format": "json", "dialect": found.dialect})
    yield from _around(holder, 1)
    yield from _records(found, [index + 1 for index in range(len(items(messages)))])


def _decoded(messages: list[Any], name: str, dialect: str = "") -> Decoded:
    """Read a list; raises FormatError for a bad one."""
    try:
        return decode_list(messages, dialect or None)
    except (DialectError, RecursionError) as error:
        raise FormatError(reason_of(error), where=name) from error


def _records(found: Decoded, lines: list[int]) -> Iterator[Record]:
    """Yield the messages of a list that was read; `lines` has the line of each of its elements."""
    yield from (WarningRecord(0, text) for text in found.warnings)
    yield from (MessageRecord(message, line=lines[index]) for index, message in found.placed)


def read_jsonl(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read one message per line; a first line without a role may hold `system`, `tools`, `model` and more."""
    start = stream.tell()
    dialect = _dialect_of_lines(stream, name)
    stream.seek(start)
    if dialect == _FOREIGN:
        yield from _foreign_lines(stream, name)
        return
    yield FactRecord("format", {"format": "jsonl", "dialect": dialect})
    codec = _codec(dialect, name)
    reply: list[Row] = []  # items of one reply, not decoded yet
    for item in read_rows(stream):
        if isinstance(item, Row) and dialect == dialects.OPENAI_RESPONSES and _is_models(item.value):
            reply.append(item)
            continue
        yield from _replied(codec, reply)
        reply = []
        if isinstance(item, WarningRecord):
            yield item
        elif "role" not in item.value and _header(item.value):
            yield from _around(item.value, item.number)
        else:
            yield decode_line(codec, item.value, item.number)
    yield from _replied(codec, reply)


def _foreign_lines(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read the lines of a form that no dialect has, all at once: a result may be for any line before."""
    rows: list[Row] = []
    around: list[Record] = []
    for item in read_rows(stream):
        if isinstance(item, WarningRecord):
            around.append(item)
        elif "role" not in item.value and form_of(item.value) is None and _header(item.value):
            around += _around(item.value, item.number)
        else:
            rows.append(item)
    found = _decoded([row.value for row in rows], name)
    yield FactRecord("format", {"format": "jsonl", "dialect": found.dialect})
    yield from around
    yield from _records(found, [row.number for row in rows])


def _is_models(item: dict[str, Any]) -> bool:
    """Return whether a line is an item of a reply; consecutive ones are one message."""
    try:
        return role_of(item) == "assistant"
    except DialectError:
        return False


def _replied(codec: dialects.Dialect, reply: list[Row]) -> Iterator[MessageRecord | WarningRecord]:
    """Read the items of one reply; a bad one becomes a warning, the others stay together."""
    sound: list[Row] = []
    for row in reply:
        try:
            codec.decode(row.value)
            sound.append(row)
        except (DialectError, RecursionError) as error:
            yield not_a_message(error, row.number)
    if sound:
        yield MessageRecord(codec.decode([row.value for row in sound]), line=sound[0].number)


def decode_line(codec: dialects.Dialect, payload: dict[str, Any], line: int) -> MessageRecord | WarningRecord:
    """Decode one payload; one that is not a message of the dialect becomes a warning with its line."""
    try:
        return MessageRecord(codec.decode(payload), line=line)
    except (DialectError, RecursionError) as error:
        return not_a_message(error, line)


def _header(value: dict[str, Any]) -> bool:
    """Return whether a line without a role describes the session."""
    return str(value.get("type")) not in KINDS and any(
        key in value for key in ("system", "tools", "dialect", "model", "title")
    )


def _around(holder: dict[str, Any], line: int) -> Iterator[FactRecord]:
    """Yield what an object or header line says besides the messages."""
    for kind in ("title", "model", "window", "note", "system", "tools"):
        if holder.get(kind):
            yield FactRecord(
                kind, {kind: _as_system(holder[kind]) if kind == "system" else holder[kind]}, line
            )
    if instruction := mapping(holder.get("systemInstruction") or holder.get("system_instruction")):
        yield FactRecord("system", {"system": _as_system(instruction.get("parts"))}, line)


def _as_system(system: Any) -> Any:
    """Return a system prompt; blocks without a type, as Bedrock and Gemini have them, become text."""
    blocks = [mapping(block) for block in items(system)]
    if not blocks or any("type" in block for block in blocks):
        return system
    return "\n\n".join(text_or(block.get("text")) for block in blocks if text_or(block.get("text")))


def _named(holder: dict[str, Any]) -> str:
    return text_or(holder.get("dialect"))


def _codec(dialect: str, name: str) -> dialects.Dialect:
    """Find a dialect by name; raises FormatError for an unknown one."""
    try:
        return dialects.get(dialect)
    except DialectError as error:
        raise FormatError(str(error), where=name) from error


def _detect(messages: list[Any], name: str) -> str:
    """Detect the dialect; raises FormatError for a bad list."""
    try:
        return dialects.detect(messages)
    except DialectError as error:
        raise FormatError(str(error), where=name) from error


def _dialect_of_lines(stream: BinaryIO, name: str) -> str:
    """Detect the dialect of JSON lines from one message of each shape, to keep memory small."""
    samples: dict[tuple[Any, ...], dict[str, Any]] = {}
    for item in read_rows(stream):
        if not isinstance(item, Row):
            continue
        if form_of(item.value) is not None:
            return _FOREIGN
        if "role" not in item.value and str(item.value.get("type")) not in KINDS:
            if named := _named(item.value):
                return named
            continue
        if isinstance(item.value.get("role", ""), str):
            samples.setdefault(_shape(item.value), item.value)
        if len(samples) >= _SHAPES:
            break
    return _detect(list(samples.values()), name)


def _shape(payload: dict[str, Any]) -> tuple[Any, ...]:
    """Return what tells a message's dialect: role, keys and the types of its blocks."""
    blocks = {text_or(mapping(block).get("type")) for block in items(payload.get("content"))}
    return (text_or(payload.get("role")), text_or(payload.get("type")), frozenset(payload), frozenset(blocks))


# ---- the plain form


def read_plain(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a plain session; messages become `openai-chat` payloads, `summary` a `CompactionRecord`."""
    yield FactRecord("format", {"format": "plain", "dialect": dialects.OPENAI_CHAT})
    boundary: Row | None = None
    for item in read_rows(stream):
        if isinstance(item, WarningRecord):
            yield item
            continue
        role = item.value.get("role")
        if boundary is not None and role != "summary":
            yield FactRecord("boundary", {"tokens_before": _tokens(boundary)}, boundary.number)
            boundary = None
        if role == "boundary":
            boundary = item
        elif role == "summary":
            yield _compaction(item, boundary)
            boundary = None
        else:
            yield _plain(item)
            if text_or(model := mapping(item.value.get("meta")).get("model")):
                yield FactRecord("model", {"model": model}, item.number)
    if boundary is not None:
        yield FactRecord("boundary", {"tokens_before": _tokens(boundary)}, boundary.number)


def _tokens(boundary: Row | None) -> int | None:
    return count_or_none(boundary.value.get("pre_tokens")) if boundary else None


def _compaction(row: Row, boundary: Row | None) -> CompactionRecord:
    """Read a summary that an agent continued from, with the size that its boundary line names."""
    at = moment(row.value.get("at"))
    return CompactionRecord(
        text_or(row.value.get("text")), tokens_before=_tokens(boundary), at=at, line=row.number
    )


def _plain(row: Row) -> Record:
    """Read a line: a message, the meta line's facts, or a warning."""
    value = row.value
    role = value.get("role")
    if role is None and isinstance(value.get("meta"), dict):
        return FactRecord("session", value["meta"], row.number)
    if role not in _PLAIN_ROLES:
        return WarningRecord(row.number, f"the plain form has no role {str(role)[:40]!r} (left out)")
    if not isinstance(value.get("text", ""), str):
        return WarningRecord(row.number, "text is not a string (left out)")
    return message_record(plain_payload(value), row.number)
