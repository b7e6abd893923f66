"""The lines of a checkpoint that say what was asked, what was decided, and what was done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from foldline.core.ledger.facts.commands import is_notable, is_verdict
from foldline.core.ledger.facts.decisions import by_user
from foldline.core.ledger.facts.kinds import (
    CommandFact,
    DecisionFact,
    ErrorFact,
    Ledger,
    OpenFact,
    ReportFact,
    RequestFact,
)
from foldline.core.ledger.facts.requests import gist, is_bare, shown, substantial
from foldline.core.ledger.text import names, shell
from foldline.core.ledger.text.sentences import clip, sentences

NEWEST = "Newest request: "
FIRST = "First request: "
ANSWERED = "Last answered request: "  # in place of the newest, where a newer one waits
ALSO = "- Asked before: "
UNANSWERED = "A call was never answered: "
THEN = "; the user then said: "
FIXED = "- Fixed since: "
BETWEEN = 200  # characters of a request between the first and the newest
COMMANDS = 6  # commands that stand under Done
LONG_COMMAND = 110  # characters of a command from which its reason says it better


def first_and_newest(requests: Sequence[RequestFact], size: int, *, waiting: bool = False) -> list[str]:
    """Write the two lines of a goal, the newest first: a later fold reads the first request from here.

    Where a newer request is `waiting`, which stands under the next steps, the newest one here was answered.
    """
    real = substantial(requests)
    newest = requests[-1] if is_bare(requests[-1].text) and requests[-1].question else real[-1]
    lines = [f"{FIRST}{clip(real[0].text, size)}"]
    if newest is not real[0]:
        lines.insert(0, f"{ANSWERED if waiting else NEWEST}{clip(shown(newest), size)}")
    return lines


def between(requests: Sequence[RequestFact], elsewhere: Iterable[str]) -> list[str]:
    """Write the requests between the first and the newest, the latest first; what stands `elsewhere` left out."""
    real = substantial(requests)
    last = is_bare(requests[-1].text) and bool(requests[-1].question)
    known = frozenset(elsewhere)
    told = reversed(real[1:] if last else real[1:-1])
    texts = (gist(fact.text, BETWEEN, known.union(choice.text for choice in by_user(fact))) for fact in told)
    return [f"{ALSO}{text}" for text in dict.fromkeys(texts) if text]


def decided(decisions: Sequence[DecisionFact], elsewhere: Iterable[str]) -> list[str]:
    """Write the choices, the user's first in line, the newest of each first; what stands `elsewhere` left out."""
    known = frozenset(elsewhere)
    order = [
        *(fact for fact in reversed(decisions) if fact.user),
        *(f for f in reversed(decisions) if not f.user),
    ]
    return [f"- {clip(fact.text, 300)}" for fact in order if fact.text not in known]


def in_order(lines: Iterable[str], decisions: Sequence[DecisionFact]) -> list[str]:
    """Put lines of choices into the order in which they were made."""
    place = {f"- {clip(fact.text, 300)}": number for number, fact in enumerate(decisions)}
    return sorted(lines, key=lambda line: place.get(line, -1))


def says_already(text: str, written: str) -> bool:
    """Whether most of what a text says stands in what was written."""
    if text.rstrip("…")[:48] in written:
        return True
    found = [sentence.rstrip("…")[:48] in written for sentence in sentences(text)]
    return sum(found) * 2 > len(found)


def unanswered(fact: OpenFact) -> str:
    """Write a call that nothing answered, with what the user said then: it is not simply to be made again."""
    return f"- {UNANSWERED}{clip(fact.text, 160)}" + (f"{THEN}{fact.then}" if fact.then else "")


def reported(ledger: Ledger) -> list[str]:
    """Write what the assistant reported, the newest first; before all, what names something."""
    lines = [f"- {clip(fact.text, 300)}" for fact in reversed(ledger.reports)]
    return sorted(lines, key=lambda line: not names.find(line))


def order_of(reports: Sequence[ReportFact]) -> Callable[[str], int]:
    """Return what puts lines of reports into the order in which they were made."""
    place = {f"- {clip(fact.text, 300)}": number for number, fact in enumerate(reports)}
    return lambda line: place.get(line, -1)


def commands(ledger: Ledger) -> list[str]:
    """Write what was run last and did not fail."""
    return [ran(fact) for fact in ledger.commands[::-1] if fact.passed is not False][:COMMANDS]


def repaired(errors: Sequence[ErrorFact]) -> list[str]:
    """Write the errors that were mended, the newest first, each with where it came from."""
    return [
        f"{FIXED}{clip(fact.text, 140)}" + (f" (from `{telling(fact.source, 60)}`)" if fact.source else "")
        for fact in list(reversed(errors))[:12]
        if fact.fixed
    ]


def ran(fact: CommandFact) -> str:
    """Write a command with its verdict: a long one by its telling part, with the reason that was given."""
    verdict = {True: "passed", False: "failed", None: "ran"}[fact.passed]
    says = fact.outcome.strip("= ") if fact.passed is False or is_verdict(fact.outcome) else ""
    outcome = f": {clip(says, 120)}" if says else ""
    if len(fact.command) <= LONG_COMMAND and "<<" not in fact.command:
        return f"- `{clip(fact.command, LONG_COMMAND)}` {verdict}{outcome}"
    why = f"{clip(fact.why.rstrip(' .:').replace('`', chr(39)), 120)}: " if fact.why else ""
    return f"- {why}`{telling(fact.command)}` {verdict}{outcome}"


def telling(command: str, limit: int = LONG_COMMAND) -> str:
    """Return the part of a command line that does more than look around, without here-documents."""
    if len(command) <= limit and "<<" not in command:
        return clip(command, limit)
    head = command.split("<<", 1)[0] if "<<" in command else command
    found = [" ".join(step.words) for step in shell.steps(head) if is_notable(" ".join(step.words))]
    short = (" && ".join(found) or head) + (" <<…" if head != command else "")
    return clip(short.replace("`", "'"), limit)
