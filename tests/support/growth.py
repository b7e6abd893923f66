"""Check that work takes linear time; absolute seconds mean nothing on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable


def grows_in_step(work: Callable[[int], object], size: int) -> bool:
    """Whether sixteen times the size takes less than ninety times as long; quadratic work takes 256 times.

    The time is that of this thread alone. What else runs may disturb a measurement, so one of five is enough.
    """

    def seconds(many: int) -> float:
        start = time.thread_time()
        work(many)
        return time.thread_time() - start

    return any(seconds(16 * size) < 90 * max(seconds(size), 0.002) for _ in range(5))
