"""Checks of Gemini's contents and their parts.

The API and its SDKs accept keys in camel case and snake case, and SDKs write nulls for unset fields.
"""

from __future__ import annotations

from functools import lru_cache
from re import sub
from typing import Any, cast

from foldline.core.log.messages import Role
from foldline.dialects.forms import (
    UNNAMED,
    Field,
    Forms,
    a,
    as_id,
    as_input,
    as_name,
    as_text,
    check_fields,
    filled_field,
    matching,
    missing_media,
)
from foldline.dialects.ids import safe_name
from foldline.dialects.payload import Fields, items_of, without
from foldline.dialects.values import Report

ROLES: dict[str | None, Role] = {
    None: "user",
    "user": "user",
    "model": "assistant",
    "system": "system",  # not in the API: moved to the system prompt when rendered
    "developer": "developer",
}
_OTHER_ROLES = {"function": "user", "tool": "user", "assistant": "model"}
MEDIA = ("inlineData", "fileData")
CALL, RESULT = "functionCall", "functionResponse"
SIGNATURE = "thoughtSignature"


# ---- spelling of keys


@lru_cache(256)
def _snake(key: str) -> str:
    return sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key)


@lru_cache(256)
def _camel(key: str) -> str:
    return sub("_([a-z])", lambda letter: letter[1].upper(), key)


def spelt(fields: Fields, key: str) -> str:
    """Return the spelling of a camel case key in an object."""
    return _snake(key) if fields.get(key) is None and fields.get(_snake(key)) is not None else key


def held(fields: Fields, key: str) -> Any:
    """Return the value of a key in either spelling; None if it is missing."""
    return fields.get(spelt(fields, key))


# ---- parts


def _as_response(value: Any) -> Fields:
    return {"output": "" if value is None else value}


def _as_null(_: Any) -> None:
    return None


def safe_function(text: str, limit: int, empty: str) -> str:
    """Return a valid name of a function: like `safe_name`, but starting with a letter or `_`."""
    return safe_name(sub("^(?=[0-9-])", "_", text), limit, empty)


def _as_name(value: Any) -> str:
    return safe_function(as_name(value), 128, UNNAMED)


_is_name = matching(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_ID = Field("id", "call-id", a(str, None), "text", as_id)
_NAME = Field("name", "call-name", _is_name, "letters, digits, _ . : and -, at most 128", _as_name)
_LIST = Field("parts", "result-parts", a(list, None), "a list of parts", _as_null)
FORMS: Forms = {
    CALL: (_ID, _NAME, Field("args", "call-args", a(dict, None), "an object", as_input)),
    RESULT: (
        _ID,
        _NAME,
        Field("response", "result-response", a(dict), "an object", _as_response),
        _LIST,
    ),
    "inlineData": (filled_field("mimeType", "media"), filled_field("data", "media")),
    "fileData": (filled_field("fileUri", "media"),),
    # run by Google's servers
    "executableCode": (),
    "codeExecutionResult": (),
    "toolCall": (),
    "toolResponse": (),
}
KINDS = ("text", *FORMS)
_METADATA = {SIGNATURE, "thought", "videoMetadata", "mediaResolution", "partMetadata"}
_MISPLACED = {(CALL, "user"): "call-role", (RESULT, "model"): "result-role"}


def kinds_of(part: Fields) -> list[str]:
    """Return the known kinds of data in a part; a valid part has at most one."""
    return [kind for kind in KINDS if held(part, kind) is not None]


def other_kind(part: Fields) -> str | None:
    """Return the kind of a part of an unknown kind; None if the part has no data."""
    keys = (key for key, value in part.items() if value is not None)
    return next((key for key in keys if _camel(key) not in _METADATA), None)


def parts_in(body: Fields) -> list[Fields]:
    """Return the parts of a content, except invalid ones."""
    return [part for part in items_of(body.get("parts")) if isinstance(part, dict)]


def check_message(report: Report, body: Fields) -> Fields:
    """Report broken rules of a content and return it repaired."""
    new, role, parts = dict(body), body.get("role"), body.get("parts")
    if role not in ("user", "model", None):
        report("role", f"role is {role!r}; it must be user or model")
        if isinstance(role, str) and role in _OTHER_ROLES:
            new["role"] = role = _OTHER_ROLES[role]
    if not isinstance(parts, list):
        report("parts", "parts must be a list")
        new["parts"] = [{"text": as_text(parts)}] if parts else []
    elif not parts:
        report("parts-empty", "a content must have at least one part")
    else:
        speaker = "model" if role == "model" else "user"
        split = (part for value in items_of(parts) for part in _split(report, value))
        new["parts"] = [part for value in split if (part := _part(report, speaker, value)) is not None]
    return new


def _split(report: Report, value: Any) -> list[Any]:
    """Split a part with several kinds of data; the first new part has the signature."""
    part = cast("Fields", value) if isinstance(value, dict) else {}
    others = [spelt(part, kind) for kind in kinds_of(part)][1:]
    if not others:
        return [value]
    report("part-kind", "a part must contain one kind of data")
    return [without(part, *others), *({key: part[key]} for key in others)]


def _part(report: Report, role: str, value: Any) -> Fields | None:
    if not isinstance(value, dict):
        report("part-type", "a part must be an object")
        return {"text": as_text(value)} if value else None
    part = cast("Fields", value)
    kind = next(iter(kinds_of(part)), "")
    signature = held(part, SIGNATURE)
    if signature is not None and not isinstance(signature, str):
        report("signature", f"{SIGNATURE} must be a string")
        part = without(part, spelt(part, SIGNATURE))
    if not kind and other_kind(part) is None:
        report("part-kind", f"a part must contain one of {', '.join(KINDS)}")
        return {**part, "text": ""} if isinstance(signature, str) else None
    if (rule := _MISPLACED.get((kind, role))) is not None:
        report(rule, f"a {role} content cannot contain a {kind}")
        return {"text": as_text(part)}
    return _text(report, part) if kind == "text" else _data(report, part, kind) if kind else part


def _text(report: Report, part: Fields) -> Fields:
    text = part["text"]
    if not isinstance(text, str):
        report("text", "the text of a part must be a string")
        return {**part, "text": as_text(text)}
    if not text and held(part, SIGNATURE) is None:  # omitted in requests
        report("text-empty", "a text without a signature must not be empty")
    return part


def _data(report: Report, part: Fields, kind: str) -> Fields | None:
    """Check the data of a part."""
    key = spelt(part, kind)
    if not isinstance(part[key], dict):
        report("part-shape", f"{kind} must be an object")
        return {"text": as_text(part)}
    data = {_camel(name): value for name, value in part[key].items()}
    new = check_fields(report, kind, FORMS[kind], data)
    if new is None:
        return {"text": missing_media("document")}
    return part if new is data else {**part, key: new}
