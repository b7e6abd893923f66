"""Messages of role and text, such as the plain form has: `{"role": "user", "text": "…"}`."""

from __future__ import annotations

from typing import Any, Final

from foldline.transcripts import payloads
from foldline.transcripts.forms.written import Written
from foldline.transcripts.lines import items, mapping, text_or

NAME: Final = "a list of roles and texts"
_ROLES: Final = ("system", "user", "assistant", "tool")


def fits(body: dict[str, Any]) -> bool:
    """Return whether a message has a text instead of a content."""
    return text_or(body.get("role")) in _ROLES and isinstance(body.get("text"), str) and "content" not in body


def write(body: dict[str, Any], out: Written) -> None:
    """Write a message."""
    out.add(payload(body))


def payload(value: dict[str, Any]) -> dict[str, Any]:
    """Write a message of role, text, calls and call_id as one of Chat Completions."""
    role, text = value.get("role"), text_or(value.get("text"))
    if role == "tool":
        return {"role": "tool", "tool_call_id": text_or(value.get("call_id")), "content": text}
    calls = [
        payloads.call(call.get("id"), call.get("name"), call.get("args"))
        for call in map(mapping, items(value.get("calls")))
    ]
    if role == "assistant" and calls:
        return {"role": "assistant", "content": text or None, "tool_calls": calls}
    return {"role": role, "content": text}
