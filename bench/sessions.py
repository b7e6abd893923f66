"""Made-up sessions for the benches: the same for the same seed, shaped like those of coding agents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foldline.core.log.entries import Said
from foldline.core.log.log import said
from foldline.core.measure.tokens import message_tokens
from foldline.dialects import get


def prompt(number: int) -> dict[str, Any]:
    """Return a short prompt that no other number gives."""
    return {"role": "user", "content": f"turn {number} " + "words of a message " * 10}


def reply(number: int) -> dict[str, Any]:
    """Return a short reply that no other number gives."""
    return {"role": "assistant", "content": f"answer {number} " + "the reply says so " * 20}


def entries_of(natives: Iterable[dict[str, Any]], before: Said | None = None) -> list[Said]:
    """Return the entries of Chat Completions messages, chained behind `before`."""
    dialect = get("openai-chat")
    found: list[Said] = []
    parent, key = (before.id, before.said_key) if before else (None, "")
    for native in natives:
        message = dialect.decode(native)
        entry = said(message, parent=parent, said_key=key, tokens=message_tokens(message))
        found.append(entry)
        parent, key = entry.id, entry.said_key
    return found
