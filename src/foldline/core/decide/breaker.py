"""The breaker: after three failures in a row no automatic compaction starts for a while.

Its state is only in the log: a failure is a `Noted` entry of kind `strike` (the `reason` of the compaction
and `why` it failed), a waiting time one of kind `cooldown` (`until`, Unix time). So it survives a restart,
and a branch from before the failures has no open breaker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from foldline.core.decide.ask import Why
from foldline.core.log.entries import Compacted, Entry, Noted, Pruned, Reason, Said

STRIKES = 3  # failures in a row that open the breaker
NEW_MESSAGES = 20  # messages after the last failure that close it again
NO_STRIKE = frozenset({"no_op", "cancelled"})  # nothing to fold, or stopped by the user: no failures
COOLDOWN = 60.0  # seconds after an error; doubled with each failure in a row
LONGEST = 600.0  # seconds

Failure = Why | Literal["error", "floor"]  # how a compaction ended that made no boundary
NO_FAILURE: frozenset[Failure] = frozenset(
    {"fits", "nothing_new", "nothing_to_fold", "disabled", "signed_thinking", "void"}
)


class BreakerState(msgspec.Struct, frozen=True):
    """Whether automatic compactions may start; compactions by hand always may.

    `strikes` counts failures in a row, `overflow_strikes` those after an overflow. `until` is the Unix time
    at which a cool-down ends (None: there is none).
    """

    strikes: int = 0
    overflow_strikes: int = 0
    until: float | None = None

    @property
    def open(self) -> bool:
        """Whether thresholds are ignored for now."""
        return self.strikes >= STRIKES or self.until is not None

    @property
    def open_on_overflow(self) -> bool:
        """Whether overflows are ignored too: only failures after an overflow count for that."""
        return self.overflow_strikes >= STRIKES


def breaker_state(path: Sequence[Entry], now: float | None = None) -> BreakerState:
    """Return the breaker's state at the end of a path, in time proportional to the entries since a success.

    `now` is Unix time; without it cool-downs are ignored. A committed `Compacted` or `Pruned` is a success.
    An open breaker closes after `NEW_MESSAGES` messages.
    """
    places = range(len(path) - 1, -1, -1)
    success = next((place for place in places if isinstance(path[place], Compacted | Pruned)), -1)
    strikes, overflow_strikes, messages_left, until = 0, 0, 0, None
    for entry in path[success + 1 :]:
        if isinstance(entry, Said) and strikes >= STRIKES:
            messages_left -= 1
            if messages_left <= 0:
                strikes, overflow_strikes = 0, 0
        elif not isinstance(entry, Noted):
            continue
        elif entry.kind == "cooldown" and isinstance(entry.data.get("until"), int | float):
            until = float(entry.data["until"])
        elif entry.kind == "strike" and entry.data.get("why") not in NO_STRIKE:
            strikes += 1
            overflow_strikes += entry.data.get("reason") == "overflow"
            messages_left = NEW_MESSAGES if strikes >= STRIKES else 0
    cooling = until is not None and now is not None and now < until
    return BreakerState(strikes, overflow_strikes, until if cooling else None)


def failure_notes(reason: Reason, why: Failure, before: BreakerState, now: float) -> tuple[Noted, ...]:
    """Return the notes on a failed compaction for the log: a strike, and after an error a cool-down.

    `before` is the breaker's state at the failure, `now` Unix time. A compaction that had nothing to do has
    not failed, so there are no notes.
    """
    if why in NO_FAILURE:
        return ()
    notes = [Noted("", None, "strike", {"reason": reason, "why": why}, at=now)]
    if why == "error":
        until = now + min(COOLDOWN * 2**before.strikes, LONGEST)
        notes.append(Noted("", None, "cooldown", {"until": until, "why": why}, at=now))
    return tuple(notes)
