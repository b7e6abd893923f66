"""What stands in the way: calls that nothing answered, commands that failed, errors that stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec

from foldline.core.ledger.facts.commands import is_check
from foldline.core.ledger.facts.kinds import CommandFact, ErrorFact, Ledger, OpenFact, WorkFact
from foldline.core.ledger.page import commands, errors
from foldline.core.ledger.page.items import MARK, UNANSWERED, items
from foldline.core.ledger.page.sheet import BLOCKED, Sheet
from foldline.core.ledger.text.sentences import clip

SHARE = 0.06  # of the budget
CALLS, COMMANDS, ERRORS = 3, 4, 8  # the newest of each
AT_HAND = 2  # newest requests whose failures may still stand in the way
LONGEST_CALL = 160  # characters of one call
_COMPILER = re.compile(
    r"\berror (?:TS\d+|CS\d+|C\d+)\b|\berror\[E\d+\]|\b(?:Syntax|Indentation|Module|Import)\w*Error\b"
)
THEN = "; the user then said: "


def write(sheet: Sheet, ledger: Ledger, most: int) -> None:
    """Write the newest of each kind, as many as fit; no command whose error was fixed since.

    What failed for a request that was answered before the newest stands in the way no more.
    """
    fixed = {fact.source for fact in ledger.errors if fact.fixed}
    over = {
        fact.key
        for at, fact in enumerate(ledger.work)
        if fact.answered and _is_over(fact, len(ledger.work) - at)
    }
    calls = [fact for fact in ledger.open if fact.kind == "call"]
    compiled = _compiled(ledger.commands)
    failed = [
        fact
        for fact in commands.failing(ledger.commands)
        if not (
            fact.command in fixed or fact.work in over or _compiles_now(fact.outcome, fact.command, compiled)
        )
    ]
    passed = commands.passed_steps(ledger.commands)
    told = {clip(fact.outcome, commands.LONGEST_OUTCOME) for fact in failed[:COMMANDS]}
    wrong = [
        fact
        for fact in reversed(ledger.errors)
        if not (
            fact.fixed
            or fact.work in over
            or _works_now(fact.source, passed)
            or _compiles_now(fact.text, fact.source, compiled)
        )
        and clip(fact.text, commands.LONGEST_OUTCOME) not in told
    ]
    lines = (
        *(call_line_of(fact) for fact in calls[-CALLS:]),
        *(commands.line_of(fact) for fact in failed[:COMMANDS]),
        *(error_line_of(fact) for fact in wrong[:ERRORS]),
    )
    sheet.add(BLOCKED, lines, most)


def _works_now(source: str, passed: AbstractSet[str]) -> bool:
    """Whether what a command does passed later, in this command or as a part of another."""
    told: set[str] = commands.steps_of(source)[1] if source else set()
    return bool(told) and told <= passed


def _compiled(facts: Sequence[CommandFact]) -> set[str]:
    """Return the commands behind which the same program passed, whatever else it was told."""
    last = {commands.program_of(fact.command): at for at, fact in enumerate(facts) if fact.passed}
    return {
        fact.command for at, fact in enumerate(facts) if last.get(commands.program_of(fact.command), -1) > at
    }


def _compiles_now(error: str, command: str, compiled: AbstractSet[str]) -> bool:
    """Whether an error of a compiler's is gone."""
    return bool(_COMPILER.search(error)) and command in compiled


def _is_over(fact: WorkFact, age: int) -> bool:
    """Whether nothing that failed on the way to an answer can stand in the way: the last check passed."""
    checks = [run.passed for run in fact.ran if is_check(run)]
    return age > AT_HAND or bool(checks and checks[-1])


def call_line_of(fact: OpenFact) -> str:
    """Write a call that nothing answered, with what the user said then: it is not simply to be made again."""
    text = clip(fact.text, LONGEST_CALL).replace(THEN, THEN.replace("; ", ", "))
    return MARK + UNANSWERED + text + (THEN + " ".join(fact.then.split()) if fact.then else "")


def error_line_of(fact: ErrorFact) -> str:
    """Write an error that stands."""
    return errors.open_line_of(fact, _is_no_error)


def _is_no_error(line: str) -> bool:
    """Whether a line is read as that of a call, a command or an error that was fixed."""
    return _is_call(line) or errors.is_fixed(line) or commands.read(line) is not None


def _is_call(line: str) -> bool:
    return line.startswith(MARK + UNANSWERED)


def read(lines: Sequence[str], work: str = "") -> tuple[list[OpenFact], list[CommandFact], list[ErrorFact]]:
    """Read the section back: the calls, the commands, the errors; they were met in the newest `work`."""
    calls: list[OpenFact] = []
    failed: list[CommandFact] = []
    wrong: list[ErrorFact] = []
    for line, *_ in items(lines):
        if _is_call(line):
            text, _, then = line.removeprefix(MARK + UNANSWERED).partition(THEN)
            calls.append(OpenFact(text, "call", "unanswered", then=then))
        elif (command := commands.read(line)) is not None:
            failed.append(msgspec.structs.replace(command, work=work))
        else:
            wrong.append(msgspec.structs.replace(errors.read(line), work=work))
    return calls, failed, wrong
