"""Two ledgers into one, the second of a range that follows the first's."""

from __future__ import annotations

from foldline.core.ledger import work_log
from foldline.core.ledger.facts import (
    commands,
    commits,
    constraints,
    decisions,
    errors,
    files,
    open_work,
    reports,
    requests,
    tools,
    values,
)
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.worth import excerpts


def cited(ledger: Ledger) -> frozenset[str]:
    """Return the ids of all entries that a ledger cites, whatever the kinds of its facts."""
    lists = (getattr(ledger, name) for name in ledger.__struct_fields__ if name not in ("turns", "messages"))
    return frozenset(id_ for facts in lists for fact in facts for id_ in _entries(fact))


def _entries(fact: object) -> tuple[str, ...]:
    single = getattr(fact, "entry", None)
    return (*getattr(fact, "entries", ()), *((single,) if single else ()))


def _range(ledger: Ledger) -> frozenset[str]:
    """Return the ids cited by the kinds that a merge never thins out: by these a range is known again."""
    single = (*ledger.requests, *ledger.constraints, *ledger.decisions)
    several = (*ledger.files, *ledger.commands, *ledger.errors)
    return frozenset((*(fact.entry for fact in single), *(id_ for fact in several for id_ in fact.entries)))


def merge(old: Ledger, new: Ledger) -> Ledger:
    """Merge two ledgers: repeats are counted, newer states win; what `old` holds already changes nothing."""
    ids = _range(new)
    if ids and ids <= _range(old) and new.messages <= old.messages:
        return old
    passed = [fact.command for fact in new.commands if fact.passed]
    changed = [fact.path for fact in new.files if fact.status in ("created", "modified")]
    return Ledger(
        requests=requests.merge(old.requests, new.requests),
        constraints=constraints.merge(old.constraints, new.constraints, new.requests),
        files=files.merge(old.files, new.files),
        commands=commands.merge(old.commands, new.commands, changed=bool(changed)),
        commits=commits.merge(old.commits, new.commits, changed),
        errors=errors.merge(old.errors, new.errors, (*passed, *changed)),
        decisions=decisions.merge(old.decisions, new.decisions),
        values=values.merge(old.values, new.values),
        open=open_work.merge(
            old.open, new.open, sum(fact.answered and bool(fact.asked) for fact in new.work)
        ),
        tools=tools.merge(old.tools, new.tools),
        reports=reports.merge(old.reports, new.reports),
        work=work_log.merge(old.work, new.work),
        excerpts=excerpts.merge(old.excerpts, new.excerpts),
        turns=old.turns + new.turns,
        messages=old.messages + new.messages,
    )
