"""Edits of native Responses items, and the items of calls, contents and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.edits import PlacedPart, check_edits
from foldline.dialects.media import FILE_ID, joined_words, to_responses, words_of
from foldline.dialects.payload import items_of, json_text, without
from foldline.dialects.responses.form import BLANK
from foldline.dialects.responses.items import (
    CALLS,
    OUTPUTS,
    SEALED,
    TEXTS,
    Item,
    is_call,
    is_output,
    kind_of,
    slots,
)
from foldline.dialects.values import OPENAI_RESPONSES

NO_TEXT = ("computer_call", "tool_search_call")  # their outputs cannot hold text
# items without a required id
_FREE = frozenset({"message", "function_call", "custom_tool_call", "shell_call", "apply_patch_call"})


def edit_native(
    items: Sequence[Item], edits: Mapping[int, Part | None], index: int | None = None
) -> list[Item] | None:
    """Return the items of a message with some parts replaced (None: removed); None if no item is left.

    All other items, keys and parts stay as received. Reasoning is removed with the item that follows it. An
    item whose reasoning was removed loses its id: the API requires the reasoning of items that it knows.
    """
    places = [slots(item, index) for item in items]
    check_edits(edits, [part for placed in places for part, _ in placed], index)
    new: list[Item | None] = []
    first = 0
    for item, placed in zip(items, places, strict=True):
        own = {place: edits[first + place] for place in range(len(placed)) if first + place in edits}
        new.append(_edited(item, placed, own) if own else item)
        first += len(placed)
    return _with_valid_reasoning(items, new) or None


def _with_valid_reasoning(items: Sequence[Item], new: Sequence[Item | None]) -> list[Item]:
    """Remove reasoning without the item that followed it, and the ids of items without their reasoning."""
    valid: list[Item] = []
    removed = False  # the reasoning of the following items
    for number, item in enumerate(new):
        if kind_of(items[number]) == "reasoning":
            removed = item is None or not _is_followed(items, new, number)
            valid += [] if item is None or removed else [item]
        elif item is not None:
            valid.append(without(item, "id") if removed and kind_of(item) in _FREE else item)
    return valid


def _is_followed(items: Sequence[Item], new: Sequence[Item | None], number: int) -> bool:
    """Return whether the item after reasoning still has its type; True if there was none."""
    after = (place for place in range(number + 1, len(items)) if kind_of(items[place]) != "reasoning")
    follower = next(after, None)
    if follower is None:
        return True
    edited = new[follower]
    return edited is not None and kind_of(edited) == kind_of(items[follower])


def _edited(item: Item, placed: Sequence[PlacedPart], edits: Mapping[int, Part | None]) -> Item | None:
    if is_call(item) or is_output(item):
        part, new = placed[0][0], edits[0]
        if new is None or new == part:
            return None if new is None else item
        return _call(item, part, new) if isinstance(new, ToolCall) else output_of(item, part, new)
    if kind_of(item) == "message":
        return _message(item, placed, edits)
    if kind_of(item) == "reasoning":
        return _reasoning(item, placed, edits)
    return _replacement(edits[0])


def _call(item: Item, old: Part, new: ToolCall) -> Item:
    """Return a call with another id, name or arguments; one of a fixed tool becomes a function call."""
    kind = str(kind_of(item))
    form = CALLS[kind]
    if form.tool is None:
        return {**item, form.id: new.id, "name": new.name, form.arguments: json_text(new.arguments)}
    if isinstance(old, ToolCall) and old.arguments == new.arguments:
        return {**item, form.id: new.id}
    return call_item(new.id, new.name, json_text(new.arguments))


def output_of(item: Item, old: Part, new: Part) -> Item:
    """Return an output with other content in the form of its type; unchanged parts stay as received."""
    result, before = cast("ToolResult", new), cast("ToolResult", old)
    call = OUTPUTS[str(kind_of(item))]
    built = output_item(call, result)
    if call == "local_shell_call" and "call_id" in item:
        built = {"call_id": result.call_id, "output": built["output"]}
    if call == "mcp_approval_request":
        built.pop("approve")  # the decision is not edited
    if result.content == before.content:
        return {**item, **{key: built[key] for key in built if key.endswith("id")}}
    native = item.get("output")
    if isinstance(native, list):
        built["output"] = _listed(call, cast("list[Item]", native), before, built, result)
    return {**item, **built}


def _listed(call: str, native: list[Item], old: ToolResult, built: Item, new: ToolResult) -> list[Item] | str:
    """Return a list of output parts; unchanged ones stay as received."""
    if call == "shell_call":
        return [{**native[-1], **built["output"][0], "outcome": native[-1].get("outcome")}] if native else []
    aligned = len(native) == len(old.content)
    parts: list[Item] = []
    for place, part in enumerate(new.content):
        unchanged = aligned and place < len(native) and old.content[place] == part
        output = native[place] if unchanged else content_part(part)
        parts += [] if output is None else [output]
    return parts or ""


def _message(item: Item, placed: Sequence[PlacedPart], edits: Mapping[int, Part | None]) -> Item | None:
    content = item["content"]
    assistant = item.get("role") == "assistant"
    if isinstance(content, str):
        new = edits[0]
        if isinstance(new, Text):
            return {**item, "content": new.text} if new.text else None
        part = None if new is None else content_part(new, assistant=assistant)
        return None if part is None else {**item, "content": [part]}
    parts: list[Any] = []
    for place, native in enumerate(cast("list[Any]", content)):
        part = native if place not in edits else _patched(native, placed[place][0], edits[place], assistant)
        parts += [] if part is None else [part]
    return {**item, "content": parts} if parts else None


def _patched(native: Item, old: Part, new: Part | None, assistant: bool) -> Item | None:
    if new is None or new == old:
        return None if new is None else native
    kind = native.get("type")
    if isinstance(new, Text) and isinstance(old, Text) and kind in TEXTS:
        # citations refer to the old text
        citations: Item = {"annotations": []} if native.get("annotations") else {}
        return {**native, TEXTS[str(kind)]: new.text, **citations} if new.text else None
    return content_part(new, assistant=assistant)


def _reasoning(item: Item, placed: Sequence[PlacedPart], edits: Mapping[int, Part | None]) -> Item | None:
    new: Item | None = item
    for number, part in edits.items():
        old, (key, _) = placed[number]
        if part == old:
            continue
        if key == SEALED:
            return None
        if isinstance(part, Text | Thinking):
            kind = "reasoning_text" if key == "content" else "summary_text"
            new = {**item, key: [{"type": kind, "text": part.text}]}
        elif len(placed) == 1:
            return None
        else:
            new = without(item, "content")
            new["summary"] = [] if key == "summary" else item.get("summary", [])
    return new


def _replacement(new: Part | None) -> Item | None:
    """Return the replacement of an opaque item."""
    if isinstance(new, Opaque):
        return cast("Item", new.data) if isinstance(new.data, dict) else None
    words = "" if new is None else words_of(new)
    return {"type": "message", "role": "assistant", "content": words} if words else None


def call_item(call_id: str, name: str, arguments: str) -> Item:
    """Return a function call."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def content_part(part: Part, *, assistant: bool = False) -> Item | None:
    """Return a part of a message or an output; None if the API does not support it."""
    if isinstance(part, Media) and not assistant and (media := to_responses(part)):
        return media
    if isinstance(part, Opaque):
        own = part.dialect == OPENAI_RESPONSES and isinstance(part.data, dict) and not assistant
        return cast("Item", part.data) if own and part.kind.startswith("input_") else None
    words = words_of(part)
    if not words:
        return None
    if assistant:
        return {"type": "output_text", "text": words, "annotations": []}
    return {"type": "input_text", "text": words}


def content_of(parts: Sequence[Part], *, assistant: bool = False) -> str | list[Item]:
    """Return the content of a message or an output: a string for a single text, else a list; "" if empty."""
    items = [item for part in parts if (item := content_part(part, assistant=assistant)) is not None]
    if len(items) == 1 and items[0].get("type") in ("input_text", "output_text"):
        return str(items[0]["text"])
    return items or ""


# ---- outputs


def output_item(call: str, result: ToolResult) -> Item:
    """Return the output item for a call of type `call`, without unsupported parts."""
    item: Item = {"type": CALLS[call].output, "call_id": result.call_id}
    text = joined_words(result.content)
    if call == "local_shell_call":
        return {"type": item["type"], "id": result.call_id, "output": text}
    if call == "shell_call":
        outcome = {"type": "exit", "exit_code": int(result.is_error)}
        return {**item, "output": [{"stdout": text, "stderr": "", "outcome": outcome}]}
    if call == "apply_patch_call":
        return {**item, "status": "failed" if result.is_error else "completed", "output": text}
    if call == "computer_call":
        return {**item, "output": _screenshot(result)}
    if call == "tool_search_call":
        found = [part.data for part in result.content if isinstance(part, Opaque) and part.kind == "tools"]
        return {**item, "execution": "client", "tools": items_of(found[0] if found else None)}
    if call == "mcp_approval_request":
        answer: Item = {"type": item["type"], "approval_request_id": result.call_id}
        return {**answer, "approve": text.startswith("approved") and not result.is_error, "reason": text}
    return {**item, "output": content_of(result.content)}


def _screenshot(result: ToolResult) -> Item:
    image = next((part for part in result.content if isinstance(part, Media) and part.kind == "image"), None)
    shot: Item = {"type": "computer_screenshot"}
    if image is not None and (image.url or "").startswith(FILE_ID):
        return {**shot, "file_id": str(image.url).removeprefix(FILE_ID)}
    part = to_responses(image) if image is not None else None
    return {**shot, "image_url": part["image_url"] if part else BLANK}
