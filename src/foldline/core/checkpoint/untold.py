"""A checkpoint without what the user took out of the context after it was made.

It tells of messages that stay behind it, too: their rules, their plan, the newest request. Each is a line
that code wrote of a fact, so it can be taken out again. What a model tells in words of its own stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec

from foldline.core.checkpoint import rules, state
from foldline.core.checkpoint.checkpoint import as_message, inert, requoted
from foldline.core.ledger.facts.constraints import ConstraintHistory, candidates
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.ledger.table import collect
from foldline.core.ledger.text.origin import spans
from foldline.core.log.entries import Compacted, Said
from foldline.core.measure.tokens import Counter, message_tokens

EVERY = 1_000_000_000  # tokens: all lines of the state, whatever room they had


def untold(
    boundary: Compacted, whole: Sequence[Said], left: Sequence[Said], counter: Counter, *, quoted: int
) -> Compacted:
    """Return a boundary without what was taken out since; `quoted` messages are kept with it.

    `whole` are the entries that something was taken out of, without secrets, and `left` what is left of them.
    """
    ledger = msgspec.convert(boundary.ledger, Ledger)
    less = _without(ledger, whole, left)
    gone = _lines(ledger) - _lines(less)
    point = boundary.checkpoint
    text = requoted(_without_lines(point.text, gone), quoted)
    return msgspec.structs.replace(
        boundary,
        checkpoint=msgspec.structs.replace(
            point,
            text=text,
            summary=_without_lines(point.summary, gone),
            tokens=message_tokens(as_message(text, point.role), counter),
            marks=tuple(mark for mark in point.marks if all(mark.entry != entry.id for entry in whole)),
        ),
        ledger=msgspec.to_builtins(less),
    )


def untold_range(text: str, whole: Sequence[Said], left: Sequence[Said]) -> str:
    """Return the summary of a folded range without what it says of parts that were taken out since.

    They came after the range; `whole` and `left` as in `untold`.
    """
    return _without_lines(text, _lines_on(whole) - _lines_on(left))


def _lines_on(entries: Sequence[Said]) -> set[str]:
    """Return the lines that an earlier page may hold about these entries."""
    found = collect(entries)
    facts = (
        msgspec.structs.replace(fact, later=later) for fact in found.constraints for later in (False, True)
    )
    told = [Ledger(constraints=tuple(facts), plan=found.plan), *(Ledger(asked=one) for one in found.requests)]
    return {line for ledger in told for line in _lines(ledger)}


def _without(ledger: Ledger, whole: Sequence[Said], left: Sequence[Said]) -> Ledger:
    """Return a ledger without the facts that only the removed parts hold."""
    cited = {entry.id for entry in whole}
    told, still = collect(whole), collect(left)
    calling = {entry.id for entry in left if entry.message.calls}
    uses = {fact.name: fact.notable for fact in told.tools}
    return msgspec.structs.replace(
        ledger,
        constraints=_rules_left(ledger, cited, left),
        plan=tuple(step for step in ledger.plan if step.entry not in cited or step.entry in calling),
        checks=tuple(fact for fact in ledger.checks if cited.isdisjoint(fact.entries)),
        commits=tuple(fact for fact in ledger.commits if cited.isdisjoint(fact.entries)),
        tools=tuple(
            msgspec.structs.replace(
                fact, notable=tuple(text for text in fact.notable if text not in uses.get(fact.name, ()))
            )
            for fact in ledger.tools
        ),
        asked="" if ledger.asked in told.requests and ledger.asked not in still.requests else ledger.asked,
    )


def _rules_left(ledger: Ledger, cited: set[str], left: Sequence[Said]) -> tuple[ConstraintFact, ...]:
    """Return the rules that still hold; one that was stated earlier too cites that entry."""
    texts = {entry.id: _plain(entry.message.text) for entry in left}
    found = {
        fact: fact
        for fact in ledger.constraints
        if fact.entry not in cited or _plain(fact.text) in texts.get(fact.entry, "")
    }
    gone = {fact.text for fact in ledger.constraints if fact not in found}
    before = ConstraintHistory()
    for item in ledger.items if gone else ():
        if item.kind == "user" and item.entry not in cited:
            for sentence in chain.from_iterable(map(candidates, spans(item.text))):
                before.say(sentence, item.entry, item.by, proven=sentence in gone)
    again = {fact.text: fact for fact in before.standing}
    kept = (found.get(fact) or again.get(fact.text) for fact in ledger.constraints)
    return tuple(fact for fact in kept if fact is not None)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _lines(ledger: Ledger) -> set[str]:
    """Return the lines that a page has of a ledger's rules and state."""
    told = (*rules.lines_of(ledger.constraints), *state.lines(ledger, EVERY, lambda _: 0))
    return {line for fact in told for line in fact.split("\n")}


def _without_lines(text: str, gone: set[str]) -> str:
    gone = gone | set(map(inert, gone))
    return "\n".join(line for line in text.split("\n") if line not in gone)
