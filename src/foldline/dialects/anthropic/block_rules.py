"""The documented form of each Anthropic content block."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from foldline.dialects.media import IMAGE_TYPES, PDF, PLAIN
from foldline.dialects.values import Say

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_USER = ("text", "image", "document", "search_result", "tool_result", "container_upload")
_ASSISTANT = (
    "text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use",
    "container_upload", "compaction",
)  # fmt: skip
_IN_RESULT = ("text", "image", "document", "search_result", "tool_reference")


def check_block(say: Say, role: str, block: dict[str, Any]) -> None:
    """Check one block of a message of `role` by itself; `say(rule, text)` takes what is wrong."""
    kind = block.get("type")
    server_result = isinstance(kind, str) and kind.endswith("_tool_result")
    allowed = kind in _USER if role == "user" else kind in _ASSISTANT or server_result
    if not allowed:
        if kind in ("thinking", "redacted_thinking"):
            say("thinking-role", f"{kind} belongs in an assistant message")
        elif kind == "tool_use":
            say("call-role", "tool_use belongs in an assistant message")
        elif kind == "tool_result":
            say("result-role", "tool_result belongs in a user message")
        else:
            say("block-type", f"a {role} message cannot have a block of type {kind!r}")
        return
    check = _CHECKS.get(str(kind))
    if check is not None:
        check(say, block)


def check_system(say: Say, system: Any) -> None:
    """Check a system prompt: absent, text, or a list of non-empty text blocks."""
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        say("system", "system must be a string or a list of text blocks")
        return
    for block in cast("list[Any]", system):
        if not isinstance(block, dict) or cast("dict[str, Any]", block).get("type") != "text":
            say("system", "system may hold only text blocks")
        else:
            _text(say, cast("dict[str, Any]", block))


def _text(say: Say, block: dict[str, Any]) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        say("block-shape", "the text of a text block must be a string")
    elif not text.strip():
        say("text-empty", "a text block must hold more than whitespace")


def _thinking(say: Say, block: dict[str, Any]) -> None:
    if not isinstance(block.get("thinking"), str):
        say("block-shape", "the thinking of a thinking block must be a string")
    signature = block.get("signature")
    if not isinstance(signature, str) or not signature:
        say("thinking-signature", "a thinking block needs its signature")


def _redacted(say: Say, block: dict[str, Any]) -> None:
    data = block.get("data")
    if not isinstance(data, str) or not data:
        say("block-shape", "a redacted_thinking block needs its data")


def _call(say: Say, block: dict[str, Any]) -> None:
    call_id, name = block.get("id"), block.get("name")
    if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
        say("call-id", f"tool_use id {call_id!r} must match ^[a-zA-Z0-9_-]+$")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        say("call-name", f"tool_use name {name!r} must match ^[a-zA-Z0-9_-]{{1,128}}$")
    if not isinstance(block.get("input"), dict):
        say("call-input", "the input of a tool_use must be an object")


def _result(say: Say, block: dict[str, Any]) -> None:
    call_id = block.get("tool_use_id")
    if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
        say("result-id", f"tool_use_id {call_id!r} must match ^[a-zA-Z0-9_-]+$")
    is_error = block.get("is_error")
    if is_error is not None and not isinstance(is_error, bool):
        say("block-shape", "is_error must be true or false")
    content = block.get("content")
    if content is not None and not isinstance(content, str | list):
        say("content-type", "the content of a tool_result must be a string or a list of blocks")
        return
    if not content and is_error is True:
        say("error-result-empty", "a tool_result with is_error must say something")
    if isinstance(content, list):
        for inner in cast("list[Any]", content):
            _inner(say, inner, is_error is True)


def _inner(say: Say, value: Any, in_error: bool) -> None:
    block = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    kind = block.get("type")
    if kind not in _IN_RESULT:
        say("block-type", f"a tool_result cannot hold a block of type {kind!r}")
        return
    if in_error and kind != "text":
        say("error-result-text", "a tool_result with is_error may hold only text")
    check = _CHECKS.get(str(kind))
    if check is not None:
        check(say, block)


def _image(say: Say, block: dict[str, Any]) -> None:
    source = _source(block)
    form = source.get("type")
    if form == "base64":
        if source.get("media_type") not in IMAGE_TYPES or not _filled(source, "data"):
            say("image-source", f"an image needs data and a media_type of {', '.join(IMAGE_TYPES)}")
    elif not _linked(source):
        say("image-source", f"an image source of type {form!r} is not as documented")


def _document(say: Say, block: dict[str, Any]) -> None:
    source = _source(block)
    form, mime = source.get("type"), source.get("media_type")
    fits = (
        (form == "base64" and mime == PDF and _filled(source, "data"))
        or (form == "text" and mime == PLAIN and _filled(source, "data"))
        or (form == "content" and isinstance(source.get("content"), str | list))
        or _linked(source)
    )
    if not fits:
        say("document-source", f"a document source of type {form!r} is not as documented")


def _source(block: dict[str, Any]) -> dict[str, Any]:
    source = block.get("source")
    return cast("dict[str, Any]", source) if isinstance(source, dict) else {}


def _linked(source: dict[str, Any]) -> bool:
    form = source.get("type")
    return (form == "url" and _filled(source, "url")) or (form == "file" and _filled(source, "file_id"))


def _filled(fields: dict[str, Any], key: str) -> bool:
    value = fields.get(key)
    return isinstance(value, str) and bool(value)


_CHECKS: dict[str, Callable[[Say, dict[str, Any]], None]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _call,
    "tool_result": _result,
    "image": _image,
    "document": _document,
}
