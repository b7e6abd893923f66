"""Checks: commands whose output counts what passed and failed, or that ran again after they failed.

The newest run of each says how the work stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.ledger.facts.actions import Stretch
from foldline.core.ledger.facts.commands import normal
from foldline.core.ledger.facts.kinds import CheckFact, Ledger
from foldline.core.ledger.facts.touches import touches
from foldline.core.ledger.text.sentences import cut

CARRIED = 24  # checks from fold to fold: the newest
COMMAND = 160  # characters of a command
CITED = 12  # entries that a check cites: the newest


def collect(found: Stretch) -> tuple[CheckFact, ...]:
    """Take the newest run of each check; one is outdated when a file was changed behind it."""
    runs: dict[str, CheckFact] = {}
    telling: set[str] = set()
    for use, done in found.actions():
        if done.run is not None and done.command:
            key = normal(done.command)
            old = runs.pop(key, None)
            cites = tuple(dict.fromkeys((*(old.entries if old else ()), use.entry, use.answered_in)))[-CITED:]
            uses = old.uses + 1 if old else 1
            runs[key] = CheckFact(cut(key, COMMAND), done.run.text, done.run.passed, uses, cites)
            if done.run.counted or (uses > 1 and (done.run.passed is False or (old and old.passed is False))):
                telling.add(key)
        elif done.kind == "edit" and any(touch.status != "read" for touch in touches(use)):
            runs = {key: msgspec.structs.replace(fact, outdated=True) for key, fact in runs.items()}
    return tuple(fact for key, fact in runs.items() if key in telling)


def merge(old: Sequence[CheckFact], new: Sequence[CheckFact], later: Ledger) -> tuple[CheckFact, ...]:
    """Merge the checks of two ranges, the newest run of each; changes in `later` make older ones outdated."""
    changed = any(fact.status != "read" for fact in later.files)
    found = {
        normal(fact.command): msgspec.structs.replace(fact, outdated=fact.outdated or changed) for fact in old
    }
    for fact in new:
        known = found.pop(normal(fact.command), None)
        again = known is not None and set(fact.entries) <= set(known.entries)
        found[normal(fact.command)] = (
            fact if known is None or again else msgspec.structs.replace(fact, uses=fact.uses + known.uses)
        )
    return tuple(found.values())


def bound(facts: Sequence[CheckFact]) -> tuple[CheckFact, ...]:
    """Return the checks that are carried to the next fold."""
    return tuple(facts[-CARRIED:])
