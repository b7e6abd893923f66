"""Messages whose content is one text: Ollama's, and messages of role and text, such as the plain form.

Ollama's have calls without ids, arguments as objects, and separate images and thoughts.
"""

from __future__ import annotations

from typing import Any, Final

from foldline.dialects.payload import fields_of, items_of
from foldline.transcripts import payloads
from foldline.transcripts.forms.chat_list import ChatListWriter
from foldline.transcripts.lines import text_or

_ROLES: Final = ("system", "user", "assistant", "tool")


def fits_ollama(body: dict[str, Any]) -> bool:
    """Return whether a message has features of Ollama's alone."""
    if text_or(body.get("role")) not in _ROLES or not isinstance(body.get("content", ""), str):
        return False
    if text_or(body.get("tool_name")) or text_or(body.get("thinking")) or items_of(body.get("images")):
        return True
    calls = [fields_of(call) for call in items_of(body.get("tool_calls"))]
    return any(
        "id" not in call and isinstance(fields_of(call.get("function")).get("arguments"), dict)
        for call in calls
    )


def write_ollama(body: dict[str, Any], out: ChatListWriter) -> None:
    """Write a message."""
    role, content = body["role"], text_or(body.get("content"))
    if role == "tool":
        out.result(body.get("tool_call_id"), content, name=body.get("tool_name"))
        return
    out.thought(body.get("thinking"))
    out.text(content)
    for image in items_of(body.get("images")):
        out.media("image/png", data=fields_of(image).get("value", image), kind="image")
    for call in map(fields_of, items_of(body.get("tool_calls"))):
        function = fields_of(call.get("function"))
        out.call(call.get("id"), function.get("name"), function.get("arguments"))
    out.end(role)


def fits_bare(body: dict[str, Any]) -> bool:
    """Return whether a message has `text` instead of `content`."""
    return text_or(body.get("role")) in _ROLES and isinstance(body.get("text"), str) and "content" not in body


def write_bare(body: dict[str, Any], out: ChatListWriter) -> None:
    """Write a message."""
    out.add(plain_payload(body))


def plain_payload(value: dict[str, Any]) -> dict[str, Any]:
    """Convert a message of role, text, calls and call_id to Chat Completions."""
    role, text = value.get("role"), text_or(value.get("text"))
    if role == "tool":
        return {"role": "tool", "tool_call_id": text_or(value.get("call_id")), "content": text}
    calls = [
        payloads.call(call.get("id"), call.get("name"), call.get("args"))
        for call in map(fields_of, items_of(value.get("calls")))
    ]
    if role == "assistant" and calls:
        return {"role": "assistant", "content": text or None, "tool_calls": calls}
    return {"role": role, "content": text}
