"""Parts -> native parts of UI messages, and edits of messages kept as received."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.steps import STEP
from foldline.dialects.edits import check_edits
from foldline.dialects.media import placeholder, plain_text
from foldline.dialects.ui_message.read import REDACTED, V4_KEYS, slots
from foldline.dialects.ui_message.tools import Native, tool_part, with_call, with_result, without_result
from foldline.dialects.values import ANTHROPIC, FILE_ID, UI_MESSAGE

_MIMES = {"image": "image/*", "audio": "audio/*", "video": "video/*"}
_COPIES = ("toolInvocations", "reasoning")  # AI SDK 4 stored these as well as `parts`

Change = tuple[Part, Part | None]  # a part, and what it becomes


def native_of(part: Part) -> Native | None:
    """Return the native part for anything but a call or result; None if UI messages have no such part."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, Thinking):
        signed = {"providerMetadata": {ANTHROPIC: {"signature": part.signature}}} if part.signature else {}
        return {"type": "reasoning", "text": part.text, **signed}
    if isinstance(part, Media):
        return file_of(part) or {"type": "text", "text": placeholder(part)}
    if isinstance(part, Opaque) and isinstance(part.data, dict):
        fields = cast("Native", part.data)
        if part.dialect == UI_MESSAGE:
            return fields
        if (part.dialect, part.kind) == (ANTHROPIC, REDACTED):
            metadata = {ANTHROPIC: {"redactedData": fields.get("data")}}
            return {"type": "reasoning", "text": "", "providerMetadata": metadata}
    return None


def file_of(media: Media) -> Native | None:
    """Return the file part for media; None for a file that only its provider can find."""
    mime = media.mime or _MIMES.get(media.kind, "application/octet-stream")
    if media.data is not None:
        url = f"data:{mime};base64,{media.data}"
    elif media.url and not media.url.startswith(FILE_ID):
        url = media.url
    else:
        return None
    name = {"filename": media.name} if media.name else {}
    return {"type": "file", "mediaType": mime, **name, "url": url}


def output_of(content: Sequence[Part]) -> str:
    """Return a result's content as output: its texts, and a line for each media part."""
    texts: list[str] = []
    for part in content:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, Media):
            texts.append(plain_text(part) or placeholder(part))
    return "\n".join(text for text in texts if text)


def edit_native(body: Native, edits: Mapping[int, Part | None], index: int | None = None) -> Native | None:
    """Return a native message with some of its parts replaced (None: removed); None if nothing is left.

    All other keys and parts stay as received. A removed call takes its result along. A message of step
    marks alone counts as nothing.
    """
    found = slots(body, index)
    check_edits(edits, [part for part, _ in found], index)
    places: dict[tuple[str, int | None], list[Change]] = {}
    for number, (part, where) in enumerate(found):
        places.setdefault(where, []).append((part, edits.get(number, part)))
    new = dict(body)
    for key in dict.fromkeys(key for key, _ in places):
        changes = {place: change for (name, place), change in places.items() if name == key}
        if None in changes:
            new[key] = _words(changes[None][0])
        else:
            patched = [_patched(native, changes[place]) for place, native in enumerate(body[key])]
            new[key] = [native for native in patched if native is not None]
    if isinstance(body.get("parts"), list):
        _drop_copies(new)
    return new if _says(new) else None


def _says(body: Native) -> bool:
    if isinstance(natives := body.get("parts"), list):
        return any(cast("Native", native).get("type") != STEP for native in cast("list[Any]", natives))
    return any(body.get(key) for key in ("content", "reasoning", *V4_KEYS))


def _drop_copies(new: Native) -> None:
    """Drop AI SDK 4's second copy of the text and the calls: what was edited must not survive there."""
    for key in _COPIES:
        new.pop(key, None)
    if isinstance(new.get("content"), str):
        texts = [native.get("text") for native in new["parts"] if native.get("type") == "text"]
        new["content"] = "".join(text for text in texts if isinstance(text, str))


def _words(change: Change) -> str:
    new = change[1]
    return new.text if isinstance(new, Text | Thinking) else ""


def _patched(native: Native, changes: Sequence[Change]) -> Native | None:
    if all(new is old or new == old for old, new in changes):
        return native
    old, new = changes[0]
    if new is None:
        return None
    if isinstance(new, ToolCall) and isinstance(old, ToolCall):
        return _patched_tool(native, (old, new), changes[1:])
    if isinstance(new, Text) and isinstance(old, Text):
        return {**native, "text": new.text} if new.text.strip() else None
    if isinstance(new, Thinking) and isinstance(old, Thinking):
        return {**native, "reasoning" if "reasoning" in native else "text": new.text}
    return native_of(new)


def _patched_tool(native: Native, call: tuple[ToolCall, ToolCall], more: Sequence[Change]) -> Native:
    old, new = call
    body = native if new == old else with_call(native, new)
    for was, now in more:
        if now is None:
            body = without_result(body)
        elif now != was and isinstance(now, ToolResult) and isinstance(was, ToolResult):
            body = _patched_result(body, was, now)
    return body


def _patched_result(native: Native, old: ToolResult, new: ToolResult) -> Native:
    """Replace a result: unchanged blocks stay as received, an output of another form becomes text."""
    failed = new.is_error and native.get("state") != "output-available"
    output = native.get("output")
    key = next((key for key in ("content", "value") if isinstance(output, dict) and key in output), None)
    if key is None or failed or all(isinstance(part, Text) for part in new.content):
        return with_result(native, output_of(new.content), is_error=failed)
    fields = cast("Native", output)
    kept = cast("list[Any]", fields[key])
    blocks = [
        kept[place]
        if place < len(old.content) and old.content[place] == part
        else {"type": "text", "text": output_of([part])}
        for place, part in enumerate(new.content)
    ]
    return with_result(native, {**fields, key: blocks}, is_error=False)


def new_tool(call: ToolCall, result: ToolResult | None = None) -> Native:
    """Make a new tool part, answered if there is a result."""
    part = tool_part(call)
    return part if result is None else answer(part, result)


def answer(native: Native, result: ToolResult) -> Native:
    """Return a tool part with the result of its call."""
    return with_result(native, output_of(result.content), is_error=result.is_error)
