"""What is carried about one file: a line that says what became of it and why, and items below it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foldline.core.ledger.facts.kinds import Excerpt, FileFact
from foldline.core.ledger.page import items
from foldline.core.ledger.page.excerpts import SHOWS, joined, made, shown_in, shown_lines
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip
from foldline.core.ledger.text.words import words

LONGEST_NOTE = 90  # characters of the reason that a quote was met for
MOST_REASONS = 2
BETWEEN = " / "  # between two reasons
DEFINES = "defines "  # before the definitions of a file

_QUOTED = ("opened", "changed", "outline", "listing", "hit", "line")

_LINE = re.compile(r"- `([^`]+)`(?: \((read|modified|created|deleted)(?:, used (\d+) times)?\))?(?:: (.*))?$")


def lines_of(path: str, group: Sequence[Excerpt], fact: FileFact | None) -> list[str]:
    """Write what was picked about one file."""
    reasons = BETWEEN.join(text.replace(BETWEEN, "/") for text in _reasons(group, fact))
    # A path with a backtick stands as it is in the list of files alone: here it names a topic.
    status = f" ({_status(fact)})" if fact and "`" not in path else ""
    lines = [f"{items.MARK}`{items.unticked(path)}`{status}" + (f": {reasons}" if reasons else "")]
    outline = [items.one_line(excerpt.text) for excerpt in group if excerpt.kind == "outline"]
    outline = (text.replace("; `", ", `") for text in outline)
    lines.extend(items.BELOW + DEFINES + line for line in joined(outline))
    told = (excerpt for excerpt in group if excerpt.kind not in _QUOTED)
    lines.extend("  " + items.told_apart(items.one_line(one.text), items.NOTED, _is_labelled) for one in told)
    quotes = (excerpt for excerpt in group if excerpt.kind in ("hit", "line"))
    lines.extend(items.BELOW + line for line in shown_lines(quotes))
    return lines


def _is_labelled(line: str) -> bool:
    return line.startswith((items.MARK + DEFINES, items.MARK + SHOWS))


def _status(fact: FileFact) -> str:
    return fact.status if fact.uses < 2 else f"{fact.status}, used {fact.uses} times"


def _reasons(group: Sequence[Excerpt], fact: FileFact | None) -> list[str]:
    """Return why the file was changed, or read: the newest of what calls said.

    Without, it is the newest note of the file, or why a quote of it was met.
    """
    given = {
        kind: [text for one in group if one.kind == kind and _tells(text := items.one_line(one.text))]
        for kind in ("changed", "opened")
    }
    reasons = list(dict.fromkeys(given["changed"] or given["opened"]))[-MOST_REASONS:]
    if not reasons:
        reasons = [items.one_line(note) for note in (fact.notes[-1:] if fact else ()) if note]
    if not reasons:
        noted = (clip(excerpt.note, LONGEST_NOTE) for excerpt in group if excerpt.note)
        reasons = list(dict.fromkeys(noted))[:1]
    return reasons


def _tells(reason: str) -> bool:
    return len(words(reason)) > 1 and not reason.endswith("?") and reason[:1] != "("


def is_about(item: Sequence[str]) -> bool:
    """Whether an item is from `lines_of`: it says what became of a file, names a path, or has items below."""
    match = _LINE.match(item[0])
    return match is not None and (match.group(2) is not None or len(item) > 1 or _is_path(match.group(1)))


def _is_path(topic: str) -> bool:
    found = names.find(topic)
    return len(found) == 1 and found[0].kind == "path"


def read_file(line: str) -> FileFact | None:
    """Read back what became of the file; None where the line does not say."""
    match = _LINE.match(line)
    if match is None or not match.group(2):
        return None
    path, status, times, reasons = match.groups()
    return FileFact(path, status, int(times or 1), tuple(reasons.split(BETWEEN)[-1:]) if reasons else ())


def read(item: Sequence[str], rank: int) -> Iterator[Excerpt]:
    """Read the excerpts of one file back."""
    match = _LINE.match(item[0])
    if match is None:
        return
    path, reasons = match.group(1), match.group(4)
    for reason in (reasons or "").split(BETWEEN):
        if reason:
            yield made(reason, "opened", path, rank)
    for line in item[1:]:
        if line.startswith(DEFINES):
            for text in re.split(r"; (?=`)", line.removeprefix(DEFINES)):
                yield made(text, "outline", path, rank)
        elif line.startswith(SHOWS):
            for text in shown_in(line):
                yield made(text, "line", path, rank)
        else:
            yield made(line.removeprefix(items.NOTED), "said", path, rank)
