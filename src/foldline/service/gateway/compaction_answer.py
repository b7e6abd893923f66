"""The response to a request for a compaction item: that item alone, whole or streamed."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from foldline.core.log.codec import encode_utf8
from foldline.core.log.entries import Receipt
from foldline.service.gateway.request import AgentRequest


class Compaction(msgspec.Struct, frozen=True):
    """A compaction item and the folds made for it."""

    item: dict[str, Any]
    receipts: Sequence[Receipt] = ()


Make = Callable[[], Awaitable[Compaction]]


def compact_response(compaction: Compaction) -> dict[str, Any]:
    """Return the response of `/responses/compact`."""
    return {
        "id": _new_id(),
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [compaction.item],
        "usage": _usage(compaction),
    }


def response(request: AgentRequest, compaction: Compaction | None, id_: str | None = None) -> dict[str, Any]:
    """Return a response whose output is the item; without one, a response in progress."""
    return {
        "id": id_ or _new_id(),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress" if compaction is None else "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": request.value("instructions"),
        "metadata": {},
        "model": request.model,
        "output": [] if compaction is None else [compaction.item],
        "parallel_tool_calls": request.value("parallel_tool_calls") is not False,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if compaction is None else _usage(compaction),
    }


async def response_events(request: AgentRequest, make: Make) -> AsyncGenerator[bytes]:
    """Yield the response as a stream; its first event comes before the item is made."""
    first = response(request, None)
    yield _event(0, "response.created", response=first)
    compaction = await make()
    yield _event(1, "response.output_item.added", output_index=0, item=compaction.item)
    yield _event(2, "response.output_item.done", output_index=0, item=compaction.item)
    yield _event(3, "response.completed", response=response(request, compaction, first["id"]))


def _event(number: int, kind: str, **fields: Any) -> bytes:
    data = encode_utf8({"type": kind, "sequence_number": number, **fields})
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def _new_id() -> str:
    return f"resp_{secrets.token_hex(16)}"


def _usage(compaction: Compaction) -> dict[str, Any]:
    """Return the usage of the summaries."""
    usages = [receipt.usage for receipt in compaction.receipts if receipt.usage is not None]
    total, output = sum(usage.total for usage in usages), sum(usage.output for usage in usages)
    return {
        "input_tokens": total - output,
        "input_tokens_details": {"cached_tokens": sum(usage.cache_read for usage in usages)},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total,
    }
