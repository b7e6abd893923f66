"""Checks of Responses items: the fields of each type, the parts of messages and outputs."""

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
    check_fields,
    check_parts,
    filled_field,
    holding,
    matching,
    missing_media,
    one_of,
    replacement_for,
    text_fields,
    unchanged,
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
from foldline.dialects.values import Report

# a white PNG of one pixel: the output of a computer call must be a screenshot
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
    required = _PATCHES.get(str(fields_of(value).get("type")), ("",))
    return all(_has(key, str)(value) for key in required)


def _is_shot(value: Any) -> bool:
    has_source = holding("image_url", "file_id")(value)
    return has_source and fields_of(value).get("type") == "computer_screenshot"


def _as_shot(value: Any) -> Fields:
    shot = {**fields_of(value), "type": "computer_screenshot"}
    return shot if _is_shot(shot) else {"type": "computer_screenshot", "image_url": BLANK}


def _is_outcome(value: Any) -> bool:
    return fields_of(value).get("type") == "timeout" or _has("exit_code", int)(value)


def _are_command_outputs(value: Any) -> bool:
    return isinstance(value, list) and all(
        _has("stdout", str)(chunk) and _has("stderr", str)(chunk) and _is_outcome(chunk.get("outcome"))
        for chunk in cast("list[Any]", value)
    )


def _as_command_outputs(value: Any) -> list[Any]:
    """Return the output of a shell call with stdout, stderr and outcome of each command."""
    outputs: list[Any] = []
    for chunk in _listed(value):
        fields = fields_of(chunk)
        outcome = fields.get("outcome")
        output = {
            "stdout": as_text(fields.get("stdout") if fields else chunk),
            "stderr": as_text(fields.get("stderr")),
            "outcome": outcome if _is_outcome(outcome) else {"type": "exit", "exit_code": 0},
        }
        outputs.append({**fields, **output})
    return outputs


def _listed(value: Any) -> list[Any]:
    return items_of(value) if isinstance(value, list | None) else [value]


def _needed(*keys: str) -> tuple[Field, ...]:
    return tuple(filled_field(key, "item-shape", unchanged) for key in keys)


def _list_of(key: str) -> Field:
    return Field(key, "item-shape", a(list), "a list", unchanged)


def _action(key: str, fits: Callable[[Any], bool], default: Fields) -> tuple[Field, ...]:
    def repair(value: Any) -> Any:
        return fields_of(value) if isinstance(value, dict) else default

    return (Field(key, "call-action", fits, "a valid object", repair),)


def _output(fits: Callable[[Any], bool], expected: str, repair: Callable[[Any], Any] = as_text) -> Field:
    return Field("output", "output-shape", fits, expected, repair)


_is_name = matching(r"[a-zA-Z0-9_-]+")
_NAME = Field("name", "call-name", _is_name, "text of letters, digits, _ and -", as_safe_name)
_ARGUMENTS = Field("arguments", "call-arguments", a(str), "a string", as_json)
_COMMAND_OUTPUTS = "a list with stdout, stderr and outcome of each command"
_PARTS_OR_TEXT = _output(a(str, list), "a string or a list of parts")
_STATUS = Field("status", "output-shape", one_of("completed", "failed"), "completed or failed", _as_completed)
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
    "shell_call_output": (_output(_are_command_outputs, _COMMAND_OUTPUTS, _as_command_outputs),),
    "apply_patch_call_output": (_STATUS, _output(a(str, None), "a string")),
    "computer_call_output": (_output(_is_shot, "a screenshot", _as_shot),),
    "tool_search_output": (_list_of("tools"),),
    "mcp_approval_response": (Field("approve", "output-shape", a(bool), "true or false", unchanged),),
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


def check_message(report: Report, item: Item) -> Item:
    """Report broken rules of an item and return it repaired."""
    kind = kind_of(item)
    if kind not in KINDS:
        report("item-type", f"unknown item type {kind!r}")
        return item
    if kind == "message":
        return _message(report, item)
    if kind == "reasoning":
        return _reasoning(report, item)
    new = check_fields(report, kind, _fields(item, kind), item) or item
    output = new.get("output")
    if kind in ("function_call_output", "custom_tool_call_output") and isinstance(output, list):
        parts = _parts(report, f"a {kind}", _INPUT, items_of(output), _input_text)
        return {**new, "output": [part for part in map(_in_output, parts) if part is not None] or ""}
    return new


def _fields(item: Item, kind: str) -> tuple[Field, ...]:
    """Return the checks of the fields of an item, including its call id."""
    fields = tuple(_FORMS.get(kind, ()))
    if is_call(item):
        own = filled_field(CALLS[kind].id, "call-id", as_id)
        # several actions are in `actions`
        return (own,) if kind == "computer_call" and isinstance(item.get("actions"), list) else (own, *fields)
    if is_output(item):
        return (filled_field(answered_key(item), "result-id", as_id), *fields)
    return () if kind in CALLS or kind in OUTPUTS else fields  # run by the server


def _message(report: Report, item: Item) -> Item:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or role not in ROLES:
        report("role", f"role is {role!r}; it must be one of {', '.join(ROLES)}")
        return item
    if isinstance(content, list):
        if not content:
            report("content-empty", "a list of content parts must not be empty")
        to_part = _output_text if role == "assistant" else _input_text
        parts = _parts(report, f"a message of role {role}", _ALLOWED[role], items_of(content), to_part)
        return {**item, "content": parts}
    if not isinstance(content, str):
        report("content-type", "content must be a string or a list of parts")
        return item if content is not None else {**item, "content": ""}
    if not content:
        report("text-empty", "the content of a message must not be empty")
    return item


def _parts(
    report: Report,
    holder: str,
    allowed: tuple[str, ...],
    parts: list[Any],
    text_part: Callable[[str], Fields],
) -> list[Any]:
    return check_parts(
        report, "part-type", parts, lambda part: _part(report, holder, allowed, part), text_part
    )


def _part(report: Report, holder: str, allowed: tuple[str, ...], part: Fields) -> Fields | None:
    kind: str = part["type"]
    if kind not in allowed:
        report("part-type", f"{holder} cannot have a part of type {kind!r}; it takes {', '.join(allowed)}")
    if kind in MEDIA and not any(filled(part, key) for key in _SOURCES[kind]):
        report(_SOURCE_RULES[kind], f"an {kind} needs one of {', '.join(_SOURCES[kind])}")
        return _input_text(missing_media(MEDIA[kind]))
    return check_fields(report, f"part of type {kind}", _PARTS.get(kind, ()), part)


def _in_output(part: Fields) -> Fields | None:
    """Convert a part to one that an output may contain; None for an empty text."""
    kind = part["type"]
    if kind in _INPUT:
        return part
    if kind not in TEXTS:
        return replacement_for(part, _input_text, to_responses)
    return _input_text(part[TEXTS[kind]]) if part[TEXTS[kind]] else None


def _input_text(text: str) -> Fields:
    return {"type": "input_text", "text": text}


def _output_text(text: str) -> Fields:
    return {"type": "output_text", "text": text}


def _reasoning(report: Report, item: Item) -> Item:
    new = dict(item)
    for key, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
        value = item.get(key)
        if key == "content" and value is None:
            continue
        texts = [_reasoning_part(part, kind) for part in _listed(value)]
        if texts != value:
            report("reasoning-shape", f"the {key} of reasoning must be a list of {kind} parts")
            new[key] = texts
    if not any(item.get(key) for key in ("id", SEALED, "content")):
        report("reasoning-shape", f"reasoning needs an id or {SEALED}")
    return new


def _reasoning_part(part: Any, kind: str) -> Any:
    fields = fields_of(part)
    if fields.get("type") == kind and isinstance(fields.get("text"), str):
        return part
    return {"type": kind, "text": as_text(fields.get("text") or part)}
