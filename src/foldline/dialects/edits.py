"""Messages on their way into another dialect: edited, split into steps, with no reference that it lacks."""

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

Where = tuple[str, int | None]  # a key of a native message, and the index in its list
PlacedPart = tuple[Part, Where]
Rendering = Sequence[tuple[Message, Sequence[Edit]]]


def replacements(edits: Sequence[Edit]) -> dict[int, Part | None]:
    """Map each edited part to its replacement (None: removed); the last edit of a part counts."""
    return {edit.part: edit.replacement for edit in edits}


def check_edits(edits: Mapping[int, Part | None], parts: Sequence[Part], index: int | None) -> None:
    """Raise DialectError (with `index`) for an edit that cannot be made.

    The part must exist, and a call can only become a call, a result only a result: each needs its partner.
    """
    for number, new in edits.items():
        if not 0 <= number < len(parts):
            raise DialectError(f"an edit names part {number}, the message has {len(parts)}", index=index)
        for paired in (ToolCall, ToolResult):
            if new is not None and isinstance(new, paired) != isinstance(parts[number], paired):
                text = f"an edit turns part {number} from a {_kind(parts[number])} into a {_kind(new)}"
                raise DialectError(text, index=index)


def _kind(part: Part) -> str:
    return str(part.__struct_config__.tag)


def with_edits(message: Message, edits: Sequence[Edit], index: int | None = None) -> Message | None:
    """Return the message with its parts edited and without its native payload; None if no part is left.

    Only Chat Completions has a place for a speaker's name: elsewhere it is put before what was said. A
    summary that a server wrote becomes a text, which every dialect has.
    """
    if not edits:
        return with_summaries_told(_introduced(message))
    wanted = replacements(edits)
    check_edits(wanted, message.parts, index)
    parts = [wanted.get(number, part) for number, part in enumerate(message.parts)]
    kept = tuple(part for part in parts if part is not None)
    if not kept:
        return None
    return with_summaries_told(_introduced(msgspec.structs.replace(message, parts=kept, native=None)))


def _introduced(message: Message) -> Message:
    """Return a message with the name of its speaker in its first text; the same object without a name."""
    at = next((at for at, part in enumerate(message.parts) if isinstance(part, Text)), None)
    if not message.name or at is None:
        return message
    parts = list(message.parts)
    parts[at] = Text(f"{message.name}: {cast('Text', parts[at]).text}")
    return msgspec.structs.replace(message, parts=tuple(parts), name=None, native=None)


def with_served_told(message: Message, dialect: str, losses: Losses) -> Message:
    """Return a message with the blocks of another provider's own tools as text: no other API has them."""
    parts = list(message.parts)
    for at, part in enumerate(parts):
        if isinstance(part, Opaque) and part.dialect != dialect and (text := served(part)):
            parts[at] = Text(text)
            losses.add(f"{part.dialect} {part.kind} became text")
    return msgspec.structs.replace(message, parts=tuple(parts))


def split_steps(message: Message) -> list[Message]:
    """Split an assistant message with results into its steps, each followed by its results.

    Any other message comes back alone. The new messages keep the native form of the one they came from.
    """
    own = own_results(message)
    if not own:
        return [message]
    found: list[Message] = []
    for start, stop in steps(message):
        said: list[Part] = [message.parts[index] for index in range(start, stop) if index not in own]
        told: list[Part] = [message.parts[index] for index in range(start, stop) if index in own]
        if said:
            found.append(msgspec.structs.replace(message, parts=tuple(said)))
        if told:
            found.append(msgspec.structs.replace(message, role="tool", parts=tuple(told)))
    return found


def in_words(items: Rendering) -> Rendering:
    """Return what is to be rendered with the results of calls that a provider keeps as text of a program's.

    The call is a reference (OpenAI Responses), which has no form in any other dialect. The text stands behind
    the other results of the reply, which must follow their calls at once.
    """
    if not any(stored_calls(message) for message, _ in items):
        return items
    called = {call.id for message, _ in items for call in message.calls}
    found: list[tuple[Message, Sequence[Edit]]] = []
    waiting: list[tuple[Message, Sequence[Edit]]] = []
    for message, edits in items:
        told = told_in_words(message, edits, called)
        if told[0] is not message:
            waiting.append(told)
            continue
        if message.role != "tool":
            found += waiting
            waiting = []
        found.append(told)
    return [*found, *waiting]


def told_in_words(
    message: Message, edits: Sequence[Edit], called: AbstractSet[str]
) -> tuple[Message, Sequence[Edit]]:
    """Return a message and its edits with the results as text that answer none of the calls `called`."""
    if all(result.call_id in called for result in message.results):
        return message, edits
    kept = with_edits(message, edits) or Message(message.role)
    parts = [
        part
        for each in kept.parts
        for part in (_told(each) if isinstance(each, ToolResult) and each.call_id not in called else (each,))
    ]
    return Message("user", tuple(parts), injected=True), ()


def _told(result: ToolResult) -> tuple[Part, ...]:
    head = STORED.format(result.call_id)
    text = f"{head}\n{result.text}" if result.text else head
    return (Text(text), *(part for part in result.content if not isinstance(part, Text)))
