"""What many replays come to: sums and means for each policy, taken one session at a time."""

from __future__ import annotations

from typing import Any, Final

from foldline.lab.report import MEASURES, PolicyReport, SessionReport

_OF_ONE: Final = ("token_ratio", "apart_tokens")  # totals that mean nothing in a sum


class PolicySums:
    """The sums of one policy over several sessions."""

    def __init__(self) -> None:
        self._totals: dict[str, Any] = {}
        self._shares: dict[str, tuple[float, int]] = {}  # sum, sessions
        self._scored = False

    def add(self, report: PolicyReport) -> None:
        """Take a session; its `peak` counts if it is the largest."""
        for name, value in report.totals.items():
            if name in _OF_ONE:
                continue
            before = self._totals.setdefault(name, None)
            if value is not None:
                together = max if name == "peak" else _plus
                self._totals[name] = value if before is None else together(before, value)
        if report.retention is None:
            return
        self._scored = True
        for name in MEASURES:
            share, (before, count) = report.retention[name], self._shares.get(name, (0.0, 0))
            if share is not None:
                self._shares[name] = (before + share, count + 1)

    def totals(self) -> dict[str, Any]:
        """Return the totals as those of a session are; None for what no session knows."""
        return {name: round(value, 6) if value is not None else None for name, value in self._totals.items()}

    def retention(self) -> dict[str, Any] | None:
        """Return the mean of each measure over the sessions that have one; None if none has."""
        if not self._scored:
            return None
        known = {name: self._shares.get(name) for name in MEASURES}
        return {name: found[0] / found[1] if found else None for name, found in known.items()}


class ReplaySums:
    """The sums of several sessions by policy."""

    def __init__(self) -> None:
        self.sessions = 0
        self.unpriced = 0
        self.policies: dict[str, PolicySums] = {}

    def add(self, report: SessionReport) -> None:
        """Take a session under all its policies."""
        self.sessions += 1
        self.unpriced += report.policies[0].totals["price"] is None
        for one in report.policies:
            self.policies.setdefault(one.policy, PolicySums()).add(one)


def _plus(one: float, other: float) -> float:
    return one + other
