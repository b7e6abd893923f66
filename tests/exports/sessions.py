"""A session with everything in it, made by code."""

from __future__ import annotations

from typing import Any

import msgspec

from foldline.core.log.entries import Checkpoint, Compacted, Entry, Noted, Receipt
from foldline.core.log.log import chained, said
from foldline.core.log.messages import Usage
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.dialects import get

START = 1_767_322_000.125
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


def call(number: int, name: str = "read", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}


def result(number: int, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": content, **more}


def anthropic_messages() -> list[dict[str, Any]]:
    """Signed thinking, calls side by side, a failed one, images, a reminder beside the user's words."""
    return [
        {"role": "user", "content": "Please mend the parser. Never touch the lock file."},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Where is it?", "signature": "c2ln"},
            {"type": "text", "text": "I'll look."},
            call(1, path="parser.py"), call(2, "bash", command="ls"),
        ]},
        {"role": "user", "content": [result(1, "def parse(): ..."), result(2, "no such folder", is_error=True)]},
        {"role": "assistant", "content": [{"type": "text", "text": "It is `parse`."}]},
        {"role": "user", "content": [{"type": "text", "text": "Like this picture:"}, IMAGE]},
        {"role": "assistant", "content": [call(3, "bash", command="pytest")]},
        {"role": "user", "content": [
            result(3, [{"type": "text", "text": "3 passed"}, IMAGE]), {"type": "text", "text": "And then commit."},
        ]},
        {"role": "assistant", "content": "Mended and committed as 1a2b3c4."},
    ]  # fmt: skip


def entries(
    messages: list[dict[str, Any]] | None = None,
    *,
    dialect: str = "anthropic",
    model: str | None = "claude-sonnet-4-5",
    fold_at: int | None = None,
    keep_from: int | None = None,
    title: str | None = "The parser",
    timed: bool = True,
    **changed: Any,
) -> list[Entry]:
    """A path of entries: the messages in order, a boundary before message `fold_at`, the title at the end."""
    found: list[Entry] = []
    ids: list[str] = []
    parent, key = None, ""
    for number, payload in enumerate(anthropic_messages() if messages is None else messages):
        if number == fold_at:
            kept = ids[keep_from] if keep_from is not None else None
            found.append(chained(boundary(kept, START + 10 * number - 5), parent))
            parent = found[-1].id
        message = get(dialect).decode(payload)
        if message.role == "assistant":
            usage = Usage(input=10 + number, cache_read=1000 * number, cache_write=5, output=20)
            stop = "tools" if message.calls else "end"
            known = {"usage": usage, "model": model, "stop": stop, **changed}
            message = msgspec.structs.replace(message, **known)
        at = START + 10 * number if timed else None
        entry = said(message, parent=parent, said_key=key, tokens=message_tokens(message, OFFLINE), at=at)
        found.append(entry)
        ids.append(entry.id)
        parent, key = entry.id, entry.said_key
    if title:
        found.append(chained(Noted("", None, "title", {"title": title}), parent))
    return found


def boundary(first_kept: str | None, at: float | None = None) -> Compacted:
    text = '<foldline-checkpoint version="1" ack="0" quoted="0">\n<summary>\n## Goal\nMend it.\n</summary>\n</foldline-checkpoint>'
    return Compacted(
        "",
        None,
        Checkpoint(text, "## Goal\nMend it.", tokens=38),
        Receipt("threshold", tokens_before=54_321),
        first_kept=first_kept,
        at=at,
    )


def chat_messages() -> list[dict[str, Any]]:
    """The same kind of talk as Chat Completions messages."""
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "List it."},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "call|1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
            {"id": "call|2", "type": "function", "function": {"name": "bash", "arguments": "broken"}},
        ]},
        {"role": "tool", "tool_call_id": "call|1", "content": "a.py"},
        {"role": "tool", "tool_call_id": "call|2", "content": "no JSON"},
        {"role": "system", "content": "The clock struck ten."},
        {"role": "assistant", "content": "One file: a.py."},
    ]  # fmt: skip
