"""Results of calls that a provider keeps, told in words where another dialect needs the call beside them."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Part, Text, ToolResult
from foldline.core.log.references import stored_calls
from foldline.dialects.edits import with_edits

Rendering = Sequence[tuple[Message, Sequence[Edit]]]


def in_words(items: Rendering) -> Rendering:
    """Return what is to be rendered with such results as text of a program's.

    The call is a reference (OpenAI Responses), which has no form in any other dialect.
    """
    if not any(stored_calls(message) for message, _ in items):
        return items
    called = {call.id for message, _ in items for call in message.calls}
    return [told_in_words(message, edits, called) for message, edits in items]


def told_in_words(
    message: Message, edits: Sequence[Edit], called: AbstractSet[str]
) -> tuple[Message, Sequence[Edit]]:
    """Return a message and its edits with the results as text that answer none of the calls `called`."""
    if all(result.call_id in called for result in message.results):
        return message, edits
    kept = with_edits(message, edits) or Message(message.role)
    told = [
        part
        for each in kept.parts
        for part in (_parts(each) if isinstance(each, ToolResult) and each.call_id not in called else (each,))
    ]
    return Message("user", tuple(told), injected=True), ()


def _parts(result: ToolResult) -> tuple[Part, ...]:
    head = f"[Result of tool call {result.call_id}, which its provider keeps]"
    content = result.content
    if content and isinstance(content[0], Text):
        return (Text(f"{head}\n{content[0].text}"), *content[1:])
    return (Text(head), *content)
