"""The form of Responses items: the fields of each type, the parts of messages and outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from foldline.dialects.forms import (
    Field,
    Forms,
    a,
    as_id,
    as_json,
    as_safe_name,
    as_text,
    filled_field,
    holding,
    instead,
    kept,
    left_out,
    look_at,
    look_at_parts,
    matching,
    one_of,
    text_fields,
)
from foldline.dialects.media import to_responses
from foldline.dialects.payload import Fields, fields_of, filled, items_of
from foldline.dialects.responses.items import (
    CALLS,
    KINDS,
    MEDIA,
    OUTPUTS,
    ROLES,
    SEALED,
    TEXTS,
    Item,
    answered_key,
    is_call,
    is_output,
    kind_of,
)
from foldline.dialects.values import Say

# only a screenshot can answer a computer call; this one is a white PNG of one pixel
BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAA"
    "AABJRU5ErkJggg=="
)
_INPUT = ("input_text", *MEDIA)
_ALLOWED = {"user": _INPUT, "system": _INPUT, "developer": _INPUT, "assistant": ("output_text", "refusal")}
_SOURCES = {"input_image": ("image_url", "file_id"), "input_file": ("file_data", "file_url", "file_id")}
_SOURCE_RULES = {"input_image": "image-source", "input_file": "file-source"}
_PATCHES = {"create_file": ("path", "diff"), "update_file": ("path", "diff"), "delete_file": ("path",)}


def _has(key: str, kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(fields_of(value).get(key), kind)


def _as_completed(_: Any) -> str:
    return "completed"


def _is_patch(value: Any) -> bool:
    wanted = _PATCHES.get(str(fields_of(value).get("type")), ("",))
    return all(_has(key, str)(value) for key in wanted)


def _is_shot(value: Any) -> bool:
    held = holding("image_url", "file_id")(value)
    return held and fields_of(value).get("type") == "computer_screenshot"


def _as_shot(value: Any) -> Fields:
    shot = {**fields_of(value), "type": "computer_screenshot"}
    return shot if _is_shot(shot) else {"type": "computer_screenshot", "image_url": BLANK}


def _has_ended(value: Any) -> bool:
    return fields_of(value).get("type") == "timeout" or _has("exit_code", int)(value)


def _all_ran(value: Any) -> bool:
    return isinstance(value, list) and all(
        _has("stdout", str)(chunk) and _has("stderr", str)(chunk) and _has_ended(chunk.get("outcome"))
        for chunk in cast("list[Any]", value)
    )


def _as_ran(value: Any) -> list[Any]:
    """Return the output of a shell call, in which each command wrote something and ended somehow."""
    found: list[Any] = []
    for chunk in _listed(value):
        fields = fields_of(chunk)
        ended = fields.get("outcome")
        ran = {
            "stdout": as_text(fields.get("stdout") if fields else chunk),
            "stderr": as_text(fields.get("stderr")),
            "outcome": ended if _has_ended(ended) else {"type": "exit", "exit_code": 0},
        }
        found.append({**fields, **ran})
    return found


def _listed(value: Any) -> list[Any]:
    return items_of(value) if isinstance(value, list | None) else [value]


def _needed(*keys: str) -> tuple[Field, ...]:
    return tuple(filled_field(key, "item-shape", kept) for key in keys)


def _list_of(key: str) -> Field:
    return Field(key, "item-shape", a(list), "a list", kept)


def _action(key: str, fits: Callable[[Any], bool], instead: Fields) -> tuple[Field, ...]:
    def made(value: Any) -> Any:
        return fields_of(value) if isinstance(value, dict) else instead

    return (Field(key, "call-action", fits, "as documented", made),)


def _output(fits: Callable[[Any], bool], wanted: str, made: Callable[[Any], Any] = as_text) -> Field:
    return Field("output", "output-shape", fits, wanted, made)


_is_name = matching(r"[a-zA-Z0-9_-]+")
_NAME = Field("name", "call-name", _is_name, "text of letters, digits, _ and -", as_safe_name)
_ARGUMENTS = Field("arguments", "call-arguments", a(str), "a string", as_json)
_RAN = "a list of what each command wrote and how it ended"
_PARTS_OR_TEXT = _output(a(str, list), "a string or a list of parts")
_OVER = Field("status", "output-shape", one_of("completed", "failed"), "completed or failed", _as_completed)
_FORMS: Forms = {
    "function_call": (_NAME, _ARGUMENTS),
    "custom_tool_call": (_NAME, Field("input", "call-arguments", a(str), "a string", as_text)),
    "local_shell_call": _action("action", _has("command", list), {"type": "exec", "command": []}),
    "shell_call": _action("action", _has("commands", list), {"commands": []}),
    "apply_patch_call": _action("operation", _is_patch, {"type": "update_file", "path": "", "diff": ""}),
    "computer_call": _action("action", lambda value: bool(fields_of(value)), {"type": "screenshot"}),
    "tool_search_call": _action("arguments", lambda value: value is not None, {}),
    "mcp_approval_request": (*_needed("server_label"), _NAME, _ARGUMENTS),
    "function_call_output": (_PARTS_OR_TEXT,),
    "custom_tool_call_output": (_PARTS_OR_TEXT,),
    "local_shell_call_output": (_output(a(str), "a string"),),
    "shell_call_output": (_output(_all_ran, _RAN, _as_ran),),
    "apply_patch_call_output": (_OVER, _output(a(str, None), "a string")),
    "computer_call_output": (_output(_is_shot, "a screenshot", _as_shot),),
    "tool_search_output": (_list_of("tools"),),
    "mcp_approval_response": (Field("approve", "output-shape", a(bool), "true or false", kept),),
    "web_search_call": _needed("id"),
    "file_search_call": (*_needed("id"), _list_of("queries")),
    "code_interpreter_call": _needed("id", "container_id"),
    "image_generation_call": _needed("id"),
    "mcp_list_tools": (*_needed("id", "server_label"), _list_of("tools")),
    "mcp_call": _needed("id", "server_label", "name"),
    "program": _needed("id", "call_id", "code", "fingerprint"),
    "program_output": _needed("id", "call_id"),
    "compaction": _needed(SEALED),
    "item_reference": _needed("id"),
    "additional_tools": (_list_of("tools"),),
}
_PARTS: Forms = {kind: text_fields(key, "part-shape") for kind, key in TEXTS.items()}


def look(say: Say, item: Item) -> Item:
    """Check an item by itself, and return it as it may be sent; `say(rule, text)` takes what is wrong."""
    kind = kind_of(item)
    if kind not in KINDS:
        say("item-type", f"the type of an item is {kind!r}; the API does not know it")
        return item
    if kind == "message":
        return _message(say, item)
    if kind == "reasoning":
        return _reasoning(say, item)
    new = look_at(say, kind, _fields(item, kind), item) or item
    output = new.get("output")
    if kind in ("function_call_output", "custom_tool_call_output") and isinstance(output, list):
        parts = _parts(say, f"a {kind}", _INPUT, items_of(output), _input_text)
        return {**new, "output": [part for part in map(_in_output, parts) if part is not None] or ""}
    return new


def _fields(item: Item, kind: str) -> tuple[Field, ...]:
    """Return the fields of an item: its id as a call, or that of the call that it answers, and its own."""
    fields = tuple(_FORMS.get(kind, ()))
    if is_call(item):
        own = filled_field(CALLS[kind].id, "call-id", as_id)
        # several actions of a computer are in `actions`
        return (own,) if kind == "computer_call" and isinstance(item.get("actions"), list) else (own, *fields)
    if is_output(item):
        return (filled_field(answered_key(item), "result-id", as_id), *fields)
    return () if kind in CALLS or kind in OUTPUTS else fields  # a server ran it itself


def _message(say: Say, item: Item) -> Item:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or role not in ROLES:
        say("role", f"role is {role!r}; it must be one of {', '.join(ROLES)}")
        return item
    if isinstance(content, list):
        if not content:
            say("content-empty", "a list of content parts must not be empty")
        made = _output_text if role == "assistant" else _input_text
        parts = _parts(say, f"a message of role {role}", _ALLOWED[role], items_of(content), made)
        return {**item, "content": parts}
    if not isinstance(content, str):
        say("content-type", "content must be a string or a list of parts")
        return item if content is not None else {**item, "content": ""}
    if not content:
        say("text-empty", "the content of a message must not be empty")
    return item


def _parts(
    say: Say, holder: str, allowed: tuple[str, ...], parts: list[Any], text_part: Callable[[str], Fields]
) -> list[Any]:
    return look_at_parts(say, "part-type", parts, lambda part: _part(say, holder, allowed, part), text_part)


def _part(say: Say, holder: str, allowed: tuple[str, ...], part: Fields) -> Fields | None:
    kind: str = part["type"]
    if kind not in allowed:
        say("part-type", f"{holder} cannot have a part of type {kind!r}; it takes {', '.join(allowed)}")
    if kind in MEDIA and not any(filled(part, key) for key in _SOURCES[kind]):
        say(_SOURCE_RULES[kind], f"an {kind} needs one of {', '.join(_SOURCES[kind])}")
        return _input_text(left_out(MEDIA[kind]))
    return look_at(say, f"part of type {kind}", _PARTS.get(kind, ()), part)


def _in_output(part: Fields) -> Fields | None:
    """Return a part as an output takes it: other texts, and what has another type, as its own."""
    kind = part["type"]
    if kind in _INPUT:
        return part
    if kind not in TEXTS:
        return instead(part, _input_text, to_responses)
    return _input_text(part[TEXTS[kind]]) if part[TEXTS[kind]] else None


def _input_text(text: str) -> Fields:
    return {"type": "input_text", "text": text}


def _output_text(text: str) -> Fields:
    return {"type": "output_text", "text": text}


def _reasoning(say: Say, item: Item) -> Item:
    new = dict(item)
    for key, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
        value = item.get(key)
        if key == "content" and value is None:
            continue
        texts = [_shown(part, kind) for part in _listed(value)]
        if texts != value:
            say("reasoning-shape", f"the {key} of reasoning must be a list of {kind} parts")
            new[key] = texts
    if not any(item.get(key) for key in ("id", SEALED, "content")):
        say("reasoning-shape", f"reasoning needs its id, or its {SEALED}")
    return new


def _shown(part: Any, kind: str) -> Any:
    fields = fields_of(part)
    if fields.get("type") == kind and isinstance(fields.get("text"), str):
        return part
    return {"type": kind, "text": as_text(fields.get("text") or part)}
