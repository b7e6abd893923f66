"""What else a reader needs: values, what a program told; and an index of files, commands and listings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from foldline.core.ledger.facts.kinds import Excerpt, FileFact, ValueFact
from foldline.core.ledger.page import about_files, excerpts, other_names, runs, values
from foldline.core.ledger.page.items import LABELS, MARK, NOTED
from foldline.core.ledger.page.sheet import GOAL, INDEX, Count, Sheet
from foldline.core.ledger.text.names import path_key
from foldline.core.ledger.text.paths import relative
from foldline.core.ledger.worth import selection
from foldline.core.ledger.worth.selection import PageLine


class Context(msgspec.Struct, frozen=True):
    """What the two sections say, in order; of values the newest last."""

    values: tuple[ValueFact, ...]
    files: tuple[FileFact, ...]
    excerpts: tuple[Excerpt, ...]


def write(sheet: Sheet, picked: Sequence[Excerpt], files: Sequence[FileFact], base: str) -> None:
    """Write the excerpts that were picked: what was told, what was run, and files."""
    asked = () if any(map(excerpts.is_spoken, sheet.parts[GOAL])) else picked
    rest = [excerpt for excerpt in picked if excerpt.kind not in ("asked", "told")]
    lists = (
        (SPOKEN, [*excerpts.spoken_lines("asked", asked), *excerpts.spoken_lines("told", picked)]),
        (SAID, [excerpts.plain_line(one, _is_other) for one in rest if _is_plain(one)]),
        (FILES, _file_lines(rest, files, base)),
        (RUNS, runs.lines_of(rest, _is_other)),
    )
    headed = sum(len(lines) for _, lines in lists) >= HEADED
    sheet.parts[INDEX] = [ABOUT] if headed else []
    for heading, lines in lists:
        if lines:
            sheet.parts[INDEX].extend((heading, *lines) if headed else lines)


def place_of(excerpt: Excerpt, count: Count) -> PageLine:
    """Return under what an excerpt stands, and what the line that opens it costs."""
    return runs.place_of(excerpt, count) if runs.is_part(excerpt) else selection.place_of(excerpt, count)


def _is_plain(excerpt: Excerpt) -> bool:
    return not excerpt.topic and excerpt.kind != "listing" and not runs.is_part(excerpt)


def _file_lines(picked: Sequence[Excerpt], files: Sequence[FileFact], base: str) -> list[str]:
    """Write what is about a file, the file worth most first."""
    known = {path_key(fact.path): fact for fact in files}
    about = [one for one in picked if one.topic and one.kind not in ABOUT_NO_FILE]
    lines: list[str] = []
    for topic, group in excerpts.by_topic(about).items():
        fact = known.get(path_key(topic))
        lines.extend(about_files.lines_of(relative(fact.path, base) if fact else topic, group, fact))
    return lines


ABOUT = "What was met on the way, for looking up; the story above does not need it."
HEADED = 16  # lines from which the lists of the section have headings
RUNS = "### Commands and what they showed"
SPOKEN = "### Words of requests and notes"
SAID = "### Said on the way"
FILES = "### Files"
ABOUT_NO_FILE = frozenset(("asked", "told", "listing", *runs.USES))
"""Kinds of excerpts whose topic is a heading or a reason, not a file."""


def read(items: Sequence[Sequence[str]]) -> Context:
    """Read the section back, but for what was told (see `excerpts.read_spoken`)."""
    lines = [item[0] for item in items]
    return Context(
        values=tuple(reversed([fact for line in lines if (fact := values.read(line)) is not None])),
        files=tuple(fact for line in lines if (fact := about_files.read_file(line)) is not None),
        excerpts=tuple(_excerpts(items)),
    )


def _excerpts(items: Sequence[Sequence[str]]) -> Iterator[Excerpt]:
    for rank, item in enumerate(items):
        line = item[0]
        if values.read(line) is not None or excerpts.is_spoken(line):
            continue
        if other_names.is_line(line):
            yield from other_names.read(line, rank)
            continue
        if about_files.is_about(item):
            yield from about_files.read(item, rank)
        elif runs.is_item(item) and not line.startswith(MARK + NOTED) and not excerpts.is_listing(line):
            yield from runs.read(item, rank)
        else:
            yield from excerpts.read(line, rank)


def _is_other(line: str) -> bool:
    """Whether a line is read as something else than a plain item or what was run."""
    return (
        line.removeprefix(MARK).startswith(LABELS)
        or values.read(line) is not None
        or excerpts.is_spoken(line)
        or excerpts.is_listing(line)
        or other_names.is_line(line)
        or about_files.is_about([line])
    )
