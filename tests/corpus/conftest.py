"""Total the figures of all folds of recorded sessions at the end of the run."""

from __future__ import annotations

import pytest
from tests.support import corpus

from foldline.core.compact import attempt


@pytest.fixture
def one_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collect the facts of a range once for all policies: the ids of its entries are hashes of their content."""
    monkeypatch.setattr(attempt, "collect", corpus.cached_collect())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that the tests recorded: folds, floors exceeded, violations, seconds."""
    totals: dict[str, float] = {}
    floors: list[str] = []
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", []):
                if name == "floor":
                    floors.append(value)
                elif name in ("sessions", "folds", "floors", "violations", "seconds"):
                    totals[name] = totals.get(name, 0) + value
    if totals:
        terminalreporter.section("folds of recorded sessions")
        terminalreporter.write_line(", ".join(f"{value:,.0f} {name}" for name, value in totals.items()))
        for floor in floors[:20]:
            terminalreporter.write_line(f"floor above the target: {floor}")
