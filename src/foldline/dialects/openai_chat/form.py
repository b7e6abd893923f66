"""Checks of Chat Completions messages: content parts, calls and results."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.messages import Role
from foldline.dialects.forms import (
    UNUSABLE,
    Field,
    Forms,
    a,
    as_id,
    as_json,
    as_name,
    as_text,
    check_fields,
    check_parts,
    filled_field,
    holding,
    missing_media,
    replacement_for,
    text_fields,
    text_part,
)
from foldline.dialects.payload import Fields, fields_of, filled, is_filled, items_of
from foldline.dialects.values import Report

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
TEXTS = ("text", "refusal")
MEDIA = {"image_url": "image", "input_audio": "audio", "file": "document"}
# an assistant message without content needs one of these
INSTEAD = ("tool_calls", "function_call", "refusal", "audio")
_ALLOWED = {"user": ("text", *MEDIA), "assistant": TEXTS}  # the others: text


def _as_image(value: Any) -> Any:
    return {"url": value} if is_filled(value) else UNUSABLE


def _is_audio(value: Any) -> bool:
    audio = fields_of(value)
    return filled(audio, "data") and audio.get("format") in ("wav", "mp3")


PARTS: Forms = {
    "text": text_fields("text", "part-shape"),
    "refusal": text_fields("refusal", "part-shape"),
    "image_url": (Field("image_url", "part-shape", holding("url"), "an object with a url", _as_image),),
    "input_audio": (Field("input_audio", "part-shape", _is_audio, "an object with wav or mp3 data"),),
    "file": (
        Field("file", "part-shape", holding("file_id", "file_data"), "an object with a file_id or file_data"),
    ),
}
_NAME = filled_field("name", "call-name", as_name)
_CALLS: Forms = {
    "function": (_NAME, Field("arguments", "call-arguments", a(str), "a string (JSON text)", as_json)),
    "custom": (_NAME, Field("input", "call-arguments", a(str), "a string", as_text)),
}
_IDS: Forms = {
    "call": (filled_field("id", "call-id", as_id),),
    "tool": (filled_field("tool_call_id", "result-id", as_id),),
    "function": (filled_field("name", "name", as_name),),
}


def check_message(report: Report, body: Fields) -> Fields:
    """Report broken rules of a message and return it repaired."""
    new, role = dict(body), body.get("role")
    if not isinstance(role, str) or role not in ROLES:
        report("role", f"role is {role!r}; it must be one of {', '.join(ROLES)}")
        return new
    if role in ("tool", "function"):
        new.update(check_fields(report, "result", _IDS[role], new) or {})
    if "name" in new and not filled(new, "name"):
        report("name", "name must be a non-empty string")
        del new["name"]
    if role == "assistant":
        _calls(report, new)
    elif "tool_calls" in new:
        report("calls-role", f"a {role} message cannot have tool_calls")
        del new["tool_calls"]
    _content(report, role, new)
    if "refusal" in new and not isinstance(new["refusal"], str | None):
        report("part-shape", "the refusal of a message must be a string")
        new["refusal"] = as_text(new["refusal"])
    return new


def _content(report: Report, role: str, new: Fields) -> None:
    content = new.get("content")
    if content is None and not (
        role == "function" or (role == "assistant" and any(new.get(key) for key in INSTEAD))
    ):
        report("content-null", f"a {role} message needs content")
        new["content"] = None if role == "assistant" else ""
    elif isinstance(content, list) and role != "function":
        if not content:
            report("content-empty", "a list of content parts must not be empty")
        parts = check_parts(
            report, "part-type", items_of(content), lambda part: _part(report, role, part), text_part
        )
        new["content"] = parts or ""
    elif not isinstance(content, str | None):
        report("content-type", "content must be a string or a list of parts")
        new["content"] = as_text(content)


def _part(report: Report, role: str, part: Fields) -> Fields | None:
    kind: str = part["type"]
    if kind not in _ALLOWED.get(role, ("text",)):
        report("part-type", f"a {role} message cannot have a content part of type {kind!r}")
        if role == "tool" and kind not in PARTS:
            return replacement_for(part)
    new = check_fields(report, f"{kind} part", PARTS.get(kind, ()), part)
    return text_part(missing_media(MEDIA[kind])) if new is None and kind in MEDIA else new


def _calls(report: Report, new: Fields) -> None:
    legacy = new.get("function_call")
    if isinstance(legacy, dict):
        new["function_call"] = check_fields(
            report, "function_call", _CALLS["function"], cast("Fields", legacy)
        )
    elif legacy is not None:
        report("call-type", "function_call must be an object")
        _drop(new, "function_call")
    if "tool_calls" not in new:
        return
    calls = new["tool_calls"]
    if not isinstance(calls, list):
        report("calls-type", "tool_calls must be a list")
        calls, report = [fields_of(calls)] if isinstance(calls, dict) else [], _ignore
    elif not calls:
        report("calls-empty", "tool_calls must not be an empty list; leave the key out")
    new["tool_calls"] = [checked for call in items_of(calls) if (checked := _call(report, call)) is not None]
    if not new["tool_calls"]:
        _drop(new, "tool_calls")


def _ignore(rule: str, text: str) -> None:
    """Ignore problems of a single call given instead of a list."""
    del rule, text


def _drop(new: Fields, key: str) -> None:
    del new[key]
    if new.get("content") is None:
        new["content"] = ""


def _call(report: Report, call: Any) -> Fields | None:
    if not isinstance(call, dict):
        report("call-type", "a tool call must be an object")
        return None
    new = dict(cast("Fields", call))
    if str(new.get("type")) not in _CALLS:
        report("call-type", f"the type of a tool call is {new.get('type')!r}; it must be function or custom")
        new["type"] = "custom" if isinstance(new.get("custom"), dict) else "function"
    kind = new["type"]
    if not isinstance(new.get(kind), dict):
        report("call-type", f"the {kind} of a call must be an object")
        new[kind] = {key: new[key] for key in ("name", "arguments", "input") if key in new}
    new[kind] = check_fields(report, f"{kind} call", _CALLS[kind], new[kind])
    return check_fields(report, "tool call", _IDS["call"], new)
