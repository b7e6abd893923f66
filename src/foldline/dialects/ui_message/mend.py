"""Mend a malformed UI message into one that the AI SDK takes."""

from __future__ import annotations

import hashlib
from typing import Any, cast

from foldline.core.log import codec
from foldline.dialects.mend import as_text, call_id, is_deep, left_out, parts, text_part, tool_name
from foldline.dialects.payload import Fields, items_of, peek
from foldline.dialects.ui_message.read import ROLES, V4_KEYS
from foldline.dialects.ui_message.tools import ANSWERED, DYNAMIC, OPEN, PREFIX, STREAMING, is_tool, kind_of
from foldline.dialects.values import Notes

_TEXTS = ("text", "reasoning")
_STATES = (STREAMING, *OPEN, *ANSWERED)


def message_id(made_of: bytes) -> str:
    """Return an id for a message without one; the same for the same bytes."""
    return f"msg_{hashlib.blake2s(made_of, digest_size=8).hexdigest()}"


def plain_text(payload: Any, salt: str) -> Any:
    """Return a plain text message (a role and a text, without id and parts) as a UI message.

    Everything else comes back unchanged. Its id is made from its text and `salt`, which tells equal texts
    apart.
    """
    if not isinstance(payload, dict) or any(key in payload for key in ("parts", "id", *V4_KEYS)):
        return cast("Any", payload)
    body = cast("Fields", payload)
    role, content = body.get("role"), body.get("content")
    blocks = [text_part(content)] if isinstance(content, str) else items_of(content)
    words = [peek(block, "text") for block in blocks if peek(block, "type") == "text"]
    whole = len(words) == len(blocks) and all(isinstance(text, str) for text in words)
    if not isinstance(role, str) or role not in ROLES or not blocks or not whole:
        return body
    kept = {key: value for key, value in body.items() if key != "content"}
    own = message_id(codec.encode([salt, role, words]))
    return {"id": own, **kept, "parts": [text_part(text) for text in words]}


def mend(body: Fields, notes: Notes, salt: str) -> Fields:
    """Return the message with what is malformed in it mended, and note each change."""
    new = dict(body)
    if not isinstance(new.get("id"), str) and ("parts" in new or not any(key in new for key in V4_KEYS)):
        notes.add("a message without an id was given one")
        new["id"] = message_id(codec.encode([salt, body]))
    content = new.get("parts")
    if isinstance(content, list):
        new["parts"] = parts(content, text_part, _part, notes)
    elif "parts" in new and not isinstance(new.get("content"), str):
        notes.add("parts that are no list became text")
        text = as_text(content)
        new["parts"] = [text_part(text)] if text else []
    return new


def _part(part: Fields, notes: Notes) -> Fields | None:
    kind = part["type"]
    if kind in _TEXTS:
        key = "reasoning" if "text" not in part and "reasoning" in part else "text"
        if isinstance(part.get(key), str):
            return part
        notes.add(f"a {kind} part that holds no text became one")
        text = as_text(part.get(key))
        return {**part, key: text} if text else None
    if kind == "file":
        old = (
            "url" not in part and isinstance(part.get("data"), str) and isinstance(part.get("mimeType"), str)
        )
        if old or (part.get("url") and all(isinstance(part.get(k), str) for k in ("mediaType", "url"))):
            return part
        notes.add("a file without data became text")
        mime = part.get("mediaType")
        return text_part(left_out(kind_of(mime) if isinstance(mime, str) else "document"))
    return _tool(part, notes) if is_tool(part) else part


def _tool(part: Fields, notes: Notes) -> Fields:
    new = {**part, "toolCallId": call_id(part.get("toolCallId"), notes)}
    if part["type"] == DYNAMIC:
        new["toolName"] = tool_name(part.get("toolName"), notes)
    elif part["type"] == PREFIX:
        new["type"] = PREFIX + tool_name(None, notes)
    if part.get("state") not in _STATES:
        state = "output-error" if "errorText" in part else "output-available" if "output" in part else OPEN[0]
        notes.add(f"a tool part of no known state was read as {state}")
        new["state"] = state
    state = str(new["state"])
    _input(new, state, notes)
    if state == "output-available" and "output" not in new:
        notes.add("a missing output became none")
        new["output"] = None
    if state == "output-error" and not isinstance(new.get("errorText"), str):
        notes.add("the error of a tool part became text")
        new["errorText"] = as_text(new.get("errorText")) or "error"
    if is_deep(new.get("output")):
        notes.add("an output that is nested too deeply was kept as text")
        new["output"] = as_text(new["output"])
    return new


def _input(new: Fields, state: str, notes: Notes) -> None:
    if "input" not in new and state != STREAMING and not (state == "output-error" and "rawInput" in new):
        notes.add("a missing input became none")
        new["input"] = {}
    for key in ("input", "rawInput"):
        if is_deep(new.get(key)):
            notes.add("an input that is nested too deeply was kept as text")
            new[key] = as_text(new[key])
