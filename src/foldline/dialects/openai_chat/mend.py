"""Mend a malformed Chat Completions message into one that the API takes."""

from __future__ import annotations

from typing import Any, cast

from foldline.dialects.media import from_openai
from foldline.dialects.mend import as_text, call_id, left_out, parts, text_part, tool_name
from foldline.dialects.payload import Fields, fields_of, items_of
from foldline.dialects.values import Notes

_TEXTS = ("text", "refusal")
_MEDIA = {"image_url": "image", "input_audio": "audio", "file": "document"}


def mend(body: Fields, notes: Notes) -> Fields:
    """Return the message with what is malformed in it mended, and note each change."""
    new = dict(body)
    role = new.get("role")
    if role in ("tool", "function"):
        _result(new, notes)
    elif isinstance(role, str):
        _content(new, role, notes)
    if "name" in new and role != "function" and not (isinstance(new["name"], str) and new["name"]):
        del new["name"]
        notes.add("an empty name was left out")
    if role == "assistant":
        _calls(new, notes)
        _legacy_call(new, notes)
    elif "tool_calls" in new and isinstance(role, str):
        del new["tool_calls"]
        notes.add(f"calls of a {role} message were left out")
    return new


def _result(new: Fields, notes: Notes) -> None:
    legacy = new["role"] == "function"
    key = "name" if legacy else "tool_call_id"
    if not isinstance(new.get(key), str):
        new[key] = call_id(new.get(key), notes)
    if legacy and not new[key]:
        new[key] = tool_name(None, notes)
    content = new.get("content")
    if isinstance(content, str) or (content is None and legacy):
        return
    if isinstance(content, list) and content:
        new["content"] = parts(content, text_part, _result_part, notes) or ""
        return
    new["content"] = "" if isinstance(content, list) else as_text(content)
    notes.add("the content of a result that is neither text nor parts became text")


def _content(new: Fields, role: str, notes: Notes) -> None:
    content = new.get("content")
    if content is None and role != "assistant":
        new["content"] = ""
        notes.add(f"the missing content of a {role} message became empty text")
    elif isinstance(content, list):
        mended = parts(content, text_part, _part, notes)
        if not mended:
            notes.add("an empty list of content parts became empty text")
        new["content"] = mended or ""
    if "refusal" in new and not isinstance(new["refusal"], str | None):
        new["refusal"] = as_text(new["refusal"])
        notes.add("a refusal that is not text became text")


def _part(part: Fields, notes: Notes) -> Fields | None:
    kind = part["type"]
    if kind in _TEXTS:
        text = part.get(kind)
        if not isinstance(text, str):
            notes.add(f"the {kind} of a part that is not text became text")
        elif not text:
            notes.add(f"an empty {kind} part was left out")
        text = as_text(text)
        return {**part, kind: text} if text else None
    if kind in _MEDIA:
        media = from_openai(part)
        url = media.url if media is not None else None
        if media is None or not (media.data or url):
            notes.add(f"a {kind} part without data became text")
            return text_part(left_out(_MEDIA[kind]))
        return part if isinstance(part.get(kind), dict) else {**part, kind: {"url": part[kind]}}
    return part


def _result_part(part: Fields, notes: Notes) -> Fields | None:
    kind = part["type"]
    if kind in _TEXTS or kind in _MEDIA:
        return _part(part, notes)
    notes.add(f"a {kind} part of a result became text")
    return text_part(as_text(part))


def _calls(new: Fields, notes: Notes) -> None:
    calls = new.get("tool_calls")
    if "tool_calls" not in new:
        return
    listed: list[Any] = [fields_of(calls)] if isinstance(calls, dict) else items_of(calls)
    mended = [_call(cast("Fields", call), notes) for call in listed if isinstance(call, dict)]
    if len(mended) != len(listed) or not isinstance(calls, list | None):
        notes.add("tool_calls that hold no calls were left out")
    if mended:
        new["tool_calls"] = mended
        return
    del new["tool_calls"]
    notes.add("empty tool_calls were left out")
    if new.get("content") is None:
        new["content"] = ""


def _call(call: Fields, notes: Notes) -> Fields:
    new = {**call, "id": call_id(call.get("id"), notes)}
    kind = "custom" if isinstance(call.get("custom"), dict) else "function"
    if call.get("type") not in ("function", "custom"):
        notes.add(f"a tool call without a type became a {kind}")
        new["type"] = kind
    kind = new["type"]
    inner = fields_of(call.get(kind))
    if not isinstance(call.get(kind), dict):
        notes.add(f"a tool call without its {kind} was filled in")
        inner = {key: call[key] for key in ("name", "arguments", "input") if key in call}
    key = "arguments" if kind == "function" else "input"
    name = tool_name(inner.get("name"), notes)
    new[kind] = {**inner, "name": name, key: _arguments(inner, key, notes)}
    return new


def _arguments(inner: Fields, key: str, notes: Notes) -> str:
    value = inner.get(key)
    if isinstance(value, str):
        return value
    if value is None:
        notes.add(f"missing {key} became none")
        return "{}" if key == "arguments" else ""
    notes.add(f"{key} that are not JSON text became JSON text")
    return as_text(value)


def _legacy_call(new: Fields, notes: Notes) -> None:
    if "function_call" not in new:
        return
    call = new["function_call"]
    if not isinstance(call, dict):
        del new["function_call"]
        notes.add("a function_call that is no call was left out")
        if new.get("content") is None:
            new["content"] = ""
        return
    inner = cast("Fields", call)
    name = inner.get("name")
    if isinstance(name, str) and name and isinstance(inner.get("arguments"), str):
        return
    named = tool_name(name, notes)
    new["function_call"] = {**inner, "name": named, "arguments": _arguments(inner, "arguments", notes)}
