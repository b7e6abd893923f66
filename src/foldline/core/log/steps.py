"""The steps of an assistant message that holds the results of its own calls.

In some dialects one message is a whole turn: call, result, text, call, result, text. A step is one reply of
the model (text and calls) with the results that follow it.
"""

from __future__ import annotations

from foldline.core.log.dialects import traits_of
from foldline.core.log.messages import Message, Opaque, Part, ToolCall, ToolResult

STEP = "step-start"
"""The kind of an Opaque part that marks the beginning of a step; models do not see it."""


def is_step(part: Part) -> bool:
    """Return whether a part marks the beginning of a step."""
    return isinstance(part, Opaque) and part.kind == STEP


def own_results(message: Message) -> dict[int, int]:
    """Map the index of each result that answers a call before it in the same message to that call's index.

    Only assistant messages have any, and only in dialects that allow it. Of calls that share an id, the
    newest before the first result is answered.
    """
    if message.role != "assistant" or not message.results or not traits_of(message).own_results:
        return {}
    waiting: dict[str, int] = {}
    answered: set[str] = set()
    answers: dict[int, int] = {}
    for index, part in enumerate(message.parts):
        if isinstance(part, ToolCall) and part.id not in answered:
            waiting[part.id] = index
        elif isinstance(part, ToolResult) and part.call_id in waiting:
            answers[index] = waiting.pop(part.call_id)
            answered.add(part.call_id)
    return answers


def steps(message: Message) -> list[tuple[int, int]]:
    """Return the (start, stop) part indices of a message's steps, in order; they cover all its parts.

    A step begins at a mark, and where the model speaks again after a result. Calls after a result without
    either are parallel calls, each recorded with its result.
    """
    own = own_results(message)
    starts = [0]
    answered = False
    for index, part in enumerate(message.parts):
        speaks = index not in own and not isinstance(part, ToolCall | Opaque)
        if is_step(part) or (answered and speaks):
            starts += [index] if index else []
            answered = False
        answered = answered or index in own
    return list(zip(starts, [*starts[1:], len(message.parts)], strict=True))


def last_step(message: Message) -> int:
    """Return the index of the first part of the last step that is not empty."""
    if not message.results:
        marks = [index for index, part in enumerate(message.parts) if is_step(part)]
        if not marks:
            return 0
    for start, stop in reversed(steps(message)):
        if any(not isinstance(part, Opaque) for part in message.parts[start:stop]):
            return start
    return 0


def finishes(message: Message) -> bool:
    """Return whether the last step of a message calls no tool."""
    return not any(isinstance(part, ToolCall) for part in message.parts[last_step(message) :])


def ends_in_results(message: Message) -> bool:
    """Return whether a message ends with results of its own calls that the model has not answered."""
    own = own_results(message)
    return bool(own) and max(own) >= last_step(message)
