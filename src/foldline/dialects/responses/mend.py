"""Mend malformed Responses items into ones that the API takes."""

from __future__ import annotations

from typing import Any

from foldline.dialects.media import from_responses
from foldline.dialects.mend import as_text, call_id, left_out, parts, safe_tool_name
from foldline.dialects.payload import Fields, fields_of, items_of
from foldline.dialects.responses.edits import BLANK
from foldline.dialects.responses.items import CALLS, is_call, is_output, kind_of
from foldline.dialects.responses.read import TEXTS
from foldline.dialects.values import Notes

_MEDIA = {"input_image": "image", "input_file": "document"}
_ACTIONS: dict[str, Fields] = {
    "local_shell_call": {"type": "exec", "command": []},
    "shell_call": {"commands": []},
    "apply_patch_call": {"type": "update_file", "path": "", "diff": ""},
    "computer_call": {"type": "screenshot"},
}
_SHOWN = {"type": "computer_screenshot", "image_url": BLANK}


def mend(item: Fields, notes: Notes) -> Fields:
    """Return the item with what is malformed in it mended, and note each change."""
    kind = kind_of(item)
    if kind == "message":
        return _message(item, notes)
    if kind == "reasoning":
        return _reasoning(item, notes)
    if is_call(item):
        return _call(item, str(kind), notes)
    if is_output(item):
        return _output(item, str(kind), notes)
    return item


def _message(item: Fields, notes: Notes) -> Fields:
    content, role = item.get("content"), item.get("role")
    form = "output_text" if role == "assistant" else "input_text"
    if isinstance(content, list):
        mended = parts(content, lambda text: {"type": form, "text": text}, _part, notes)
        return {**item, "content": mended}
    if content is not None:
        return item
    notes.add("missing content became empty text")
    return {**item, "content": ""}


def _part(part: Fields, notes: Notes) -> Fields | None:
    kind = part["type"]
    if kind in TEXTS:
        key = TEXTS[kind]
        value = part.get(key)
        if isinstance(value, str) and value:
            return part
        notes.add(f"an empty part of type {kind} was left out" if not value else f"the {key} became text")
        return {**part, key: as_text(value)} if value else None
    if kind in _MEDIA:
        media = from_responses(part)
        if media is None or not (media.data or media.url):
            notes.add(f"an {kind} part without data became text")
            return {"type": "input_text", "text": left_out(_MEDIA[kind])}
    return part


def _reasoning(item: Fields, notes: Notes) -> Fields:
    new = dict(item)
    for key, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
        value = item.get(key)
        if key == "content" and value is None:
            continue
        listed = items_of(value) if isinstance(value, list) or value is None else [value]
        told: list[Any] = []
        for part in listed:
            whole = isinstance(fields_of(part).get("text"), str) and fields_of(part).get("type") == kind
            text = as_text(fields_of(part).get("text") or part)
            told.append(part if whole else {"type": kind, "text": text})
        if told != value:
            notes.add(f"the {key} of reasoning became a list of texts")
            new[key] = told
    return new


def _call(item: Fields, kind: str, notes: Notes) -> Fields:
    form = CALLS[kind]
    new = {**item, form.id: call_id(item.get(form.id), notes)}
    value = item.get(form.arguments)
    if form.tool is None:
        new["name"] = safe_tool_name(item.get("name"), notes)
        if value is None:
            notes.add(f"missing {form.arguments} became none")
            new[form.arguments] = "" if kind == "custom_tool_call" else "{}"
        elif not isinstance(value, str):
            notes.add(f"{form.arguments} that are not text became JSON text")
            new[form.arguments] = as_text(value)
    elif not isinstance(value, dict) and kind in _ACTIONS and "actions" not in item:
        notes.add(f"the missing {form.arguments} of a {kind} was filled in")
        new[form.arguments] = _ACTIONS[kind]
    return new


def _output(item: Fields, kind: str, notes: Notes) -> Fields:
    new = dict(item)
    key = "approval_request_id" if kind == "mcp_approval_response" else "call_id"
    if kind != "local_shell_call_output" or "id" not in item:
        new[key] = call_id(item.get(key), notes)
    output = item.get("output")
    if kind in ("mcp_approval_response", "tool_search_output"):
        return new
    if kind == "computer_call_output":
        media = from_responses({**fields_of(output), "type": "input_image"})
        if media is None or not (media.data or media.url):
            notes.add("a missing screenshot became a blank one")
            new["output"] = _SHOWN
    elif kind == "shell_call_output":
        new["output"] = _ran(output, notes)
    elif isinstance(output, list) and kind in ("function_call_output", "custom_tool_call_output"):
        new["output"] = parts(output, _text, _output_part, notes) or ""
    elif not isinstance(output, str):
        notes.add("an output that is not text became text")
        new["output"] = as_text(output)
    if kind == "apply_patch_call_output" and item.get("status") not in ("completed", "failed"):
        notes.add("a missing status became completed")
        new["status"] = "completed"
    return new


def _text(text: str) -> Fields:
    return {"type": "input_text", "text": text}


def _output_part(part: Fields, notes: Notes) -> Fields | None:
    kind = part["type"]
    if kind in ("input_text", *_MEDIA):
        return _part(part, notes)
    text = part.get("text")
    notes.add(f"a part of type {kind} in an output became text")
    told = text if isinstance(text, str) and kind in TEXTS else as_text(part)
    return _text(told) if told else None


def _ran(output: Any, notes: Notes) -> list[Any]:
    chunks = items_of(output) if isinstance(output, list) or output is None else [output]
    found: list[Any] = []
    for chunk in chunks:
        fields = fields_of(chunk)
        ended = fields_of(fields.get("outcome"))
        whole = isinstance(fields.get("stdout"), str) and isinstance(fields.get("stderr"), str)
        known = ended.get("type") == "timeout" or isinstance(ended.get("exit_code"), int)
        if whole and known:
            found.append(chunk)
            continue
        shown = as_text(fields.get("stdout")) if fields else as_text(chunk)
        outcome = ended if known else {"type": "exit", "exit_code": 0}
        found.append({**fields, "stdout": shown, "stderr": as_text(fields.get("stderr")), "outcome": outcome})
    if found != output:
        notes.add("the output of a shell call was filled in")
    return found
