"""Whose a file is, by its shape: the formats that put no name of theirs into their files."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

from foldline.transcripts.base import Warned
from foldline.transcripts.markdown.marks import mark
from foldline.transcripts.prose import Fence, prose
from foldline.transcripts.values import items, mapping, text_or

_KLAUDE = re.compile(r"[A-Z]\w+(Message|Entry|Item)")
_COOP = {"text", "image", "tool_request", "tool_result", "thinking"}
AIDER_BEGINS = "# aider chat started at "
_AIDER_SAYS = ("> Aider v", "> Tokens: ")
_PASTED = 60_000  # bytes of a beginning that one message may fill
_METADATA_FIRST = re.compile(rb'\A\{\s*"metadata"\s*:\s*\{')
_CREATED = re.compile(rb'"createdAt"\s*:')
_PARTS = re.compile(rb'"parts"\s*:\s*\[')


def of_line(value: dict[str, Any]) -> str:
    """Name the agent that wrote a JSON line ("": another one)."""
    return "klaude-code" if is_klaude(value) else "coop" if is_coop(value) else ""


def of_object(value: dict[str, Any]) -> str:
    """Name the agent that wrote a JSON object with `messages` ("": another one)."""
    if isinstance(value.get("metadata"), dict) and text_or(value["metadata"].get("id")):
        return "gencode"
    first = mapping(next(iter(items(value.get("messages"))), None))
    if isinstance(value.get("compaction"), dict) or ("createdAt" in value and "parts" in first):
        return "moldable"
    return ""


def of_document(text: bytes) -> str:
    """Name the agent that wrote a JSON object over several lines, by its beginning ("": another one)."""
    before, _, after = text.partition(b'"messages"')
    if _METADATA_FIRST.match(text) and (after or b'"messageCount"' in text):
        return "gencode"
    return "moldable" if after and _CREATED.search(before) and _PARTS.search(text) else ""


def is_klaude(value: dict[str, Any]) -> bool:
    """Whether a JSON line is an item of klaude-code's history."""
    return bool(_KLAUDE.fullmatch(text_or(value.get("type")))) and isinstance(value.get("data"), dict)


def is_coop(value: dict[str, Any]) -> bool:
    """Whether a JSON line is a message of coop's."""
    blocks = [mapping(block) for block in items(value.get("content"))]
    return (
        value.get("role") in ("user", "assistant")
        and isinstance(value.get("id"), str)
        and isinstance(value.get("created"), str)
        and isinstance(value.get("content"), list)
        and all(text_or(block.get("type")) in _COOP for block in blocks)
    )


def of_text(text: bytes) -> str:
    """Name the format of a chat in plain text, by its beginning ("": none).

    Markdown needs a user's mark and another speaker's; a long beginning may hold no more than what the user pasted.
    """
    fence, speakers, typed, shown = Fence(), set[str](), False, False
    for words in prose(BytesIO(text)):
        if isinstance(words, Warned):
            continue
        if words.text.startswith(AIDER_BEGINS):
            return "aider"
        if fence.take(words):
            continue
        typed = typed or words.text.startswith("#### ")
        shown = shown or words.text.startswith(_AIDER_SAYS)
        if found := mark(words.text):
            speakers.add(found.role)
    if typed and shown:
        return "aider"
    several = len(speakers) > 1 or len(text) >= _PASTED
    return "markdown" if "user" in speakers and several else ""
