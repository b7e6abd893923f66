"""The form of UI messages: their ids, roles and parts; a tool part holds what its state says.

What this has nothing to say of is accepted by `validateUIMessages`. Parts of AI SDK 4 are not today's form,
but stay as they are: they are read.
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
    filled_field,
    kept,
    left_out,
    look_at,
    look_at_parts,
    text_part,
)
from foldline.dialects.media import kind_of
from foldline.dialects.payload import Fields, fields_of, items_of, peek
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
from foldline.dialects.values import Say

_STATES = (STREAMING, *OPEN, *ANSWERED)
_BY_ROLE = {"system": ("text",), "user": ("text", "file")}


def _is_metadata(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(own, dict) for own in fields_of(value).values())


def _texts(*keys: str) -> tuple[Field, ...]:
    return tuple(Field(key, "part-shape", a(str), "a string", kept) for key in keys)


def _optional(rule: str, fits: Any, wanted: str, *keys: str) -> tuple[Field, ...]:
    return tuple(Field(key, rule, fits, wanted, kept) for key in keys)


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
        "metadata-shape", _is_metadata, "an object with one for each provider",
        "providerMetadata", "callProviderMetadata", "resultProviderMetadata",
    ),
)  # fmt: skip
_CALL = filled_field("toolCallId", "call-id", as_id)
_NAME = filled_field("toolName", "call-name", as_name)


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


def look(say: Say, body: Fields, salt: str) -> Fields:
    """Check a message by itself, and return it as it may be sent; `say(rule, text)` takes what is wrong."""
    new, role, natives = dict(body), body.get("role"), body.get("parts")
    if not isinstance(body.get("id"), str):
        say("id", "a message needs an id, a string")
        if "parts" in body or not any(key in body for key in V4_KEYS):
            new["id"] = message_id(codec.encode([salt, body]))
    if not isinstance(role, str) or role not in ROLES:
        say("role", f"role is {role!r}; it must be one of {', '.join(ROLES)}")
    elif isinstance(natives, list):
        if not natives:
            say("parts-empty", "a message must have at least one part")
        new["parts"] = look_at_parts(
            say, "part-type", items_of(natives), lambda part: _part(say, role, part), text_part
        )
    else:
        say("parts", "a message needs a list of parts")
        if "parts" in body and not isinstance(body.get("content"), str):
            text = as_text(natives)
            new["parts"] = [text_part(text)] if text else []
    return new


def _part(say: Say, role: str, part: Fields) -> Fields | None:
    kind: str = part["type"]
    if kind.startswith("data-"):
        if "data" not in part or not isinstance(part.get("id", ""), str):
            say("part-shape", f"a {kind} part needs its data, and an id must be a string")
        return part
    if kind not in _FORMS and not is_tool_type(kind):
        say("part-type", f"no part has the type {kind!r}")
        return part
    if role in _BY_ROLE and kind not in _BY_ROLE[role]:
        say("part-role", f"the SDK never sends a {kind} part of a {role} message to a model")
    look_at(say, f"{kind} part", [field for field in _OPTIONAL if field.key in part], part)
    if is_tool_type(kind):
        return _tool(say, part)
    if kind in ("text", "reasoning") and part.get("state", "done") not in ("streaming", "done"):
        say("part-state", f"the state of a {kind} part must be streaming or done")
    if ("text" not in part and isinstance(part.get("reasoning"), str)) or (
        "url" not in part and isinstance(part.get("data"), str) and isinstance(part.get("mimeType"), str)
    ):
        say("part-shape", f"a {kind} part of AI SDK 4 is not of today's form")
        return part
    new = look_at(say, f"{kind} part", _FORMS[kind], part)
    mime = part.get("mediaType")
    return new or text_part(left_out(kind_of(mime) if isinstance(mime, str) else "document"))


# ---- tools


def _tool(say: Say, part: Fields) -> Fields:
    if sdk4_call(part) is not None:
        say("call-state", "a tool part of AI SDK 4 is not of today's form")
        return part
    new = dict(
        look_at(say, "tool part", (_CALL, _NAME) if part["type"] == DYNAMIC else (_CALL,), part) or part
    )
    if part["type"] == PREFIX:
        say("call-name", "a tool part needs its tool's name")
        new["type"] = PREFIX + UNNAMED
    state = part.get("state")
    if state not in _STATES:
        say("call-state", f"the state of a tool part cannot be {state!r}")
        state = "output-error" if "errorText" in part else "output-available" if "output" in part else OPEN[0]
        new["state"] = state
    if not (state == STREAMING or "input" in new or (state == "output-error" and "rawInput" in new)):
        say("call-input", f"a tool part of state {state} needs its input")
        new["input"] = {}
    _output(say, state, new)
    _approval(say, state, new)
    return new


def _output(say: Say, state: str, new: Fields) -> None:
    if state == "output-available" and "output" not in new:
        say("call-output", "a tool part of state output-available needs its output")
        new["output"] = None
    if state == "output-error" and not isinstance(new.get("errorText"), str):
        say("call-error", "a tool part of state output-error needs an errorText, a string")
        new["errorText"] = as_text(new.get("errorText")) or "error"
    for key, its in (("output", "output-available"), ("errorText", "output-error")):
        if key in new and state != its:
            say("call-mixed", f"a tool part of state {state} has no {key}")


def _approval(say: Say, state: str, new: Fields) -> None:
    """Check that an approval was asked for, given or refused, as the state says."""
    if "approval" not in new:
        if state in ("approval-requested", "approval-responded", "output-denied"):
            say("call-approval", f"a tool part of state {state} needs its approval")
        return
    approval = fields_of(new["approval"])
    agreed, reason = approval.get("approved"), approval.get("reason")
    allowed = {
        "approval-requested": "approved" not in approval and "reason" not in approval,
        "approval-responded": isinstance(agreed, bool),
        "output-available": agreed is True,
        "output-error": agreed is True,
        "output-denied": agreed is False,
    }
    told = isinstance(approval.get("id"), str) and ("reason" not in approval or isinstance(reason, str))
    if not told or not allowed.get(state, False):
        say("call-approval", f"the approval of a tool part does not fit its state {state}")
