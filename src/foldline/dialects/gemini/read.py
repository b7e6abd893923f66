"""Gemini's contents -> parts, one for each native part.

A call may have no id: its response names the function. Both get an id derived from that name; several calls
of a function in one content are numbered in order.
"""

from __future__ import annotations

from typing import Any, cast

from foldline.core.cut.repair import ReplyIds
from foldline.core.log.messages import Media, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.dialect import UNSENT, Slot
from foldline.dialects.gemini.form import CALL, RESULT, ROLES, held, kinds_of, other_kind, parts_in, spelt
from foldline.dialects.media import kind_of, mime_of
from foldline.dialects.payload import Fields, fields_of, items_of, json_text, optional_string
from foldline.dialects.values import FILE_ID, GEMINI
from foldline.errors import DialectError

WRAPPED = ("output", "result", "error")  # keys of the SDKs for the return value of a function
_UPLOADED = ("https://generativelanguage.googleapis.com/", "gs://", "files/")


def role_of(body: Fields, index: int | None = None) -> Role:
    """Return the role of a content; raises DialectError (with `index`) for an unknown role."""
    role = body.get("role")
    if not isinstance(role, str | None) or role not in ROLES:
        raise DialectError(f"role is {role!r}; it must be user or model", index=index)
    return ROLES[role]


def parts_of(body: Fields, index: int | None = None) -> list[Part]:
    """Return the parts of a content; raises DialectError (with `index`) for an invalid one."""
    parts = body.get("parts")
    if parts is None:
        return []
    if not isinstance(parts, list):
        raise DialectError("parts must be a list", index=index)
    calls, results = ReplyIds(), ReplyIds()
    return [_part(part, calls, results, index) for part in items_of(parts)]


def slots_of(body: Fields) -> tuple[list[Slot], list[Slot]]:
    """Return the call ids of a content: those of its calls and those of its responses; see `UNSENT`."""
    slots: dict[str, list[Slot]] = {CALL: [], RESULT: []}
    ids = {CALL: ReplyIds(), RESULT: ReplyIds()}
    for part in parts_in(body):
        for kind in (CALL, RESULT) if kinds_of(part)[:1] in ([CALL], [RESULT]) else ():
            data = fields_of(held(part, kind))
            if data.get("id"):
                slots[kind].append((data, "id"))
            elif data:
                name = str(data.get("name"))
                slots[kind].append(({UNSENT: ids[kind].call(name), "name": name}, UNSENT))
    return slots[CALL], slots[RESULT]


def _part(value: Any, calls: ReplyIds, results: ReplyIds, index: int | None) -> Part:
    if not isinstance(value, dict):
        raise DialectError("a part must be an object", index=index)
    part = cast("Fields", value)
    kind = next(iter(kinds_of(part)), None)
    if kind == "text":
        text = part["text"]
        if not isinstance(text, str):
            raise DialectError("the text of a part must be a string", index=index)
        # the signature stays in the native part: only Gemini can read it
        return Thinking(text) if part.get("thought") is True else Text(text)
    if kind is None:
        return Opaque(GEMINI, other_kind(part) or "part", part)
    if not isinstance(held(part, kind), dict):
        raise DialectError(f"the {kind} of a part must be an object", index=index)
    data = fields_of(held(part, kind))
    if kind == CALL:
        call_id, name = _id_and_name(data, calls, index)
        arguments = data.get("args")
        if not isinstance(arguments, dict | None):
            raise DialectError("the args of a function call must be an object", index=index)
        return ToolCall(call_id, name, cast("Fields", arguments) or {})
    if kind == RESULT:
        return _result(data, results, index)
    return media_in(part) or Opaque(GEMINI, kind, part)


def _id_and_name(data: Fields, ids: ReplyIds, index: int | None) -> tuple[str, str]:
    """Return the id and the function's name of a call or response."""
    name, call_id = data.get("name"), data.get("id")
    if not isinstance(name, str) or not name:
        raise DialectError("a function call or response needs the name of the function", index=index)
    if not isinstance(call_id, str | None):
        raise DialectError("the id of a function call must be a string", index=index)
    return call_id or ids.call(name), name


def _result(data: Fields, ids: ReplyIds, index: int | None) -> ToolResult:
    call_id, _ = _id_and_name(data, ids, index)
    response = data.get("response")
    if not isinstance(response, dict):
        raise DialectError("the response of a function must be an object", index=index)
    key = wrapper_of(response)
    value: Any = response if key is None else fields_of(response)[key]  # pyright: ignore[reportUnknownVariableType]
    texts = (Text(json_text(value)),) if value not in (None, "", {}) else ()
    parts = map(fields_of, items_of(data.get("parts")))
    media = [media_in(part) or Opaque(GEMINI, "part", part) for part in parts]
    return ToolResult(call_id, (*texts, *media), is_error=key == "error")


def wrapper_of(response: Any) -> str | None:
    """Return the key that wraps the return value of a function in a response; None if it is not wrapped."""
    keys = list(fields_of(response))
    return keys[0] if len(keys) == 1 and keys[0] in WRAPPED else None


def media_in(part: Fields) -> Media | None:
    """Read inline data or a file; None for other parts."""
    inline, file = fields_of(held(part, "inlineData")), fields_of(held(part, "fileData"))
    fields = inline or file
    mime, name = mime_of(held(fields, "mimeType")), optional_string(fields, spelt(fields, "displayName"))
    kind, data, url = kind_of(mime), inline.get("data"), held(file, "fileUri")
    if isinstance(data, str) and data and mime:
        return Media(kind, mime, data=data, name=name)
    if isinstance(url, str) and url:
        url = FILE_ID + url if url.startswith(_UPLOADED) else url
        return Media(kind, mime, url=url, name=name)
    return None
