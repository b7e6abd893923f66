"""What is done about an overflow: learn the window, ask for a shorter reply, then compact, once for a user message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from foldline.core.decide.ask import Nothing
from foldline.core.decide.triggers import Refuse, Stay
from foldline.core.measure.overflow import Overflow
from foldline.core.plan import floor_of
from foldline.errors import CallsOpen, FloorExceeded, InputError, OverflowRemains
from foldline.live.compactor import Compactor
from foldline.live.events import OverflowSeen
from foldline.live.overflow import cut_off, mended_already, overflow_in, share_left, smaller_output
from foldline.live.setup import Setup

Ready = Callable[[], Awaitable[None]]


async def mend(
    compactor: Compactor, ready: Ready, seen: Any, max_tokens: int | None, hint: int | None
) -> int | None:
    """Make the next request fit; return the `max_tokens` to send with it, None where any will do.

    `hint` is the one that was returned before. Raises what `Session.overflowed` raises.
    """
    found, smaller, share = await _considered(compactor, ready, seen, max_tokens, hint)
    compactor.tell(
        OverflowSeen(
            limit=found.limit,
            asked=found.asked,
            remedy="max_tokens" if smaller else "compaction",
            max_tokens=smaller,
        )
    )
    if smaller:
        return smaller
    done = await compactor.overflow(share)
    if isinstance(done, Nothing):
        async with compactor.lock:
            await ready()
            raise _remains(compactor, found, f"nothing could be folded ({done.why})") from _cause(seen)
    return None


async def _considered(
    compactor: Compactor, ready: Ready, seen: Any, max_tokens: int | None, hint: int | None
) -> tuple[Overflow, int | None, float]:
    """Return the overflow, the smaller `max_tokens` that is enough, and else the share of the window to use."""
    async with compactor.lock:
        await ready()
        if compactor.fold.open_calls:
            raise CallsOpen(compactor.fold.open_calls)
        size, setup = compactor.view_tokens, compactor.setup
        found = overflow_in(seen, setup)
        if found is not None:
            await compactor.learn_window(found, size)
            smaller = smaller_output(found, setup, compactor.triggers.size(compactor.fold), max_tokens)
            if smaller and (hint is None or smaller < hint):
                return found, smaller, 1.0
        else:  # of a reply: neither helps a shorter one, nor is it sure that the window was what ended it
            found = _cut_off(seen, setup, max_tokens)
        share = share_left(found, size, compactor.ask("overflow").usable, max_tokens)
        _permitted(compactor, found, seen)
        return found, None, share


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
