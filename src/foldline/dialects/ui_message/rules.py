"""What a list of UI messages must keep to; each message is checked by its form (`form.py`).

A list without problems is accepted by `validateUIMessages`, and `convertToModelMessages` makes a request of
it that a provider accepts, except for calls that still wait at its end.
"""

from __future__ import annotations

from collections.abc import Sequence

from foldline.dialects.payload import Fields, fields_of, items_of
from foldline.dialects.ui_message.tools import OPEN, STREAMING, is_tool_type
from foldline.dialects.values import Problem, Say, reporter


def check(problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
    """Add the rules that calls break: ids are unique, and only the end of the list may wait for results."""
    for index, body in bodies:
        say = reporter(problems, index)
        seen: set[str] = set()
        waiting: list[str] = []
        for part in map(fields_of, items_of(body.get("parts")) if body.get("role") == "assistant" else ()):
            kind, call_id = str(part.get("type")), part.get("toolCallId")
            if kind == "step-start":
                _missing(say, waiting)
            elif is_tool_type(kind) and isinstance(call_id, str) and part.get("state") != STREAMING:
                if call_id in seen:
                    say("call-duplicate", f"two calls of one message have the id {call_id!r}")
                seen.add(call_id)
                if part.get("state") in OPEN and part.get("providerExecuted") is not True:
                    waiting.append(call_id)
        if index != last:
            _missing(say, waiting)


def _missing(say: Say, waiting: list[str]) -> None:
    for call_id in waiting:
        say("result-missing", f"call {call_id!r} has no result, but more was said after it")
    waiting.clear()
