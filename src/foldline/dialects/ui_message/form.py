"""Checks of UI messages: their ids, roles and parts, and the fields of tool parts in each state.

A valid message is accepted by `validateUIMessages`. Parts of AI SDK 4 are reported, but not changed.
"""

from __future__ import annotations

import hashlib
from typing import Any, cast

from foldline.core.log import codec
from foldline.dialects.forms import (
    UNNAMED,
    Field,
    Forms,
    a,
    as_id,
    as_name,
    as_text,
    check_fields,
    check_parts,
    filled_field,
    missing_media,
    text_part,
    unchanged,
)
from foldline.dialects.media import kind_of
from foldline.dialects.payload import Fields, fields_of, items_of, peek, without
from foldline.dialects.ui_message.read import ROLES, V4_KEYS
from foldline.dialects.ui_message.tools import (
    ANSWERED,
    DYNAMIC,
    OPEN,
    PREFIX,
    STREAMING,
    is_tool_type,
    sdk4_call,
)
from foldline.dialects.values import Report

_STATES = (STREAMING, *OPEN, *ANSWERED)
_BY_ROLE = {"system": ("text",), "user": ("text", "file")}


def _is_metadata(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, dict) for item in fields_of(value).values())


def _texts(*keys: str) -> tuple[Field, ...]:
    return tuple(Field(key, "part-shape", a(str), "a string", unchanged) for key in keys)


def _optional(rule: str, fits: Any, expected: str, *keys: str) -> tuple[Field, ...]:
    return tuple(Field(key, rule, fits, expected, unchanged) for key in keys)


_TEXT = Field("text", "part-shape", a(str), "a string", as_text)
_FORMS: Forms = {
    "text": (_TEXT,),
    "reasoning": (_TEXT,),
    "custom": _texts("kind"),
    "source-url": _texts("sourceId", "url"),
    "source-document": _texts("sourceId", "mediaType", "title"),
    "file": (Field("mediaType", "part-shape", a(str), "a string"), filled_field("url", "part-shape")),
    "reasoning-file": _texts("mediaType", "url"),
    "step-start": (),
}
_OPTIONAL = (
    *_optional("part-shape", a(str), "a string", "title", "filename"),
    *_optional("part-shape", a(bool), "true or false", "providerExecuted", "preliminary"),
    *_optional("part-shape", a(dict), "an object", "toolMetadata"),
    *_optional(
        "metadata-shape", _is_metadata, "an object with an object for each provider",
        "providerMetadata", "callProviderMetadata", "resultProviderMetadata",
    ),
)  # fmt: skip
_CALL = filled_field("toolCallId", "call-id", as_id)
_NAME = filled_field("toolName", "call-name", as_name)


def message_id(seed: bytes) -> str:
    """Return an id for a message without one, derived from `seed`."""
    return f"msg_{hashlib.blake2s(seed, digest_size=8).hexdigest()}"


def from_plain_text(payload: Any, salt: str) -> Any:
    """Return a plain text message (role and text, without id and parts) as a UI message.

    Other payloads are returned unchanged. The id is derived from the text and `salt`, so that equal texts get
    different ids.
    """
    if not isinstance(payload, dict) or any(key in payload for key in ("parts", "id", *V4_KEYS)):
        return cast("Any", payload)
    body = cast("Fields", payload)
    role, content = body.get("role"), body.get("content")
    blocks = [text_part(content)] if isinstance(content, str) else items_of(content)
    texts = [peek(block, "text") for block in blocks if peek(block, "type") == "text"]
    only_texts = len(texts) == len(blocks) and all(isinstance(text, str) for text in texts)
    if not isinstance(role, str) or role not in ROLES or not blocks or not only_texts:
        return body
    new_id = message_id(codec.encode([salt, role, texts]))
    return {"id": new_id, **without(body, "content"), "parts": [text_part(text) for text in texts]}


def check_message(report: Report, body: Fields, salt: str) -> Fields:
    """Report broken rules of a message and return it repaired."""
    new, role, natives = dict(body), body.get("role"), body.get("parts")
    if not isinstance(body.get("id"), str):
        report("id", "the id of a message must be a string")
        if "parts" in body or not any(key in body for key in V4_KEYS):
            new["id"] = message_id(codec.encode([salt, body]))
    if not isinstance(role, str) or role not in ROLES:
        report("role", f"role is {role!r}; it must be one of {', '.join(ROLES)}")
    elif isinstance(natives, list):
        if not natives:
            report("parts-empty", "a message must have at least one part")
        new["parts"] = check_parts(
            report, "part-type", items_of(natives), lambda part: _part(report, role, part), text_part
        )
    else:
        report("parts", "a message needs a list of parts")
        if "parts" in body and not isinstance(body.get("content"), str):
            text = as_text(natives)
            new["parts"] = [text_part(text)] if text else []
    return new


def _part(report: Report, role: str, part: Fields) -> Fields | None:
    kind: str = part["type"]
    if kind.startswith("data-"):
        if "data" not in part or not isinstance(part.get("id", ""), str):
            report("part-shape", f"a {kind} part needs data, and its id must be a string")
        return part
    if kind not in _FORMS and not is_tool_type(kind):
        report("part-type", f"unknown part type {kind!r}")
        return part
    if role in _BY_ROLE and kind not in _BY_ROLE[role]:
        report("part-role", f"a {role} message cannot have a {kind} part")
    check_fields(report, f"{kind} part", [field for field in _OPTIONAL if field.key in part], part)
    if is_tool_type(kind):
        return _tool(report, part)
    if kind in ("text", "reasoning") and part.get("state", "done") not in ("streaming", "done"):
        report("part-state", f"the state of a {kind} part must be streaming or done")
    if ("text" not in part and isinstance(part.get("reasoning"), str)) or (
        "url" not in part and isinstance(part.get("data"), str) and isinstance(part.get("mimeType"), str)
    ):
        report("part-shape", f"a {kind} part has the form of AI SDK 4")
        return part
    new = check_fields(report, f"{kind} part", _FORMS[kind], part)
    mime = part.get("mediaType")
    return new or text_part(missing_media(kind_of(mime) if isinstance(mime, str) else "document"))


# ---- tools


def _tool(report: Report, part: Fields) -> Fields:
    if sdk4_call(part) is not None:
        report("call-state", "a tool part has the form of AI SDK 4")
        return part
    new = dict(
        check_fields(report, "tool part", (_CALL, _NAME) if part["type"] == DYNAMIC else (_CALL,), part)
        or part
    )
    if part["type"] == PREFIX:
        report("call-name", "a tool part needs the name of its tool")
        new["type"] = PREFIX + UNNAMED
    state = part.get("state")
    if state not in _STATES:
        report("call-state", f"unknown state {state!r} of a tool part")
        state = "output-error" if "errorText" in part else "output-available" if "output" in part else OPEN[0]
        new["state"] = state
    if not (state == STREAMING or "input" in new or (state == "output-error" and "rawInput" in new)):
        report("call-input", f"a tool part in state {state} needs input")
        new["input"] = {}
    _output(report, state, new)
    _approval(report, state, new)
    return new


def _output(report: Report, state: str, new: Fields) -> None:
    if state == "output-available" and "output" not in new:
        report("call-output", "a tool part in state output-available needs output")
        new["output"] = None
    if state == "output-error" and not isinstance(new.get("errorText"), str):
        report("call-error", "a tool part in state output-error needs errorText, a string")
        new["errorText"] = as_text(new.get("errorText")) or "error"
    for key, valid_state in (("output", "output-available"), ("errorText", "output-error")):
        if key in new and state != valid_state:
            report("call-mixed", f"a tool part in state {state} must not have {key}")


def _approval(report: Report, state: str, new: Fields) -> None:
    """Check that an approval matches the state."""
    if "approval" not in new:
        if state in ("approval-requested", "approval-responded", "output-denied"):
            report("call-approval", f"a tool part in state {state} needs approval")
        return
    approval = fields_of(new["approval"])
    approved, reason = approval.get("approved"), approval.get("reason")
    allowed = {
        "approval-requested": "approved" not in approval and "reason" not in approval,
        "approval-responded": isinstance(approved, bool),
        "output-available": approved is True,
        "output-error": approved is True,
        "output-denied": approved is False,
    }
    is_valid = isinstance(approval.get("id"), str) and ("reason" not in approval or isinstance(reason, str))
    if not is_valid or not allowed.get(state, False):
        report("call-approval", f"the approval of a tool part does not match its state {state}")
