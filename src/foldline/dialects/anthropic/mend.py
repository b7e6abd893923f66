"""Mend a malformed Anthropic message into one that the Messages API takes."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from foldline.dialects.ids import safe_name
from foldline.dialects.media import IMAGE_TYPES, from_anthropic
from foldline.dialects.mend import (
    as_text,
    call_id,
    deep_text,
    is_deep,
    left_out,
    parts,
    safe_tool_name,
    text_part,
)
from foldline.dialects.payload import Fields, fields_of
from foldline.dialects.values import Notes

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_ID = 64
_THOUGHTS = ("thinking", "redacted_thinking")
_IN_RESULT = ("text", "image", "document", "search_result", "tool_reference")


def mend(body: Fields, notes: Notes) -> Fields:
    """Return the message with what is malformed in it mended, and note each change."""
    content, role = body.get("content"), body.get("role")
    if isinstance(content, list):
        mended = parts(content, text_part, lambda block, notes: _block(block, str(role), notes), notes)
        return {**body, "content": mended}
    return body


def _block(block: Fields, role: str, notes: Notes) -> Fields | None:
    kind = block["type"]
    if kind == "text":
        return _text_block(block, notes)
    if kind in ("image", "document"):
        return _media(block, role, notes)
    if kind in _THOUGHTS:
        return _thought(block, role, notes)
    if kind in ("tool_use", "tool_result"):
        if (kind == "tool_use") != (role == "assistant"):
            notes.add(f"a {kind} of a {role} message became text")
            return text_part(as_text(block))
        return _call(block, notes) if kind == "tool_use" else _result(block, notes)
    return block


def _text_block(block: Fields, notes: Notes) -> Fields | None:
    value = block.get("text")
    if isinstance(value, str):
        return block  # an empty one is left out of a request, and is no change of what was said
    notes.add("the text of a block that is not text became text")
    return {**block, "text": as_text(value)} if value is not None else None


def _media(block: Fields, role: str, notes: Notes) -> Fields:
    kind = block["type"]
    media = from_anthropic(block)
    source = fields_of(block.get("source"))
    whole = (media is not None and bool(media.data or media.url)) or source.get("type") == "content"
    known = kind != "image" or source.get("type") != "base64" or source.get("media_type") in IMAGE_TYPES
    if whole and known and role != "assistant":
        return block
    what = "without data" if not whole else "of an unknown type" if not known else "of an assistant message"
    notes.add(f"a {kind} {what} became text")
    return text_part(left_out(kind))


def _thought(block: Fields, role: str, notes: Notes) -> Fields | None:
    kind = block["type"]
    key = "thinking" if kind == "thinking" else "data"
    value = block.get(key)
    if role != "assistant":
        notes.add(f"{kind} of a {role} message was left out")
        return None
    if not isinstance(value, str) or (key == "data" and not value):
        notes.add(f"{kind} without its {key} was left out")
        return None
    if key == "thinking" and not isinstance(block.get("signature"), str | None):
        notes.add("a signature that is not text was left out")
        return {name: item for name, item in block.items() if name != "signature"}
    return block


def _safe_id(value: Any, notes: Notes) -> str:
    given = call_id(value, notes)
    if not given or _ID.fullmatch(given):
        return given
    notes.add("a call id with characters that the API refuses was changed")
    return safe_name(given, _LONGEST_ID, "call")


def _call(block: Fields, notes: Notes) -> Fields:
    name = safe_tool_name(block.get("name"), notes, most=128)
    new = {**block, "id": _safe_id(block.get("id"), notes), "name": name}
    value = block.get("input")
    if not isinstance(value, dict) or is_deep(value):
        new["input"] = _input(value, notes)
    return new


def _input(value: Any, notes: Notes) -> Fields:
    if value is None:
        notes.add("a missing input became none")
        return {}
    if isinstance(value, dict | list) and is_deep(value):
        notes.add("an input that is nested too deeply was kept as text")
        return {"input": as_text(value)}
    notes.add("an input that is no object became one")
    if isinstance(value, str) and not deep_text(value):
        try:
            parsed = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError):
            parsed = None
        if isinstance(parsed, dict):
            return cast("Fields", parsed)
    return {} if value == "" else {"input": value}


def _result(block: Fields, notes: Notes) -> Fields:
    new = {**block, "tool_use_id": _safe_id(block.get("tool_use_id"), notes)}
    is_error = block.get("is_error")
    if is_error is not None and not isinstance(is_error, bool):
        notes.add("an is_error that is neither true nor false was read as one")
        new["is_error"] = str(is_error).lower() not in ("false", "0", "no", "")
    failed = new.get("is_error") is True
    content = block.get("content")
    if isinstance(content, list):
        new["content"] = parts(content, text_part, lambda inner, notes: _inner(inner, failed, notes), notes)
    elif content is not None and not isinstance(content, str):
        notes.add("the content of a result that is neither text nor blocks became text")
        new["content"] = as_text(content)
    return new


def _inner(block: Fields, failed: bool, notes: Notes) -> Fields | None:
    kind = block["type"]
    if kind == "text":
        return _text_block(block, notes)
    if kind not in _IN_RESULT:
        notes.add(f"a {kind} block of a result became text")
        return text_part(as_text(block))
    if kind in ("image", "document"):
        return _media(block, "assistant" if failed else "user", notes)
    return block
