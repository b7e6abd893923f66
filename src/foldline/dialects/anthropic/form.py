"""The form of Anthropic's messages: which blocks a role may have, and the fields of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from foldline.dialects.forms import (
    SPOILED,
    Field,
    Forms,
    a,
    as_input,
    as_safe_id,
    as_safe_name,
    as_text,
    filled_field,
    instead,
    look_at,
    look_at_parts,
    matching,
    text_block_fields,
    text_part,
)
from foldline.dialects.media import IMAGE_TYPES, PDF, PLAIN, mime_of, to_anthropic
from foldline.dialects.payload import Fields, fields_of, filled, items_of
from foldline.dialects.values import Say

Block = dict[str, Any]

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
_MISPLACED = {  # the rules of blocks that only one role may have
    "thinking": "thinking-role",
    "redacted_thinking": "thinking-role",
    "tool_use": "call-role",
    "tool_result": "result-role",
}


def _is_linked(source: Block) -> bool:
    form = source.get("type")
    return (form == "url" and filled(source, "url")) or (form == "file" and filled(source, "file_id"))


def _is_image(value: Any) -> bool:
    source = fields_of(value)
    held = source.get("type") == "base64" and source.get("media_type") in IMAGE_TYPES
    return (held and filled(source, "data")) or _is_linked(source)


def _is_document(value: Any) -> bool:
    source = fields_of(value)
    form = source.get("type"), source.get("media_type")
    held = form in (("base64", PDF), ("text", PLAIN)) and filled(source, "data")
    return held or (form[0] == "content" and a(str, list)(source.get("content"))) or _is_linked(source)


def _usual(fits: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """Return what makes a source that `fits` of one whose MIME type is spelt in another way."""

    def made(value: Any) -> Any:
        new = {**fields_of(value), "media_type": mime_of(fields_of(value).get("media_type"))}
        return new if fits(new) else SPOILED

    return made


def _as_flag(value: Any) -> bool:
    return str(value).lower() not in ("false", "0", "no", "")


_LETTERS = "text of letters, digits, _ and -"
_is_id = matching(r"[a-zA-Z0-9_-]+")
_is_name = matching(r"[a-zA-Z0-9_-]{1,128}")
# a request leaves out thinking without a signature
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
    "image": (
        Field(
            "source",
            "image-source",
            _is_image,
            f"a URL, a file or {', '.join(IMAGE_TYPES)}",
            _usual(_is_image),
        ),
    ),
    "document": (
        Field(
            "source", "document-source", _is_document, f"a URL, a file, text or {PDF}", _usual(_is_document)
        ),
    ),
}


def look(say: Say, body: Fields) -> Fields:
    """Check a message by itself, and return it as it may be sent; `say(rule, text)` takes what is wrong."""
    content, role = body.get("content"), body.get("role")
    if role not in ("user", "assistant"):
        say("role", f"role is {role!r}; it must be user or assistant")
    if content in ("", []):
        say("content-empty", "a message must say something")
    elif isinstance(content, str):
        look_at(say, "message", FORMS["text"], {"text": content})
    elif not isinstance(content, list):
        say("content-type", "content must be a string or a list of blocks")
    else:
        speaker = "assistant" if role == "assistant" else "user"
        blocks = look_at_parts(
            say, "block-type", items_of(content), lambda block: _block(say, speaker, block), text_part
        )
        return {**body, "content": blocks}
    return body


def _block(say: Say, role: str, block: Block) -> Block | None:
    kind: str = block["type"]
    of_server = role == "assistant" and kind.endswith("_tool_result")
    if kind not in _ALLOWED[role] and not of_server:
        rule = _MISPLACED.get(kind, "block-type")
        say(rule, f"a {role} message cannot have a block of type {kind!r}")
        return _only_text(block) if kind in FORMS else block
    new = look_at(say, kind, FORMS.get(kind, ()), block)
    if kind != "tool_result" or new is None:
        return _instead(block) if new is None else new
    content, failed = new.get("content"), new.get("is_error") is True
    if failed and not content:
        say("error-result-empty", "a tool_result with is_error must say something")
    if isinstance(content, list):
        inner = look_at_parts(
            say, "block-type", items_of(content), lambda block: _inner(say, block, failed), text_part
        )
        return {**new, "content": inner}
    return new


def _inner(say: Say, block: Block, failed: bool) -> Block | None:
    """Look at a block of a result; one that `failed` may hold only text."""
    kind = block["type"]
    if kind not in _IN_RESULT:
        say("block-type", f"a tool_result cannot hold a block of type {kind!r}")
        return _only_text(block) if failed else _instead(block)
    if failed and kind != "text":
        say("error-result-text", "a tool_result with is_error may hold only text")
        return _only_text(block)
    return look_at(say, kind, FORMS.get(kind, ()), block) or _instead(block)


def _instead(block: Block) -> Block | None:
    """Return what a block becomes that is of no use as it is; nothing of a thought."""
    return None if block["type"] in THOUGHTS else instead(block, media=to_anthropic)


def _only_text(block: Block) -> Block | None:
    """Return what a block becomes where only text may stand; nothing of a thought."""
    return None if block["type"] in THOUGHTS else instead(block)


# ---- calls that the server runs


def unanswered(blocks: Iterable[Any]) -> list[str]:
    """Return the ids of the calls of server tools that have no result among these blocks."""
    held = [fields_of(block) for block in blocks]
    answered = {as_text(block.get("tool_use_id")) for block in held}
    calls = (block.get("id") for block in held if block.get("type") in SERVER_CALLS)
    return [call_id for call_id in calls if isinstance(call_id, str) and call_id not in answered]


def given_up(bodies: Sequence[Fields]) -> dict[int, list[str]]:
    """Return the calls of server tools that never got a result, by the place of their message.

    The user's words follow it; behind results alone, or at the end, the server still runs the call.
    """
    waiting = set(unanswered(block for body in bodies for block in items_of(body.get("content"))))
    found: dict[int, list[str]] = {}
    for place, (body, after) in enumerate(pairwise(bodies) if waiting else ()):
        content = after.get("content")
        words = isinstance(content, str) or any(
            fields_of(block).get("type") != "tool_result" for block in items_of(content)
        )
        calls = [one for one in unanswered(items_of(body.get("content"))) if one in waiting]
        if after.get("role") == "user" and words and calls:
            found[place] = calls
    return found
