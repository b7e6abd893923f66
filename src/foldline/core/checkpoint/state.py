"""The state of the work, from structure alone: request, plan, newest outcome of each check, commits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from foldline.core.ledger.facts.commands import middle_out
from foldline.core.ledger.facts.kinds import CheckFact, CommitFact, FileFact, Item, Ledger, PlanStep
from foldline.core.ledger.facts.touches import relative
from foldline.core.ledger.text.origin import typed
from foldline.core.ledger.text.sentences import clip, one_line

REQUEST = 300  # characters of the newest request
BRIEF = 40  # bytes of UTF-8 of a request that says little: the last longer one is shown with it
LAST = 300  # characters of what was said or done last
SENTENCE = 160  # characters of a request or of open work that a sentence quotes
CHECKS, STALE, COMMITS, FILES = 8, 2, 6, 12  # how many are shown, of checks and commits the newest

_NOW, _SAID = "Newest request, being worked on: ", "Newest request: "
_NEWEST = "Newest request, in the messages below: "
_BEFORE = "Before it: "
_FOLDER, _BRANCH = "Folder: ", "Branch: "
_ANSWERED = "The answer before it: "
_NOTHING = "Nothing was done on it yet."
_SAID_LAST, _DONE_LAST = "The assistant's last words: ", "Done last: "
_NO_COMMIT = "No commit was made in this conversation."
GOAL = "Handed over for: "
_UNCOMMITTED = "Changed since the last commit: "
_PLAN = "The plan, as it was last written:"
_DONE_OF_PLAN = "Done of the plan, the last first:"
_STALE = " (files were changed since)"
_DONE = re.compile(r"complete|done|finished|closed|cancel|deleted|true|resolved|skipped", re.IGNORECASE)
_NOT = re.compile(r"\bnot|\bin\b|un|incomplete", re.IGNORECASE)
_STEP = re.compile(r"- \[([ x])\] (.*?)(?: \((\w[\w -]{0,38})\))?\Z", re.DOTALL)
_CHECK = re.compile(r"- `(.+?)`: (.*?)( \(files were changed since\))?\Z")
_MANY = re.compile(r" and \d+ more\Z")
_COMMIT = re.compile(r"- commit ([0-9a-f]{7,40}) (.*) \(on (detached HEAD|\S+?)(, pushed)?\)\Z")


def lines(ledger: Ledger, room: int, count: Callable[[str], int], goal: str = "") -> list[str]:
    """Write the state in `room` tokens; what comes first matters most."""
    found: list[str] = []
    for line in map(one_line, _lines(ledger, goal or ledger.goal)):
        room -= count(line) + 1
        if room < 0 and found:
            break
        found.append(line)
    return found[:-1] if found[-1:] in ([_PLAN], [_DONE_OF_PLAN]) else found


def _lines(ledger: Ledger, goal: str) -> Iterator[str]:
    if ledger.base:
        yield _FOLDER + ledger.base
    if ledger.branch:
        yield _BRANCH + ledger.branch
    if goal:
        yield GOAL + clip(goal, REQUEST)
    if request := ledger.asked or ledger.newest_request:
        yield (_NEWEST if ledger.asked else _NOW if ledger.goes_on else _SAID) + clip(request, REQUEST)
        if len(request.encode()) < BRIEF and (longer := _longer(ledger.requests)):
            yield _BEFORE + clip(longer, REQUEST)
        yield from _last(ledger.last)
        if ledger.answer:
            yield _ANSWERED + middle_out(one_line(ledger.answer), LAST)
    open_steps = [step for step in ledger.plan if not is_done(step)]
    if open_steps:
        yield _PLAN
    yield from map(_step, open_steps)
    if ledger.commits and ledger.uncommitted:
        more = f" and {len(ledger.uncommitted) - FILES} more" if len(ledger.uncommitted) > FILES else ""
        paths = (relative(fact.path, ledger.base) for fact in ledger.uncommitted[:FILES])
        yield f"{_UNCOMMITTED}{', '.join(paths)}{more}"
    elif ledger.uncommitted and not ledger.committed:
        yield _NO_COMMIT
    checks = _checks(ledger)
    for check in reversed(checks[-CHECKS:]):
        command = check.command.replace("`", "'")
        yield f"- `{command}`: {_outcome(check)}{_STALE if check.outdated else ''}"
    for commit in reversed(ledger.commits[-COMMITS:]):
        pushed = ", pushed" if commit.pushed else ""
        yield f"- commit {commit.key} {commit.subject} (on {commit.branch}{pushed})"
    if open_steps and len(open_steps) < len(ledger.plan):
        yield _DONE_OF_PLAN
        yield from (_step(step) for step in reversed(ledger.plan) if is_done(step))


def _last(item: Item | None) -> Iterator[str]:
    """Yield what was said or done last."""
    if item is not None and item.kind == "user":
        yield _NOTHING
    elif item is not None and item.kind in ("said", "aside"):
        yield _SAID_LAST + middle_out(one_line(item.text), LAST)
    elif item is not None and item.kind in ("edit", "ran", "commit", "called", "looked"):
        yield _DONE_LAST + middle_out(one_line(item.text), LAST)


def _longer(requests: Sequence[str]) -> str:
    """Return the last request that says more, in the user's own words; "" for none."""
    return next((one for one in reversed(requests) if len(typed(one).strip().encode()) >= BRIEF), "")


def _checks(ledger: Ledger) -> list[CheckFact]:
    """Return the checks among the runs of a ledger that say how they ended, those that hold still last."""
    found = [one for one in ledger.checks if not one.only_ran and (one.outcome or one.passed is not None)]
    stale = [one for one in found if one.outdated]
    return [*stale[-STALE:], *(one for one in found if not one.outdated)]


def _outcome(check: CheckFact) -> str:
    return check.outcome or ("passed" if check.passed else "failed" if check.passed is False else "ran")


def is_done(step: PlanStep) -> bool:
    """Whether the tool that keeps the list says that this step needs no more work."""
    return bool(_DONE.search(step.state)) and not _NOT.match(step.state)


def _step(step: PlanStep) -> str:
    state = (
        "" if is_done(step) or step.state.lower() in ("", "pending", "todo", "open") else f" ({step.state})"
    )
    return f"- [{'x' if is_done(step) else ' '}] {step.text}{state}"


def _read_step(box: str, text: str, state: str | None) -> PlanStep:
    """Read a step; brackets after an open step never say that it is done."""
    step = PlanStep(text, state or ("completed" if box == "x" else "pending"))
    return PlanStep(f"{text} ({state})", "pending") if state and box != "x" and is_done(step) else step


def read(rows: Sequence[str]) -> Ledger:
    """Read the state of a page back."""
    steps: list[PlanStep] = []
    checks: list[CheckFact] = []
    commits: list[CommitFact] = []
    for row in rows:
        if found := _STEP.match(row):
            steps.append(_read_step(*found.groups()))
        elif found := _COMMIT.match(row):
            commits.append(CommitFact(found[1], found[3], found[2], bool(found[4])))
        elif found := _CHECK.match(row):
            checks.append(CheckFact(found[1], found[2], outdated=bool(found[3])))
    changed = next((row.removeprefix(_UNCOMMITTED) for row in rows if row.startswith(_UNCOMMITTED)), "")
    goes_on = any(row.startswith(_NOW) for row in rows)
    base = next((row.removeprefix(_FOLDER) for row in rows if row.startswith(_FOLDER)), "")
    return Ledger(
        base=base,
        branch=next((row.removeprefix(_BRANCH) for row in rows if row.startswith(_BRANCH)), ""),
        goal=next((row.removeprefix(GOAL) for row in rows if row.startswith(GOAL)), ""),
        plan=(*filter(is_done, reversed(steps)), *(step for step in steps if not is_done(step))),
        checks=tuple(reversed(checks)),
        commits=tuple(reversed(commits)),
        uncommitted=tuple(FileFact(path, "modified") for path in _MANY.sub("", changed).split(", ") if path),
        goes_on=goes_on,
        committed=_NO_COMMIT not in rows,
    )


def two_sentences(ledger: Ledger) -> str:
    """Say in two sentences what was worked on, and what is open."""
    asked = clip(ledger.newest_request, SENTENCE).rstrip(".") or "Nothing was asked yet"
    changed = sum(fact.status != "read" for fact in ledger.files)
    files = f" ({changed} file{'s' if changed != 1 else ''} changed)" if changed else ""
    waiting = [step.text for step in ledger.plan if not is_done(step)]
    failing = [f"{check.command}: {check.outcome}" for check in _checks(ledger) if check.passed is False]
    still = (waiting or failing or ["nothing that is known"])[-1]
    return f"{asked}{files}. Open: {clip(still, SENTENCE).rstrip('.')}."
