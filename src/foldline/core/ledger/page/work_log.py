"""The work log: what was asked, step by step what was done for it, and the words that closed it, in order.

The newest requests are told fully; older ones shrink to a line, and the oldest to a count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import groupby

import msgspec

from foldline.core.ledger.facts.kinds import CommandFact, Excerpt, FileFact, ReportFact, WorkFact
from foldline.core.ledger.facts.reports import is_report
from foldline.core.ledger.facts.requests import SHORT_ANSWER, gist, is_bare
from foldline.core.ledger.page import commands, excerpts
from foldline.core.ledger.page.goal import in_short
from foldline.core.ledger.page.items import BELOW, MARK, NOTED, one_line, told_apart
from foldline.core.ledger.page.sheet import Count, Sheet
from foldline.core.ledger.text import names
from foldline.core.ledger.text.paths import by_folder, of_folder, relative
from foldline.core.ledger.text.reasons import announces
from foldline.core.ledger.text.sentences import clip
from foldline.core.ledger.work_log import MEDIA, STOPS, after, came
from foldline.core.ledger.worth.selection import PageLine

LITTLE = 4_000  # tokens of a budget up to which the log takes `SHARE` of it, of what is beyond `SHARE_BEYOND`
SHARE = 0.25
SHARE_BEYOND = 0.4
STEPS = ("asked", "said")
"""Kinds of excerpts that are steps of the work rather than something to look up."""

ASKED = "Asked: "
BEFORE = "Before the first request here"
ANSWERING = ' (answering: "'
ALSO = "Also asked: "
ALSO_UNDER = 'Also asked under "'
REPORTED = "Done: "
CHANGED = {"modified": "Changed: ", "created": "Created: ", "deleted": "Deleted: "}
CLOSED = "Result: "
SO_FAR = "So far: "
SEEN = "Seen: "
FOUND = "Found: "
UNSEEN = "No run shows this: "
_EDITED = re.compile(r"In `([^`]+)`: (.+)$")
_END = re.compile(r"(?<=[.!?;…。！？；])\s+")
_CLAIM = re.compile(
    r"\b(?:tests?|checks?|specs?|suite|build|lint(?:ing)?|type ?check\w*)\b[^.;:]{0,40}"
    r"\b(?:pass(?:es|ed|ing)?|succeeds?|succeeded|green|clean)\b",
    re.IGNORECASE,
)
_GAP = re.compile(r"- \((\d{1,9}) more requests?\)$")
_SEEN = re.compile(r"(\[[^\[\]]+\])(?: x(\d{1,4}))?")
_LABELS = (SEEN, FOUND, UNSEEN, ALSO, ALSO_UNDER, REPORTED, CLOSED, SO_FAR, *CHANGED.values())


class Detail(msgspec.Struct, frozen=True):
    """How fully a request is told: characters, but numbers of files, edits and runs."""

    asked: int
    files: int
    edits: int
    runs: int
    reports: int
    closing: int


LABEL = 4  # tokens that stand beside the reason or the heading of a step
HEAD = Detail(110, 0, 0, 0, 0, 0)
LINE = Detail(110, 0, 0, 0, 0, 160)
SHORT = Detail(240, 6, 0, 1, 0, 400)
FULL = Detail(500, 14, 4, 4, 400, 1_000)
WHOLE = Detail(1_500, 20, 8, 5, 400, 1_600)
DETAILS = (HEAD, LINE, SHORT, FULL, WHOLE)
AT_ONCE = 2  # newest requests that are told fully before any other is told at all
OPENING = 48  # characters by which a sentence is known again


class WorkSection(msgspec.Struct, frozen=True):
    """What the section says, oldest first."""

    work: tuple[WorkFact, ...]
    reports: tuple[ReportFact, ...]
    excerpts: tuple[Excerpt, ...]

    @property
    def files(self) -> Iterator[FileFact]:
        """The files that were changed, oldest first."""
        return (file for fact in self.work for file in fact.files)

    @property
    def commands(self) -> Iterator[CommandFact]:
        """The commands that were run, oldest first."""
        return (run for fact in self.work for run in fact.ran)


Told = dict[tuple[int, Detail], list[str]]  # the lines of a request by its place, at a detail


class WorkLog:
    """The lines of the section by request, while they are filled in.

    `told` are lines that another log of the same work has made, and gets those that this one makes.
    """

    def __init__(
        self, work: Sequence[WorkFact], reports: Iterable[ReportFact], base: str, told: Told | None = None
    ) -> None:
        before = sum(fact.before for fact in work)
        work = [fact for at, fact in enumerate(work) if at == len(work) - 1 or says(fact, work[at + 1])]
        work = after(before, work)
        self._work = work
        self._base = base
        self._reports: dict[str, list[str]] = {}
        for fact in reports:
            self._reports.setdefault(fact.work, []).append(fact.text)
        self.used = 0  # tokens, without the steps
        self._detail: dict[int, Detail] = {}
        self._steps: dict[int, list[Excerpt]] = {}
        self._place = {fact.key: at for at, fact in enumerate(work)}
        self._runs = any(fact.ran for fact in work)
        self._closing = [frozenset(map(opening_of, fact.closing)) for fact in work]
        self._wanted: dict[int, set[str]] = {}
        self._made: Told = {} if told is None else told

    def fill(self, sheet: Sheet, most: int) -> None:
        """Tell the newest requests fully, then every one in a line, then more of each while it fits."""
        newest = range(len(self._work) - 1, -1, -1)
        self._raise(sheet, newest[:1], WHOLE, most // 3)
        self._raise(sheet, newest[:AT_ONCE], FULL, most // 2)
        self._raise(sheet, newest, LINE, most)
        told = [
            at for at in newest if at in self._detail
        ]  # what does not fit in a line fits no better in two
        for detail in (SHORT, FULL):
            self._raise(sheet, told, detail, most)

    def _raise(self, sheet: Sheet, places: Iterable[int], detail: Detail, most: int) -> None:
        """Tell the requests at these places in more detail, as long as it fits."""
        for at in places:
            known = self._detail.get(at)
            if known is not None and DETAILS.index(known) >= DETAILS.index(detail):
                continue
            before = self._cost(sheet, at, known) if known else 0
            cost = self._cost(sheet, at, detail) - before
            if self.used + cost <= most and cost <= sheet.left:
                self._detail[at] = detail
                self.used += cost
                sheet.used += cost

    def _cost(self, sheet: Sheet, at: int, detail: Detail) -> int:
        return sum(sheet.count(line) + 1 for line in self._lines(at, detail))

    def _lines(self, at: int, detail: Detail) -> list[str]:
        if (at, detail) not in self._made:
            self._made[at, detail] = self._told(at, detail)
        return self._made[at, detail]

    def _told(self, at: int, detail: Detail) -> list[str]:
        fact = self._work[at]
        lines = [head(fact, detail.asked), *seen_line(fact.media)]
        lines.extend(BELOW + FOUND + one_line(text) for text in fact.found if detail.closing)
        room = detail.reports
        for text in self._reports.get(fact.key, ()) if not fact.closing else ():
            if len(text) <= room:
                lines.append(BELOW + REPORTED + one_line(text))
                room -= len(text)
        lines.extend(BELOW + line for line in changed_lines(fact.files, self._base, detail.files))
        lines.extend(edited_lines(fact.files, self._base, detail.edits))
        ran = fact.ran[-detail.runs :] if detail.runs else ()
        lines.extend("  " + commands.line_of(run) for run in ran)
        wanted = self._wanted.get(at, set())
        closing = closing_line(fact, detail.closing, wanted) if detail.closing or wanted else ""
        if closing:
            lines.append(BELOW + closing)
        if self._runs and fact.files and (claimed := unseen(fact)):
            lines.append(BELOW + UNSEEN + claimed)
        return lines

    def place_of(self, excerpt: Excerpt, count: Count) -> PageLine | None:
        """Return where an excerpt would stand as a step; None where it is none of a request told here."""
        at = self._place.get(excerpt.work)
        if at is None or not self._is_step(excerpt, at):
            return None
        opening = 0 if at in self._detail else count(head(self._work[at], HEAD.asked)) + 1
        if excerpt.kind == "said" or not excerpt.topic:
            return PageLine(f"work {at}" if opening else "", opening)
        return PageLine(f"work {at} {excerpt.topic}", opening + count(excerpt.topic) + LABEL)

    def leaves_out(self, excerpt: Excerpt) -> bool:
        """Whether a sentence announced what has been done since: the words that closed the work tell it."""
        at = self._place.get(excerpt.work)
        return (
            at is not None
            and excerpt.kind == "said"
            and bool(self._work[at].closing)
            and announces(excerpt.text)
        )

    def _is_step(self, excerpt: Excerpt, at: int) -> bool:
        """Whether an excerpt stands in the story: words that closed the work, or what goes on.

        What was said on the way to an answer, or asked line by line, is for looking up.
        """
        if excerpt.kind == "said" and opening_of(excerpt.text) in self._closing[at]:
            return True
        return excerpt.kind in STEPS and at == len(self._work) - 1

    def add_step(self, excerpt: Excerpt) -> bool:
        """Take an excerpt as a step of its request's; False where there is no such request."""
        at = self._place.get(excerpt.work)
        if at is None or not self._is_step(excerpt, at):
            return False
        self._detail.setdefault(at, HEAD)
        if excerpt.kind == "said" and opening_of(excerpt.text) in self._closing[at]:
            self._wanted.setdefault(at, set()).add(opening_of(excerpt.text))
        else:
            self._steps.setdefault(at, []).append(excerpt)
        return True

    def _asked(self, at: int, detail: Detail) -> int:
        """Return how many characters of a request to tell: so many that a step need not tell it again."""
        asked = self._work[at].asked
        told = head(self._work[at], detail.asked)
        steps = (one for one in self._steps.get(at, ()) if one.kind == "asked" and not one.topic)
        own = [one.text for one in steps if opening_of(one.text) == opening_of(asked)]
        again = [len(text) + 1 for text in own if not _is_told(text, told)]
        return max((detail.asked, *again))

    def lines(self) -> list[str]:
        """Return the section."""
        found: list[str] = []
        left_out = 0
        for at in range(len(self._work)):
            detail = self._detail.get(at)
            left_out += self._work[at].before
            if detail is None:
                left_out += 1
                continue
            found.extend(gap(left_out))
            left_out = 0
            told, *rest = self._told(at, msgspec.structs.replace(detail, asked=self._asked(at, detail)))
            shown = "\n".join((told, *rest))
            found.extend((told, *step_lines(self._steps.get(at, ()), shown), *rest))
        return [*found, *gap(left_out)]


def share_of(budget: int) -> int:
    """Return the tokens of a budget that the log takes at first."""
    return int(min(budget, LITTLE) * SHARE + max(0, budget - LITTLE) * SHARE_BEYOND)


def says(fact: WorkFact, following: WorkFact) -> bool:
    """Whether a request asks for something that is not asked again at once, or anything came of it."""
    if came(fact):
        return True
    return fact.asked != following.asked and bool(fact.question or not is_bare(fact.asked))


def gap(requests: int) -> tuple[str, ...]:
    """Write how many requests are not told."""
    return (f"{MARK}({requests} more request{'s' if requests > 1 else ''})",) if requests else ()


def head(fact: WorkFact, size: int) -> str:
    """Write what was asked, an answer with the question that it answers."""
    if not fact.asked:
        return MARK + BEFORE
    asked = in_short(fact.asked, size)
    if fact.question and (is_bare(fact.asked) or len(fact.asked) < SHORT_ANSWER):
        return f'{MARK}{ASKED}{asked}{ANSWERING}{one_line(fact.question)}")'
    return MARK + ASKED + asked


def seen_line(media: Sequence[str]) -> Iterator[str]:
    """Write which images and documents came with a request and its results, equal ones once."""
    counted = (f"{name} x{times}" if times > 1 else name for name, times in Counter(media).items())
    if media:
        yield BELOW + SEEN + ", ".join(map(one_line, counted))


def changed_lines(files: Sequence[FileFact], base: str, most: int) -> Iterator[str]:
    """Write which files were changed."""
    for status, label in CHANGED.items():
        paths = [relative(fact.path, base) for fact in files if fact.status == status][-most:] if most else []
        plain = [path for path in paths if not any(mark in path for mark in ("`", ", ", "/: ", "\n"))]
        if plain:
            yield label + "; ".join(f"`{line}`" for line in by_folder(plain))


def unseen(fact: WorkFact) -> str:
    """Return what was said to have passed for a request for which nothing that ran did, or ""."""
    if any(run.passed for run in fact.ran):
        return ""
    return next((one_line(text) for text in fact.closing if _CLAIM.search(text)), "")


def edited_lines(files: Sequence[FileFact], base: str, most: int) -> Iterator[str]:
    """Write how the newest files were changed."""
    noted = [fact for fact in files if fact.notes and "`" not in fact.path and "\n" not in fact.path]
    for fact in noted[-most:] if most else ():
        yield f"{BELOW}In `{relative(fact.path, base)}`: {one_line(fact.notes[-1])}"


def closing_line(fact: WorkFact, most: int, wanted: AbstractSet[str] = frozenset()) -> str:
    """Write the words that closed the work on a request: whole sentences, those that report first in line.

    Sentences whose opening is `wanted` come before all others.
    """
    left = most
    chosen: list[int] = []
    for at in _telling_first(fact.closing):
        text = fact.closing[at]
        if opening_of(text) in wanted:
            chosen.append(at)
        elif len(text) + 1 <= left:
            chosen.append(at)
            left -= len(text) + 1
    chosen = chosen or list(_telling_first(fact.closing)[:1])  # none is short enough: the beginning of one
    if not chosen:
        return ""
    text = paragraph(fact.closing[at] for at in sorted(chosen))
    extra = sum(len(fact.closing[at]) + 2 for at in chosen if opening_of(fact.closing[at]) in wanted)
    return (CLOSED if fact.answered else SO_FAR) + clip(text, max(most, 60) + extra)


def paragraph(texts: Iterable[str]) -> str:
    """Join sentences and items of lists to one paragraph."""
    found: list[str] = []
    for sentence in map(one_line, texts):
        if found and found[-1][-1:] not in STOPS:
            found[-1] += ";"
        found.append(sentence)
    return " ".join(found)


def apart(text: str) -> list[str]:
    """Return the sentences and items of a paragraph that `paragraph` joined."""
    return _END.split(text)


def opening_of(sentence: str) -> str:
    """Return the letters that a sentence begins with, by which it is known again."""
    return "".join(filter(str.isalnum, sentence[:OPENING]))


@lru_cache(maxsize=1_024)
def _telling_first(closing: tuple[str, ...]) -> tuple[int, ...]:
    """Return the places of sentences: first those that report and name something; a page asks many times."""
    worth = [is_report(text) + bool(names.find(text)) + (at == 0) for at, text in enumerate(closing)]
    return tuple(sorted(range(len(closing)), key=lambda at: (-worth[at], at)))


def step_lines(steps: Iterable[Excerpt], told: str) -> Iterator[str]:
    """Write excerpts as steps, what stands together as one paragraph; not what is `told` already."""
    for (kind, topic), group in groupby(steps, key=lambda one: (one.kind, one.topic * (one.kind == "asked"))):
        texts = dict.fromkeys(one_line(one.text) for one in group)
        texts = [
            text for text in texts if text not in told and not (kind == "asked" and _is_told(text, told))
        ]
        if kind == "asked" and texts:
            under = one_line(topic).replace('": ', "' ")
            yield BELOW + (f'{ALSO_UNDER}{under}": ' if topic else ALSO) + paragraph(texts)
        elif texts:
            yield "  " + told_apart(paragraph(texts), NOTED, _is_other)


def _is_told(request: str, told: str) -> bool:
    """Whether a request stands in a text, its courtesies aside."""
    return (gist(request, len(request) + 1) or request) in told


def _is_other(line: str) -> bool:
    text = line.removeprefix(MARK)
    return bool(text.startswith((*_LABELS, NOTED)) or _EDITED.match(text) or commands.read(line) is not None)


def read(items: Iterable[Sequence[str]]) -> WorkSection:
    """Read the section back."""
    work: list[WorkFact] = []
    reports: list[ReportFact] = []
    steps: list[Excerpt] = []
    before = 0
    for rank, item in enumerate(items):
        if found := _GAP.match(item[0]):
            before = int(found[1])
            continue
        fact = msgspec.structs.replace(_read_head(item[0]), before=before)
        before = 0
        for line in item[1:]:
            fact = _read_below(fact, line, rank, reports, steps)
        work.append(fact)
    return WorkSection(tuple(work), tuple(reports), tuple(steps))


def _read_head(line: str) -> WorkFact:
    text = line.removeprefix(MARK)
    if text == BEFORE:
        return WorkFact("")
    asked, mark, question = text.removeprefix(ASKED).partition(ANSWERING)
    return WorkFact(asked, question=question.removesuffix('")') if mark else "")


def _read_below(
    fact: WorkFact, line: str, rank: int, reports: list[ReportFact], steps: list[Excerpt]
) -> WorkFact:
    """Read one line below a request: into the fact, or into one of the lists."""
    status = next((status for status, label in CHANGED.items() if line.startswith(label)), "")
    ran = commands.read(MARK + line)
    edited = _EDITED.match(line)
    if edited:
        files = (
            msgspec.structs.replace(one, notes=(edited[2],)) if one.path == edited[1] else one
            for one in fact.files
        )
        return msgspec.structs.replace(fact, files=tuple(files))
    if status:
        return msgspec.structs.replace(fact, files=(*fact.files, *_read_files(line, status)))
    if line.startswith((CLOSED, SO_FAR)):
        words = tuple(apart(line.removeprefix(CLOSED).removeprefix(SO_FAR)))
        return msgspec.structs.replace(fact, closing=words, answered=line.startswith(CLOSED))
    if ran is not None:
        return msgspec.structs.replace(fact, ran=(*fact.ran, ran))
    if line.startswith(SEEN):
        seen = tuple(name for name, times in _SEEN.findall(line) for _ in range(min(int(times or 1), MEDIA)))
        return msgspec.structs.replace(fact, media=seen)
    if line.startswith(FOUND):
        return msgspec.structs.replace(fact, found=(*fact.found, line.removeprefix(FOUND)))
    if line.startswith(UNSEEN):
        return fact  # it is worked out from the others
    if line.startswith(REPORTED):
        reports.append(ReportFact(line.removeprefix(REPORTED), "", fact.key))
    elif line.startswith(ALSO_UNDER):
        topic, _, text = line.removeprefix(ALSO_UNDER).partition('": ')
        steps.extend(_step(one, "asked", fact, rank, topic) for one in apart(text))
    elif line.startswith(ALSO):
        steps.extend(_step(one, "asked", fact, rank) for one in apart(line.removeprefix(ALSO)))
    else:
        steps.extend(_step(one, "said", fact, rank) for one in apart(line.removeprefix(NOTED)))
    return fact


def _step(text: str, kind: str, fact: WorkFact, rank: int, topic: str = "") -> Excerpt:
    return msgspec.structs.replace(excerpts.made(text, kind, topic, rank), work=fact.key)


def _read_files(line: str, status: str) -> Iterator[FileFact]:
    for several in re.findall(r"`([^`]+)`", line):
        for path in of_folder(several):
            yield FileFact(path, status)
