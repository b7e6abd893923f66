"""Write a tool result as the output item that its call requires."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Text, ToolResult
from foldline.dialects.media import FILE_ID, placeholder, plain_text, to_responses
from foldline.dialects.responses.items import CALLS, Item
from foldline.dialects.values import OPENAI_RESPONSES

# only a screenshot can answer a computer call; this one is a white PNG of one pixel
BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAA"
    "AABJRU5ErkJggg=="
)
NO_TEXT = ("computer_call", "tool_search_call")  # their outputs cannot hold text


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
    text = _words(part)
    return {"type": "input_text", "text": text} if text else None


def _words(part: Text | Media | Opaque) -> str:
    if isinstance(part, Text):
        return part.text
    return (plain_text(part) or placeholder(part)) if isinstance(part, Media) else ""


def _text(result: ToolResult) -> str:
    return "\n".join(text for part in result.content if (text := _words(part)))


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
