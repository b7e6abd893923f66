"""What was done: what the assistant reported, what was run and did not fail, the errors that were fixed.

What is carried about a file that was changed stands here too (see `about_files.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from foldline.core.ledger.facts.commands import is_check, tells
from foldline.core.ledger.facts.kinds import CommandFact, ErrorFact, Excerpt, FileFact, Ledger, ReportFact
from foldline.core.ledger.page import about_files, commands, commits, errors, excerpts
from foldline.core.ledger.page.items import MARK, REPORTED, text_of, told_apart
from foldline.core.ledger.page.sheet import DONE, WORK_LOG, Sheet
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip

SHARE = 0.05  # of the budget, for commands and errors
SHARE_OF_REPORTS = 0.03
NO_FILES = 5  # times as much room that reports get where no file was used that would say what was done
SMALL = 2_000  # tokens below which files and commands alone say what was done; a report may be an excerpt
COMMANDS = 6  # the newest
ERRORS = 12  # the newest among which those that were fixed are told
LONGEST = 300  # characters of a report
UNCHECKED = f"{MARK}No check ran after the last change of a file."
"""It stands for all commands of the section."""


class DoneSection(msgspec.Struct, frozen=True):
    """What the section says, newest first but for reports."""

    reports: tuple[ReportFact, ...]
    commands: tuple[CommandFact, ...]
    errors: tuple[ErrorFact, ...]
    files: tuple[FileFact, ...]
    excerpts: tuple[Excerpt, ...]
    unchecked: bool = False  # no command ran after the last change


def write(sheet: Sheet, ledger: Ledger, left: int) -> None:
    """Write reports, then commands and errors, as many as fit; `left` is what the parts share."""
    told = {fact.key for fact in ledger.work}
    newest = [report_line_of(fact) for fact in reversed(ledger.reports) if fact.work not in told]
    # What names something is first in line.
    sheet.add(DONE, sorted(newest, key=lambda line: not names.find(line)), _for_reports(left, sheet, ledger))
    place = {line: number for number, line in enumerate(reversed(newest))}
    sheet.parts[DONE].sort(key=lambda line: place.get(line, -1))
    log = "\n".join(sheet.parts[WORK_LOG])
    checks = [fact for fact in ledger.commands if is_check(fact)]
    unchecked = bool(checks) and all(fact.outdated for fact in ledger.commands)
    if unchecked:
        sheet.add(DONE, [UNCHECKED], left)
    ran = [
        commands.line_of(msgspec.structs.replace(fact, outdated=fact.outdated and not unchecked))
        for fact in reversed(ledger.commands)
        if fact.passed is not False and tells(fact)
    ]
    ran = [
        line
        for line in ran
        if line not in log and line.replace(" passed", f" passed{commands.OUTDATED}") not in log
    ]
    by_hand = {fact.command for fact in ledger.commands}
    fixed = [
        errors.fixed_line_of(fact)
        for fact in ledger.errors[::-1][:ERRORS]
        if fact.fixed and (not fact.entries or (fact.source in by_hand and errors.says_what(fact)))
    ]
    sheet.add(DONE, (*ran[:COMMANDS], *fixed), int(left * SHARE))


def _for_reports(left: int, sheet: Sheet, ledger: Ledger) -> int:
    """The tokens for reports: many where no file shows what was done, none in a small room where files do."""
    share = int(left * SHARE_OF_REPORTS)
    if not ledger.files:
        return share * NO_FILES
    return share if sheet.budget >= SMALL else 0


def report_line_of(fact: ReportFact) -> str:
    """Write a report."""
    return told_apart(clip(fact.text, LONGEST), REPORTED, _is_no_report)


def _is_no_report(line: str) -> bool:
    """Whether a line is read as that of a file, an error or a command."""
    return (
        commits.is_commit(line)
        or about_files.is_about([line])
        or errors.is_fixed(line)
        or commands.read(line) is not None
    )


def read(items: Sequence[Sequence[str]]) -> DoneSection:
    """Read the section back."""
    unchecked = any(item[0] == UNCHECKED for item in items)
    items = [item for item in items if item[0] != UNCHECKED and not commits.is_commit(item[0])]
    others = [item for item in items if not _is_report(item)]
    lines = [item[0] for item in others]
    ran = (commands.read(item[0]) for item in others if not about_files.is_about(item))
    return DoneSection(
        reports=tuple(ReportFact(text_of(item[0], REPORTED), "") for item in items if _is_report(item)),
        commands=tuple(fact for fact in ran if fact is not None),
        errors=tuple(errors.read(line) for line in lines if errors.is_fixed(line)),
        files=tuple(fact for line in lines if (fact := about_files.read_file(line)) is not None),
        excerpts=tuple(_excerpts(others)),
        unchecked=unchecked,
    )


def _is_report(item: Sequence[str]) -> bool:
    """Whether an item is a sentence rather than a command, a file or an error."""
    return len(item) == 1 and (item[0].startswith(MARK + REPORTED) or not _is_no_report(item[0]))


def _excerpts(others: Sequence[Sequence[str]]) -> Iterator[Excerpt]:
    for rank, item in enumerate(others):
        if about_files.is_about(item):
            yield from about_files.read(item, rank)
        elif not errors.is_fixed(item[0]) and commands.read(item[0]) is None:
            yield from excerpts.read(item[0], rank)
