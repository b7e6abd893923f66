"""Checks of single messages: one pass that both validates and repairs.

The `form.py` of a dialect checks each message on its own. It reports broken rules and returns the message
repaired: validators use the reports, the mender the return value. Blocks, parts and items are described by
tables of their fields. This module is shared by all dialects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from foldline.core.log.messages import Media
from foldline.dialects.ids import safe_id, safe_name
from foldline.dialects.media import from_any, placeholder, words_of
from foldline.dialects.payload import Fields, arguments_of, fields_of, filled, is_filled, json_text
from foldline.dialects.values import Report

ID_LIMIT = 64  # of call ids, where an API restricts their characters
UNNAMED = "unnamed_tool"  # a tool whose name is missing
UNUSABLE: Any = object()  # returned for a value that cannot be repaired: its block is dropped


class Field(NamedTuple):
    """A field: the rule for its value, a test, what the test expects, and a repair of values that fail it."""

    key: str
    rule: str
    fits: Callable[[Any], bool]
    expected: str
    repair: Callable[[Any], Any] = lambda _: UNUSABLE


Forms = Mapping[str, Sequence[Field]]  # by the type of a block


def check_fields(report: Report, kind: str, fields: Sequence[Field], block: Fields) -> Fields | None:
    """Report the fields of a block that break a rule; return it repaired, None if that is impossible."""
    new: Fields | None = block
    for field in fields:
        value = block.get(field.key) if new is None else new.get(field.key)
        if field.fits(value):
            continue
        report(field.rule, f"the {field.key} of a {kind} must be {field.expected}")
        repaired = field.repair(value)
        if repaired is UNUSABLE:
            new = None
        elif new is not None and repaired is not value:
            new = {**new, field.key: repaired}
    return new


def check_parts(
    report: Report,
    rule: str,
    parts: list[Any],
    check_part: Callable[[Fields], Fields | None],
    text_part: Callable[[str], Fields],
    *,
    is_part: Callable[[Fields], bool] = lambda part: isinstance(part.get("type"), str),
) -> list[Any]:
    """Check the parts of a content and return them repaired.

    Nested lists are flattened, values that are not parts (`is_part`) become text (`text_part`).
    `check_part` returns a part repaired, or None to drop it.
    """
    checked: list[Any] = []
    for value in _flatten(parts):
        part = fields_of(value)
        if is_part(part):
            new = check_part(part)
        else:
            report(rule, "a content part must be an object that names its kind")
            text = part["text"] if isinstance(part.get("text"), str) else as_text(value)
            new = text_part(text) if text else None
        if new is not None:
            checked.append(new)
    if any(isinstance(part, list) for part in parts):
        report(rule, "a content part must not be a list")
    return checked


def _flatten(values: list[Any]) -> list[Any]:
    """Flatten nested lists, at any depth."""
    flat: list[Any] = []
    stack: list[Any] = [values]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(reversed(cast("list[Any]", value)))
        else:
            flat.append(value)
    return flat


# ---- tests and repairs of values


def a(*types: type | None) -> Callable[[Any], bool]:
    """Return a test for instances of these types (None: null)."""
    classes = tuple(type(None) if kind is None else kind for kind in types)
    return lambda value: isinstance(value, classes)


def matching(pattern: str) -> Callable[[Any], bool]:
    """Return a test for strings that match a pattern in full."""
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def one_of(*values: Any) -> Callable[[Any], bool]:
    """Return a test for membership in these values."""
    return lambda value: value in values


def holding(*keys: str) -> Callable[[Any], bool]:
    """Return a test for objects with a non-empty string under one of these keys."""
    return lambda value: any(filled(fields_of(value), key) for key in keys)


def filled_field(key: str, rule: str, repair: Callable[[Any], Any] = lambda _: UNUSABLE) -> Field:
    """Return a field that must be a non-empty string."""
    return Field(key, rule, is_filled, "a non-empty string", repair)


def _is_not_empty(value: Any) -> bool:
    return value != ""


def text_fields(key: str, rule: str) -> tuple[Field, ...]:
    """Return the checks of a text field; a part with an empty text is dropped."""
    return (
        Field(key, rule, a(str), "a string", as_text),
        Field(key, "text-empty", _is_not_empty, "a non-empty string"),
    )


def _is_not_blank(value: Any) -> bool:
    return bool(str(value).strip())


def unchanged(value: Any) -> Any:
    """Keep a value that breaks a rule: there is no better one, or requests omit it."""
    return value


def text_block_fields() -> tuple[Field, ...]:
    """Return the checks of a text block; a blank one is kept, and requests omit it."""
    return (
        Field("text", "block-shape", a(str), "a string", as_text),
        Field("text", "text-empty", _is_not_blank, "more than whitespace", unchanged),
    )


def as_text(value: Any) -> str:
    """Return a JSON value as text: strings unchanged, null as "", others as JSON."""
    return "" if value is None else json_text(value)


def as_json(value: Any) -> str:
    """Return the arguments of a call as JSON text; null as an empty object."""
    return as_text(value) or "{}"


def as_id(value: Any) -> str:
    """Return a call id as text; "" if there is none, for the mender to assign one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else ""


def as_safe_id(value: Any) -> str:
    """Return a call id with safe characters and length; "" if there is none."""
    call_id = as_id(value)
    return safe_id(call_id, ID_LIMIT) if call_id else ""


def as_name(value: Any) -> str:
    """Return the name of a tool; UNNAMED if there is none."""
    return value if isinstance(value, str) and value else UNNAMED


def as_safe_name(value: Any, limit: int = 128) -> str:
    """Return the name of a tool with safe characters and length."""
    return safe_name(as_name(value), limit, UNNAMED)


def as_input(value: Any) -> Fields:
    """Return the arguments of a call as an object; other values are wrapped in one."""
    arguments = arguments_of(value) if isinstance(value, str | None) else value
    return cast("Fields", arguments) if isinstance(arguments, dict) else {"input": arguments}


def text_part(text: str) -> Fields:
    """Return a text part of a message."""
    return {"type": "text", "text": text}


def replacement_for(
    block: Fields,
    text: Callable[[str], Fields] = text_part,
    encode_media: Callable[[Media], Fields | None] = lambda _: None,
) -> Fields:
    """Return the replacement of a block that is not valid in its place: media where possible, else text."""
    media = from_any(block)
    return text(as_text(block)) if media is None else encode_media(media) or text(words_of(media))


def missing_media(kind: str) -> str:
    """Return the text that replaces media that cannot be read."""
    return placeholder(Media(kind))
