"""What a failed compaction leaves in the log, so that a restart does not begin to fail anew."""

from __future__ import annotations

import time

from foldline.core.decide.breaker import BreakerState, breaker_state, cooldown_data, strike_data
from foldline.core.log.entries import Noted
from foldline.session.cursor import Cursor
from foldline.session.events import CoolingDown, Event, Struck

COOLDOWN = 60.0  # seconds without a try after an error; doubled with each in a row
LONGEST = 600.0  # seconds
NO_FAILURE = frozenset({"fits", "nothing_new", "nothing_to_fold", "disabled", "signed_thinking", "void"})


def state(log: Cursor) -> BreakerState:
    """Return the breaker's state now."""
    return breaker_state(log.fold.entries(), time.time())


def fails(why: str) -> bool:
    """Whether a compaction that ended so has failed: one that had nothing to do has not."""
    return why not in NO_FAILURE


async def strike(log: Cursor, reason: str, why: str, *, error: bool = False) -> list[Event]:
    """Write a strike, and behind an `error` a cool-down; return what happened."""
    now = time.time()
    await log.write(Noted("", None, "strike", strike_data(reason, why), at=now))
    count = breaker_state(log.fold.entries(), now).strikes
    happened: list[Event] = [Struck(reason=reason, why=why, strikes=count)]
    if error:
        until = now + min(COOLDOWN * 2 ** max(count - 1, 0), LONGEST)
        await log.write(Noted("", None, "cooldown", cooldown_data(until, why), at=now))
        happened.append(CoolingDown(until=until, why=why))
    return happened
