"""The documented form of each Responses item."""

from __future__ import annotations

import re
from typing import Any, cast

from foldline.dialects.responses.items import (
    CALLS,
    KINDS,
    ROLES,
    Item,
    answered_id,
    is_call,
    is_output,
    kind_of,
)
from foldline.dialects.responses.read import SEALED, TEXTS
from foldline.dialects.values import Say

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_INPUT = ("input_text", "input_image", "input_file")
_PARTS = {"user": _INPUT, "system": _INPUT, "developer": _INPUT, "assistant": ("output_text", "refusal")}
_FILLED = {  # the fields of an item that must be non-empty strings
    "web_search_call": ("id",),
    "file_search_call": ("id",),
    "code_interpreter_call": ("id", "container_id"),
    "image_generation_call": ("id",),
    "mcp_list_tools": ("id", "server_label"),
    "mcp_call": ("id", "server_label", "name"),
    "mcp_approval_request": ("server_label",),
    "program": ("id", "call_id", "code", "fingerprint"),
    "program_output": ("id", "call_id"),
    "compaction": (SEALED,),
    "item_reference": ("id",),
}
_LISTS = {"mcp_list_tools": "tools", "file_search_call": "queries", "additional_tools": "tools",
          "tool_search_output": "tools"}  # fmt: skip
_PATCHES = {"create_file": ("path", "diff"), "update_file": ("path", "diff"), "delete_file": ("path",)}


def check_item(say: Say, item: Item) -> None:
    """Check one item; `say(rule, text)` takes what is wrong."""
    kind = kind_of(item)
    if kind not in KINDS:
        say("item-type", f"the type of an item is {kind!r}; the API does not know it")
        return
    for key in _FILLED.get(kind, ()):
        if not _filled(item, key):
            say("item-shape", f"a {kind} needs {key}, a non-empty string")
    if kind in _LISTS and not isinstance(item.get(_LISTS[kind]), list):
        say("item-shape", f"a {kind} needs {_LISTS[kind]}, a list")
    if kind == "message":
        _message(say, item)
    elif kind == "reasoning":
        _reasoning(say, item)
    elif is_call(item):
        _call(say, kind, item)
    elif is_output(item):
        _output(say, kind, item)


def _message(say: Say, item: Item) -> None:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or role not in ROLES:
        say("role", f"role is {role!r}; it must be one of {', '.join(ROLES)}")
        return
    if isinstance(content, str):
        if not content:
            say("text-empty", "the content of a message must not be empty")
        return
    if not isinstance(content, list):
        say("content-type", "content must be a string or a list of parts")
        return
    if not content:
        say("content-empty", "a list of content parts must not be empty")
    for part in cast("list[Any]", content):
        _part(say, f"a message of role {role}", _PARTS[role], part)


def _part(say: Say, holder: str, allowed: tuple[str, ...], value: Any) -> None:
    part = cast("Item", value) if isinstance(value, dict) else {}
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in allowed:
        say("part-type", f"{holder} cannot have a part of type {kind!r}; it takes {', '.join(allowed)}")
    elif kind in TEXTS:
        text = part.get(TEXTS[kind])
        if not isinstance(text, str):
            say("part-shape", f"the {TEXTS[kind]} of a part of type {kind} must be a string")
        elif not text:
            say("text-empty", f"a part of type {kind} must not be empty")
    elif kind == "input_image" and not (_filled(part, "image_url") or _filled(part, "file_id")):
        say("image-source", "an input_image needs an image_url or a file_id")
    elif kind == "input_file" and not any(_filled(part, key) for key in ("file_data", "file_url", "file_id")):
        say("file-source", "an input_file needs file_data, a file_url or a file_id")


def _reasoning(say: Say, item: Item) -> None:
    for key, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
        if key == "content" and item.get(key) is None:
            continue
        parts = item.get(key)
        if not isinstance(parts, list) or not all(_is_text(part, kind) for part in cast("list[Any]", parts)):
            say("reasoning-shape", f"the {key} of reasoning must be a list of {kind} parts")
    if not any(item.get(key) for key in ("id", SEALED, "content")):
        say("reasoning-shape", f"reasoning needs its id, or its {SEALED}")


def _is_text(value: Any, kind: str) -> bool:
    part = cast("Item", value) if isinstance(value, dict) else {}
    return part.get("type") == kind and isinstance(part.get("text"), str)


def _call(say: Say, kind: str, item: Item) -> None:
    form = CALLS[kind]
    if not _filled(item, form.id):
        say("call-id", f"a {kind} needs {form.id}, a non-empty string")
    value = item.get(form.arguments)
    if form.tool is None:
        name = item.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            say("call-name", f"the name of a {kind} is {name!r}; it must match ^[a-zA-Z0-9_-]+$")
        if not isinstance(value, str):
            say("call-arguments", f"the {form.arguments} of a {kind} must be a string")
    elif not _acts(kind, cast("Item", value) if isinstance(value, dict) else {}, item):
        say("call-action", f"the {form.arguments} of a {kind} is not as documented")


def _acts(kind: str, action: Item, item: Item) -> bool:
    if kind == "local_shell_call":
        return isinstance(action.get("command"), list)
    if kind == "shell_call":
        return isinstance(action.get("commands"), list)
    if kind == "apply_patch_call":
        wanted = _PATCHES.get(str(action.get("type")), ("",))
        return all(isinstance(action.get(key), str) for key in wanted)
    if kind == "computer_call":
        return bool(action) or isinstance(item.get("actions"), list)
    return item.get("arguments") is not None


def _output(say: Say, kind: str, item: Item) -> None:
    call_id = answered_id(item)
    if not isinstance(call_id, str) or not call_id:
        say("result-id", f"a {kind} needs the id of its call")
    output = item.get("output")
    if kind in {"function_call_output", "custom_tool_call_output"} and isinstance(output, list):
        for part in cast("list[Any]", output):
            _part(say, f"a {kind}", _INPUT, part)
    elif not _puts_out(kind, output, item):
        say("output-shape", f"a {kind} is not as documented")


def _puts_out(kind: str, output: Any, item: Item) -> bool:
    fields = cast("Item", output) if isinstance(output, dict) else {}
    if kind == "shell_call_output":
        return isinstance(output, list) and all(_ran(chunk) for chunk in cast("list[Any]", output))
    if kind == "apply_patch_call_output":
        return item.get("status") in ("completed", "failed") and isinstance(output, str | None)
    if kind == "computer_call_output":
        shown = _filled(fields, "image_url") or _filled(fields, "file_id")
        return fields.get("type") == "computer_screenshot" and shown
    if kind == "mcp_approval_response":
        return isinstance(item.get("approve"), bool)
    return kind == "tool_search_output" or isinstance(output, str)


def _ran(value: Any) -> bool:
    chunk = cast("Item", value) if isinstance(value, dict) else {}
    outcome = chunk.get("outcome")
    ended = cast("Item", outcome) if isinstance(outcome, dict) else {}
    whole = isinstance(chunk.get("stdout"), str) and isinstance(chunk.get("stderr"), str)
    return whole and (ended.get("type") == "timeout" or isinstance(ended.get("exit_code"), int))


def _filled(fields: Item, key: str) -> bool:
    value = fields.get(key)
    return isinstance(value, str) and bool(value)
