"""The answer to who asks for a compaction item: a response with that item alone, whole or streamed."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from foldline.core.log.codec import encode_utf8
from foldline.core.log.entries import Receipt
from foldline.service.gateway.request import AgentRequest


class MadeItem(msgspec.Struct, frozen=True):
    """A compaction item, and the folds that were made for it."""

    item: dict[str, Any]
    receipts: Sequence[Receipt] = ()


Make = Callable[[], Awaitable[MadeItem]]


def compacted(made: MadeItem) -> dict[str, Any]:
    """Return the answer of `/responses/compact`."""
    return {
        "id": _new_id(),
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [made.item],
        "usage": _usage(made),
    }


def response(asked: AgentRequest, made: MadeItem | None, *, name: str | None = None) -> dict[str, Any]:
    """Return a response whose output is the item; without one, the response that is under way."""
    return {
        "id": name or _new_id(),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress" if made is None else "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": asked.value("instructions"),
        "metadata": {},
        "model": asked.model,
        "output": [] if made is None else [made.item],
        "parallel_tool_calls": asked.value("parallel_tool_calls") is not False,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if made is None else _usage(made),
    }


async def streamed(asked: AgentRequest, make: Make) -> AsyncGenerator[bytes]:
    """Yield the response as a stream: its beginning before the item is made, which may take a while."""
    begun = response(asked, None)
    yield _event(0, "response.created", response=begun)
    made = await make()
    yield _event(1, "response.output_item.added", output_index=0, item=made.item)
    yield _event(2, "response.output_item.done", output_index=0, item=made.item)
    yield _event(3, "response.completed", response=response(asked, made, name=begun["id"]))


def _event(number: int, kind: str, **fields: Any) -> bytes:
    data = encode_utf8({"type": kind, "sequence_number": number, **fields})
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def _new_id() -> str:
    return f"resp_{secrets.token_hex(16)}"


def _usage(made: MadeItem) -> dict[str, Any]:
    """Return what the summaries took."""
    found = [one.usage for one in made.receipts if one.usage is not None]
    read = sum(one.cache_read for one in found)
    given = sum(one.input + one.cache_write for one in found) + read
    written = sum(one.output for one in found)
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": read},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + written,
    }
