"""Calls with their results, and whether they worked: what the kinds of fact are taken from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from foldline.core.cut.notes import UNANSWERED, error_in, is_cleared
from foldline.core.ledger.facts.outcomes import worked
from foldline.core.log.entries import Said
from foldline.core.log.messages import Text, ToolCall, ToolResult
from foldline.core.log.opaque import stored_calls


class Use(msgspec.Struct, frozen=True):
    """One call: the entries it stands in, and its result if there is one.

    `passed` is what the result says about itself; None where it says nothing. `known` keeps what was
    worked out of the call already, since several kinds of fact ask the same of it.
    """

    entry: str
    call: ToolCall
    result: ToolResult | None = None
    answered_in: str = ""
    passed: bool | None = None
    known: dict[str, Any] = {}


def _as_it_was(result: ToolResult) -> ToolResult:
    """Return a result without the note that a blanked one has in its place: only its error is left."""
    if not is_cleared(result.text):
        return result
    error = error_in(result.text) if result.is_error else ""
    return msgspec.structs.replace(result, content=(Text(error),) if error else ())


def uses(entries: Sequence[Said]) -> tuple[Use, ...]:
    """Pair the calls of the entries with their results, in the order of the calls.

    A result answers the newest open call with its id; ids may repeat. That of a call which its provider keeps
    has one without a name.
    """
    found: list[Use] = []
    stored = 0  # calls that are not here so far
    waiting: dict[str, list[int]] = {}
    for entry in entries:
        stored += stored_calls(entry.message)
        for part in entry.message.parts:
            if isinstance(part, ToolResult) and stored and part.call_id not in waiting:
                waiting[part.call_id] = [len(found)]
                found.append(Use(entry.id, ToolCall(part.call_id, "stored call", {})))
                stored -= 1
            if isinstance(part, ToolCall):
                waiting.setdefault(part.id, []).append(len(found))
                found.append(Use(entry=entry.id, call=part))
            elif isinstance(part, ToolResult) and waiting.get(part.call_id) and part.text != UNANSWERED:
                index = waiting[part.call_id].pop()
                result = _as_it_was(part)
                found[index] = msgspec.structs.replace(
                    found[index], result=result, answered_in=entry.id, passed=worked(result)
                )
    return tuple(found)


@lru_cache(maxsize=4_096)
def plain(key: str) -> str:
    """Reduce an argument's or a tool's name to its letters and digits, lower case."""
    return re.sub(r"[^a-z0-9]", "", key.lower())


def arguments(call: ToolCall) -> dict[str, Any]:
    """Return the call's arguments by plain key; a call that carries bare text has it under "input"."""
    if isinstance(call.arguments, str):
        return {"input": call.arguments}
    return by_plain_key(call.arguments)


def by_plain_key(row: Any) -> dict[str, Any]:
    """Return a JSON object with its keys made plain."""
    return {plain(str(key)): value for key, value in row.items()}


def as_list(value: Any) -> list[Any]:
    """Return a JSON list as it is, and of anything else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def rows_of(value: Any, most: int = 200) -> list[dict[str, Any]]:
    """Return the objects in a JSON list with their keys made plain, the first `most` of them."""
    return [by_plain_key(row) for row in as_list(value)[:most] if isinstance(row, dict)]


def strings(value: Any, depth: int = 4) -> Iterator[str]:
    """Yield the strings in a JSON value, to a depth."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict):
        for inner in value.values():  # pyright: ignore[reportUnknownVariableType]  JSON has no narrower type
            yield from strings(inner, depth - 1)
    elif depth and isinstance(value, list):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            yield from strings(inner, depth - 1)
