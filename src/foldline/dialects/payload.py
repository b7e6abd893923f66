"""Any form of a native message (dict, JSON bytes, SDK object) -> plain JSON values and the bytes to keep."""

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

DEEPEST = 64  # levels of objects and lists in a value that is kept as one; deeper ones are kept as text

_UNREADABLE = (TypeError, ValueError, RecursionError, OverflowError, msgspec.MsgspecError)


def read(payload: Any, index: int | None = None) -> tuple[dict[str, Any], bytes]:
    """Read one native message: its plain JSON object, and its bytes as the log keeps them.

    Bytes are kept as they came; everything else is serialised once. SDK objects (pydantic models, objects
    with `to_dict`), also inside lists and dicts, become dicts without the fields that were never set.
    Raises DialectError (with `index`) if it is not a JSON object.
    """
    body, raw = read_any(payload, index)
    if not isinstance(body, dict):
        raise DialectError(f"a message is an object with a role, not {_name(body)}", index=index)
    return cast("dict[str, Any]", body), raw


def read_any(payload: Any, index: int | None = None) -> tuple[Any, bytes]:
    """Like `read`, for any JSON value."""
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
    """Parse kept bytes as they may be sent; raises DialectError (with `index`) if they are not JSON."""
    try:
        return as_sent(codec.decode(raw), raw)
    except _UNREADABLE as error:
        raise DialectError(f"the stored payload is not JSON: {error}", index=index) from error


def as_sent(body: Any, raw: bytes) -> Any:
    """Return the value of JSON bytes with U+FFFD for each lone surrogate."""
    may_hold_one = b"\\u" in raw or b"\xed" in raw  # an escape, or a surrogate in bytes that are not UTF-8
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
    """Turn a value into plain JSON values.

    Raises DialectError for a number that JSON lacks (NaN, infinity), TypeError for a value that is not data.
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
    """Return the fields of an SDK object without those never set (null is not the same as absent)."""
    dump = getattr(value, "model_dump", None)
    to_dict = getattr(value, "to_dict", None)
    if isinstance(value, type) or not (callable(dump) or callable(to_dict)):
        return msgspec.to_builtins(value, enc_hook=_inside)
    try:
        if callable(dump):
            return dump(mode="json", by_alias=True, exclude_unset=True)
        return cast("Any", to_dict)()
    except Exception as error:
        raise DialectError(f"{type(value).__name__} cannot be turned into a dict: {error}") from error


def _inside(value: Any) -> Any:
    """Return the fields of an SDK object inside a dataclass; raises TypeError for what is not data."""
    if isinstance(value, type) or not any(
        callable(getattr(value, name, None)) for name in ("model_dump", "to_dict")
    ):
        raise TypeError(f"{type(value).__name__} is not data")
    return _dump(value)


def peek(payload: Any, key: str) -> Any:
    """Return a field of a native message or block without converting it; None if it has none."""
    if isinstance(payload, (dict, Mapping)):  # most are a dict, and a Mapping is asked for slowly
        return cast("Mapping[str, Any]", payload).get(key)
    return getattr(payload, key, None)


def count(value: Any) -> int:
    """Return a provider's token count; 0 for anything but a positive whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def is_list(value: Any) -> bool:
    """Return whether a value is a list of messages: a sequence other than text or bytes."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def block_types(payload: Any) -> set[str]:
    """Return the types of a message's content blocks; empty if the content is not a list."""
    content = peek(payload, "content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    return {kind for block in blocks if isinstance(kind := peek(block, "type"), str)}


def items_of(value: Any) -> list[Any]:
    """Return a list's items; none for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def fields_of(value: Any) -> Fields:
    """Return an object's fields; none for anything else."""
    return cast("Fields", value) if isinstance(value, dict) else {}


def is_filled(value: Any) -> bool:
    """Return whether a value is text that says something."""
    return isinstance(value, str) and bool(value)


def filled(fields: Fields, key: str) -> bool:
    """Return whether a field holds text."""
    return is_filled(fields.get(key))


def string(fields: Fields, key: str, what: str, index: int | None = None) -> str:
    """Return a field that must be a string; raises DialectError (with `index`) that names it."""
    value = fields.get(key)
    if not isinstance(value, str):
        raise DialectError(f"{what}: {key} must be a string", index=index)
    return value


def role_in(roles: Mapping[str, Role], body: Fields, index: int | None = None, remedy: str = "") -> Role:
    """Return the role of a message; raises DialectError for one that its dialect lacks."""
    role = body.get("role")
    if not isinstance(role, str) or role not in roles:
        raise DialectError(f"role is {role!r}; it must be one of {', '.join(roles)}{remedy}", index=index)
    return roles[role]


def json_text(value: Any) -> str:
    """Return a value as compact JSON text; text stays as it is."""
    return value if isinstance(value, str) else codec.encode(value).decode("utf-8")


def arguments_of(value: Any) -> Fields | str:
    """Parse a call's arguments, {} for empty ones; no JSON object, or one nested too deeply, stays text."""
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
        parsed = _lenient(text)
    return cast("Fields", parsed) if isinstance(parsed, dict) else text


def _lenient(text: str) -> Any:
    """Parse text that holds lone surrogates; None if it is not JSON."""
    try:
        return codec.in_utf8(json.loads(text, parse_constant=_no_constant, parse_float=_finite))
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(number: str) -> float:
    """Read a number; one that is larger than any float is no JSON that an API takes."""
    return value if math.isfinite(value := float(number)) else _no_constant(number)


def is_deep(value: Any, most: int) -> bool:
    """Return whether a JSON value holds more than `most` levels of objects and lists; never recurses."""
    level: list[Any] = [value]
    for _ in range(most + 1):
        held: list[Any] = [one for outer in level for one in (*fields_of(outer).values(), *items_of(outer))]
        level = [one for one in held if isinstance(one, dict | list)]
        if not level:
            return False
    return True


def _is_deep_text(text: str) -> bool:
    """Return whether JSON text may hold more levels than are read: counted without reading it."""
    return text.count("{") + text.count("[") > DEEPEST and _levels(text) > DEEPEST


def _levels(text: str) -> int:
    """Return the most brackets open at once outside strings."""
    level = most = 0
    inside = escaped = False
    for char in text:
        if escaped:
            escaped = False
        elif inside:
            escaped, inside = char == "\\", char != '"'
        elif char == '"':
            inside = True
        elif char in "{[":
            level += 1
            most = max(most, level)
        elif char in "}]":
            level -= 1
    return most


def read_usage(
    usage: Any, *, given: str, output: str, cached: str, written: str, hour: str = "", apart: bool = False
) -> Usage | None:
    """Read a usage by the names that an API has for the input, the output and the two kinds of cached input.

    `hour` is the part of what was written to the cache that is kept for an hour. A name may be a path, or
    several with bars between them: the first that counts. `apart`: the input leaves cached tokens out.
    """
    if not isinstance(usage, dict):
        return None
    read_back, wrote, prompt = (_counted(fields_of(usage), names) for names in (cached, written, given))
    beside = 0 if apart else read_back + wrote
    return Usage(
        input=max(0, prompt - beside),
        cache_read=read_back,
        cache_write=wrote,
        output=_counted(fields_of(usage), output),
        cache_write_hour=min(wrote, _counted(fields_of(usage), hour)),
    )


def _counted(usage: Fields, names: str) -> int:
    for name in names.split("|"):
        holder, _, key = name.rpartition(".")
        if found := count((fields_of(usage.get(holder)) if holder else usage).get(key)):
            return found
    return 0


def _name(value: Any) -> str:
    names = {list: "a list", str: "a string", int: "a number", float: "a number", bool: "a boolean"}
    return "null" if value is None else names.get(cast("type[Any]", type(value)), type(value).__name__)
