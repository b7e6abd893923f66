"""The edits of one message, as renderers use them: part index -> replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Part
from foldline.errors import DialectError


def by_part(edits: Sequence[Edit]) -> dict[int, Part | None]:
    """Map each edited part to what replaces it (None: taken out); the last edit of a part counts."""
    return {edit.part: edit.replacement for edit in edits}


def check_edits(edits: Mapping[int, Part | None], parts: int, index: int | None) -> None:
    """Raise DialectError (with `index`) for an edit of a part that the message has not."""
    for number in edits:
        if not 0 <= number < parts:
            raise DialectError(f"an edit names part {number}, the message has {parts}", index=index)


def applied(message: Message, edits: Sequence[Edit], index: int | None = None) -> Message | None:
    """A message with its parts edited and no native payload; None when no part is left."""
    if not edits:
        return message
    wanted = by_part(edits)
    check_edits(wanted, len(message.parts), index)
    parts = [wanted.get(number, part) for number, part in enumerate(message.parts)]
    kept = tuple(part for part in parts if part is not None)
    return msgspec.structs.replace(message, parts=kept, native=None) if kept else None
