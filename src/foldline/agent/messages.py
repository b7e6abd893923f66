"""The messages that an agent makes: a user's prompt, and the results of calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from foldline.core.log.messages import Message, Text, ToolResult

Words = tuple[str | Message, ...]  # what was typed, or messages that were made of it
Prompt = tuple[Message, ...]  # the user's words first, then what goes along with them
Prepare = Callable[..., Awaitable[Prompt]]  # makes a prompt of words
STOPPED = "Stopped by the user before it ended; whether it took effect is not known."
LEFT = "It was left before it ended; whether it took effect is not known."


async def as_prompt(*words: str | Message) -> Prompt:
    """Return a prompt of the user's as messages; what follows the first goes along with it."""
    return tuple(Message("user", (Text(one),)) if isinstance(one, str) else one for one in words)


def results_of(results: Iterable[ToolResult]) -> Message:
    """Return the message that answers calls."""
    return Message("tool", tuple(results))


def unfinished(call: str, why: str = STOPPED) -> ToolResult:
    """Return the result of a call that did not come to its end."""
    return ToolResult(call, (Text(why),), is_error=True)
