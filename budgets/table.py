"""What is measured: figures with their budgets."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One measured figure and its unit; `most` or `least` is its budget, where it has one."""

    what: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None

    @property
    def budget(self) -> str:
        """The budget in words, "" without one."""
        if self.most is not None:
            return f"≤ {self.most:g}"
        return f"≥ {self.least:g}" if self.least is not None else ""

    @property
    def verdict(self) -> str:
        """Whether the budget is met, "" without one."""
        if not self.budget:
            return ""
        missed = (self.most is not None and self.value > self.most) or (
            self.least is not None and self.value < self.least
        )
        return "MISSED" if missed else "ok"


HEADER = ("what", "measured", "budget", "verdict")


def figure(value: float) -> str:
    """Return a number with as many digits as tell something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"


def cells(row: Row) -> tuple[str, str, str, str]:
    """Return what stands in a row of the table."""
    return (row.what, f"{figure(row.value)} {row.unit}".strip(), row.budget, row.verdict)


def cpu(work: Callable[[], object], times: int = 5) -> float:
    """Return the least CPU time of the process, in seconds, that the work took: other programs do not count."""
    found: list[float] = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)
