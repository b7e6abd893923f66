"""The breaker: after three failures in a row no compaction starts by itself for a while.

Its state is nowhere but in the log: a failure is a `Noted` entry of kind `strike` (the `reason` of the
compaction, `why` it failed), a time to wait one of kind `cooldown` (`until` Unix time). So it survives a
restart, and a branch that leaves the failures behind leaves the breaker behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from foldline.core.decide.ask import Why
from foldline.core.log.entries import Compacted, Entry, Noted, Pruned, Reason, Said

STRIKES = 3  # failures in a row that open the breaker
NEW_MESSAGES = 20  # messages after the last failure that close it again
NO_STRIKE = frozenset({"no_op", "cancelled"})  # nothing to fold, or the user stopped it: nobody failed
COOLDOWN = 60.0  # seconds without a try after an error; doubled with each failure in a row
LONGEST = 600.0  # seconds

Failure = Why | Literal["error", "floor"]  # how a compaction ended that made no boundary
NO_FAILURE: frozenset[Failure] = frozenset(
    {"fits", "nothing_new", "nothing_to_fold", "disabled", "signed_thinking", "void"}
)


class BreakerState(msgspec.Struct, frozen=True):
    """Whether compactions may start by themselves. One by hand always may.

    `strikes` are the failures in a row, `overflow_strikes` those of them that followed an overflow;
    `messages_left` is after how many more messages the breaker closes, `until` the Unix time at which a
    cool-down ends (None: there is none).
    """

    strikes: int = 0
    overflow_strikes: int = 0
    messages_left: int = 0
    until: float | None = None

    @property
    def open(self) -> bool:
        """Whether thresholds are to be ignored for now."""
        return self.strikes >= STRIKES or self.until is not None

    @property
    def open_on_overflow(self) -> bool:
        """Whether an overflow is to be ignored as well: only failures to mend one forbid the next try."""
        return self.overflow_strikes >= STRIKES


def breaker_state(path: Sequence[Entry], now: float | None = None) -> BreakerState:
    """Return the breaker's state at the end of a path; takes time in proportion to what follows a success.

    `now` is Unix time; without it no cool-down counts. A committed `Compacted` or `Pruned` is a success.
    """
    state = BreakerState()
    for entry in path[_after_success(path) :]:
        if isinstance(entry, Said):
            state = _said(state)
        elif isinstance(entry, Noted):
            state = _noted(state, entry)
    if state.until is not None and (now is None or now >= state.until):
        return msgspec.structs.replace(state, until=None)
    return state


def _after_success(path: Sequence[Entry]) -> int:
    for index in range(len(path) - 1, -1, -1):
        if isinstance(path[index], Compacted | Pruned):
            return index + 1
    return 0


def _said(state: BreakerState) -> BreakerState:
    """One more message: the last that an open breaker waited for closes it."""
    if state.strikes < STRIKES:
        return state
    if state.messages_left <= 1:
        return BreakerState(until=state.until)
    return msgspec.structs.replace(state, messages_left=state.messages_left - 1)


def _noted(state: BreakerState, entry: Noted) -> BreakerState:
    if entry.kind == "cooldown":
        until = entry.data.get("until")
        return msgspec.structs.replace(state, until=float(until)) if isinstance(until, int | float) else state
    if entry.kind != "strike" or entry.data.get("why") in NO_STRIKE:
        return state
    strikes = state.strikes + 1
    return BreakerState(
        strikes=strikes,
        overflow_strikes=state.overflow_strikes + (entry.data.get("reason") == "overflow"),
        messages_left=NEW_MESSAGES if strikes >= STRIKES else 0,
        until=state.until,
    )


def failure_notes(reason: Reason, why: Failure, before: BreakerState, now: float) -> tuple[Noted, ...]:
    """Return what a failed compaction leaves in the log: a strike, and behind an error a cool-down.

    `before` is the breaker's state at the failure, `now` Unix time. A compaction that had nothing to do has
    not failed: it leaves nothing.
    """
    if why in NO_FAILURE:
        return ()
    notes = [Noted("", None, "strike", {"reason": reason, "why": why}, at=now)]
    if why == "error":
        until = now + min(COOLDOWN * 2**before.strikes, LONGEST)
        notes.append(Noted("", None, "cooldown", {"until": until, "why": why}, at=now))
    return tuple(notes)
