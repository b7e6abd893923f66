"""The documented rules of a Chat Completions list: what answers what; each message is checked by its form."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.dialects.payload import Fields, fields_of, filled, items_of
from foldline.dialects.values import Problem


def check(problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
    """Add every rule that messages, each with its index, break as a list."""
    del last
    waiting: dict[str, int] = {}  # the calls without a tool message yet, each with the index of its message
    answered: set[str] = set()
    for index, body in bodies:
        if body.get("role") == "tool":
            _answer(problems, index, body, waiting, answered)
            continue
        _close(problems, waiting)
        answered.clear()
        calls = items_of(body.get("tool_calls")) if body.get("role") == "assistant" else []
        for call_id in [call["id"] for call in map(fields_of, calls) if filled(call, "id")]:
            if call_id in waiting:
                text = f"two calls of one message have the id {call_id!r}"
                problems.append(Problem(index, "call-duplicate", text))
            waiting[call_id] = index
    _close(problems, waiting)


def _answer(
    problems: list[Problem], index: int, body: Fields, waiting: dict[str, int], answered: set[str]
) -> None:
    if not filled(body, "tool_call_id"):
        return
    call_id: str = body["tool_call_id"]
    if call_id in answered:
        problems.append(Problem(index, "result-duplicate", f"call {call_id!r} already has a result"))
    elif call_id not in waiting:
        problems.append(Problem(index, "result-orphan", f"no call {call_id!r} waits for a result here"))
    else:
        del waiting[call_id]
        answered.add(call_id)


def _close(problems: list[Problem], waiting: dict[str, int]) -> None:
    """Report calls whose results did not follow immediately."""
    for call_id, index in waiting.items():
        problems.append(Problem(index, "result-missing", f"no tool message follows for call {call_id!r}"))
    waiting.clear()
