"""LangChain's messages, as written by `model_dump`, `messages_to_dict` or `dumpd`."""

from __future__ import annotations

from typing import Any, Final

from foldline.dialects.payload import fields_of, items_of
from foldline.transcripts.forms.chat_list import ChatListWriter, keys_of
from foldline.transcripts.lines import text_or
from foldline.transcripts.payloads import as_text

NAME: Final = "LangChain"
_ROLES: Final = {
    "human": "user", "HumanMessageChunk": "user",
    "ai": "assistant", "AIMessageChunk": "assistant",
    "system": "system", "SystemMessageChunk": "system",
    "tool": "tool", "ToolMessageChunk": "tool",
    "function": "tool", "FunctionMessageChunk": "tool",
    "chat": "", "ChatMessageChunk": "", "remove": "",
}  # fmt: skip
_CHAT: Final = {
    "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "system": "system",
}  # fmt: skip
_CALLS: Final = ("tool_use", "tool_call", "tool_call_chunk", "function_call", "invalid_tool_call")


def fits(body: dict[str, Any]) -> bool:
    """Return whether an object is a LangChain message."""
    if body.get("lc") is not None and isinstance(body.get("kwargs"), dict):
        return text_or(fields_of(body["kwargs"]).get("type")) in _ROLES
    if text_or(body.get("type")) not in _ROLES:
        return False
    has_role = "role" in body and body["type"] not in ("chat", "ChatMessageChunk")
    return isinstance(body.get("data"), dict) or ("content" in body and not has_role)


def from_pair(role: str, content: Any) -> dict[str, Any] | None:
    """Return the message for a pair such as ("user", "hi"); None for any other pair."""
    chat_role = {**_CHAT, "tool": "tool"}.get(role)
    return None if chat_role is None else {"type": "chat", "role": role, "content": content}


def write(body: dict[str, Any], out: ChatListWriter) -> None:
    """Write a message."""
    fields = fields_of(body.get("kwargs") if "lc" in body else body.get("data") or body)
    kind = text_or(fields.get("type")) or text_or(body.get("type"))
    role = _ROLES.get(kind, "")
    if kind == "remove":
        out.lose("removals of messages left out")
        return
    if not role:
        role = _CHAT.get(text_or(fields.get("role")), "")
        if not role:
            out.refuse(f"a message of the role {fields.get('role')!r}")
    if role == "tool":
        content, failed = _result_text(fields.get("content"), out), fields.get("status") == "error"
        out.result(fields.get("tool_call_id"), content, name=fields.get("name"), failed=failed)
        return
    out.thought(fields_of(fields.get("additional_kwargs")).get("reasoning_content"))
    _content(fields.get("content"), out)
    if role == "assistant":
        _calls(fields, out)
    out.end(role, name=fields.get("name") if role == "user" else None)


def _calls(fields: dict[str, Any], out: ChatListWriter) -> None:
    calls = [*items_of(fields.get("tool_calls")), *items_of(fields.get("invalid_tool_calls"))]
    for call in map(fields_of, calls):
        out.call(call.get("id"), call.get("name"), call.get("args"))
    if not calls:  # older dumps have them in the API's form
        for call in map(fields_of, items_of(fields_of(fields.get("additional_kwargs")).get("tool_calls"))):
            function = fields_of(call.get("function"))
            out.call(call.get("id"), function.get("name"), function.get("arguments"))


def _content(content: Any, out: ChatListWriter) -> None:
    for block in items_of(content) if isinstance(content, list) else [content]:
        if isinstance(block, str):
            out.text(block)
        elif isinstance(block, dict):
            _block(fields_of(block), out)
        elif block is not None:
            out.refuse("a content that is neither text nor blocks")


def _block(block: dict[str, Any], out: ChatListWriter) -> None:
    kind = text_or(block.get("type"))
    source = fields_of(block.get("source"))
    match kind:
        case "text":
            out.text(block.get("text") or "")
        case "thinking" | "reasoning":
            out.thought(block.get("thinking") or block.get("reasoning"), block.get("signature"))
        case "image_url":
            url = block.get("image_url")
            out.media("", url=text_or(fields_of(url).get("url")) or url, kind="image")
        case "image" | "audio" | "file" | "video" | "document":
            mime = (
                block.get("mime_type") or source.get("media_type") or ("image/png" if kind == "image" else "")
            )
            data = block.get("base64") or block.get("data") or source.get("data")
            url = block.get("url") or source.get("url")
            out.media(mime, data=data, url=url, kind="document" if kind == "file" else kind)
        case _ if kind in _CALLS:
            pass  # `tool_calls` has them
        case "":
            out.refuse(f"a content block with {keys_of(block)}")
        case _:
            out.leave_out(kind)


def _result_text(content: Any, out: ChatListWriter) -> str:
    if not isinstance(content, list):
        return as_text(content)
    return "\n".join(
        block if isinstance(block, str) else _block_text(fields_of(block), out) for block in items_of(content)
    )


def _block_text(block: dict[str, Any], out: ChatListWriter) -> str:
    if block.get("type") == "json":
        return as_text(block.get("json"))
    return out.in_result(block.get("text"), text_or(block.get("type")))
