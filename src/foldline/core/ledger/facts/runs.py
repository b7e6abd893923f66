"""What calls left: the plan, the newest outcome of each check, commits, tools, what a result held."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

import msgspec

from foldline.core.ledger.facts.actions import Stretch, steps_of, stretch, task_of
from foldline.core.ledger.facts.commands import changes_files, git_verb, is_notable, strings
from foldline.core.ledger.facts.kinds import CheckFact, CommitFact, FileFact, Ledger, PlanStep, ToolFact
from foldline.core.ledger.facts.outcomes import printed
from foldline.core.ledger.facts.touches import elsewhere
from foldline.core.ledger.facts.uses import Use
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip
from foldline.core.log.entries import Said
from foldline.core.log.messages import ToolResult

CITED = 12  # entries that a check cites: the newest
NOTABLE = 3  # uses of a tool that are shown
SHOWN = 100  # characters of a use
EMPTIED = ("(the list was emptied)", "completed")  # the one step of an empty plan: it replaces older ones
_BACK = re.compile(r"HEAD(?:~(\d{0,3})|(\^+))")
_QUIET = re.compile(r"-[a-zA-Z]*q[a-zA-Z]*")
_TELL_BRANCH = frozenset(("status", "checkout", "switch", "branch"))
_BRANCH = re.compile(r"^(?:On branch (\S+)|Switched to (?:a new )?branch '([^']+)'|\* (\S+))$", re.MULTILINE)
_NO_PUSH = frozenset(("--dry-run", "-n", "--tags", "--delete"))
_PUSHED = re.compile(
    r"^ [ +*] (?:\[new branch\]|[0-9a-f]{4,40}\.{2,3}[0-9a-f]{4,40}) +(\S+) +-> (?!origin/)", re.MULTILINE
)
_NOT_PUSHED = re.compile(r"^ ?! \[(?:remote )?rejected\]|failed to push|^fatal: ", re.MULTILINE)
Cited = TypeVar("Cited", CheckFact, CommitFact, FileFact)
Place = tuple[str, int]  # (entry id, index of the part)
SCANNED = 12_000  # characters of a result that are read
BESIDE = 5  # tokens of the words before each line


def plan(found: Stretch) -> tuple[PlanStep, ...]:
    """Take the newest whole list, and the newest state of each numbered task, of calls that worked."""
    whole: tuple[PlanStep, ...] = ()
    tasks: dict[str, PlanStep] = {}
    for use in found.calls:
        if use.passed is False:
            continue
        if (listed := steps_of(use)) is not None:
            listed = listed or [EMPTIED]
            whole = tuple(PlanStep(text, state, use.entry, task=False) for text, state in listed)
        elif any(task := task_of(use) or ("", "")):
            _update(tasks, PlanStep(*task, use.entry, task=True))
    return (*whole, *tasks.values())


def _update(known: dict[str, PlanStep], step: PlanStep) -> None:
    """Put a task to those known; what an update does not say stays."""
    old = known.get(step.number, step)
    text = old.text if step.text == step.number else step.text
    known[step.number] = msgspec.structs.replace(step, text=text, state=step.state or old.state)


def merge_plan(old: Sequence[PlanStep], new: Sequence[PlanStep], _later: Ledger) -> tuple[PlanStep, ...]:
    """Return the newer list where there is one; tasks are updated by their number."""
    tasks = {step.number: step for step in old if step.number}
    for step in new:
        if step.number:
            _update(tasks, step)
    whole = [step for step in new if not step.number] or [step for step in old if not step.number]
    return (*whole, *tasks.values())


def checks(found: Stretch) -> tuple[CheckFact, ...]:
    """Take the newest run of each command: a check is one that counts what passed, or failed and ran again.

    One is outdated when a file was changed after it; a failed edit changes none.
    """
    runs = {fact.command: fact for fact in _left_behind(found.before.checks, found)}
    ran_at = dict.fromkeys(runs, -1)
    changed_at = -2
    for at, use in enumerate(found.calls):
        if _changes(use):
            changed_at = at
        if (done := use.done) is not None and (ended := done.run) is not None and done.command:
            fact = CheckFact(done.command, ended.text, ended.passed, use.cites, only_ran=not ended.counted)
            _ran_again(runs, fact)
            ran_at[done.command] = at
    facts = (
        msgspec.structs.replace(run, outdated=run.outdated or ran_at[key] < changed_at)
        for key, run in runs.items()
    )
    return _checks_last(facts)


def _ran_again(known: dict[str, CheckFact], fact: CheckFact) -> None:
    """Put a later run to those known."""
    if (old := known.pop(fact.command, None)) is not None:
        only_ran = fact.only_ran and old.only_ran and False not in (fact.passed, old.passed)
        cites = tuple(dict.fromkeys((*old.entries, *fact.entries)))[-CITED:]
        fact = msgspec.structs.replace(fact, entries=cites, only_ran=only_ran)
    known[fact.command] = fact


def _checks_last(facts: Iterable[CheckFact]) -> tuple[CheckFact, ...]:
    """Put what only ran first: the newest of a list are carried, and checks count more."""
    return tuple(sorted(facts, key=lambda fact: not fact.only_ran))


def _changes(use: Use) -> bool:
    if use.done is None or use.done.kind == "refused":
        return False
    return use.passed is not False if use.done.kind == "edit" else any(map(changes_files, use.steps))


def merge_checks(old: Sequence[CheckFact], new: Sequence[CheckFact], later: Ledger) -> tuple[CheckFact, ...]:
    """Merge the checks of two ranges, the newest run of each; changes in `later` make older ones outdated."""
    changed = later.messages > 0 and any(fact.status != "read" for fact in later.files)
    found = {fact.command: msgspec.structs.replace(fact, outdated=fact.outdated or changed) for fact in old}
    for fact in new:
        _ran_again(found, fact)
    return _checks_last(found.values())


def commits(found: Stretch) -> tuple[CommitFact, ...]:
    """Take the commits that were made and not taken back; a push pushes those before it on its branches.

    One of an earlier range to which a call goes back cites the call, so that it is not gone back from again.
    """
    old = _left_behind(found.before.commits, found)
    cited = {entry for fact in old for entry in fact.entries}
    made: list[tuple[int, CommitFact]] = []
    pushed_at: dict[str, int] = {}  # the newest push of each branch; that of the one at work as "HEAD"
    for at, use in enumerate(found.calls):
        undone = _taken_back(use)
        left = max(0, len(made) - undone)
        if (older := undone - len(made)) > 0 and use.entry not in cited:
            old = old[:-older]
            if old:
                old[-1] = msgspec.structs.replace(old[-1], entries=(*old[-1].entries, use.entry))
        del made[left:]
        if use.done is not None and use.done.commit is not None:
            made.append((at, use.done.commit))
        pushed_at |= dict.fromkeys(_pushed(use), at)
    known = {
        fact.key: msgspec.structs.replace(
            fact,
            pushed=fact.pushed or at <= max(pushed_at.get("HEAD", -1), pushed_at.get(fact.branch, -1)),
        )
        for at, fact in (*((0, fact) for fact in old), *made)
    }
    return tuple(known.values())


def _left_behind(facts: Sequence[Cited], found: Stretch) -> list[Cited]:
    """Return facts of an earlier fold without those of entries that it kept, and that are read again."""
    again = {entry.id for entry in found.entries}
    return [fact for fact in facts if not fact.entries or not again.issuperset(fact.entries)]


def _taken_back(use: Use) -> int:
    """Return how many of the newest commits a call takes back, by a reset or to make the last one anew."""
    if use.passed is False or use.result is None:
        return 0
    found = 0
    for step in use.steps:
        back = (_BACK.fullmatch(word) for word in step.words if git_verb(step) == "reset")
        found += sum(int(one[1] or 1) if one[2] is None else len(one[2]) for one in back if one)
        found += git_verb(step) == "commit" and "--amend" in step.words
    return found


def uncommitted(found: Stretch) -> tuple[FileFact, ...]:
    """Take the files that were changed after the last commit."""
    changed = {fact.path: fact for fact in _left_behind(found.before.uncommitted, found)}
    for use in found.calls:
        if use.done is not None and (use.done.commit is not None or _commits_silently(use)):
            changed.clear()
        elif _changes(use):
            touched = (
                touch
                for touch in use.touches
                if touch.status != "read" and not elsewhere(touch.path, found.base)
            )
            changed |= {touch.path: FileFact(touch.path, touch.status, use.cites) for touch in touched}
        if given_up := _given_up(use):
            changed = {path: fact for path, fact in changed.items() if not f"/{path}".endswith(given_up)}
    return tuple(changed.values())


def _given_up(use: Use) -> tuple[str, ...]:
    """Return the ends of the paths that a call puts back as they are in the last commit; "" for all."""
    found: list[str] = []
    for step in use.steps if use.passed is not False and use.result is not None else ():
        words, verb = step.words, git_verb(step)
        if verb == "reset" and "--hard" in words:
            found.append("")
        elif (verb == "checkout" and "--" in words) or (verb == "restore" and "--staged" not in words):
            given = words[words.index("--" if "--" in words else verb) + 1 :]
            found += ["" if word == "." else f"/{word.removeprefix('./').lstrip('/')}" for word in given]
    return tuple(found)


def merge_uncommitted(
    old: Sequence[FileFact], new: Sequence[FileFact], later: Ledger
) -> tuple[FileFact, ...]:
    """Put the changed files of two ranges together; a commit in `later` took those before it."""
    return tuple({fact.path: fact for fact in (*(() if later.commits else old), *new)}.values())


def _commits_silently(use: Use) -> bool:
    """Whether a call commits with a quiet flag."""
    quiet = (
        word == "--quiet" or _QUIET.fullmatch(word)
        for step in use.steps
        if git_verb(step) == "commit"
        for word in step.words
    )
    return (
        any(quiet) and use.passed is not False and use.result is not None and not printed(use.output, SHOWN)
    )


def committed(found: Stretch) -> bool:
    """Whether any call may have committed something, whatever it printed."""
    return any(
        use.passed is not False
        and ("commit" in use.call.name.lower() or any(git_verb(step) == "commit" for step in use.steps))
        for use in found.calls
    )


def _pushed(use: Use) -> set[str]:
    """Return the branches that a call pushes, as git names them, "HEAD" for the one at work."""
    pushes = [step.words for step in use.steps if git_verb(step) == "push" and not _NO_PUSH & {*step.words}]
    if not pushes or use.passed is False or use.result is None or _NOT_PUSHED.search(use.output):
        return set()
    if told := set(_PUSHED.findall(use.output)):
        return told
    named = [
        word for words in pushes for word in words[words.index("push") + 1 :] if not word.startswith("-")
    ]
    return {word.removeprefix("+").partition(":")[0] for word in named[1:]} or {"HEAD"}


def merge_commits(
    old: Sequence[CommitFact], new: Sequence[CommitFact], _later: Ledger
) -> tuple[CommitFact, ...]:
    """Put the commits of two ranges together, one for each hash."""
    return tuple({fact.key: fact for fact in (*old, *new)}.values())


def branch(found: Stretch) -> str:
    """Return the branch at work, as git named it last; "" if it named none."""
    for use in reversed(found.calls):
        if use.done is not None and use.done.commit is not None:
            return use.done.commit.branch
        steps = [step for step in use.steps if not elsewhere(step.cwd, found.base)]
        named = _BRANCH.search(use.output) if any(git_verb(step) in _TELL_BRANCH for step in steps) else None
        if named is not None:
            return named[named.lastindex or 0]
        if len(steps) == 1 and "--show-current" in steps[0].words and use.passed is not False:
            return use.output.strip().partition("\n")[0]
    return ""


def tools(found: Stretch) -> tuple[ToolFact, ...]:
    """Count the calls by tool, in the order of first use."""
    counted: dict[str, ToolFact] = {}
    for use in found.calls:
        text = _notable(use)
        known = counted.get(use.call.name, ToolFact(use.call.name, 0))
        counted[use.call.name] = _added(known, ToolFact(use.call.name, 1, (text,) if text else ()))
    return tuple(counted.values())


def _notable(use: Use) -> str:
    """Return the one argument that shows a use best; "" where it failed or only looked around."""
    if use.passed is False or (use.command and not is_notable(use.command)):
        return ""
    touched = (touch.path for touch in use.touches)
    texts = (text for text in strings(use.args) if text.strip())
    return clip(use.command or next(touched, "") or next(texts, ""), SHOWN)


def _added(old: ToolFact, new: ToolFact) -> ToolFact:
    kept = [text for text in old.notable if text not in new.notable]
    return ToolFact(old.name, old.uses + new.uses, (*kept, *new.notable)[-NOTABLE:])


def merge_tools(old: Sequence[ToolFact], new: Sequence[ToolFact], _later: Ledger) -> tuple[ToolFact, ...]:
    """Add the counts of two ranges; the newest notable uses are kept."""
    found = {fact.name: fact for fact in old}
    for fact in new:
        found[fact.name] = _added(found.get(fact.name, ToolFact(fact.name, 0)), fact)
    return tuple(found.values())


def held(
    entries: Sequence[Said], blanked: AbstractSet[Place], budget: int, count: Callable[[str], int]
) -> dict[Place, str]:
    """Return a line for each blanked result that is worth one, within `budget` tokens in all."""
    found: dict[Place, str] = {}
    most = budget // max(1, len(blanked)) - BESIDE
    calls = stretch(entries).calls
    ran = {(use.answered_in, use.call.id): use.done.run.text for use in calls if use.done and use.done.run}
    for entry in entries:
        for index, part in enumerate(entry.message.parts):
            if isinstance(part, ToolResult) and (entry.id, index) in blanked:
                line = ran.get((entry.id, part.call_id)) or _names(part.text[:SCANNED], most, count)
                if line and count(line) <= most:
                    found[entry.id, index] = line
    return found


def _names(text: str, most: int, count: Callable[[str], int]) -> str:
    """List the names of a text, in its order, in `most` tokens."""
    listed: list[str] = []
    for name in dict.fromkeys(name.text for name in names.find(text)):
        most -= count(name) + 1
        if most < 0:
            break
        listed.append(name)
    return ", ".join(listed)
