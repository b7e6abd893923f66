"""pydantic-ai's messages: requests and responses of parts."""

from __future__ import annotations

from typing import Any, Final

from foldline.dialects.payload import fields_of, items_of
from foldline.transcripts.forms.chat_list import ChatListWriter
from foldline.transcripts.lines import text_or
from foldline.transcripts.payloads import as_text

NAME: Final = "pydantic-ai"
_BOOKKEEPING: Final = {
    "instruction-baseline", "instruction-delta", "instruction-digest", "tool-availability-delta",
    "capability-load-delta", "model-settings-delta",
}  # fmt: skip


def fits(body: dict[str, Any]) -> bool:
    """Return whether an object is a request or a response of pydantic-ai."""
    return body.get("kind") in ("request", "response") and isinstance(body.get("parts"), list)


def write(body: dict[str, Any], out: ChatListWriter) -> None:
    """Write a message; the instructions of a request become a system message before it."""
    if body["kind"] == "request" and text_or(body.get("instructions")):
        out.text(body["instructions"])
        out.end("system")
    for part in items_of(body["parts"]):
        _part(fields_of(part), out)
    out.end("assistant" if body["kind"] == "response" else "user")


def _part(part: dict[str, Any], out: ChatListWriter) -> None:
    kind, content = text_or(part.get("part_kind")), part.get("content")
    match kind:
        case "system-prompt" | "instruction":
            out.end("user")
            out.text(content)
            out.end("system")
        case "user-prompt":
            for item in items_of(content) if isinstance(content, list) else [content]:
                _prompt_item(item, out)
        case "text":
            out.text(content)
        case "thinking":
            out.thought(content, part.get("signature"))
        case "tool-call" | "builtin-tool-call":
            out.call(part.get("tool_call_id"), part.get("tool_name"), part.get("args"))
        case "tool-return" | "builtin-tool-return":
            failed = part.get("outcome") in ("failed", "denied", "retried")
            out.result(part.get("tool_call_id"), content, name=part.get("tool_name"), failed=failed)
        case "retry-prompt" if part.get("tool_name"):
            out.result(part.get("tool_call_id"), content, name=part["tool_name"], failed=True)
        case "retry-prompt" | "retry-feedback" | "compaction":
            out.text(as_text(content))
        case "file":
            _prompt_item(content, out)
        case "speech":
            out.text(part.get("transcript") or "")
        case _ if kind in _BOOKKEEPING:
            out.lose(f"{kind} parts left out")
        case _:
            out.refuse(f"a part of kind {kind!r}")


def _prompt_item(item: Any, out: ChatListWriter) -> None:
    """Write an item of a user's prompt: text, or media by URL or as base64."""
    if isinstance(item, str):
        out.text(item)
        return
    fields = fields_of(item)
    kind, mime = text_or(fields.get("kind")), fields.get("media_type") or fields.get("_media_type")
    match kind:
        case "text-content" | "structured-content":
            out.text(as_text(fields.get("content")))
        case "image-url" | "audio-url" | "video-url" | "document-url":
            out.media(mime, url=fields.get("url"), kind=kind.removesuffix("-url"))
        case "binary":
            out.media(mime, data=fields.get("data"))
        case "cache-point":
            pass
        case "uploaded-file":
            out.leave_out("file")
        case _:
            out.refuse(f"content of kind {kind!r}")
