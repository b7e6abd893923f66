"""The offline checkpoint: a page of sections, each filled from a ledger within its share, and read back.

Standing constraints come first in line for the budget, word for word; then what says where the work stands
(goal, open and blocked work, decisions, what was run); all that is left goes to the excerpts that carry most
of what is likely to be needed. Every part has a share of the budget, so a small budget still has every part.
Each section is a file here, with its writer and its reader side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

import msgspec

from foldline.core.ledger.bounds import bounded
from foldline.core.ledger.facts.kinds import Excerpt, FileFact, Ledger
from foldline.core.ledger.page import (
    blocked,
    commits,
    constraints,
    context,
    decisions,
    done,
    excerpts,
    file_lists,
    goal,
    in_progress,
    next_steps,
    other_names,
    runs,
    values,
    work_log,
)
from foldline.core.ledger.page.items import items
from foldline.core.ledger.page.sheet import (
    BLOCKED,
    CONSTRAINTS,
    CONTEXT,
    DECISIONS,
    DONE,
    GOAL,
    IN_PROGRESS,
    INDEX,
    NEXT_STEPS,
    NOTHING,
    WORK_LOG,
    Count,
    Sheet,
    split,
)
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip, sentences
from foldline.core.ledger.worth.selection import pick

CLOSE = 25  # of a budget, the part that may be left: the work log takes it
PASSES = 5  # times that a page is filled, with more room or less, until it takes what there is
IN_A_PART = 0.7  # how well a name is carried, 0 to 1, that another part of the page names
IN_A_LIST = 0.4  # and one that only the lists of files name
SPARE = 24  # tokens beside the constraints in a budget too small for parts
OPENING = 48  # characters of a sentence by which it is known again
FOCUS_WORD = 4  # letters of a word of the focus that counts
FOCUS = 3.0  # how much more an excerpt is worth for each such word in it


class Composed(msgspec.Struct, frozen=True):
    """A checkpoint's text, and the ledger reduced to what the next fold should know."""

    text: str
    ledger: Ledger


class _Draft(msgspec.Struct, frozen=True):
    """A page that fits, its work log, and the excerpts on it."""

    text: str
    sheet: Sheet
    log: work_log.WorkLog
    picked: Sequence[Excerpt]


def compose(ledger: Ledger, budget: int, count: Count, *, instructions: str | None = None) -> Composed:
    """Write the offline checkpoint of a ledger within `budget` tokens, as `count` counts them.

    `ledger` holds all that is folded, earlier folds included. `instructions` are the words of a focus: what
    names them counts more. A budget that not even the constraints fit keeps the headings and as many
    constraints as do fit.
    """
    count = lru_cache(maxsize=16_384)(count)  # the same lines are counted in every pass
    best = _fullest(ledger, budget, count, instructions)
    if best is None:
        return Composed(_smallest(ledger, budget, count), bounded(ledger))
    longer = _tell_more(best, budget)
    return Composed(longer if count(longer) <= budget else best.text, bounded(ledger, best.picked))


def _fullest(ledger: Ledger, budget: int, count: Count, focus: str | None) -> _Draft | None:
    """Return the longest page that fits; None where none does.

    A sheet counts its lines one by one, and the whole comes out a little shorter or longer: the room that it
    is given is mended by that.
    """
    room, best = budget, None
    told: work_log.Told = {}
    for _ in range(PASSES):
        sheet, log, picked = _fill(ledger, room, count, focus, told)
        text = sheet.text()
        left = budget - count(text)
        if left >= 0 and (best is None or len(text) > len(best.text)):
            best = _Draft(text, sheet, log, picked)
        if 0 <= left <= budget // CLOSE + 8:
            break
        room += left - (8 if left < 0 else 0)
    return best


def _smallest(ledger: Ledger, budget: int, count: Count) -> str:
    """Write what fits a budget too small for parts: headings and constraints, or the goal alone."""
    sheet = Sheet(budget, count)
    sheet.add(CONSTRAINTS, constraints.lines_of(ledger.constraints), sheet.left - SPARE)
    text = sheet.text()
    while sheet.parts[CONSTRAINTS] and count(text) > budget:
        sheet.parts[CONSTRAINTS].pop()
        text = sheet.text()
    if count(text) <= budget:
        return text
    asked = clip(ledger.requests[-1].text if ledger.requests else NOTHING, max(12, budget * 2))
    text = f"{GOAL}\n{asked}"
    while text and count(text) > budget:
        text = text[: len(text) * 3 // 4]
    return text


def _fill(
    ledger: Ledger, room: int, count: Count, focus: str | None, told: work_log.Told
) -> tuple[Sheet, work_log.WorkLog, list[Excerpt]]:
    """Fill a sheet: each section within its share, excerpts in what is left."""
    sheet = Sheet(room, count)
    sheet.add(CONSTRAINTS, constraints.lines_of(ledger.constraints), sheet.left)
    left = max(0, sheet.left)
    goal.write(sheet, ledger, int(left * goal.SHARE))
    in_progress.write(sheet, ledger.open, int(left * in_progress.SHARE))
    blocked.write(sheet, ledger, int(left * blocked.SHARE))
    newest = ledger.requests[-1].entry if ledger.requests else ""
    next_steps.write(sheet, ledger.open, int(left * next_steps.SHARE), newest)
    decisions.write(sheet, ledger, int(left * decisions.SHARE))
    values.write(sheet, ledger.values, int(left * values.SHARE))
    base = values.base_of(ledger.values)
    log = work_log.WorkLog(ledger.work, ledger.reports, base, told)
    log.fill(sheet, work_log.share_of(left))
    sheet.parts[WORK_LOG] = log.lines()
    commits.write(sheet, ledger.commits, base, int(left * commits.SHARE))
    done.write(sheet, ledger, left)

    for_files = int(left * file_lists.SHARE)
    tail = file_lists.write(ledger.files, base, count, min(for_files, max(0, sheet.left)))
    sheet.used += count("\n".join(tail)) + 2 if tail else 0
    for_names = int(left * other_names.SHARE)
    sheet.used += for_names
    picked = _pick(sheet, ledger, focus, tail, log)
    sheet.used -= for_names
    rest = [excerpt for excerpt in picked if not log.add_step(excerpt)]
    sheet.parts[WORK_LOG] = log.lines()
    if not ledger.work:
        goal.write_excerpts(sheet, rest)
    context.write(sheet, rest, ledger.files, base)
    sheet.tail = file_lists.write(_unnamed(ledger.files, picked), base, count, for_files)
    other_names.write(sheet, ledger.excerpts, for_names)
    return sheet, log, picked


def _pick(
    sheet: Sheet, ledger: Ledger, focus: str | None, tail: Sequence[str], log: work_log.WorkLog
) -> list[Excerpt]:
    """Pick excerpts for what is left, names that the other parts already carry counting less."""
    covered = {name.key: IN_A_PART for line in sheet.lines() for name in names.find(line)}
    listed = (path for line in tail for path in file_lists.paths_in(line))
    covered.update((names.path_key(path), IN_A_LIST) for path in listed)
    written = "\n".join(sheet.lines())
    gone = {names.path_key(fact.path) for fact in ledger.files if fact.status == "deleted"}
    pool = [
        excerpt
        for excerpt in ledger.excerpts
        if not (runs.says_little(excerpt) or log.leaves_out(excerpt) or _shows_gone(excerpt, gone))
        and not (excerpt.kind in ("asked", "said") and says_already(excerpt.text, written))
    ]
    indices = pick(
        pool,
        sheet.left,
        sheet.count,
        covered=covered,
        boost=_focus(focus),
        places=[log.place_of(one, sheet.count) or context.place_of(one, sheet.count) for one in pool],
    )
    return [pool[index] for index in indices]


def _shows_gone(excerpt: Excerpt, gone: AbstractSet[str]) -> bool:
    """Whether an excerpt quotes a file that was deleted."""
    return excerpt.kind in ("line", "hit", "outline") and names.path_key(excerpt.topic) in gone


def _focus(instructions: str | None) -> Callable[[str], float] | None:
    """Return what multiplies an excerpt's worth: more for each word of the focus that it holds."""
    if not instructions:
        return None
    words = {word.lower().strip(".,:;!?\"'()`") for word in instructions.split()}
    words = {word for word in words if len(word) >= FOCUS_WORD}
    return lambda text: 1.0 + FOCUS * sum(word in text.lower() for word in words)


def _unnamed(files: Sequence[FileFact], picked: Sequence[Excerpt]) -> list[FileFact]:
    """Return the files to list: all that were changed, and those read that no line above names."""
    named = {names.path_key(one.topic) for one in picked if one.kind not in context.ABOUT_NO_FILE}
    return [fact for fact in files if fact.status != "read" or names.path_key(fact.path) not in named]


def _tell_more(page: _Draft, budget: int) -> str:
    """Give what room is left to the work log, and return the page.

    It takes at most half as much as all the rest, so that a checkpoint never grows to what it stands for.
    """
    sheet, log = page.sheet, page.log
    sheet.budget, sheet.used = budget, sheet.count(sheet.text())
    log.fill(sheet, log.used + min(sheet.left, sheet.used // 2))
    sheet.parts[WORK_LOG] = log.lines()
    told = "\n".join(sheet.parts[WORK_LOG])
    sheet.parts[DONE] = [line for line in sheet.parts[DONE] if line not in told]
    return sheet.text()


def says_already(text: str, written: str) -> bool:
    """Whether most of what a text says stands in what was written."""
    if text.rstrip("…")[:OPENING] in written:
        return True
    found = [sentence.rstrip("…")[:OPENING] in written for sentence in sentences(text)]
    return sum(found) * 2 > len(found)


def parse(text: str) -> Ledger:
    """Read a checkpoint that `compose` wrote: the facts it states, without the entries they came from.

    A text of another origin gives what its lines are taken for, at worst nothing; it never raises.
    """
    listed, rest = file_lists.read(text)
    parts = split(rest)
    asked = list(items(parts[GOAL], loose=True))
    log = work_log.read(items(parts[WORK_LOG]))
    was_done = done.read(list(items(parts[DONE])))
    calls, failed, wrong = blocked.read(parts[BLOCKED], log.work[-1].key if log.work else "")
    other = list(items((*parts[CONTEXT], *parts[INDEX])))
    known = context.read(other)
    files = [*log.files, *listed, *reversed([*was_done.files, *known.files])]
    commit = commits.read(parts[DONE])
    ran = [*log.commands, *reversed([*failed, *was_done.commands])]
    if was_done.unchecked:
        ran = [msgspec.structs.replace(fact, outdated=True) for fact in ran]
    return Ledger(
        requests=goal.read(asked, log.work),
        constraints=constraints.read(text),
        files=tuple({fact.path: fact for fact in files}.values()),
        commands=tuple({(fact.command, fact.passed): fact for fact in ran}.values()),
        commits=commit,
        errors=(*reversed(wrong), *reversed(was_done.errors)),
        decisions=decisions.read(parts[DECISIONS]),
        values=known.values,
        open=(*calls, *in_progress.read(parts[IN_PROGRESS]), *next_steps.read(parts[NEXT_STEPS])),
        reports=(*was_done.reports, *log.reports),
        work=log.work,
        excerpts=(
            *log.excerpts,
            *excerpts.read_spoken([*asked, *other]),
            *was_done.excerpts,
            *known.excerpts,
        ),
    )
