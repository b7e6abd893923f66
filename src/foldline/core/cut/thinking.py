"""Signed thinking: what is bound to the exact messages before it, and where it must stay."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Opaque, Part, Thinking
from foldline.core.log.steps import finishes


def open_loop(kept: Sequence[Said]) -> int:
    """Return the index at which an unfinished tool loop starts; the length where none is open."""
    if not kept or (kept[-1].message.role == "assistant" and finishes(kept[-1].message)):
        return len(kept)
    start, calls = len(kept), False
    while start and not (kept[start - 1].message.is_prompt and not kept[start - 1].message.results):
        start -= 1
        calls = calls or bool(kept[start].message.calls)
    return start if calls else len(kept)


def bound(part: Part) -> bool:
    """Whether a part is tied by a signature to the exact messages before it."""
    return (isinstance(part, Thinking) and part.signature is not None) or (
        isinstance(part, Opaque) and part.kind == "redacted_thinking"
    )


def signed(message: Message) -> bool:
    """Whether a message holds thinking that is tied to its prefix."""
    return any(bound(part) for part in message.parts)


def strip_thinking(kept: Sequence[Said], start: int, stop: int) -> list[tuple[Said, int]]:
    """Return the signed parts (entry, part index) of messages from `start` up to `stop`."""
    return [
        (entry, index)
        for entry in kept[start:stop]
        for index, part in enumerate(entry.message.parts)
        if bound(part)
    ]
