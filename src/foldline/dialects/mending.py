"""What the menders of all dialects share: values that became text, ids, names, and the notes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from foldline.core.log import codec
from foldline.core.log.messages import Media
from foldline.dialects.media import placeholder

DEEPEST = 64  # levels of objects and lists in a value that is kept as one; deeper ones are kept as text
UNNAMED = "unnamed_tool"  # stands for a tool whose name is missing

Fields = dict[str, Any]


class Notes:
    """What was changed in one message, in plain words."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, line: str) -> None:
        """Note a change once."""
        if line not in self.lines:
            self.lines.append(line)


def items_of(value: Any) -> list[Any]:
    """Return a list's items; none for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def fields_of(value: Any) -> Fields:
    """Return an object's fields; none for anything else."""
    return cast("Fields", value) if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    """Return a JSON value as text: a string as it is, null as nothing, others as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return codec.encode(value).decode("utf-8")


def is_deep(value: Any, most: int = DEEPEST) -> bool:
    """Return whether a JSON value holds more than `most` levels of objects and lists."""
    level = [value]
    for _ in range(most + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterator[Any]:
    held: list[Any] = [*fields_of(value).values(), *items_of(value)]
    yield from (item for item in held if isinstance(item, dict | list))


def deep_text(text: str) -> bool:
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


def tool_name(value: Any, notes: Notes) -> str:
    """Return the name of a tool, or one that says that it has none."""
    if isinstance(value, str) and value:
        return value
    notes.add(f"a tool call without a name became {UNNAMED}")
    return UNNAMED


def call_id(value: Any, notes: Notes) -> str:
    """Return a call's id as text; "" where it has none, for the list to find one."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        notes.add("a call id that is a number became text")
        return str(value)
    return ""


def flat(content: Any) -> list[Any]:
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


def left_out(kind: str) -> str:
    """Return the text that stands for media without data."""
    return placeholder(Media(kind))


def parts(
    content: Any,
    text_part: Callable[[str], Fields],
    part: Callable[[Fields, Notes], Fields | None],
    notes: Notes,
) -> list[Any]:
    """Mend a list of content parts: lists inside it are spread, what is no part becomes text.

    `text_part` makes a text part, `part` mends an object with a type; None leaves it out.
    """
    found: list[Any] = []
    values = flat(content)
    if len(values) != len(content) or any(isinstance(value, list) for value in content):
        notes.add("a list inside the content was spread")
    for value in values:
        fields = fields_of(value)
        if isinstance(fields.get("type"), str):
            mended = part(fields, notes)
        else:
            told = fields.get("text")
            text = told if isinstance(told, str) else as_text(value)
            notes.add("a content part without a type became text")
            mended = text_part(text) if text else None
        if mended is not None:
            found.append(mended)
    return found
