"""Checks of Anthropic's messages: the blocks that a role may have, and their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from foldline.dialects.forms import (
    UNUSABLE,
    Field,
    Forms,
    a,
    as_input,
    as_safe_id,
    as_safe_name,
    as_text,
    check_fields,
    check_parts,
    filled_field,
    matching,
    replacement_for,
    text_block_fields,
    text_part,
)
from foldline.dialects.media import IMAGE_TYPES, PDF, PLAIN, mime_of, to_anthropic
from foldline.dialects.payload import Fields, fields_of, filled, items_of
from foldline.dialects.values import Report

THOUGHTS = ("thinking", "redacted_thinking")
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
_ALLOWED = {
    "user": ("text", "image", "document", "search_result", "tool_result", "container_upload"),
    "assistant": (
        "text", "thinking", "redacted_thinking", "tool_use", *SERVER_CALLS, "container_upload", "compaction",
        "mcp_tool_listing", "fallback",
    ),
}  # fmt: skip
_IN_RESULT = ("text", "image", "document", "search_result", "tool_reference", "browser_state")
_MISPLACED = {  # rules of blocks that only one role may have
    "thinking": "thinking-role",
    "redacted_thinking": "thinking-role",
    "tool_use": "call-role",
    "tool_result": "result-role",
}


def _is_linked(source: Fields) -> bool:
    kind = source.get("type")
    return (kind == "url" and filled(source, "url")) or (kind == "file" and filled(source, "file_id"))


def _is_image(value: Any) -> bool:
    source = fields_of(value)
    inline = source.get("type") == "base64" and source.get("media_type") in IMAGE_TYPES
    return (inline and filled(source, "data")) or _is_linked(source)


def _is_document(value: Any) -> bool:
    source = fields_of(value)
    kind, mime = source.get("type"), source.get("media_type")
    inline = (kind, mime) in (("base64", PDF), ("text", PLAIN)) and filled(source, "data")
    return inline or (kind == "content" and a(str, list)(source.get("content"))) or _is_linked(source)


def _source(rule: str, fits: Callable[[Any], bool], expected: str) -> Field:
    """Return the source of media; it is repaired by the canonical form of its MIME type."""

    def repair(value: Any) -> Any:
        new = {**fields_of(value), "media_type": mime_of(fields_of(value).get("media_type"))}
        return new if fits(new) else UNUSABLE

    return Field("source", rule, fits, expected, repair)


def _as_flag(value: Any) -> bool:
    return str(value).lower() not in ("false", "0", "no", "")


_LETTERS = "text of letters, digits, _ and -"
_is_id = matching(r"[a-zA-Z0-9_-]+")
_is_name = matching(r"[a-zA-Z0-9_-]{1,128}")
# requests omit thinking without a signature
FORMS: Forms = {
    "text": text_block_fields(),
    "thinking": (
        Field("thinking", "block-shape", a(str), "a string"),
        filled_field("signature", "thinking-signature", lambda value: value if a(str, None)(value) else ""),
    ),
    "redacted_thinking": (filled_field("data", "block-shape"),),
    "tool_use": (
        Field("id", "call-id", _is_id, _LETTERS, as_safe_id),
        Field("name", "call-name", _is_name, f"{_LETTERS}, at most 128", as_safe_name),
        Field("input", "call-input", a(dict), "an object", as_input),
    ),
    "tool_result": (
        Field("tool_use_id", "result-id", _is_id, _LETTERS, as_safe_id),
        Field("is_error", "block-shape", a(bool, None), "true or false", _as_flag),
        Field("content", "content-type", a(str, list, None), "a string or a list of blocks", as_text),
    ),
    "image": (_source("image-source", _is_image, f"a URL, a file or {', '.join(IMAGE_TYPES)}"),),
    "document": (_source("document-source", _is_document, f"a URL, a file, text or {PDF}"),),
}


def check_message(report: Report, body: Fields) -> Fields:
    """Report broken rules of a message and return it repaired."""
    content, role = body.get("content"), body.get("role")
    if role not in ("user", "assistant"):
        report("role", f"role is {role!r}; it must be user or assistant")
    if content in ("", []):
        report("content-empty", "a message must have content")
    elif isinstance(content, str):
        check_fields(report, "message", FORMS["text"], {"text": content})
    elif not isinstance(content, list):
        report("content-type", "content must be a string or a list of blocks")
    else:
        speaker = "assistant" if role == "assistant" else "user"
        blocks = check_parts(
            report, "block-type", items_of(content), lambda block: _block(report, speaker, block), text_part
        )
        return {**body, "content": blocks}
    return body


def _block(report: Report, role: str, block: Fields) -> Fields | None:
    kind: str = block["type"]
    of_server = role == "assistant" and kind.endswith("_tool_result")
    if kind not in _ALLOWED[role] and not of_server:
        rule = _MISPLACED.get(kind, "block-type")
        report(rule, f"a {role} message cannot have a block of type {kind!r}")
        return _only_text(block) if kind in FORMS else block
    new = check_fields(report, kind, FORMS.get(kind, ()), block)
    if kind != "tool_result" or new is None:
        return _replacement(block) if new is None else new
    content, failed = new.get("content"), new.get("is_error") is True
    if failed and not content:
        report("error-result-empty", "a tool_result with is_error must have content")
    if isinstance(content, list):
        inner = check_parts(
            report, "block-type", items_of(content), lambda block: _inner(report, block, failed), text_part
        )
        return {**new, "content": inner}
    return new


def _inner(report: Report, block: Fields, failed: bool) -> Fields | None:
    """Check a block of a result; a `failed` one may contain only text."""
    kind = block["type"]
    if kind not in _IN_RESULT:
        report("block-type", f"a tool_result cannot contain a block of type {kind!r}")
        return _only_text(block) if failed else _replacement(block)
    if failed and kind != "text":
        report("error-result-text", "a tool_result with is_error may contain only text")
        return _only_text(block)
    return check_fields(report, kind, FORMS.get(kind, ()), block) or _replacement(block)


def _replacement(block: Fields) -> Fields | None:
    """Return the replacement of an invalid block; None for thinking."""
    return None if block["type"] in THOUGHTS else replacement_for(block, encode_media=to_anthropic)


def _only_text(block: Fields) -> Fields | None:
    """Return the replacement of a block where only text is valid; None for thinking."""
    return None if block["type"] in THOUGHTS else replacement_for(block)


# ---- server tools


def unanswered(blocks: Iterable[Any]) -> list[str]:
    """Return the ids of calls of server tools without a result in these blocks."""
    fields = [fields_of(block) for block in blocks]
    answered = {as_text(block.get("tool_use_id")) for block in fields}
    calls = (block.get("id") for block in fields if block.get("type") in SERVER_CALLS)
    return [call_id for call_id in calls if isinstance(call_id, str) and call_id not in answered]


def abandoned_calls(bodies: Sequence[Fields]) -> dict[int, list[str]]:
    """Return the calls of server tools that never got a result, by the position of their message.

    They are followed by user content; at the end, or before results only, the server still runs the call.
    """
    waiting = set(unanswered(block for body in bodies for block in items_of(body.get("content"))))
    abandoned: dict[int, list[str]] = {}
    for place, (body, after) in enumerate(pairwise(bodies) if waiting else ()):
        content = after.get("content")
        has_text = isinstance(content, str) or any(
            fields_of(block).get("type") != "tool_result" for block in items_of(content)
        )
        calls = [call_id for call_id in unanswered(items_of(body.get("content"))) if call_id in waiting]
        if after.get("role") == "user" and has_text and calls:
            abandoned[place] = calls
    return abandoned
