"""Signed thinking: bound to the exact messages before it, it must stay or go with them."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from foldline.core.carried.summaries import sealed_place, text_of
from foldline.core.log.entries import Edit, Said
from foldline.core.log.messages import Message, Opaque, Part, Thinking
from foldline.core.log.steps import finishes
from foldline.core.measure.tokens import Counter, part_tokens


def open_loop(kept: Sequence[Said]) -> int:
    """Return the index at which an unfinished tool loop starts; the length if none is open."""
    if not kept or (kept[-1].message.role == "assistant" and finishes(kept[-1].message)):
        return len(kept)
    start, has_calls = len(kept), False
    while start and not (kept[start - 1].message.is_prompt and not kept[start - 1].message.results):
        start -= 1
        has_calls = has_calls or bool(kept[start].message.calls)
    return start if has_calls else len(kept)


def bound(part: Part) -> bool:
    """Whether a signature binds a part to the exact messages before it."""
    return (isinstance(part, Thinking) and part.signature is not None) or (
        isinstance(part, Opaque) and part.kind == "redacted_thinking"
    )


def signed(message: Message) -> bool:
    """Whether a message holds thinking that is bound to its prefix."""
    return any(bound(part) for part in message.parts)


def signed_loop(kept: Sequence[Said]) -> bool:
    """Whether an open tool loop holds signed thinking."""
    return any(signed(entry.message) for entry in kept[open_loop(kept) :])


def stripped(
    kept: Sequence[Said], start: int, counter: Counter, already: AbstractSet[tuple[str, int]]
) -> list[Edit]:
    """Return the edits that remove signed thinking from messages from `start` on.

    An open tool loop and parts that are edited `already` are left alone.
    """
    return [
        Edit(entry.id, index, "stripped", None, part_tokens(part, counter))
        for entry in kept[start : open_loop(kept)]
        for index, part in enumerate(entry.message.parts)
        if bound(part) and (entry.id, index) not in already
    ]


def server_edits(kept: Sequence[Said], joined: Sequence[Said], counter: Counter) -> list[Edit]:
    """Return the edits for a server's compactions: remove readable ones, and all beside the sealed ones."""
    places = [(entry, i) for entry in kept for i, part in enumerate(entry.message.parts) if text_of(part)]
    places += [
        (entry, i)
        for entry in joined
        if (place := sealed_place(entry.message)) is not None
        for i in range(len(entry.message.parts))
        if i != place
    ]
    return [
        Edit(entry.id, i, "stripped", None, part_tokens(entry.message.parts[i], counter))
        for entry, i in places
    ]
