"""Make reading exams of recorded sessions, and add up the marks.

    python -m tools.reading_exam make SESSION FOLDER --cut compaction:1      past.md and the forms for questions
    python -m tools.reading_exam contexts FOLDER foldline@0.1 newest@0.1     contexts/LETTER.md and their forms
    python -m tools.reading_exam marks FOLDER...                             the table over all exams

An exam is about one session, cut where its agent had to go on. Its FOLDER holds

    past.md                what was said before the cut, for whoever writes the questions; past.jsonl is what is folded
    questions.md, key.md   fifteen questions, three a category, and how to mark the answers; written from past.md alone
    contexts/LETTER.md     what one policy leaves of the past; the name of the policy stands in key.json alone
    answers/LETTER.md      the form of a reader, who sees the questions and this one context
    marks/LETTER.md        the form of a grader, who sees questions, key and answers, but no context and no name

A context is POLICY@SHARE of the past's tokens: a preset, `newest` (the newest messages alone) or `agent` (the
summary that the recorded agent went on from, where the cut is at a compaction; it has its own size). With
`--source DIR --label NAME` another checkout's code folds, so that two versions are sat in one exam.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import string
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tools.results import Table, save, shown

from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import message_tokens
from foldline.dialects import OPENAI_CHAT, decode_all, get
from foldline.transcripts import CompactionRecord, MessageRecord, read

ROOT = Path(__file__).parents[1]
CATEGORIES = ("goal", "decisions", "state", "specifics", "traps")
EACH = 3  # questions in a category
QUESTIONS = EACH * len(CATEGORIES)
NAMED = 4  # contexts that are not marked yet are named; of the others there is a count
BEST = 2  # marks for an answer that is right and complete
PROMPTS = ("system", "developer")  # what every request begins with, whatever is folded: on no page
ENORMOUS = 8_000  # characters of a result from which on past.md shows its head and tail
ABOUT = {
    "goal": "Goal and rules: what the user wants in the end, and the rules that hold for all the work.",
    "decisions": "Decisions: what was chosen, for what reason, and what was rejected.",
    "state": "State: what is done, verified, failing, committed, still open.",
    "specifics": "Specifics: commands, paths, names, values and messages that nobody can guess.",
    "traps": "Traps: what had changed on the way; the older answer is wrong.",
}
FOLD = """
import json, sys
import foldline
past, policy, target = json.load(sys.stdin)
json.dump(foldline.compact(past, target=target, policy=policy).messages, sys.stdout)
"""


class ExamError(Exception):
    """An exam that cannot be made or added up, and why."""


class Exam(msgspec.Struct):
    """What exam.json holds: the session, the messages first to cut (1-based, as in past.md), and their tokens."""

    session: str
    first: int
    cut: int
    tokens: int
    summary: str = ""  # what the recorded agent went on from


class Context(msgspec.Struct):
    """What key.json says of a letter: policy, share of the past asked for, whose code, and the tokens it took."""

    policy: str
    share: float
    label: str
    tokens: int


class Marks(msgspec.Struct):
    """The marks of one context, in the order of the questions, and what its reader said of reading it (1-10)."""

    given: list[int]
    readability: int


# -- a session, cut


def conversation(session: Path) -> tuple[list[Message], dict[int, str]]:
    """Return a session's messages, and its agent's summaries by the index at which each stands as a message."""
    messages: list[Message] = []
    summaries: dict[int, str] = {}
    for record in read(session):
        if isinstance(record, MessageRecord):
            messages.append(record.message)
        elif isinstance(record, CompactionRecord):
            summaries[len(messages)] = record.summary
            messages.append(Message("user", (Text(record.summary),)))
    return messages, summaries


def place_of(cut: str, messages: Sequence[Message], summaries: Iterable[int]) -> int:
    """Return the index that a cut names: a message's number, a share of the tokens, or `compaction:N`."""
    kind, _, number = cut.partition(":")
    if kind == "compaction":
        places = sorted(summaries)
        if not 1 <= int(number or 1) <= len(places):
            raise ExamError(f"--cut {cut}: the session has {len(places)} compactions with a summary")
        return places[int(number or 1) - 1]
    if "." not in cut:
        return min(int(cut), len(messages))
    sizes = [message_tokens(message) for message in messages]
    want = float(cut) * sum(sizes)
    at = next(i for i in range(len(sizes) + 1) if sum(sizes[:i]) >= want)
    while at < len(messages) and messages[at].results:  # no call is parted from its results
        at -= 1
    return at


def make(session: Path, folder: Path, cut: str) -> Exam:
    """Write past.md, past.jsonl, exam.json and the forms for the questions."""
    messages, summaries = conversation(session)
    end = place_of(cut, messages, summaries)
    first = max((place for place in summaries if place < end), default=0)
    past = [msgspec.structs.replace(message, native=None) for message in messages[first:end]]
    said = [message for message in past if message.role not in PROMPTS]
    if not past:
        raise ExamError(f"--cut {cut}: nothing stands before it")
    exam = Exam(session.name, first + 1, end, sum(map(message_tokens, said)), summaries.get(end, ""))
    chat = get(OPENAI_CHAT).render([(message, ()) for message in said]).messages
    for name in ("contexts", "answers", "marks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    _write(folder / "exam.json", msgspec.json.format(msgspec.json.encode(exam)).decode())
    _write(folder / "past.jsonl", "\n".join(json.dumps(message, ensure_ascii=False) for message in chat))
    _write(folder / "past.md", page(past, first=exam.first, most=ENORMOUS))
    for name, line in (("questions", "(the question)"), ("key", "2 = …; 1 = …; 0 = …")):
        if not (folder / f"{name}.md").exists():
            _write(folder / f"{name}.md", form(line))
    return exam


def form(line: str) -> str:
    """Return the form for fifteen questions or their keys."""
    parts: list[str] = []
    for number in range(QUESTIONS):
        if number % EACH == 0:
            parts.append(f"## {ABOUT[CATEGORIES[number // EACH]]}\n")
        parts.append(f"{number + 1}. {line}\n")
    return "\n".join(parts)


def page(messages: Sequence[Message], *, first: int | None = None, most: int | None = None) -> str:
    """Return messages as a page; numbered from `first`, results of more than `most` characters shortened."""
    parts: list[str] = []
    for index, message in enumerate(messages):
        number = "" if first is None else f"{first + index} · "
        parts.append(f"### {number}{'program' if message.injected else message.role}\n")
        if message.text.strip():
            parts.append(f"{message.text.strip()}\n")
        for call in message.calls:
            told = call.arguments if isinstance(call.arguments, str) else _told(call.arguments)
            parts.append(f"**call** {call.name}\n{told}\n")
        parts.extend(
            f"**{'failed' if result.is_error else 'result'}**\n{_shortened(result.text.strip(), most)}\n"
            for result in message.results
        )
    return "\n".join(parts)


def _told(arguments: dict[str, Any]) -> str:
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    )


def _shortened(text: str, most: int | None) -> str:
    if most is None or len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters …]\n{text[-tail:]}"


# -- contexts


def add_context(folder: Path, spec: str, source: Path, label: str) -> str:
    """Write what a policy leaves of the past, under a letter that says nothing, and the two forms for it."""
    exam, known = exam_of(folder), key_of(folder)
    policy, _, share = spec.partition("@")
    target = int(float(share or 0) * exam.tokens)
    messages = _left(folder, exam, policy, target, source)
    context = Context(policy, float(share or 0), label, sum(map(message_tokens, messages)))
    for letter, held in known.items():
        if (held.policy, held.share, held.label) == (context.policy, context.share, context.label):
            raise ExamError(f"{folder.name}: {label} {spec} is there already ({letter} in key.json)")
    free = sorted(set(string.ascii_uppercase) - set(known))
    letter = random.Random(f"{folder.name} {label} {spec}").choice(free)
    _write(folder / "contexts" / f"{letter}.md", page(messages))
    numbers = range(1, QUESTIONS + 1)
    answers = "".join(f"{number}. \n\n" for number in numbers)
    _write(
        folder / "answers" / f"{letter}.md", f"{answers}readability (1-10): \nwhat made it hard to read: \n"
    )
    _write(folder / "marks" / f"{letter}.md", "".join(f"{number}: \n" for number in numbers))
    known[letter] = context
    _write(
        folder / "key.json", msgspec.json.format(msgspec.json.encode(dict(sorted(known.items())))).decode()
    )
    return letter


def _left(folder: Path, exam: Exam, policy: str, target: int, source: Path) -> list[Message]:
    if policy == "agent":
        if not exam.summary:
            raise ExamError(f"{folder.name}: the recorded agent wrote no summary at this cut")
        return [Message("user", (Text(exam.summary),))]
    past = [json.loads(line) for line in (folder / "past.jsonl").read_text(encoding="utf-8").splitlines()]
    if policy == "newest":
        return newest(decode_all(past, OPENAI_CHAT), target)
    return decode_all(folded(past, policy, target, source))


def newest(messages: Sequence[Message], target: int) -> list[Message]:
    """Return as many of the newest messages as fit into a number of tokens, and the end of the one that does not."""
    kept: list[Message] = []
    room = target
    for message in reversed(messages):
        size = message_tokens(message)
        if size > room:
            kept += _end_of(message, room)
            break
        room -= size
        kept.append(message)
    return kept[::-1]


def _end_of(message: Message, room: int) -> list[Message]:
    text = page([message])
    length = len(text)
    while length > 0:
        length = length * 3 // 4
        part = Message("user", (Text(f"[… the end of a longer message]\n{text[len(text) - length :]}"),))
        if message_tokens(part) <= room:
            return [part]
    return []


def folded(past: list[Any], policy: str, target: int, source: Path) -> list[Any]:
    """Fold chat messages with the code of a checkout, in a process of its own and without a model."""
    if not (source / "src" / "foldline").is_dir():
        raise ExamError(f"{source}: no checkout of Foldline")
    ran = subprocess.run(
        [sys.executable, "-c", FOLD],
        input=json.dumps([past, policy, target]),
        env={**os.environ, "PYTHONPATH": str(source.resolve() / "src")},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if ran.returncode:
        last = ran.stderr.strip().splitlines()[-1:]
        raise ExamError(f"{policy} in {target} tokens: {''.join(last)}")
    return json.loads(ran.stdout)


# -- marks

MARK = re.compile(r"^(\d+): *([012])\b", re.MULTILINE)
READABILITY = re.compile(r"^readability[^:\n]*: *(\d+)", re.MULTILINE | re.IGNORECASE)


def marks_of(folder: Path, letter: str) -> Marks:
    """Read the marks of one context; raises ExamError where the forms are not filled in."""
    form_of = folder / "marks" / f"{letter}.md"
    given = {int(number): int(mark) for number, mark in MARK.findall(_text(form_of))}
    if sorted(given) != list(range(1, QUESTIONS + 1)):
        missing = [number for number in range(1, QUESTIONS + 1) if number not in given]
        raise ExamError(f"{form_of}: no mark for question {', '.join(map(str, missing))}")
    return Marks(
        [given[number] for number in sorted(given)], readability_in(folder / "answers" / f"{letter}.md")
    )


def readability_in(answers: Path) -> int:
    """Return what a reader said of reading a context, 1 to 10."""
    found = READABILITY.search(_text(answers))
    if found is None or not 1 <= int(found[1]) <= 10:
        raise ExamError(f"{answers}: the line `readability (1-10):` has no number from 1 to 10")
    return int(found[1])


def percents(marks: Marks) -> list[float]:
    """Return the percent of all marks, then of each category's, then the readability."""
    parts = [marks.given, *(marks.given[at : at + EACH] for at in range(0, QUESTIONS, EACH))]
    return [*(100 * sum(part) / (BEST * len(part)) for part in parts), float(marks.readability)]


def table(folders: Sequence[Path]) -> Table:
    """Add up: a row for each policy, share and label, the mean over the exams; contexts not yet marked are noted."""
    rows: dict[tuple[str, str, float], list[tuple[float, list[float]]]] = {}
    open_: list[str] = []
    for folder in folders:
        tokens = exam_of(folder).tokens
        for letter, context in key_of(folder).items():
            try:
                found = percents(marks_of(folder, letter))
            except ExamError:
                open_.append(f"{folder.name}/{letter}")
                continue
            kind = (context.policy, context.label, context.share)
            rows.setdefault(kind, []).append((100 * context.tokens / tokens, found))
    cells = [(*_name(*kind), *_means(found)) for kind, found in sorted(rows.items())]
    columns = ("context", "asked", "size", "exams", "marks", *CATEGORIES, "readability")
    notes = (f"{len(folders)} exams of {QUESTIONS} questions.",)
    more = f", and {len(open_) - NAMED} more" if len(open_) > NAMED else ""
    return Table(
        columns,
        cells,
        notes=(*notes, f"Not marked: {', '.join(open_[:NAMED])}{more}.") if open_ else notes,
    )


def _name(policy: str, label: str, share: float) -> tuple[str, str]:
    return f"`{policy}`{f' {label}' if label else ''}", f"{share:.0%}" if share else "its own"


def _means(found: list[tuple[float, list[float]]]) -> tuple[str, ...]:
    sizes, scores = zip(*found, strict=True)
    *parts, readability = (statistics.fmean(column) for column in zip(*scores, strict=True))
    size = f"{statistics.fmean(sizes):.1f}%"
    return size, str(len(found)), *(f"{part:.0f}" for part in parts), f"{readability:.1f}"


def exam_of(folder: Path) -> Exam:
    if not (folder / "exam.json").exists():
        raise ExamError(f"{folder}: no exam here; `make` writes one")
    return msgspec.json.decode((folder / "exam.json").read_bytes(), type=Exam)


def key_of(folder: Path) -> dict[str, Context]:
    path = folder / "key.json"
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Context]) if path.exists() else {}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").rstrip("\n") if path.exists() else ""


def _write(path: Path, text: str) -> None:
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def main() -> None:
    """Do one step of an exam."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step", required=True)
    step = steps.add_parser("make")
    step.add_argument("session", type=Path)
    step.add_argument("folder", type=Path)
    step.add_argument(
        "--cut", default="0.67", help="a message's number, a share such as 0.67, or compaction:N"
    )
    step = steps.add_parser("contexts")
    step.add_argument("folder", type=Path)
    step.add_argument("specs", nargs="+", metavar="POLICY@SHARE")
    step.add_argument("--source", type=Path, default=ROOT, help="the checkout whose code folds")
    step.add_argument("--label", default="", help="what the table calls that code")
    step = steps.add_parser("marks")
    step.add_argument("folders", type=Path, nargs="+")
    step.add_argument(
        "--save", action="store_true", help="write docs/results/reading.json and docs/results/README.md"
    )
    given = parser.parse_args()
    try:
        _do(given)
    except ExamError as error:
        sys.exit(f"reading_exam: {error}")


def _do(given: argparse.Namespace) -> None:
    if given.step == "make":
        exam = make(given.session, given.folder, given.cut)
        print(f"{given.folder}: messages {exam.first} to {exam.cut}, {exam.tokens:,} tokens")
    elif given.step == "contexts":
        for spec in given.specs:
            add_context(given.folder, spec, given.source, given.label)
        print(f"{given.folder}: {len(key_of(given.folder))} contexts")
    elif given.save:
        save("reading", "python -m tools.reading_exam marks FOLDER... --save", [table(given.folders)])
    else:
        print(shown([table(given.folders)]))


if __name__ == "__main__":
    main()
