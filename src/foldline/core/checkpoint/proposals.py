"""Rules that a model's summary proposes and that stand in the user's words: the model recalls, code proves.

A line under a summary's rules that stands word for word in a sentence of the user's makes that whole sentence
a standing constraint, with the entry that it stands in. What the user said about it later decides as always.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from foldline.core.ledger.facts.constraints import ConstraintHistory, candidates, roots
from foldline.core.ledger.facts.kinds import ConstraintFact
from foldline.core.ledger.text.origin import prompts
from foldline.core.log.entries import Said

RULES: Final = (  # the headings under which a summary's rules stand
    "Constraints & Preferences",
    "Rules",
    "User Requests & Constraints",
)
LEAST_WORDS: Final = 2  # content words below which a line proves nothing, but for a whole sentence
_LEAD: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ x]\]\s+)?")
_EDGES: Final = " \t\"'`*_.!\u201c\u201d\u2018\u2019\u3002"
_HEADING: Final = re.compile(r"^#{1,6}\s+(\S.*)")


def proven(
    summary: str, entries: Sequence[Said], known: Sequence[ConstraintFact]
) -> tuple[ConstraintFact, ...]:
    """Return the rules that a summary proposes and a user's entry holds, without those that are `known`."""
    lines = [line for line in map(_bare, _proposed(summary)) if roots(line)]
    if not lines:
        return ()
    said = (sentence for _, spans in prompts(entries) for span in spans for sentence in candidates(span))
    named = {sentence for sentence in said if _is_proposed(sentence, lines)}
    history = ConstraintHistory()
    history.read(entries, named)
    named -= {fact.text for fact in known}
    return tuple(fact for fact in history.standing if fact.text in named)


def with_proven(
    constraints: Sequence[ConstraintFact], found: Sequence[ConstraintFact], entries: Sequence[Said]
) -> tuple[ConstraintFact, ...]:
    """Return constraints with the proven ones among them, in the order of the entries that hold them."""
    place = {entry.id: index for index, entry in enumerate(entries)}
    return tuple(sorted((*constraints, *found), key=lambda fact: place.get(fact.entry, -1)))


def _proposed(summary: str) -> Iterator[str]:
    """Yield the items under the headings of a summary's rules."""
    heading, wanted = "", {plain(name) for name in RULES}
    for row in summary.split("\n"):
        heading = heading_of(row) or heading
        if heading in wanted and _LEAD.match(row):
            yield _LEAD.sub("", row)


def _bare(text: str) -> str:
    return " ".join(text.split()).strip(_EDGES)


def _is_proposed(sentence: str, lines: Sequence[str]) -> bool:
    """Whether one of the lines stands in a sentence word for word; a question states no rule."""
    plain = _bare(sentence)
    if plain.endswith(("?", "\uff1f")):
        return False
    return any(line == plain or (len(roots(line)) >= LEAST_WORDS and _stands(line, plain)) for line in lines)


def _stands(line: str, sentence: str) -> bool:
    at = sentence.casefold().find(line.casefold())
    before, after = sentence[at - 1 : at], sentence[at + len(line) : at + len(line) + 1]
    return at >= 0 and not (before[-1:].isalnum() or after.isalnum())


def plain(heading: str) -> str:
    """Return a heading in the form in which headings are compared."""
    return " ".join(heading.casefold().replace("&", "and").replace("*", "").split())


def heading_of(row: str) -> str:
    """Return the heading that a line is, in its plain form; "" for any other line."""
    found = _HEADING.match(row)
    return plain(found[1].rstrip(" \t:#")) if found else ""
