"""The AI SDK's ModelMessages (CoreMessages in version 4), as `convertToModelMessages` returns them."""

from __future__ import annotations

from typing import Any, Final

from foldline.dialects.payload import fields_of, items_of
from foldline.transcripts.forms.chat_list import ChatListWriter, keys_of
from foldline.transcripts.lines import text_or
from foldline.transcripts.payloads import as_text

NAME: Final = "the AI SDK's ModelMessage"
_OWN: Final = {
    "tool-call", "tool-result", "tool-error", "tool-approval-request", "tool-approval-response",
    "redacted-reasoning", "reasoning-file",
}  # fmt: skip
_ROLES: Final = ("system", "user", "assistant", "tool")


def fits(body: dict[str, Any]) -> bool:
    """Return whether a message has a part that only this form has."""
    return text_or(body.get("role")) in _ROLES and any(
        map(_is_own, map(fields_of, items_of(body.get("content"))))
    )


def _is_own(part: dict[str, Any]) -> bool:
    kind = text_or(part.get("type"))
    if kind == "image":
        return "image" in part
    if kind == "file":
        return "file" not in part and bool({"data", "mediaType", "mimeType"} & part.keys())
    return kind in _OWN or (kind == "reasoning" and isinstance(part.get("text"), str))


def write(body: dict[str, Any], out: ChatListWriter) -> None:
    """Write a message."""
    for part in items_of(body["content"]):
        _part(fields_of(part), out)
    if body["role"] != "tool":
        out.end(body["role"])


def _part(part: dict[str, Any], out: ChatListWriter) -> None:
    kind = text_or(part.get("type"))
    mime = part.get("mediaType") or part.get("mimeType")
    match kind:
        case "text":
            out.text(part.get("text"))
        case "reasoning":
            out.thought(part.get("text"), part.get("signature") or part.get("providerOptions"))
        case "redacted-reasoning" | "reasoning-file":
            out.lose(f"{kind} parts left out")
        case "image" | "file":
            content = part.get("image", part.get("data"))
            is_url = text_or(content).startswith(("data:", "http://", "https://"))
            mime, url = mime or ("image/png" if kind == "image" else ""), content if is_url else None
            out.media(mime, data=None if is_url else content, url=url, name=part.get("filename"))
        case "tool-call":
            content = part.get("input", part.get("args"))
            out.call(part.get("toolCallId"), part.get("toolName"), content)
        case "tool-result" | "tool-error":
            text, failed = _output(part, out)
            failed = failed or kind == "tool-error" or part.get("isError") is True
            out.result(part.get("toolCallId"), text, name=part.get("toolName"), failed=failed)
        case "tool-approval-request" | "tool-approval-response":
            out.lose("tool approvals left out")
        case _:
            out.refuse(f"a part of type {kind!r}" if kind else f"a part with {keys_of(part)}")


def _output(part: dict[str, Any], out: ChatListWriter) -> tuple[str, bool]:
    """Return a result's text, and whether it is an error."""
    output = fields_of(part.get("output"))
    kind, value = text_or(output.get("type")), output.get("value")
    if "output" not in part:
        return as_text(part.get("result", part.get("error"))), False
    if kind == "content":
        parts = map(fields_of, items_of(value))
        texts = (out.in_result(inner.get("text"), text_or(inner.get("type"))) for inner in parts)
        return "\n".join(texts), False
    if kind == "execution-denied":
        return text_or(output.get("reason")) or "Not run: the call was denied.", True
    if kind not in ("text", "json", "error-text", "error-json"):
        out.refuse(f"a result of type {kind!r}")
    return as_text(value), kind.startswith("error")
