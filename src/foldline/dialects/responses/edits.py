"""Parts -> items: edits of items kept as received, and results in the form that a call requires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.edits import PlacedPart, check_edits
from foldline.dialects.media import FILE_ID, to_responses, words_of
from foldline.dialects.payload import json_text
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
# items whose id the API does not require
_FREE = frozenset({"message", "function_call", "custom_tool_call", "shell_call", "apply_patch_call"})


def edit_native(
    items: Sequence[Item], edits: Mapping[int, Part | None], index: int | None = None
) -> list[Item] | None:
    """Return a message's items with some of its parts replaced (None: removed); None if nothing is left.

    All other items, keys and parts stay as received. Reasoning is removed with the item that it led to, and
    an item whose reasoning was removed loses its id: the API looks for the reasoning of items that it knows.
    """
    places = [slots(item, index) for item in items]
    check_edits(edits, [part for found in places for part, _ in found], index)
    new: list[Item | None] = []
    first = 0
    for item, found in zip(items, places, strict=True):
        own = {number - first: part for number, part in edits.items() if first <= number < first + len(found)}
        new.append(_edited(item, found, own) if own else item)
        first += len(found)
    return _mended(items, new) or None


def _mended(items: Sequence[Item], new: Sequence[Item | None]) -> list[Item]:
    found: list[Item] = []
    gone = False  # the reasoning of what follows
    for number, item in enumerate(new):
        if kind_of(items[number]) == "reasoning":
            gone = item is None or not _led_on(items, new, number)
            found += [] if item is None or gone else [item]
        elif item is not None:
            free = gone and kind_of(item) in _FREE
            found.append({key: value for key, value in item.items() if key != "id"} if free else item)
    return found


def _led_on(items: Sequence[Item], new: Sequence[Item | None], number: int) -> bool:
    """Return whether the item that reasoning led to is still of the same type; True if none followed."""
    after = (at for at in range(number + 1, len(items)) if kind_of(items[at]) != "reasoning")
    follower = next(after, None)
    if follower is None:
        return True
    left = new[follower]
    return left is not None and kind_of(left) == kind_of(items[follower])


def _edited(item: Item, found: Sequence[PlacedPart], edits: Mapping[int, Part | None]) -> Item | None:
    if is_call(item) or is_output(item):
        part, new = found[0][0], edits[0]
        if new is None or new == part:
            return None if new is None else item
        return _call(item, part, new) if isinstance(new, ToolCall) else output_of(item, part, new)
    if kind_of(item) == "message":
        return _message(item, found, edits)
    if kind_of(item) == "reasoning":
        return _reasoning(item, found, edits)
    return _instead(edits[0])


def _call(item: Item, old: Part, new: ToolCall) -> Item:
    """Return a call with another id, name or arguments; one with a fixed tool becomes a function call."""
    kind = str(kind_of(item))
    form = CALLS[kind]
    if form.tool is None:
        return {**item, form.id: new.id, "name": new.name, form.arguments: json_text(new.arguments)}
    if isinstance(old, ToolCall) and old.arguments == new.arguments:
        return {**item, form.id: new.id}
    return call_item(new.id, new.name, json_text(new.arguments))


def output_of(item: Item, old: Part, new: Part) -> Item:
    """Return an output with other content, in the form of its type; unchanged parts stay as received."""
    result, before = cast("ToolResult", new), cast("ToolResult", old)
    call = OUTPUTS[str(kind_of(item))]
    built = output_item(call, result)
    if call == "local_shell_call" and "call_id" in item:
        built = {"call_id": result.call_id, "output": built["output"]}
    if call == "mcp_approval_request":
        built.pop("approve")  # what was decided stays
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
    same = len(native) == len(old.content)
    parts: list[Item] = []
    for place, part in enumerate(new.content):
        kept = same and place < len(native) and old.content[place] == part
        output = native[place] if kept else output_part(part)
        parts += [] if output is None else [output]
    return parts or ""


def _message(item: Item, found: Sequence[PlacedPart], edits: Mapping[int, Part | None]) -> Item | None:
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
        part = native if place not in edits else _patched(native, found[place][0], edits[place], assistant)
        parts += [] if part is None else [part]
    return {**item, "content": parts} if parts else None


def _patched(native: Item, old: Part, new: Part | None, assistant: bool) -> Item | None:
    if new is None or new == old:
        return None if new is None else native
    kind = native.get("type")
    if isinstance(new, Text) and isinstance(old, Text) and kind in TEXTS:
        # citations point into the old text
        cited: Item = {"annotations": []} if native.get("annotations") else {}
        return {**native, TEXTS[str(kind)]: new.text, **cited} if new.text else None
    return content_part(new, assistant=assistant)


def _reasoning(item: Item, found: Sequence[PlacedPart], edits: Mapping[int, Part | None]) -> Item | None:
    new: Item | None = item
    for number, part in edits.items():
        old, (key, _) = found[number]
        if part == old:
            continue
        if key == SEALED:
            return None
        if isinstance(part, Text | Thinking):
            kind = "reasoning_text" if key == "content" else "summary_text"
            new = {**item, key: [{"type": kind, "text": part.text}]}
        elif len(found) == 1:
            return None
        else:
            new = {name: value for name, value in item.items() if name != "content"}
            new["summary"] = [] if key == "summary" else item.get("summary", [])
    return new


def _instead(new: Part | None) -> Item | None:
    """Return the replacement of an item that only this dialect reads."""
    if isinstance(new, Opaque):
        return cast("Item", new.data) if isinstance(new.data, dict) else None
    words = "" if new is None else words_of(new)
    return {"type": "message", "role": "assistant", "content": words} if words else None


def call_item(call_id: str, name: str, arguments: str) -> Item:
    """Make a function call."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def content_part(part: Part, *, assistant: bool = False) -> Item | None:
    """Return a part as message content; None if the API has no form for it."""
    if isinstance(part, Media) and not assistant and (media := to_responses(part)):
        return media
    if isinstance(part, Opaque):
        ours = part.dialect == OPENAI_RESPONSES and isinstance(part.data, dict) and not assistant
        return cast("Item", part.data) if ours and str(part.kind).startswith("input_") else None
    words = words_of(part)
    if not words:
        return None
    if assistant:
        return {"type": "output_text", "text": words, "annotations": []}
    return {"type": "input_text", "text": words}


# ---- results


def output_item(call: str, result: ToolResult) -> Item:
    """Return the output item for a call of type `call`; what has no place in it is left out."""
    item: Item = {"type": CALLS[call].output, "call_id": result.call_id}
    if call == "local_shell_call":
        return {"type": item["type"], "id": result.call_id, "output": _text(result)}
    if call == "shell_call":
        ended = {"type": "exit", "exit_code": int(result.is_error)}
        return {**item, "output": [{"stdout": _text(result), "stderr": "", "outcome": ended}]}
    if call == "apply_patch_call":
        return {**item, "status": "failed" if result.is_error else "completed", "output": _text(result)}
    if call == "computer_call":
        return {**item, "output": _screenshot(result)}
    if call == "tool_search_call":
        return {**item, "execution": "client", "tools": _tools(result)}
    if call == "mcp_approval_request":
        said = _text(result)
        answer: Item = {"type": item["type"], "approval_request_id": result.call_id}
        return {**answer, "approve": said.startswith("approved") and not result.is_error, "reason": said}
    return {**item, "output": output_content(result)}


def output_content(result: ToolResult) -> str | list[Item]:
    """Return the output as text, or as a list of parts if there are several or any media."""
    parts = [part for inner in result.content if (part := output_part(inner)) is not None]
    if not parts:
        return ""
    if len(parts) == 1 and parts[0].get("type") == "input_text":
        return str(parts[0]["text"])
    return parts


def output_part(part: Text | Media | Opaque) -> Item | None:
    """Return a part as tool output; None if the API has no form for it."""
    if isinstance(part, Opaque):
        ours = part.dialect == OPENAI_RESPONSES and part.kind.startswith("input_")
        return cast("Item", part.data) if ours and isinstance(part.data, dict) else None
    if isinstance(part, Media) and (media := to_responses(part)):
        return media
    text = words_of(part)
    return {"type": "input_text", "text": text} if text else None


def _text(result: ToolResult) -> str:
    return "\n".join(text for part in result.content if (text := words_of(part)))


def _screenshot(result: ToolResult) -> Item:
    image = next((part for part in result.content if isinstance(part, Media) and part.kind == "image"), None)
    shot: Item = {"type": "computer_screenshot"}
    if image is not None and (image.url or "").startswith(FILE_ID):
        return {**shot, "file_id": str(image.url).removeprefix(FILE_ID)}
    part = to_responses(image) if image is not None else None
    return {**shot, "image_url": part["image_url"] if part else BLANK}


def _tools(result: ToolResult) -> list[Any]:
    for part in result.content:
        if isinstance(part, Opaque) and part.kind == "tools" and isinstance(part.data, list):
            return cast("list[Any]", part.data)
    return []
