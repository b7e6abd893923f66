"""Alternating roles for the chat templates of local models: system first, then user and assistant in turn.

Vendors accept two messages of one role in a row; servers that apply a chat template refuse them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from foldline.dialects.dialect import Dialect, get
from foldline.dialects.payload import Fields
from foldline.dialects.writer import OPENING, SYSTEM_NOTE

NO_REPLY = "[The model said nothing here.]"  # separates a tool result from a user message
_SYSTEM = ("system", "developer")


def applies_template(model: str | None) -> bool:
    """Return whether the server of a model (`provider:name`) may apply a chat template."""
    return (model or "").partition(":")[0].lower().endswith("-compatible")


def in_turn(messages: Sequence[Any], dialect: str) -> list[Any]:
    """Return native messages in which user and assistant alternate.

    Neighbours of one role are merged, their texts joined by a blank line; later system messages become user
    messages. The result for a longer list extends that for a shorter one. The argument is not changed.
    """
    chat = get(dialect)
    if not chat.templated or not all(isinstance(message, dict) for message in messages):
        return list(messages)
    turns: list[Fields] = []
    for original in cast("Sequence[Fields]", messages):
        message = original
        role, before = chat.speaker(message), chat.speaker(turns[-1]) if turns else ""
        if role in _SYSTEM and before and before not in _SYSTEM:
            message, role = _as_user_message(message), "user"
        if (role == before and role in ("tool", "item")) or (role in _SYSTEM and not before):
            turns.append(message)
        elif (role in _SYSTEM and before in _SYSTEM) or (role == before and not _has_calls(turns[-1])):
            turns[-1] = _merge(turns[-1], message, chat)
        else:
            if role == "user" and before == "tool":
                turns.append(chat.text_message("assistant", NO_REPLY))
            elif role in ("assistant", "tool") and before in ("", *_SYSTEM):
                turns.append(chat.text_message("user", OPENING))
            turns.append(message)
    return turns


def _has_calls(message: Fields) -> bool:
    return bool(message.get("tool_calls") or message.get("function_call"))


def _as_user_message(message: Fields) -> Fields:
    """Return a system message as a user message, with a prefix that marks it."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "role": "user", "content": SYSTEM_NOTE + content}
    parts = [dict(part) for part in cast("list[Fields]", content or [])]
    first = next((part for part in parts if isinstance(part.get("text"), str)), None)
    if first is not None:
        first["text"] = SYSTEM_NOTE + first["text"]
    return {**message, "role": "user", "content": parts}


def _merge(before: Fields, after: Fields, dialect: Dialect) -> Fields:
    """Merge two messages of one role; the role is that of the first, fields of the second win."""
    first, second = before.get("content"), after.get("content")
    content: Any
    if not first or not second:
        content = first or second
    elif isinstance(first, str) and isinstance(second, str):
        content = f"{first}\n\n{second}"
    else:
        role = str(before.get("role"))
        content = []
        for value in (first, second):
            content += [dialect.text_part(role, value)] if isinstance(value, str) else value
    return {**before, **after, "role": before["role"], "content": content}
