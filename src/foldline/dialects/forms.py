"""The form of what messages hold: one walk a dialect, by which it is both checked and mended.

The `form.py` of a dialect looks at each message by itself. It says which rules are broken, and returns the
message as it may be sent: a validator reads what was said, a mender takes what came back. What a block, part
or item must hold is a table of its fields. This is what all dialects share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from foldline.core.log.messages import Media
from foldline.dialects.ids import safe_id, safe_name
from foldline.dialects.media import from_any, placeholder, words_of
from foldline.dialects.payload import Fields, arguments_of, fields_of, filled, is_filled, json_text
from foldline.dialects.values import Say

ID_LIMIT = 64  # of a call's id where an API takes safe characters alone
UNNAMED = "unnamed_tool"  # a tool whose name is missing
SPOILED: Any = object()  # what is made of a value without which a block is of no use


class Field(NamedTuple):
    """A field: the rule that a value breaks that does not fit, what it must be, and what is made of it."""

    key: str
    rule: str
    fits: Callable[[Any], bool]
    wanted: str
    made: Callable[[Any], Any] = lambda _: SPOILED


Forms = Mapping[str, Sequence[Field]]  # by the type of a block


def look_at(say: Say, kind: str, fields: Sequence[Field], block: Fields) -> Fields | None:
    """Check the fields of a block and return it with those that fit; None if it is of no use."""
    new: Fields | None = block
    for field in fields:
        value = block.get(field.key) if new is None else new.get(field.key)
        if field.fits(value):
            continue
        say(field.rule, f"the {field.key} of a {kind} must be {field.wanted}")
        made = field.made(value)
        if made is SPOILED:
            new = None
        elif new is not None and made is not value:
            new = {**new, field.key: made}
    return new


def look_at_parts(
    say: Say,
    rule: str,
    parts: list[Any],
    look: Callable[[Fields], Fields | None],
    text_part: Callable[[str], Fields],
    *,
    known: Callable[[Fields], bool] = lambda part: isinstance(part.get("type"), str),
) -> list[Any]:
    """Look at the parts of a content: what is not `known` as one becomes text, lists inside it are spread.

    `look` returns a part as it may be sent, or None; `text_part` makes one of text.
    """
    found: list[Any] = []
    for value in _spread(parts):
        part = fields_of(value)
        if known(part):
            new = look(part)
        else:
            say(rule, "a content part must be an object that says what it is")
            told = part.get("text")
            text = told if isinstance(told, str) else as_text(value)
            new = text_part(text) if text else None
        if new is not None:
            found.append(new)
    if any(isinstance(part, list) for part in parts):
        say(rule, "a content part must not be a list")
    return found


def _spread(content: Any) -> list[Any]:
    """Return the parts of a content list, those of lists inside it in their place."""
    found: list[Any] = []
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(reversed(cast("list[Any]", value)))
        else:
            found.append(value)
    return found


# ---- what fits, and what is made of what does not


def a(*types: type | None) -> Callable[[Any], bool]:
    """Return a test for values of these types."""
    known = tuple(type(None) if one is None else one for one in types)
    return lambda value: isinstance(value, known)


def matching(pattern: str) -> Callable[[Any], bool]:
    """Return a test for text of a pattern."""
    found = re.compile(pattern)
    return lambda value: isinstance(value, str) and found.fullmatch(value) is not None


def one_of(*values: Any) -> Callable[[Any], bool]:
    """Return a test for these values."""
    return lambda value: value in values


def holding(*keys: str) -> Callable[[Any], bool]:
    """Return a test for an object with text under one of these keys."""
    return lambda value: any(filled(fields_of(value), key) for key in keys)


def filled_field(key: str, rule: str, made: Callable[[Any], Any] = lambda _: SPOILED) -> Field:
    """Return a field that must hold text."""
    return Field(key, rule, is_filled, "a non-empty string", made)


def _is_said(value: Any) -> bool:
    return value != ""


def _has_words(value: Any) -> bool:
    return bool(str(value).strip())


def text_fields(key: str, rule: str) -> tuple[Field, ...]:
    """Return the field of a part that holds text; an empty one is left out."""
    return (
        Field(key, rule, a(str), "a string", as_text),
        Field(key, "text-empty", _is_said, "a text that says something"),
    )


def kept(value: Any) -> Any:
    """Keep a value that breaks a rule: nothing better can be made of it, or a request leaves it out."""
    return value


def text_block_fields() -> tuple[Field, ...]:
    """Return the field of a block that holds text; a blank one stays, and a request leaves it out."""
    return (
        Field("text", "block-shape", a(str), "a string", as_text),
        Field("text", "text-empty", _has_words, "more than whitespace", kept),
    )


def as_text(value: Any) -> str:
    """Return a JSON value as text: a string as it is, null as nothing, others as JSON."""
    return "" if value is None else json_text(value)


def as_json(value: Any) -> str:
    """Return the arguments of a call as JSON text."""
    return as_text(value) or "{}"


def as_id(value: Any) -> str:
    """Return a call's id as text; "" where it has none, for the list to find one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else ""


def as_safe_id(value: Any) -> str:
    """Return a call's id in the characters, and of the length, that an API takes; "" where it has none."""
    given = as_id(value)
    return safe_id(given, ID_LIMIT) if given else given


def as_name(value: Any) -> str:
    """Return the name of a tool, or one that says that it has none."""
    return value if isinstance(value, str) and value else UNNAMED


def as_safe_name(value: Any, limit: int = 128) -> str:
    """Return the name of a tool in the characters, and of the length, that an API takes."""
    return safe_name(as_name(value), limit, UNNAMED)


def as_input(value: Any) -> Fields:
    """Return the arguments of a call as an object; what is none is put into one."""
    given = arguments_of(value) if isinstance(value, str | None) else value
    return cast("Fields", given) if isinstance(given, dict) else {"input": given}


def _unwritten(_: Media) -> None:
    """Write no media: only text may stand here."""


def text_part(text: str) -> Fields:
    """Return a text as a part of a message."""
    return {"type": "text", "text": text}


def instead(
    block: Fields,
    text: Callable[[str], Fields] = text_part,
    media: Callable[[Media], Fields | None] = _unwritten,
) -> Fields:
    """Return what a block becomes that is of no use where it stands: `media` where they can be, else text."""
    found = from_any(block)
    return text(as_text(block)) if found is None else media(found) or text(words_of(found))


def left_out(kind: str) -> str:
    """Return the text that replaces media without data."""
    return placeholder(Media(kind))
