"""What must survive in a summary, as lines that are put back where it left them out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from foldline.core.checkpoint.sections import heading_of, plain
from foldline.core.ledger.facts.kinds import Ledger, ValueFact
from foldline.core.ledger.facts.open_work import is_done
from foldline.core.ledger.page.constraints import lines_of
from foldline.core.ledger.text.sentences import clip

ERRORS, OPEN, VALUES = 8, 15, 12  # facts of a kind that are put back, the newest
QUOTED = 300  # characters of a fact that are put back; constraints stand whole
WORD_FOR_WORD = ("constraint", "value")  # kinds of facts that stand so or not at all
OPEN_ERROR = "Open error: "
SAME = 0.7  # share of a fact's words that a line must hold to say the same

UNDER: dict[Kind, tuple[str, ...]] = {
    "constraint": (
        "Constraints & Preferences",
        "Rules",
        "User Requests & Constraints",
        "User Messages",
        "Context & Decisions",
    ),
    "request": ("Goal", "Task", "Requests & Intent", "User Requests & Constraints", "Current Work"),
    "error": ("Blocked", "Errors & Fixes", "State", "Current Work", "In Progress", "Progress"),
    "open": ("Next Steps", "Remaining Work", "Plan", "Open Tasks", "Next"),
    "value": ("Critical Context", "References", "Context & Decisions", "Files & Code", "Technical Decisions"),
}

_RULES = frozenset(map(plain, UNDER["constraint"]))


Kind = Literal["constraint", "request", "error", "open", "value"]


class Essential(msgspec.Struct, frozen=True):
    """Something that must stand in a summary: under which heading, as which line, known by which words."""

    kind: Kind
    line: str
    text: str


def essentials(ledger: Ledger) -> list[Essential]:
    """Return what a summary must hold, as the lines that would be put back."""
    lines = lines_of(ledger.constraints)
    facts = [
        Essential("constraint", line, fact.text) for line, fact in zip(lines, ledger.constraints, strict=True)
    ]
    if ledger.requests:
        words = clip(ledger.requests[-1].text, QUOTED)
        facts.append(Essential("request", f"Newest request: {words}", words))
    for error in [fact for fact in ledger.errors if not fact.fixed][-ERRORS:]:
        words = clip(error.text.removeprefix(OPEN_ERROR), QUOTED)
        source = f" (from `{clip(error.source, 80)}`)" if error.source else ""
        facts.append(Essential("error", f"- {OPEN_ERROR}{words}{source}", words))
    for work in [fact for fact in ledger.open if not is_done(fact)][-OPEN:]:
        words = clip(work.text, QUOTED)
        label = "A call was never answered: " if work.kind == "call" else ""
        facts.append(Essential("open", f"- {label}{words}", words))
    for value in list(current_values(ledger.values).values())[-VALUES:]:
        words = f" ({clip(value.words, 90)})" if value.words else ""
        facts.append(Essential("value", f"- {value.name} = `{value.value}`{words}", value.value))
    return facts


# Arguments that say how a tool looks at something, not what the work is about.
_HANDLING = re.compile(
    r"limit|offset|timeout(_?ms)?|lines?|(start|end)(_?line)?|count|head(_?limit)?|tail|depth|view_?range|"
    r"context|max(_?results|_?output_?tokens)?|(call|session|task|shell)_?id|yield_?time_?ms|replace_?all|"
    r"priority|width|height|index"
)


def current_values(values: Sequence[ValueFact]) -> dict[str, ValueFact]:
    """Return the newest value of each name, those aside that only say how a tool was handled."""
    return {
        fact.name.casefold(): fact
        for fact in values
        if len(fact.name) >= 3 and fact.value and not _HANDLING.fullmatch(fact.name.casefold())
    }


_OURS = re.compile(r"\((?:superseded: now|unverified: the user said:) [^\n]*?\)(?=\s|$)")


def missing_in(facts: Sequence[Essential], body: str, text: str) -> list[Essential]:
    """Return the facts that a summary does not hold.

    Rules and values have to stand in its own `text`: a mark of ours does not count.
    """
    whole, own = spaced(body), spaced(_OURS.sub("", text))
    lines = [_words(line) for line in body.split("\n")]
    return [fact for fact in facts if not _holds(fact, own if fact.kind in WORD_FOR_WORD else whole, lines)]


def without_repeats(body: str, items: Sequence[str]) -> str:
    """Return a summary without the items under its rules that repeat the block's: they are moved into it."""
    sections: list[list[str]] = [[]]
    for row in body.split("\n"):
        if heading_of(row):
            sections.append([])
        sections[-1].append(row)
    return "\n".join(
        _without_items(section, items) if heading_of(section[0]) in _RULES else "\n".join(section)
        for section in sections
        if section
    )


def _without_items(rows: Sequence[str], items: Sequence[str]) -> str:
    text = "\n".join(("", *rows, ""))
    for item in items:
        text = text.replace(f"\n{item}\n{item}\n", f"\n{item}\n").replace(f"\n{item}\n", "\n")
    return text[1:-1]


def _holds(fact: Essential, whole: str, lines: Sequence[frozenset[str]]) -> bool:
    if spaced(fact.text) in whole:
        return True
    if fact.kind in WORD_FOR_WORD:
        return False
    wanted = _words(fact.text)
    return len(wanted) >= 2 and any(len(wanted & line) >= SAME * len(wanted) for line in lines)


def spaced(text: str) -> str:
    """Return a text on one line, its words one space apart."""
    return " ".join(text.split())


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w{3,}", text.casefold()))
