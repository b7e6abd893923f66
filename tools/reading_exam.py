"""Make reading exams of recorded sessions, and add up the marks.

    python -m tools.reading_exam make SESSION FOLDER --cut compaction:1      past.md and the forms for questions
    python -m tools.reading_exam contexts FOLDER foldline@0.1 newest@0.1     contexts/LETTER.md and their forms
    python -m tools.reading_exam marks FOLDER...                             the table over all exams

An exam is about one session, cut at a point where its agent continued. Its FOLDER has

    past.md                the messages before the cut, for the author of the questions; past.jsonl is folded
    questions.md, key.md   fifteen questions, three in each category, and the marking scheme; written from past.md only
    contexts/LETTER.md     the past, folded under one policy; only key.json has the policy's name
    answers/LETTER.md      the form of a reader, who sees the questions and this context
    marks/LETTER.md        the form of a grader, who sees questions, key and answers, but no context and no name

A context is POLICY@SHARE of the past's tokens. POLICY is a preset, `newest` (only the newest messages) or `agent` (the
summary with which the recorded agent continued, if the cut is at a compaction; it has its own size). `--source DIR
--label NAME` folds with the code of another checkout, to compare two versions in one exam.
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
from tools.results import Table, as_markdown, save

from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import message_tokens
from foldline.dialects import OPENAI_CHAT, decode_all, get
from foldline.transcripts import CompactionRecord, MessageRecord, read

ROOT = Path(__file__).parents[1]
CATEGORIES = ("goal", "decisions", "state", "specifics", "traps")
EACH = 3  # questions in a category
QUESTIONS = EACH * len(CATEGORIES)
NAMED = 4  # unmarked contexts whose names are printed; the others are counted
BEST = 2  # marks for an answer that is right and complete
PROMPTS = ("system", "developer")  # never folded, and left out of all pages
LONG_RESULT = 8_000  # characters; past.md has only the head and tail of longer results
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
    """An exam cannot be made or added up."""


class Exam(msgspec.Struct):
    """The content of exam.json: the session, the messages `first` to `cut` (from 1, as in past.md), their tokens."""

    session: str
    first: int
    cut: int
    tokens: int
    summary: str = ""  # with which the recorded agent continued


class Context(msgspec.Struct):
    """A letter's entry in key.json: policy, share of the past as the budget, label of the code, actual tokens."""

    policy: str
    share: float
    label: str
    tokens: int


class Marks(msgspec.Struct):
    """The marks of one context, in the order of the questions, and its reader's readability mark (1-10)."""

    answers: list[int]
    readability: int


# -- a session, cut


def conversation(session: Path) -> tuple[list[Message], dict[int, str]]:
    """Return a session's messages, and its agent's summaries by their indices in the messages."""
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
    """Return the index of a cut: a message's number, a share of the tokens, or `compaction:N`."""
    kind, _, number = cut.partition(":")
    if kind == "compaction":
        places = sorted(summaries)
        if not 1 <= int(number or 1) <= len(places):
            raise ExamError(f"--cut {cut}: the session has {len(places)} compactions with a summary")
        return places[int(number or 1) - 1]
    if "." not in cut:
        return min(int(cut), len(messages))
    sizes = [message_tokens(message) for message in messages]
    tokens = float(cut) * sum(sizes)
    index = next(i for i in range(len(sizes) + 1) if sum(sizes[:i]) >= tokens)
    while index < len(messages) and messages[index].results:  # not between a call and its results
        index -= 1
    return index


def make(session: Path, folder: Path, cut: str) -> Exam:
    """Write past.md, past.jsonl, exam.json and the forms for the questions."""
    messages, summaries = conversation(session)
    end = place_of(cut, messages, summaries)
    first = max((place for place in summaries if place < end), default=0)
    past = [msgspec.structs.replace(message, native=None) for message in messages[first:end]]
    conversed = [message for message in past if message.role not in PROMPTS]
    if not past:
        raise ExamError(f"--cut {cut}: there is no message before it")
    exam = Exam(session.name, first + 1, end, sum(map(message_tokens, conversed)), summaries.get(end, ""))
    chat = get(OPENAI_CHAT).render([(message, ()) for message in conversed]).messages
    for name in ("contexts", "answers", "marks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    _write(folder / "exam.json", msgspec.json.format(msgspec.json.encode(exam)).decode())
    _write(folder / "past.jsonl", "\n".join(json.dumps(message, ensure_ascii=False) for message in chat))
    _write(folder / "past.md", page(past, first=exam.first, limit=LONG_RESULT))
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


def page(messages: Sequence[Message], *, first: int | None = None, limit: int | None = None) -> str:
    """Return messages as a page; numbered from `first`, with results shortened to `limit` characters."""
    parts: list[str] = []
    for index, message in enumerate(messages):
        number = "" if first is None else f"{first + index} · "
        parts.append(f"### {number}{'program' if message.injected else message.role}\n")
        if message.text.strip():
            parts.append(f"{message.text.strip()}\n")
        for call in message.calls:
            arguments = call.arguments if isinstance(call.arguments, str) else _lines(call.arguments)
            parts.append(f"**call** {call.name}\n{arguments}\n")
        parts.extend(
            f"**{'failed' if result.is_error else 'result'}**\n{_shorten(result.text.strip(), limit)}\n"
            for result in message.results
        )
    return "\n".join(parts)


def _lines(arguments: dict[str, Any]) -> str:
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    )


def _shorten(text: str, limit: int | None) -> str:
    if limit is None or len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters …]\n{text[-tail:]}"


# -- contexts


def add_context(folder: Path, spec: str, source: Path, label: str) -> str:
    """Write the past, folded under a policy, under a random letter, and the two forms for it; return the letter."""
    exam, contexts = exam_of(folder), key_of(folder)
    policy, _, share = spec.partition("@")
    target = int(float(share or 0) * exam.tokens)
    messages = _folded_past(folder, exam, policy, target, source)
    context = Context(policy, float(share or 0), label, sum(map(message_tokens, messages)))
    for letter, other in contexts.items():
        if (other.policy, other.share, other.label) == (context.policy, context.share, context.label):
            raise ExamError(f"{folder.name}: {label} {spec} exists already ({letter} in key.json)")
    free = sorted(set(string.ascii_uppercase) - set(contexts))
    letter = random.Random(f"{folder.name} {label} {spec}").choice(free)
    _write(folder / "contexts" / f"{letter}.md", page(messages))
    numbers = range(1, QUESTIONS + 1)
    answers = "".join(f"{number}. \n\n" for number in numbers)
    _write(
        folder / "answers" / f"{letter}.md", f"{answers}readability (1-10): \nwhat made it hard to read: \n"
    )
    _write(folder / "marks" / f"{letter}.md", "".join(f"{number}: \n" for number in numbers))
    contexts[letter] = context
    _write(
        folder / "key.json",
        msgspec.json.format(msgspec.json.encode(dict(sorted(contexts.items())))).decode(),
    )
    return letter


def _folded_past(folder: Path, exam: Exam, policy: str, target: int, source: Path) -> list[Message]:
    if policy == "agent":
        if not exam.summary:
            raise ExamError(f"{folder.name}: the recorded agent wrote no summary at this cut")
        return [Message("user", (Text(exam.summary),))]
    past = [json.loads(line) for line in (folder / "past.jsonl").read_text(encoding="utf-8").splitlines()]
    if policy == "newest":
        return newest(decode_all(past, OPENAI_CHAT), target)
    return decode_all(fold(past, policy, target, source))


def newest(messages: Sequence[Message], target: int) -> list[Message]:
    """Return the newest messages that fit into a number of tokens, and the end of the first that does not."""
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


def fold(past: list[Any], policy: str, target: int, source: Path) -> list[Any]:
    """Fold chat messages with the code of a checkout, in a separate process and without a model."""
    if not (source / "src" / "foldline").is_dir():
        raise ExamError(f"{source}: no checkout of Foldline")
    result = subprocess.run(
        [sys.executable, "-c", FOLD],
        input=json.dumps([past, policy, target]),
        env={**os.environ, "PYTHONPATH": str(source.resolve() / "src")},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if result.returncode:
        last = result.stderr.strip().splitlines()[-1:]
        raise ExamError(f"{policy} in {target} tokens: {''.join(last)}")
    return json.loads(result.stdout)


# -- marks

MARK = re.compile(r"^(\d+): *([012])\b", re.MULTILINE)
READABILITY = re.compile(r"^readability[^:\n]*: *(\d+)", re.MULTILINE | re.IGNORECASE)


def marks_of(folder: Path, letter: str) -> Marks:
    """Read the marks of one context; raises ExamError if the forms are not filled in."""
    path = folder / "marks" / f"{letter}.md"
    marks = {int(number): int(mark) for number, mark in MARK.findall(_text(path))}
    if sorted(marks) != list(range(1, QUESTIONS + 1)):
        missing = [number for number in range(1, QUESTIONS + 1) if number not in marks]
        raise ExamError(f"{path}: no mark for question {', '.join(map(str, missing))}")
    return Marks(
        [marks[number] for number in sorted(marks)], readability_in(folder / "answers" / f"{letter}.md")
    )


def readability_in(answers: Path) -> int:
    """Return the readability mark in a reader's form, 1 to 10."""
    match = READABILITY.search(_text(answers))
    if match is None or not 1 <= int(match[1]) <= 10:
        raise ExamError(f"{answers}: the line `readability (1-10):` has no number from 1 to 10")
    return int(match[1])


def percents(marks: Marks) -> list[float]:
    """Return the percentage of the best marks, in total and for each category, then the readability."""
    categories = [marks.answers[start : start + EACH] for start in range(0, QUESTIONS, EACH)]
    parts = [marks.answers, *categories]
    return [*(100 * sum(part) / (BEST * len(part)) for part in parts), float(marks.readability)]


def table(folders: Sequence[Path]) -> Table:
    """Return the table of exams: the mean for each policy, share and label; a note names unmarked contexts."""
    rows: dict[tuple[str, str, float], list[tuple[float, list[float]]]] = {}
    unmarked: list[str] = []
    for folder in folders:
        tokens = exam_of(folder).tokens
        for letter, context in key_of(folder).items():
            try:
                scores = percents(marks_of(folder, letter))
            except ExamError:
                unmarked.append(f"{folder.name}/{letter}")
                continue
            kind = (context.policy, context.label, context.share)
            rows.setdefault(kind, []).append((100 * context.tokens / tokens, scores))
    cells = [(*_name(*kind), *_means(results)) for kind, results in sorted(rows.items())]
    columns = ("context", "asked", "size", "exams", "marks", *CATEGORIES, "readability")
    notes = [f"{len(folders)} exams of {QUESTIONS} questions."]
    if unmarked:
        more = f", and {len(unmarked) - NAMED} more" if len(unmarked) > NAMED else ""
        notes.append(f"Not marked: {', '.join(unmarked[:NAMED])}{more}.")
    return Table(columns, cells, notes=tuple(notes))


def _name(policy: str, label: str, share: float) -> tuple[str, str]:
    return f"`{policy}`{f' {label}' if label else ''}", f"{share:.0%}" if share else "its own"


def _means(results: list[tuple[float, list[float]]]) -> tuple[str, ...]:
    sizes, scores = zip(*results, strict=True)
    *parts, readability = (statistics.fmean(column) for column in zip(*scores, strict=True))
    size = f"{statistics.fmean(sizes):.1f}%"
    return size, str(len(results)), *(f"{part:.0f}" for part in parts), f"{readability:.1f}"


def exam_of(folder: Path) -> Exam:
    if not (folder / "exam.json").exists():
        raise ExamError(f"{folder}: no exam in this folder: make one with `make`")
    return msgspec.json.decode((folder / "exam.json").read_bytes(), type=Exam)


def key_of(folder: Path) -> dict[str, Context]:
    path = folder / "key.json"
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Context]) if path.exists() else {}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").rstrip("\n") if path.exists() else ""


def _write(path: Path, text: str) -> None:
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def main() -> None:
    """Run one step of an exam."""
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
    step.add_argument("--source", type=Path, default=ROOT, help="the checkout with the code that folds")
    step.add_argument("--label", default="", help="the name of that code in the table")
    step = steps.add_parser("marks")
    step.add_argument("folders", type=Path, nargs="+")
    step.add_argument(
        "--save", action="store_true", help="write docs/results/reading.json and docs/results/README.md"
    )
    args = parser.parse_args()
    try:
        _run(args)
    except ExamError as error:
        sys.exit(f"reading_exam: {error}")


def _run(args: argparse.Namespace) -> None:
    if args.step == "make":
        exam = make(args.session, args.folder, args.cut)
        print(f"{args.folder}: messages {exam.first} to {exam.cut}, {exam.tokens:,} tokens")
    elif args.step == "contexts":
        for spec in args.specs:
            add_context(args.folder, spec, args.source, args.label)
        print(f"{args.folder}: {len(key_of(args.folder))} contexts")
    elif args.save:
        save("reading", "python -m tools.reading_exam marks FOLDER... --save", [table(args.folders)])
    else:
        print(as_markdown([table(args.folders)]))


if __name__ == "__main__":
    main()
