"""Ollama's chat messages: calls without ids, arguments as objects, images and thoughts beside the text."""

from __future__ import annotations

from typing import Any, Final

from foldline.transcripts.forms.written import Written
from foldline.transcripts.lines import items, mapping, text_or

NAME: Final = "Ollama"
_ROLES: Final = ("system", "user", "assistant", "tool")


def fits(body: dict[str, Any]) -> bool:
    """Return whether a message has what only Ollama's have."""
    if text_or(body.get("role")) not in _ROLES or not isinstance(body.get("content", ""), str):
        return False
    if text_or(body.get("tool_name")) or text_or(body.get("thinking")) or items(body.get("images")):
        return True
    calls = [mapping(call) for call in items(body.get("tool_calls"))]
    return any(
        "id" not in call and isinstance(mapping(call.get("function")).get("arguments"), dict)
        for call in calls
    )


def write(body: dict[str, Any], out: Written) -> None:
    """Write a message."""
    role, content = body["role"], text_or(body.get("content"))
    if role == "tool":
        out.result(body.get("tool_call_id"), content, name=body.get("tool_name"))
        return
    out.thought(body.get("thinking"))
    out.text(content)
    for image in items(body.get("images")):
        out.media("image/png", data=mapping(image).get("value", image), kind="image")
    for call in map(mapping, items(body.get("tool_calls"))):
        function = mapping(call.get("function"))
        out.call(call.get("id"), function.get("name"), function.get("arguments"))
    out.end(role)
