"""Gemini's contents -> parts, one for each of theirs.

A call may come without an id: its response names the function. Here it has an id made of that name, as has
its response; where a function is called several times in a content, they are counted in their order.
"""

from __future__ import annotations

from typing import Any, cast

from foldline.core.cut.repair import ReplyIds
from foldline.core.log.messages import Media, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.dialect import UNSENT, Slot
from foldline.dialects.gemini.form import CALL, RESULT, ROLES, held, kinds_of, other_kind, parts_in
from foldline.dialects.media import kind_of, mime_of
from foldline.dialects.payload import Fields, fields_of, items_of, json_text
from foldline.dialects.values import FILE_ID, GEMINI
from foldline.errors import DialectError

WRAPPED = ("output", "result", "error")  # the keys under which the SDKs put what a function returned
_UPLOADED = ("https://generativelanguage.googleapis.com/", "gs://", "files/")


def role_of(body: Fields, index: int | None = None) -> Role:
    """Return the role of a content; raises DialectError for one that is not known."""
    role = body.get("role")
    if not isinstance(role, str | None) or role not in ROLES:
        raise DialectError(f"role is {role!r}; it must be user or model", index=index)
    return ROLES[role]


def parts_of(body: Fields, index: int | None = None) -> list[Part]:
    """Return the parts of a content; raises DialectError (with `index`) for what is not as documented."""
    parts = body.get("parts")
    if parts is None:
        return []
    if not isinstance(parts, list):
        raise DialectError("parts must be a list", index=index)
    calls, results = ReplyIds(), ReplyIds()
    return [_part(part, calls, results, index) for part in items_of(parts)]


def slots_of(body: Fields) -> tuple[list[Slot], list[Slot]]:
    """Return where a content holds the ids of its calls, and of those that it answers; see `UNSENT`."""
    found: dict[str, list[Slot]] = {CALL: [], RESULT: []}
    made = {CALL: ReplyIds(), RESULT: ReplyIds()}
    for part in parts_in(body):
        for kind in (CALL, RESULT) if kinds_of(part)[:1] in ([CALL], [RESULT]) else ():
            given = fields_of(held(part, kind))
            if given.get("id"):
                found[kind].append((given, "id"))
            elif given:
                name = str(given.get("name"))
                found[kind].append(({UNSENT: made[kind].call(name), "name": name}, UNSENT))
    return found[CALL], found[RESULT]


def _part(value: Any, calls: ReplyIds, results: ReplyIds, index: int | None) -> Part:
    if not isinstance(value, dict):
        raise DialectError("a part must be an object", index=index)
    part = cast("Fields", value)
    kind = next(iter(kinds_of(part)), None)
    if kind == "text":
        text = part["text"]
        if not isinstance(text, str):
            raise DialectError("the text of a part must be a string", index=index)
        # its signature is for Gemini alone, and stays in its part
        return Thinking(text) if part.get("thought") is True else Text(text)
    if kind is None:
        return Opaque(GEMINI, other_kind(part) or "part", part)
    if not isinstance(held(part, kind), dict):
        raise DialectError(f"the {kind} of a part must be an object", index=index)
    given = fields_of(held(part, kind))
    if kind == CALL:
        return ToolCall(*_named(given, calls, index), _arguments(given, index))
    if kind == RESULT:
        return _result(given, results, index)
    return media_in(part) or Opaque(GEMINI, kind, part)


def _named(given: Fields, ids: ReplyIds, index: int | None) -> tuple[str, str]:
    """Return the id and the name of the function of a call, or of a response."""
    name, own = given.get("name"), given.get("id")
    if not isinstance(name, str) or not name:
        raise DialectError("a function call, and its response, needs the name of the function", index=index)
    if not isinstance(own, str | None):
        raise DialectError("the id of a function call must be a string", index=index)
    return own or ids.call(name), name


def _arguments(given: Fields, index: int | None) -> Fields:
    arguments = given.get("args")
    if not isinstance(arguments, dict | None):
        raise DialectError("the args of a function call must be an object", index=index)
    return cast("Fields", arguments) or {}


def _result(given: Fields, ids: ReplyIds, index: int | None) -> ToolResult:
    call_id, _ = _named(given, ids, index)
    response = given.get("response")
    if not isinstance(response, dict):
        raise DialectError("the response of a function must be an object", index=index)
    key = wrapper_of(response)
    told: Any = response if key is None else fields_of(response)[key]  # pyright: ignore[reportUnknownVariableType]
    texts = (Text(json_text(told)),) if told not in (None, "", {}) else ()
    parts = map(fields_of, items_of(given.get("parts")))
    beside = [media_in(part) or Opaque(GEMINI, "part", part) for part in parts]
    return ToolResult(call_id, (*texts, *beside), is_error=key == "error")


def wrapper_of(response: Any) -> str | None:
    """Return the key under which a response holds all that the function returned; None without one."""
    keys = list(fields_of(response))
    return keys[0] if len(keys) == 1 and keys[0] in WRAPPED else None


def media_in(part: Fields) -> Media | None:
    """Read inline data, or a file; None for anything else."""
    packed, linked = fields_of(held(part, "inlineData")), fields_of(held(part, "fileData"))
    given = packed or linked
    mime, name = held(given, "mimeType"), held(given, "displayName")
    mime = mime_of(mime)
    name, kind = name if isinstance(name, str) else None, kind_of(mime)
    data, url = packed.get("data"), held(linked, "fileUri")
    if isinstance(data, str) and data and mime:
        return Media(kind, mime, data=data, name=name)
    if isinstance(url, str) and url:
        url = FILE_ID + url if url.startswith(_UPLOADED) else url
        return Media(kind, mime, url=url, name=name)
    return None
