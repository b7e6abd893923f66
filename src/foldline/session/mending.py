"""What is done about an overflow: learn the window, ask for a shorter reply, then compact, once for a user message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from foldline.core.compact.plan import floor_of
from foldline.core.decide.ask import Nothing
from foldline.core.decide.triggers import Refuse, Stay
from foldline.core.measure.overflow import Overflow
from foldline.errors import CallsOpen, FloorExceeded, InputError, OverflowRemains
from foldline.session.compactor import Compactor
from foldline.session.events import OverflowSeen
from foldline.session.overflow import Shorter, cut_off, mended_already, overflow_in, share_left, shorter
from foldline.session.setup import Setup

Seen = tuple[str, ...]  # the boundaries of a path
Ready = Callable[[], Awaitable[None]]


class _Remedy(msgspec.Struct, frozen=True):
    """What is to be done: ask for a shorter reply, or take `share` of the window; on a path with these boundaries."""

    found: Overflow
    seen: Seen
    reply: Shorter | None = None
    share: float | None = None  # None: nothing more

    @property
    def name(self) -> str:
        if self.reply:
            return "max_tokens"
        return "newer_view" if self.share is None else "compaction"


async def mend(
    compactor: Compactor,
    ready: Ready,
    seen: Any,
    max_tokens: int | None,
    hint: int | None,
    *,
    shown: Seen | None = None,
) -> Shorter | None:
    """Make the next request fit; return what its reply may take, None where that is as much as before.

    `hint` is the `max_tokens` that was named before, `shown` the boundaries of the view that was asked with (None: not
    known). Where there are others by now, that view is no more, and the one that there is has not been tried.
    Raises what `Session.overflowed` raises.
    """
    remedy = await _considered(compactor, ready, seen, max_tokens, hint, shown=shown)
    found = remedy.found
    reply = remedy.reply
    compactor.tell(
        OverflowSeen(
            limit=found.limit,
            asked=found.asked,
            remedy=remedy.name,
            max_tokens=reply.max_tokens if reply else None,
        )
    )
    if remedy.share is None:
        return reply
    done = await compactor.overflow(remedy.share, remedy.seen)
    if isinstance(done, Nothing):
        async with compactor.lock:
            await ready()
            if compactor.fold.boundaries == remedy.seen:
                raise _remains(compactor, found, f"nothing could be folded ({done.why})") from _cause(seen)
    return None


async def _considered(
    compactor: Compactor,
    ready: Ready,
    seen: Any,
    max_tokens: int | None,
    hint: int | None,
    *,
    shown: Seen | None,
) -> _Remedy:
    """Return the overflow, and what is to be done about it."""
    async with compactor.lock:
        await ready()
        if compactor.fold.open_calls:
            raise CallsOpen(compactor.fold.open_calls)
        size, setup = compactor.view_tokens, compactor.setup
        path = compactor.fold.boundaries
        found, cut = overflow_in(seen, setup), False
        if found is None:
            found, cut = _cut_off(seen, setup, max_tokens), True
        if shown is not None and shown != path:
            return _Remedy(found, path)
        if not cut:  # else a shorter reply is no help, nor is it sure that the window was what ended it
            await compactor.learn_window(found, size)
            reply = shorter(found, setup, compactor.triggers.size(compactor.fold), max_tokens)
            if reply and (hint is None or reply.max_tokens < hint):
                return _Remedy(found, path, reply=reply)
        share = share_left(found, size, compactor.ask("overflow").usable, max_tokens)
        _permitted(compactor, found, seen)
        return _Remedy(found, path, share=share)


def _cut_off(seen: Any, setup: Setup, max_tokens: int | None) -> Overflow:
    if isinstance(seen, BaseException):
        raise seen
    found = cut_off(seen, setup, max_tokens)
    if found is None:
        raise InputError(
            "this reply is no overflow: append it, and ask for the context. Where it ended at its length, the window "
            "was not full: ask with a larger max_tokens, or say here what it was"
        )
    return found


def _permitted(compactor: Compactor, found: Overflow, seen: Any) -> None:
    """Raise where an overflow is not to be folded away, or was and came again."""
    if mended_already(compactor.fold.entries()):
        raise _remains(compactor, found, "it was compacted for this message already") from _cause(seen)
    decision = compactor.triggers.decide(compactor.fold, "overflow", careful=True)
    if isinstance(decision, Refuse):
        raise FloorExceeded(decision.floor, decision.usable, decision.breakdown) from _cause(seen)
    if isinstance(decision, Stay):
        compactor.tell(OverflowSeen(limit=found.limit, asked=found.asked, remedy="none"))
        if decision.why == "disabled" and isinstance(seen, BaseException):
            raise seen
        why = "the policy forbids compaction" if decision.why == "disabled" else "three attempts failed"
        raise _remains(compactor, found, why) from _cause(seen)


def _remains(compactor: Compactor, found: Overflow, why: str) -> OverflowRemains:
    floor = floor_of(compactor.fold, compactor.ask("overflow"), compactor.setup.counter)
    return OverflowRemains(
        why,
        view_tokens=compactor.view_tokens,
        floor=floor.total,
        breakdown=floor.breakdown,
        limit=found.limit,
        asked=found.asked,
    )


def _cause(seen: Any) -> BaseException | None:
    return seen if isinstance(seen, BaseException) else None
