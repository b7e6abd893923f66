"""Messages as chat templates of local models want them: user and assistant in turn, the system at the head.

Vendors take two messages of one role in a row; servers that apply a model's own template refuse them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from foldline.dialects.dialect import Dialect, get
from foldline.dialects.payload import Fields
from foldline.dialects.writer import OPENING, SYSTEM_NOTE

NO_REPLY = "[The model said nothing here.]"  # goes between a tool's result and the user's words
_SYSTEM = ("system", "developer")


def applies_template(model: str | None) -> bool:
    """Return whether a model, as `provider:name`, is asked at a server that may apply its template."""
    return (model or "").partition(":")[0].lower().endswith("-compatible")


def in_turn(messages: Sequence[Any], dialect: str) -> list[Any]:
    """Return native messages in which no two of the user, or of the assistant, are in a row.

    Neighbours are joined, their texts by a blank line; system messages behind the head become the user's. The
    result of a longer list extends that of a shorter one. What is given stays as it is.
    """
    spoken = get(dialect)
    if not spoken.templated or not all(isinstance(message, dict) for message in messages):
        return list(messages)
    found: list[Fields] = []
    for message in cast("Sequence[Fields]", messages):
        said = message
        role, before = spoken.turn(said), spoken.turn(found[-1]) if found else ""
        if role in _SYSTEM and before and before not in _SYSTEM:
            said, role = _of_user(said), "user"
        if (role == before and role in ("tool", "item")) or (role in _SYSTEM and not before):
            found.append(said)
        elif (role in _SYSTEM and before in _SYSTEM) or (role == before and not _calls(found[-1])):
            found[-1] = _joined(found[-1], said, spoken)
        else:
            if role == "user" and before == "tool":
                found.append(spoken.said("assistant", NO_REPLY))
            elif role in ("assistant", "tool") and before in ("", *_SYSTEM):
                found.append(spoken.said("user", OPENING))
            found.append(said)
    return found


def _calls(message: Fields) -> bool:
    return bool(message.get("tool_calls") or message.get("function_call"))


def _of_user(message: Fields) -> Fields:
    """Return a system message as one of the user's, marked so that its words are not taken for theirs."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "role": "user", "content": SYSTEM_NOTE + content}
    parts = [dict(part) for part in cast("list[Fields]", content or [])]
    first = next((part for part in parts if isinstance(part.get("text"), str)), None)
    if first is not None:
        first["text"] = SYSTEM_NOTE + first["text"]
    return {**message, "role": "user", "content": parts}


def _joined(before: Fields, after: Fields, dialect: Dialect) -> Fields:
    """Return two messages of one role as one; the first gives its role, the last its other fields."""
    first, second = before.get("content"), after.get("content")
    content: Any
    if not first or not second:
        content = first or second
    elif isinstance(first, str) and isinstance(second, str):
        content = f"{first}\n\n{second}"
    else:
        role = str(before.get("role"))
        listed = (
            [dialect.text_part(role, one)] if isinstance(one, str) else list(one) for one in (first, second)
        )
        content = [part for parts in listed for part in parts]
    return {**before, **after, "role": before["role"], "content": content}
