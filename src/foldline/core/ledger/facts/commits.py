"""Commits: hash, branch and first line, as `git commit` printed them, and whether they were pushed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.ledger.facts.actions import Stretch
from foldline.core.ledger.facts.commands import git_verb, steps
from foldline.core.ledger.facts.kinds import CommitFact, Ledger

CARRIED = 20  # commits from fold to fold: the newest


def collect(found: Stretch) -> tuple[CommitFact, ...]:
    """Take the commits that were made; a push behind them pushes them all."""
    commits: list[CommitFact] = []
    for use, done in found.actions():
        if done.commit is not None:
            commits.append(
                msgspec.structs.replace(
                    done.commit, entries=tuple(dict.fromkeys((use.entry, use.answered_in)))
                )
            )
        if done.command and _pushes(done.command) and use.passed is not False:
            commits = [msgspec.structs.replace(fact, pushed=True) for fact in commits]
    return tuple(commits)


def _pushes(command: str) -> bool:
    return any(git_verb(step) == "push" for step in steps(command))


def merge(old: Sequence[CommitFact], new: Sequence[CommitFact], _later: Ledger) -> tuple[CommitFact, ...]:
    """Put the commits of two ranges together, one for each hash."""
    return tuple({fact.key: fact for fact in (*old, *new)}.values())


def bound(facts: Sequence[CommitFact]) -> tuple[CommitFact, ...]:
    """Return the commits that are carried to the next fold."""
    return tuple(facts[-CARRIED:])
