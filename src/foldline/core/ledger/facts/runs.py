"""What calls did, counted: the newest outcome of each check, commits, and the tools that were used."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.ledger.facts.actions import Stretch
from foldline.core.ledger.facts.calls import Use, arguments, strings
from foldline.core.ledger.facts.commands import command_in, git_verb, is_notable, normal, steps
from foldline.core.ledger.facts.kinds import CheckFact, CommitFact, Ledger, ToolFact
from foldline.core.ledger.facts.touches import touches
from foldline.core.ledger.text.sentences import clip, cut

COMMAND = 160  # characters of a command
CITED = 12  # entries that a check cites: the newest
NOTABLE = 3  # uses of a tool that are told
SHOWN = 100  # characters of a use


def checks(found: Stretch) -> tuple[CheckFact, ...]:
    """Take the newest run of each check: a command that counts what passed, or that failed and ran again.

    One is outdated when a file was changed behind it.
    """
    runs: dict[str, CheckFact] = {}
    telling: set[str] = set()
    for use, done in found.actions():
        if done.run is not None and done.command:
            key = cut(normal(done.command), COMMAND)
            old = runs.pop(key, None)
            cites = tuple(dict.fromkeys((*(old.entries if old else ()), use.entry, use.answered_in)))[-CITED:]
            runs[key] = CheckFact(key, done.run.text, done.run.passed, cites)
            if done.run.counted or (old and False in (done.run.passed, old.passed)):
                telling.add(key)
        elif done.kind == "edit" and any(touch.status != "read" for touch in touches(use)):
            runs = {key: msgspec.structs.replace(fact, outdated=True) for key, fact in runs.items()}
    return tuple(fact for key, fact in runs.items() if key in telling)


def merge_checks(old: Sequence[CheckFact], new: Sequence[CheckFact], later: Ledger) -> tuple[CheckFact, ...]:
    """Merge the checks of two ranges, the newest run of each; changes in `later` make older ones outdated."""
    changed = any(fact.status != "read" for fact in later.files)
    found = {fact.command: msgspec.structs.replace(fact, outdated=fact.outdated or changed) for fact in old}
    for fact in new:
        found.pop(fact.command, None)
        found[fact.command] = fact
    return tuple(found.values())


def commits(found: Stretch) -> tuple[CommitFact, ...]:
    """Take the commits that were made; a push behind them pushes them all."""
    made: list[CommitFact] = []
    for use, done in found.actions():
        if done.commit is not None:
            cites = tuple(dict.fromkeys((use.entry, use.answered_in)))
            made.append(msgspec.structs.replace(done.commit, entries=cites))
        if use.passed is not False and any(git_verb(step) == "push" for step in steps(done.command)):
            made = [msgspec.structs.replace(fact, pushed=True) for fact in made]
    return tuple(made)


def merge_commits(
    old: Sequence[CommitFact], new: Sequence[CommitFact], _later: Ledger
) -> tuple[CommitFact, ...]:
    """Put the commits of two ranges together, one for each hash."""
    return tuple({fact.key: fact for fact in (*old, *new)}.values())


def tools(found: Stretch) -> tuple[ToolFact, ...]:
    """Count the calls by tool, in the order of first use."""
    counted: dict[str, ToolFact] = {}
    for use in found.calls:
        text = _notable(use)
        known = counted.get(use.call.name, ToolFact(use.call.name, 0))
        counted[use.call.name] = _added(known, ToolFact(use.call.name, 1, (text,) if text else ()))
    return tuple(counted.values())


def _notable(use: Use) -> str:
    """Return the one argument that shows a use best; "" where it failed or only looked around."""
    command = command_in(use)
    if use.passed is False or (command and not is_notable(command)):
        return ""
    touched = (touch.path for touch in touches(use))
    texts = (text for text in strings(arguments(use.call)) if text.strip())
    return clip(command or next(touched, "") or next(texts, ""), SHOWN)


def _added(old: ToolFact, new: ToolFact) -> ToolFact:
    kept = [text for text in old.notable if text not in new.notable]
    return ToolFact(old.name, old.uses + new.uses, (*kept, *new.notable)[-NOTABLE:])


def merge_tools(old: Sequence[ToolFact], new: Sequence[ToolFact], _later: Ledger) -> tuple[ToolFact, ...]:
    """Add the counts of two ranges; the newest notable uses are told."""
    found = {fact.name: fact for fact in old}
    for fact in new:
        found[fact.name] = _added(found.get(fact.name, ToolFact(fact.name, 0)), fact)
    return tuple(found.values())
