"""The edits of one message, as the writers use them: part index -> replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from foldline.core.carried.compaction import told
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Part, Text, ToolCall, ToolResult
from foldline.errors import DialectError


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

    Only Chat Completions has a place for a speaker's name: here it stands before what was said. A summary
    that a server wrote becomes a text, which every dialect has.
    """
    if not edits:
        return told(_introduced(message))
    wanted = replacements(edits)
    check_edits(wanted, message.parts, index)
    parts = [wanted.get(number, part) for number, part in enumerate(message.parts)]
    kept = tuple(part for part in parts if part is not None)
    if not kept:
        return None
    return told(_introduced(msgspec.structs.replace(message, parts=kept, native=None)))


def _introduced(message: Message) -> Message:
    """Return a message with the name of its speaker in its first text; the same object without a name."""
    at = next((at for at, part in enumerate(message.parts) if isinstance(part, Text)), None)
    if not message.name or at is None:
        return message
    parts = list(message.parts)
    parts[at] = Text(f"{message.name}: {cast('Text', parts[at]).text}")
    return msgspec.structs.replace(message, parts=tuple(parts), name=None, native=None)
