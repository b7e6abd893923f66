"""The documented rules of a list of Responses items, one name each; see docs/dialects.md.

Each item is checked against those before it, and by itself by the form of its type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from foldline.core.log.opaque import names_call
from foldline.dialects.payload import fields_of, filled
from foldline.dialects.responses.items import (
    CALLS,
    KINDS,
    OUTPUTS,
    ROLES,
    Item,
    answered_id,
    is_call,
    is_output,
    kind_of,
)
from foldline.dialects.responses.read import SEALED, TEXTS
from foldline.dialects.values import Problem, Say

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


class _ItemCheck:
    """One pass over a list; `open` maps the calls that wait for their output to (place, type)."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.index = -1
        self.open: dict[str, tuple[int, str]] = {}
        self.seen: dict[str, str] = {}  # every call id so far -> the type of its call
        self.answered: set[str] = set()
        self.ids: set[str] = set()
        self.programs: set[str] = set()
        self.references = False  # a program may stand there as a reference
        # references without an output, and whether it is sure that they are calls
        self.stored: list[tuple[int, str, bool]] = []
        self.reasoning: int | None = None  # the index of reasoning whose next item is not seen yet

    def say(self, rule: str, text: str, index: int | None = None) -> None:
        self.problems.append(Problem(self.index if index is None else index, rule, text))


def check(problems: list[Problem], bodies: Sequence[tuple[int, Item]], last: int) -> None:
    """Add every rule that items, each with its index, break; `last` is that of the end of the list."""
    found = _ItemCheck(problems)
    for found.index, item in bodies:
        check_item(found.say, item)
        if kind_of(item) in KINDS:
            _place(found, item, last=found.index == last)
    _led_to(found, None)
    _close(found)


def _place(check: _ItemCheck, item: Item, *, last: bool) -> None:
    """Check an item against those before it."""
    kind = str(kind_of(item))
    _led_to(check, item)
    _ids(check, kind, item)
    if kind == "item_reference":
        _refer(check, str(item.get("id")))
    elif kind == "message" and item.get("role") == "user":
        _close(check)
    elif kind == "compaction_trigger" and not last:
        check.say("trigger-last", "a compaction_trigger must be the last item")
    elif is_call(item):
        _asks(check, kind, item)
    elif is_output(item):
        _answers(check, kind, item)
    else:
        _program(check, kind, item)


def _led_to(check: _ItemCheck, item: Item | None) -> None:
    """Check that reasoning stands right before what the model thought, said or called next."""
    kind = kind_of(item) if item is not None else None
    if check.reasoning is not None and not _is_models(kind, item):
        check.say("reasoning-last", "no item of the model follows this reasoning", check.reasoning)
    check.reasoning = check.index if kind == "reasoning" else None


def _is_models(kind: str | None, item: Item | None) -> bool:
    if kind is None or item is None or is_output(item):
        return False
    if kind == "message":
        return item.get("role") == "assistant"
    return kind not in {
        "additional_tools",
        "configuration_update",
        "compaction_trigger",
        "function_call_output",
    }


def _ids(check: _ItemCheck, kind: str, item: Item) -> None:
    item_id = item.get("id")
    if not isinstance(item_id, str) or kind in {"item_reference", "local_shell_call_output"}:
        return
    if item_id in check.ids:
        check.say("item-duplicate", f"two items have the id {item_id!r}")
    check.ids.add(item_id)


def _refer(check: _ItemCheck, item_id: str) -> None:
    check.references = True
    call = names_call(item_id)
    if call is not False:
        check.stored.append((check.index, item_id, bool(call)))


def _asks(check: _ItemCheck, kind: str, item: Item) -> None:
    call_id = item.get(CALLS[kind].id)
    if not isinstance(call_id, str) or not call_id:
        return
    if call_id in check.seen:
        check.say("call-duplicate", f"two calls have the id {call_id!r}")
        return
    check.seen[call_id] = kind
    check.open[call_id] = (check.index, kind)


def _answers(check: _ItemCheck, kind: str, item: Item) -> None:
    call_id = answered_id(item)
    if not isinstance(call_id, str) or not call_id:
        return
    if call_id in check.open:
        _, call = check.open.pop(call_id)
        if OUTPUTS[kind] != call:
            check.say("result-kind", f"a {call} is answered by a {CALLS[call].output}, not by a {kind}")
        check.answered.add(call_id)
    elif call_id in check.answered:
        check.say("result-duplicate", f"call {call_id!r} already has an output")
    elif check.stored:  # a referenced item may be the call that an output answers
        check.stored.remove(next((one for one in check.stored if one[2]), check.stored[0]))
        check.answered.add(call_id)
    else:
        check.say("result-orphan", f"no call {call_id!r} waits for an output here")


def _program(check: _ItemCheck, kind: str, item: Item) -> None:
    if kind == "program":
        check.programs.add(str(item.get("call_id")))
    elif kind == "program_output" and str(item.get("call_id")) not in check.programs and not check.references:
        check.say("program-orphan", f"no program {item.get('call_id')!r} before its output")


def _close(check: _ItemCheck) -> None:
    """Report calls that have no output before the next user message, or none at all."""
    for call_id, (index, _) in check.open.items():
        check.say("result-missing", f"no output for call {call_id!r} before the next user message", index)
    for index, item_id, surely in check.stored:
        if surely:
            check.say("result-missing", f"no output for the call that {item_id!r} refers to", index)
    check.open, check.stored = {}, []


# ---- one item


def check_item(say: Say, item: Item) -> None:
    """Check one item; `say(rule, text)` takes what is wrong."""
    kind = kind_of(item)
    if kind not in KINDS:
        say("item-type", f"the type of an item is {kind!r}; the API does not know it")
        return
    for key in _FILLED.get(kind, ()):
        if not filled(item, key):
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
    part = fields_of(value)
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in allowed:
        say("part-type", f"{holder} cannot have a part of type {kind!r}; it takes {', '.join(allowed)}")
    elif kind in TEXTS:
        text = part.get(TEXTS[kind])
        if not isinstance(text, str):
            say("part-shape", f"the {TEXTS[kind]} of a part of type {kind} must be a string")
        elif not text:
            say("text-empty", f"a part of type {kind} must not be empty")
    elif kind == "input_image" and not (filled(part, "image_url") or filled(part, "file_id")):
        say("image-source", "an input_image needs an image_url or a file_id")
    elif kind == "input_file" and not any(filled(part, key) for key in ("file_data", "file_url", "file_id")):
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
    part = fields_of(value)
    return part.get("type") == kind and isinstance(part.get("text"), str)


def _call(say: Say, kind: str, item: Item) -> None:
    form = CALLS[kind]
    if not filled(item, form.id):
        say("call-id", f"a {kind} needs {form.id}, a non-empty string")
    value = item.get(form.arguments)
    if form.tool is None:
        name = item.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            say("call-name", f"the name of a {kind} is {name!r}; it must match ^[a-zA-Z0-9_-]+$")
        if not isinstance(value, str):
            say("call-arguments", f"the {form.arguments} of a {kind} must be a string")
    elif not _acts(kind, fields_of(value), item):
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
    fields = fields_of(output)
    if kind == "shell_call_output":
        return isinstance(output, list) and all(_ran(chunk) for chunk in cast("list[Any]", output))
    if kind == "apply_patch_call_output":
        return item.get("status") in ("completed", "failed") and isinstance(output, str | None)
    if kind == "computer_call_output":
        shown = filled(fields, "image_url") or filled(fields, "file_id")
        return fields.get("type") == "computer_screenshot" and shown
    if kind == "mcp_approval_response":
        return isinstance(item.get("approve"), bool)
    return kind == "tool_search_output" or isinstance(output, str)


def _ran(value: Any) -> bool:
    chunk = fields_of(value)
    ended = fields_of(chunk.get("outcome"))
    whole = isinstance(chunk.get("stdout"), str) and isinstance(chunk.get("stderr"), str)
    return whole and (ended.get("type") == "timeout" or isinstance(ended.get("exit_code"), int))
