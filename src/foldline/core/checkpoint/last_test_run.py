"""Whether a line calls the tests passed where their last run failed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from foldline.core.ledger.facts.kinds import CommandFact
from foldline.core.ledger.text.sentences import clip

_TEST_RUN = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|playwright test|make check|"
    r"(?:npm|pnpm|yarn|bun|deno|cargo|go|dotnet|mvn|mvnw|gradle|gradlew|swift|mix|rake|make|just|composer)\s+"
    r"(?:run\s+)?test[\w:\-]*)"
)
_TESTS_PASS = re.compile(
    r"\b(?:all\b.{0,30}?|the )?(?:tests?|test suite|suite|checks?)\b[^.;\n]{0,30}?"
    r"\b(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?)\b",
    re.IGNORECASE,
)
_NOT_CLAIMED = re.compile(
    r"\b(?:not|no|should|must|until|once|make|ensure|need|needs|fail\w*|if|when|whether|so that|"
    r"want\w*|to pass|get|but|before)\b"
    r"|n['\u2019]t\b|\[ \]",
    re.IGNORECASE,
)


def last_failed(commands: Sequence[CommandFact]) -> CommandFact | None:
    """Return the last run of tests, if it failed. Commands are in the order of their last run."""
    runs = [fact for fact in commands if _TEST_RUN.search(fact.command)]
    return runs[-1] if runs and runs[-1].passed is False else None


def mark_claim(row: str, failed: CommandFact | None) -> str:
    """Mark a line that calls the tests passed where their last run failed."""
    if failed is None or "(unverified" in row or not _TESTS_PASS.search(row) or _NOT_CLAIMED.search(row):
        return row
    outcome = f": {clip(failed.outcome, 100)}" if failed.outcome else ""
    return f"{row} (unverified: the last run of `{clip(failed.command, 80)}` failed{outcome})"
