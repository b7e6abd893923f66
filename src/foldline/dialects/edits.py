"""Steps of converting messages to another dialect: edits, steps, references, blocks of server tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import cast

import msgspec

from foldline.core.carried.summaries import with_summaries_told
from foldline.core.cut.notes import STORED
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Opaque, Part, Text, ToolCall, ToolResult
from foldline.core.log.opaque import served, stored_calls
from foldline.core.log.steps import own_results, steps
from foldline.dialects.values import Losses
from foldline.errors import DialectError

Where = tuple[str, int | None]  # key in a native message, index in its list
PlacedPart = tuple[Part, Where]
Rendering = Sequence[tuple[Message, Sequence[Edit]]]


def replacements(edits: Sequence[Edit]) -> dict[int, Part | None]:
    """Map the index of each edited part to its replacement (None: removed); the last edit of a part wins."""
    return {edit.part: edit.replacement for edit in edits}


def check_edits(edits: Mapping[int, Part | None], parts: Sequence[Part], index: int | None) -> None:
    """Raise DialectError (with `index`) for an invalid edit.

    The part must exist. A call can only be replaced by a call, a result only by a result: they come in pairs.
    """
    for number, new in edits.items():
        if not 0 <= number < len(parts):
            text = f"an edit refers to part {number}, but the message has {len(parts)} parts"
            raise DialectError(text, index=index)
        for paired in (ToolCall, ToolResult):
            if new is not None and isinstance(new, paired) != isinstance(parts[number], paired):
                old, replacement = (part.__struct_config__.tag for part in (parts[number], new))
                text = f"an edit cannot replace part {number}, a {old}, with a {replacement}"
                raise DialectError(text, index=index)


def with_edits(message: Message, edits: Sequence[Edit], index: int | None = None) -> Message | None:
    """Return a message with its parts edited, without its native payload if edited; None if no part is left.

    A speaker's name is put before the text: only Chat Completions has a field for it. A summary written by a
    server becomes a text.
    """
    if edits:
        changes = replacements(edits)
        check_edits(changes, message.parts, index)
        parts = [changes.get(number, part) for number, part in enumerate(message.parts)]
        remaining = tuple(part for part in parts if part is not None)
        if not remaining:
            return None
        message = msgspec.structs.replace(message, parts=remaining, native=None)
    return with_summaries_told(_with_speaker(message))


def _with_speaker(message: Message) -> Message:
    """Return a message with the name of its speaker in its first text; the same object without a name."""
    place = next((place for place, part in enumerate(message.parts) if isinstance(part, Text)), None)
    if not message.name or place is None:
        return message
    parts = list(message.parts)
    parts[place] = Text(f"{message.name}: {cast('Text', parts[place]).text}")
    return msgspec.structs.replace(message, parts=tuple(parts), name=None, native=None)


def with_served_as_text(message: Message, dialect: str, losses: Losses) -> Message:
    """Return a message with the blocks of another provider's server tools as text."""
    parts = list(message.parts)
    for place, part in enumerate(parts):
        if isinstance(part, Opaque) and part.dialect != dialect and (text := served(part)):
            parts[place] = Text(text)
            losses.add(f"{part.dialect} {part.kind} became text")
    return msgspec.structs.replace(message, parts=tuple(parts))


def split_steps(message: Message) -> list[Message]:
    """Split an assistant message that contains results into its steps, each followed by its results.

    Other messages are returned alone. The new messages keep the native form of the original.
    """
    own = own_results(message)
    if not own:
        return [message]
    split: list[Message] = []
    for start, stop in steps(message):
        step = [message.parts[index] for index in range(start, stop) if index not in own]
        results = [message.parts[index] for index in range(start, stop) if index in own]
        if step:
            split.append(msgspec.structs.replace(message, parts=tuple(step)))
        if results:
            split.append(msgspec.structs.replace(message, role="tool", parts=tuple(results)))
    return split


def results_in_words(items: Rendering) -> Rendering:
    """Return `items` with the results of calls stored by a provider as injected user text.

    Such a call is a reference (OpenAI Responses) that no other dialect can express. The text is placed after
    the other results of the reply, which must follow their calls immediately.
    """
    if not any(stored_calls(message) for message, _ in items):
        return items
    called = {call.id for message, _ in items for call in message.calls}
    converted: list[tuple[Message, Sequence[Edit]]] = []
    delayed: list[tuple[Message, Sequence[Edit]]] = []
    for message, edits in items:
        item = told_in_words(message, edits, called)
        if item[0] is not message:
            delayed.append(item)
            continue
        if message.role != "tool":
            converted += delayed
            delayed = []
        converted.append(item)
    return [*converted, *delayed]


def told_in_words(
    message: Message, edits: Sequence[Edit], called: AbstractSet[str]
) -> tuple[Message, Sequence[Edit]]:
    """Return a message and its edits; results for calls that are not in `called` become text."""
    if all(result.call_id in called for result in message.results):
        return message, edits
    edited = with_edits(message, edits) or Message(message.role)
    parts: list[Part] = []
    for part in edited.parts:
        if isinstance(part, ToolResult) and part.call_id not in called:
            parts += _result_as_text(part)
        else:
            parts.append(part)
    return Message("user", tuple(parts), injected=True), ()


def _result_as_text(result: ToolResult) -> tuple[Part, ...]:
    head = STORED.format(result.call_id)
    text = f"{head}\n{result.text}" if result.text else head
    return (Text(text), *(part for part in result.content if not isinstance(part, Text)))
