"""Native messages in any form (dict, JSON bytes, SDK object) -> plain JSON values and the bytes to store."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

import msgspec

from foldline.core.log import codec
from foldline.core.log.messages import Role, Usage
from foldline.errors import DialectError

Fields = dict[str, Any]

DEEPEST = 64  # levels of objects and lists; values nested deeper are stored as text

_UNREADABLE = (TypeError, ValueError, RecursionError, OverflowError, msgspec.MsgspecError)


def read(payload: Any, index: int | None = None) -> tuple[dict[str, Any], bytes]:
    """Read one native message; return its JSON object and the bytes that the log stores.

    Bytes are stored unchanged; everything else is serialised once. SDK objects (pydantic models, objects with
    `to_dict`), also inside lists and dicts, become dicts without their unset fields.
    Raises DialectError (with `index`) if the payload is not a JSON object.
    """
    body, raw = read_any(payload, index)
    if not isinstance(body, dict):
        raise DialectError(f"a message must be an object with a role, not {_type_name(body)}", index=index)
    return cast("dict[str, Any]", body), raw


def read_any(payload: Any, index: int | None = None) -> tuple[Any, bytes]:
    """Read any JSON value; otherwise like `read`."""
    try:
        if isinstance(payload, bytes | bytearray | memoryview):
            raw = bytes(cast("bytes", payload))
            return codec.decode(raw), raw
        return _serialise(payload)
    except DialectError as error:
        raise DialectError(str(error), index=index) from error
    except _UNREADABLE as error:
        raise DialectError(f"cannot be read as JSON: {error or type(error).__name__}", index=index) from error


def parse(raw: bytes, index: int | None = None) -> Any:
    """Parse stored bytes for sending; raises DialectError (with `index`) if they are not JSON."""
    try:
        return as_sent(codec.decode(raw), raw)
    except _UNREADABLE as error:
        raise DialectError(f"the stored payload is not JSON: {error}", index=index) from error


def as_sent(body: Any, raw: bytes) -> Any:
    """Return a value parsed from `raw`, with each lone surrogate replaced by U+FFFD."""
    may_hold_one = b"\\u" in raw or b"\xed" in raw  # an escape, or an encoded surrogate
    return codec.in_utf8(body) if may_hold_one else body


def _serialise(payload: Any) -> tuple[Any, bytes]:
    try:
        raw = codec.encode(payload)
        body = codec.decode(raw)
    except TypeError:
        body = None
    else:
        if body == payload:
            return body, raw
    raw = codec.encode(to_plain(payload))
    return codec.decode(raw), raw


def to_plain(value: Any) -> Any:
    """Convert a value to plain JSON values.

    Raises DialectError for NaN and infinity, TypeError for a value that is not data.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise DialectError(f"{value} is not a JSON number")
        return value
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [to_plain(item) for item in cast("Sequence[Any]", value)]
    return to_plain(_dump(value))


def _dump(value: Any) -> Any:
    """Return the fields of an SDK object that were set (null is not the same as absent)."""
    dump = getattr(value, "model_dump", None)
    to_dict = getattr(value, "to_dict", None)
    if isinstance(value, type) or not (callable(dump) or callable(to_dict)):
        return msgspec.to_builtins(value, enc_hook=_dump_nested)
    try:
        if callable(dump):
            return dump(mode="json", by_alias=True, exclude_unset=True)
        return cast("Any", to_dict)()
    except Exception as error:
        raise DialectError(f"{type(value).__name__} cannot be turned into a dict: {error}") from error


def _dump_nested(value: Any) -> Any:
    """Return the fields of an SDK object inside a dataclass; raises TypeError for anything else."""
    if isinstance(value, type) or not any(
        callable(getattr(value, name, None)) for name in ("model_dump", "to_dict")
    ):
        raise TypeError(f"{type(value).__name__} is not data")
    return _dump(value)


def peek(payload: Any, key: str) -> Any:
    """Return a field of a dict or SDK object without converting it; None if it is missing."""
    if isinstance(payload, (dict, Mapping)):  # checks dict first: isinstance of Mapping is slow
        return cast("Mapping[str, Any]", payload).get(key)
    return getattr(payload, key, None)


def count(value: Any) -> int:
    """Return a token count; 0 for anything but a positive integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def is_list(value: Any) -> bool:
    """Return whether a value is a sequence other than text or bytes."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def block_types(payload: Any) -> set[str]:
    """Return the types of a message's content blocks; empty if the content is not a list."""
    content = peek(payload, "content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    return {kind for block in blocks if isinstance(kind := peek(block, "type"), str)}


def is_blank_text(block: Any) -> bool:
    """Return whether a block is a text without words, which the APIs refuse."""
    text = peek(block, "text")
    return peek(block, "type") == "text" and isinstance(text, str) and not text.strip()


def items_of(value: Any) -> list[Any]:
    """Return the items of a list; [] for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def fields_of(value: Any) -> Fields:
    """Return the fields of an object; {} for anything else."""
    return cast("Fields", value) if isinstance(value, dict) else {}


def is_filled(value: Any) -> bool:
    """Return whether a value is a non-empty string."""
    return isinstance(value, str) and bool(value)


def filled(fields: Fields, key: str) -> bool:
    """Return whether a field is a non-empty string."""
    return is_filled(fields.get(key))


def optional_string(fields: Fields, key: str) -> str | None:
    """Return a string field; None for any other value."""
    value = fields.get(key)
    return value if isinstance(value, str) else None


def without(fields: Fields, *keys: str) -> Fields:
    """Return a copy of an object without some keys."""
    return {key: value for key, value in fields.items() if key not in keys}


def string(fields: Fields, key: str, what: str, index: int | None = None) -> str:
    """Return a string field; raises DialectError (with `index`) for any other value."""
    value = fields.get(key)
    if not isinstance(value, str):
        raise DialectError(f"{what}: {key} must be a string", index=index)
    return value


def role_in(roles: Mapping[str, Role], body: Fields, index: int | None = None, remedy: str = "") -> Role:
    """Return the role of a message; raises DialectError (with `index`) for an unknown role."""
    role = body.get("role")
    if not isinstance(role, str) or role not in roles:
        raise DialectError(f"role is {role!r}; it must be one of {', '.join(roles)}{remedy}", index=index)
    return roles[role]


def json_text(value: Any) -> str:
    """Return a value as compact JSON text; strings are returned unchanged."""
    return value if isinstance(value, str) else codec.encode(value).decode("utf-8")


def arguments_of(value: Any) -> Fields | str:
    """Parse the arguments of a call; anything but a JSON object of at most DEEPEST levels stays text."""
    if isinstance(value, dict):
        return cast("Fields", value)
    if value is None:
        return {}
    text = cast("str", value)
    if not text.strip():
        return {}
    if _is_deep_text(text):
        return text
    try:
        parsed = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        parsed = _parse_leniently(text)
    return cast("Fields", parsed) if isinstance(parsed, dict) else text


def _parse_leniently(text: str) -> Any:
    """Parse text that contains lone surrogates; None if it is not JSON."""
    try:
        return codec.in_utf8(json.loads(text, parse_constant=_reject_constant, parse_float=_finite_float))
    except (ValueError, RecursionError):
        return None


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite_float(number: str) -> float:
    """Parse a number; raises ValueError if it overflows."""
    return value if math.isfinite(value := float(number)) else _reject_constant(number)


def is_deep(value: Any, most: int) -> bool:
    """Return whether a JSON value has more than `most` levels of objects and lists; does not recurse."""
    level: list[Any] = [value]
    for _ in range(most + 1):
        inner: list[Any] = [
            item for outer in level for item in (*fields_of(outer).values(), *items_of(outer))
        ]
        level = [item for item in inner if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _is_deep_text(text: str) -> bool:
    """Return whether JSON text has more than DEEPEST levels, without parsing it."""
    if text.count("{") + text.count("[") <= DEEPEST:
        return False
    level = most = 0
    in_string = escaped = False
    for char in text:
        if escaped:
            escaped = False
        elif in_string:
            escaped, in_string = char == "\\", char != '"'
        elif char == '"':
            in_string = True
        elif char in "{[":
            level += 1
            most = max(most, level)
        elif char in "}]":
            level -= 1
    return most > DEEPEST


def read_usage(
    usage: Any, *, prompt: str, output: str, reads: str, writes: str, hourly: str = "", disjoint: bool = False
) -> Usage | None:
    """Read a usage by an API's field names of its prompt, its output, its cache reads and cache writes.

    `hourly`: cache writes kept for an hour. A name may be a path with one dot, or several names separated by
    bars (the first with a count is used). `disjoint`: the prompt's count excludes cached tokens.
    """
    if not isinstance(usage, dict):
        return None
    read, written, total = (_count_of(fields_of(usage), names) for names in (reads, writes, prompt))
    return Usage(
        input=max(0, total if disjoint else total - read - written),
        cache_read=read,
        cache_write=written,
        output=_count_of(fields_of(usage), output),
        cache_write_hour=min(written, _count_of(fields_of(usage), hourly)),
    )


def _count_of(usage: Fields, names: str) -> int:
    for name in names.split("|"):
        holder, _, key = name.rpartition(".")
        if tokens := count((fields_of(usage.get(holder)) if holder else usage).get(key)):
            return tokens
    return 0


def _type_name(value: Any) -> str:
    names = {list: "a list", str: "a string", int: "a number", float: "a number", bool: "a boolean"}
    return "null" if value is None else names.get(cast("type[Any]", type(value)), type(value).__name__)
