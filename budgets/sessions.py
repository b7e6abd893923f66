"""Made-up sessions: the same for the same seed, shaped like those of coding agents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from foldline.core.log.entries import Checkpoint, Compacted, Receipt, Said
from foldline.core.log.log import chained, said
from foldline.core.measure.tokens import message_tokens
from foldline.dialects import get
from foldline.stores import SqliteStore

STORED: Final = "stored"  # the session that `fill` writes
BATCH = 1_000


def prompt(number: int) -> dict[str, Any]:
    """Return a short prompt that no other number gives."""
    return {"role": "user", "content": f"turn {number} " + "words of a message " * 10}


def reply(number: int) -> dict[str, Any]:
    """Return a short reply that no other number gives."""
    return {"role": "assistant", "content": f"answer {number} " + "the reply says so " * 20}


def exchanges(start: int, end: int) -> list[dict[str, Any]]:
    """Return the messages from one number to another, a prompt and a reply in turns."""
    return [one for n in range(start, end, 2) for one in (prompt(n), reply(n))]


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


def entries_within(tokens: int, natives: Iterable[dict[str, Any]]) -> list[Said]:
    """Return the entries of the first messages, as many as this number of tokens holds."""
    found: list[Said] = []
    for entry in entries_of(natives):
        tokens -= entry.tokens
        if tokens < 0:
            break
        found.append(entry)
    return found


async def fill(file: Path, messages: int, kept: int) -> None:
    """Write `STORED`, a session of so many messages whose newest boundary keeps the last ones, into a store."""
    store = SqliteStore(file)
    leaf, first = None, None
    for start in range(0, messages, BATCH):
        batch = entries_of(exchanges(start, start + BATCH), before=leaf)
        await store.append(STORED, batch, seen=leaf.id if leaf else None)
        leaf, first = batch[-1], batch[-kept].id
    assert leaf is not None
    checkpoint = Checkpoint(text="the work so far " * 1_500, summary="the work so far")
    boundary = Compacted("", None, checkpoint, Receipt("threshold"), first_kept=first)
    await store.append(STORED, [chained(boundary, leaf.id)], seen=leaf.id)
    await store.close()
