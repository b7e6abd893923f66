"""Standing constraints: what the user wrote that must always or never hold, word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foldline.core.ledger.cues import is_constraint
from foldline.core.ledger.facts import ConstraintFact
from foldline.core.ledger.origin import is_plan, prompts
from foldline.core.ledger.sentences import sentences
from foldline.core.log.entries import Said

_SCANNED = 60_000
_WORD = re.compile(r"[A-Za-zÀ-ÿ_][\w.-]+|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,4}")


def candidates(span: str) -> Iterator[str]:
    """Yield the sentences of a span that the user can have meant as prose of their own."""
    if not is_plan(span):
        yield from sentences(span[:_SCANNED])


def subject_of(text: str) -> str:
    """Return the content words of a constraint, sorted: what a newer one must share to supersede it."""
    return " ".join(sorted({word.lower() for word in _WORD.findall(text)}))


def collect(entries: Sequence[Said]) -> tuple[ConstraintFact, ...]:
    """Take the standing constraints from the user's own words."""
    found = [
        ConstraintFact(sentence, entry.id, subject_of(sentence))
        for entry, spans in prompts(entries)
        for span in spans
        for sentence in candidates(span)
        if is_constraint(sentence)
    ]
    return merge((), found)


def merge(old: Sequence[ConstraintFact], new: Sequence[ConstraintFact]) -> tuple[ConstraintFact, ...]:
    """Merge the constraints of two ranges; the newer of two with one subject stays."""
    found: dict[str, ConstraintFact] = {}
    for fact in (*old, *new):
        found.pop(fact.subject, None)
        found[fact.subject] = fact
    return tuple(found.values())
