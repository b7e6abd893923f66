"""Lists of messages as the APIs take them: a JSON list, an object around one, or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline import dialects
from foldline.dialects.responses.items import KINDS, role_of
from foldline.errors import DialectError, FormatError
from foldline.transcripts.base import About, Heard, Record, Warned
from foldline.transcripts.lines import Row, rows, whole
from foldline.transcripts.values import items, mapping, text_or

_OTHERS = {"projectHash": "a Gemini CLI session", "info": "an OpenCode export"}
_SHAPES = 64  # distinct message shapes that are looked at to tell the dialect; more say nothing new


def read_json(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read a JSON list of messages, or an object with `messages` (and `system`, `tools`, `model`).

    Raises FormatError with the index of a message that is none: a list that is wrong in one place is not sent on.
    """
    value, note = whole(stream, name)
    if note:
        yield Warned(1, note)
    holder: dict[str, Any] = mapping(value) or {"messages": value}
    if whose := next((agent for key, agent in _OTHERS.items() if key in holder), ""):
        raise FormatError(f"is {whose} whose messages come first; put them last in the file", where=name)
    if not isinstance(holder.get("messages"), list):
        raise FormatError('needs a list of messages under "messages"', where=name)
    messages = items(holder.get("messages"))
    dialect = _named(holder) or _detect(messages, name)
    yield About("format", {"format": "json", "dialect": dialect})
    yield from _around(holder, 1)
    _codec(dialect, name)
    try:
        for index, message in dialects.decode_placed(messages, dialect):
            yield Heard(message, line=index + 1)
    except (DialectError, RecursionError) as error:
        raise FormatError(_reason(error), where=name) from error


def read_jsonl(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read one message a line; a first line without a role may hold `system`, `tools`, `model`, `dialect`."""
    start = stream.tell()
    dialect = _dialect_of_lines(stream, name)
    stream.seek(start)
    yield About("format", {"format": "jsonl", "dialect": dialect})
    codec = _codec(dialect, name)
    reply: list[Row] = []  # items of one reply of the model's, not read yet
    for item in rows(stream):
        if isinstance(item, Row) and dialect == dialects.OPENAI_RESPONSES and _is_models(item.value):
            reply.append(item)
            continue
        yield from _replied(codec, reply)
        reply = []
        if isinstance(item, Warned):
            yield item
        elif "role" not in item.value and _header(item.value):
            yield from _around(item.value, item.number)
        else:
            yield decoded(codec, item.value, item.number)
    yield from _replied(codec, reply)


def _is_models(item: dict[str, Any]) -> bool:
    """Whether a line is an item of a reply, of which several in a row are one message."""
    try:
        return role_of(item) == "assistant"
    except DialectError:
        return False


def _replied(codec: dialects.Dialect, reply: list[Row]) -> Iterator[Heard | Warned]:
    """Read the items of one reply; one that is none becomes a warning, the others stay together."""
    sound: list[Row] = []
    for row in reply:
        try:
            codec.decode(row.value)
            sound.append(row)
        except (DialectError, RecursionError) as error:
            yield Warned(row.number, f"not a message: {_reason(error)} (left out)")
    if sound:
        yield Heard(codec.decode([row.value for row in sound]), line=sound[0].number)


def decoded(codec: dialects.Dialect, payload: dict[str, Any], line: int) -> Heard | Warned:
    """Decode one payload; what is no message of the dialect becomes a warning with its line."""
    try:
        return Heard(codec.decode(payload), line=line)
    except (DialectError, RecursionError) as error:
        return Warned(line, f"not a message: {_reason(error)} (left out)")


def _reason(error: Exception) -> str:
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def _header(value: dict[str, Any]) -> bool:
    """Whether a line without a role speaks about the session."""
    return str(value.get("type")) not in KINDS and any(
        key in value for key in ("system", "tools", "dialect", "model", "title")
    )


def _around(holder: dict[str, Any], line: int) -> Iterator[About]:
    """What an object or header line says beside the messages."""
    for kind in ("title", "model", "window", "note", "system", "tools"):
        if holder.get(kind):
            yield About(kind, {kind: holder[kind]}, line)


def _named(holder: dict[str, Any]) -> str:
    return text_or(holder.get("dialect"))


def _codec(dialect: str, name: str) -> dialects.Dialect:
    """Find the dialect that a file names or shows."""
    try:
        return dialects.get(dialect)
    except DialectError as error:
        raise FormatError(str(error), where=name) from error


def _detect(messages: list[Any], name: str) -> str:
    """Ask the dialects whose messages these are."""
    try:
        return dialects.detect(messages)
    except DialectError as error:
        raise FormatError(str(error), where=name) from error


def _dialect_of_lines(stream: BinaryIO, name: str) -> str:
    """Find the dialect of JSON lines from one message of each shape, so memory stays small."""
    samples: dict[tuple[Any, ...], dict[str, Any]] = {}
    for item in rows(stream):
        if not isinstance(item, Row):
            continue
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
    """What of a message tells its dialect: role, keys and the types of its blocks."""
    blocks = {text_or(mapping(block).get("type")) for block in items(payload.get("content"))}
    return (text_or(payload.get("role")), text_or(payload.get("type")), frozenset(payload), frozenset(blocks))
