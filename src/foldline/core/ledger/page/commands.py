"""A command that was run, on one line with its verdict: under Done, or under Blocked if it failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from foldline.core.ledger.facts.commands import is_notable, is_verdict
from foldline.core.ledger.facts.kinds import CommandFact
from foldline.core.ledger.page.items import LABELS, MARK, unticked
from foldline.core.ledger.text import shell
from foldline.core.ledger.text.sentences import clip

LONG = 110  # characters of a command from which its reason says it better
LONGEST_OUTCOME = 120
LONGEST_REASON = 120

_LINE = re.compile(
    r"- (?:([^`]{1,160}): )?`(.+?)` (passed|failed|ran)(, before the last change)?(?:: (.*))?$"
)
OUTDATED = ", before the last change"
_VERDICTS = {True: "passed", False: "failed", None: "ran"}
_PASSED = {word: passed for passed, word in _VERDICTS.items()}
_ENDS_EARLY = re.compile(r"`(?:: | (?:passed|failed|ran|\((?:read|modified|created|deleted))\b)")


def line_of(fact: CommandFact) -> str:
    """Write a command with its verdict: a long one by its telling part, with the reason that was given."""
    verdict = _VERDICTS[fact.passed] + (OUTDATED if fact.outdated and fact.passed is not False else "")
    says = fact.outcome.strip("= ") if fact.passed is False or is_verdict(fact.outcome) else ""
    outcome = f": {clip(says, LONGEST_OUTCOME)}" if says else ""
    if len(fact.command) <= LONG and "<<" not in fact.command:
        return f"{MARK}`{_plain(clip(fact.command, LONG))}` {verdict}{outcome}"
    reason = clip(unticked(fact.why).rstrip(" .:"), LONGEST_REASON)
    if f"{reason}: ".startswith(LABELS):
        reason = f"({reason})"
    why = f"{reason}: " if reason else ""
    return f"{MARK}{why}`{_plain(telling(fact.command))}` {verdict}{outcome}"


def failing(facts: Sequence[CommandFact]) -> list[CommandFact]:
    """Return the commands whose newest run failed, the newest first.

    One that passed later as a part of another command is left out.
    """
    found: list[CommandFact] = []
    passed: set[str] = set()
    for fact in reversed(facts):
        mine, told = steps_of(fact.command)
        if fact.passed:
            passed |= mine
        elif fact.passed is False and not told <= passed:
            found.append(fact)
    return found


def steps_of(command: str) -> tuple[set[str], set[str]]:
    """Return the steps of a command line, and those that do more than look around (or all)."""
    mine = {" ".join(step.words) for step in shell.steps(command)}
    return mine, {step for step in mine if is_notable(step)} or mine


def program_of(command: str) -> str:
    """Return what the last notable step of a command line runs, without its options: "pnpm test"."""
    notable = [step for step in shell.steps(command) if is_notable(" ".join(step.words))]
    found = (
        list(takewhile(lambda word: not word.startswith("-"), shell.bare(notable[-1].words)))
        if notable
        else []
    )
    return " ".join(found)


def passed_steps(facts: Sequence[CommandFact]) -> set[str]:
    """Return the steps of all command lines whose newest run passed."""
    return {step for fact in facts if fact.passed for step in steps_of(fact.command)[0]}


def _plain(command: str) -> str:
    """Return a command that holds nothing that looks like its end."""
    return unticked(command) if _ENDS_EARLY.search(command) else command


def telling(command: str, limit: int = LONG) -> str:
    """Return the part of a command line that does more than look around, without here-documents."""
    if len(command) <= limit and "<<" not in command:
        return clip(command, limit)
    head = command.split("<<", 1)[0] if "<<" in command else command
    found = [" ".join(step.words) for step in shell.steps(head) if is_notable(" ".join(step.words))]
    short = (" && ".join(found) or head) + (" <<…" if head != command else "")
    return clip(short.replace("`", "'"), limit)


def read(line: str) -> CommandFact | None:
    """Read a line back; None where it is no command's."""
    match = None if line.removeprefix(MARK).startswith(LABELS) else _LINE.match(line)
    if match is None:
        return None
    why, command, verdict, outdated, outcome = match.groups()
    return CommandFact(command, _PASSED[verdict], outcome or "", why=why or "", outdated=bool(outdated))
