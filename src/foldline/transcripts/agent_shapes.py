"""Detect the agents that do not name themselves in their files, by the shape of what they wrote."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

from foldline.transcripts.markdown.marks import mark
from foldline.transcripts.records import WarningRecord
from foldline.transcripts.shared.prose import Fence, prose
from foldline.transcripts.shared.values import items, mapping, text_or

_KLAUDE = re.compile(r"[A-Z]\w+(Message|Entry|Item)")
_COOP = {"text", "image", "tool_request", "tool_result", "thinking"}
AIDER_BEGINS = "# aider chat started at "
_AIDER_SAYS = ("> Aider v", "> Tokens: ")
_PASTED = 60_000  # bytes that one pasted message may fill
_METADATA_FIRST = re.compile(rb'\A\{\s*"metadata"\s*:\s*\{')
_CREATED = re.compile(rb'"createdAt"\s*:')
_PARTS = re.compile(rb'"parts"\s*:\s*\[')


def of_line(value: dict[str, Any]) -> str:
    """Name the agent that wrote a JSON line ("": some other)."""
    return "klaude-code" if is_klaude(value) else "coop" if is_coop(value) else ""


def of_object(value: dict[str, Any]) -> str:
    """Name the agent that wrote a JSON object with `messages` ("": some other)."""
    if isinstance(value.get("metadata"), dict) and text_or(value["metadata"].get("id")):
        return "gencode"
    first = mapping(next(iter(items(value.get("messages"))), None))
    if isinstance(value.get("compaction"), dict) or ("createdAt" in value and "parts" in first):
        return "moldable"
    return ""


def of_document(text: bytes) -> str:
    """Name the agent that wrote a multi-line JSON object, from its beginning ("": some other)."""
    before, _, after = text.partition(b'"messages"')
    if _METADATA_FIRST.match(text) and (after or b'"messageCount"' in text):
        return "gencode"
    return "moldable" if after and _CREATED.search(before) and _PARTS.search(text) else ""


def is_klaude(value: dict[str, Any]) -> bool:
    """Return whether a JSON line is an item of klaude-code's history."""
    return bool(_KLAUDE.fullmatch(text_or(value.get("type")))) and isinstance(value.get("data"), dict)


def is_coop(value: dict[str, Any]) -> bool:
    """Return whether a JSON line is one of coop's messages."""
    blocks = [mapping(block) for block in items(value.get("content"))]
    return (
        value.get("role") in ("user", "assistant")
        and isinstance(value.get("id"), str)
        and isinstance(value.get("created"), str)
        and isinstance(value.get("content"), list)
        and all(text_or(block.get("type")) in _COOP for block in blocks)
    )


def of_text(text: bytes) -> str:
    """Name the format of a plain text chat, from its beginning ("": none).

    Markdown needs a user's mark and another speaker's; a long beginning may be all the user's pasted text.
    """
    fence, speakers, typed, shown = Fence(), set[str](), False, False
    for words in prose(BytesIO(text)):
        if isinstance(words, WarningRecord):
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
