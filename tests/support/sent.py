"""What of a session's view stands in a request that another tool sent."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from foldline.core.log.entries import Compacted, Entry
from foldline.core.log.messages import Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import AddedItem, MessageItem
from foldline.dialects import get
from foldline.dialects.edits import with_edits
from foldline.testing.request import Asked


def missing_parts(entries: Sequence[Entry], asked: Asked) -> dict[str, list[str]]:
    """The parts of the view that the request does not hold, by role and kind: the first 80 characters of each.

    Tools wrap, join and split messages, so a text counts as sent if it stands anywhere, and arguments if a call
    has the same. An imported summary counts by itself, without the frame that a view puts around it.
    """
    sent = [part for message in _decoded(asked) for part in message.parts]
    texts = _one_line("\n".join([_system(asked), *(text for part in sent for text in _texts(part))]))
    calls = Counter(_arguments(part) for part in sent if isinstance(part, ToolCall))
    found: dict[str, list[str]] = {}
    for role, part in _wanted(entries):
        if isinstance(part, ToolCall):
            if calls[_arguments(part)] > 0:
                calls[_arguments(part)] -= 1
                continue
            told = [f"{part.name} {_arguments(part)}"]
        else:
            told = [text for text in map(_one_line, _texts(part)) if text not in texts]
        for text in told:
            found.setdefault(f"{role} {type(part).__name__}", []).append(text[:80])
    return found


def _wanted(entries: Sequence[Entry]) -> Iterator[tuple[str, Part]]:
    view = ViewState(entries, counter=OFFLINE)
    for item in view.view():
        message = (
            with_edits(item.entry.message, item.edits) if isinstance(item, MessageItem) else item.message
        )
        if isinstance(item, AddedItem) and item.kind == "ack":
            continue
        if isinstance(item, AddedItem) and item.kind == "checkpoint" and view.boundary is not None:
            yield "checkpoint", Text(_summary(view.boundary))
            continue
        kind = "" if isinstance(item, MessageItem) else f" ({item.kind})"
        for part in message.parts if message is not None else ():
            yield f"{message.role}{kind}" if message else "", part


def _summary(boundary: Compacted) -> str:
    imported = boundary.receipt.reason == "imported"
    return boundary.checkpoint.summary if imported else boundary.checkpoint.text


def _decoded(asked: Asked) -> list[Message]:
    dialect = get(asked.dialect)
    return [dialect.decode(message) for message in asked.messages if message.get("type") != "item_reference"]


def _system(asked: Asked) -> str:
    system = asked.system or asked.body.get("instructions") or ""
    return system if isinstance(system, str) else "\n".join(str(block.get("text", "")) for block in system)


def _texts(part: Part) -> list[str]:
    if isinstance(part, Text | Thinking):
        return [part.text]
    return [one.text for one in part.content if isinstance(one, Text)] if isinstance(part, ToolResult) else []


def _arguments(call: ToolCall) -> str:
    value: Any = call.arguments
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = {"input": value}
    if isinstance(value, dict) and set(value) == {"patchText"}:
        value = {"input": value["patchText"]}
    return json.dumps(value, sort_keys=True)


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text.encode("utf-8", "replace").decode()).strip()
