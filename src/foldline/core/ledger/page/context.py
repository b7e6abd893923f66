"""What else a reader needs: values, what a program told, what files and listings showed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from foldline.core.ledger.facts.kinds import Excerpt, FileFact, ValueFact
from foldline.core.ledger.page import about_files, excerpts, values
from foldline.core.ledger.page.items import LABELS, MARK
from foldline.core.ledger.page.sheet import CONTEXT, Sheet
from foldline.core.ledger.text.names import path_key
from foldline.core.ledger.text.paths import relative


class Context(msgspec.Struct, frozen=True):
    """What the section says, in order; of values the newest last."""

    values: tuple[ValueFact, ...]
    files: tuple[FileFact, ...]
    excerpts: tuple[Excerpt, ...]


def write(sheet: Sheet, picked: Sequence[Excerpt], files: Sequence[FileFact], base: str) -> None:
    """Write the excerpts that were picked, by topic."""
    known = {path_key(fact.path): fact for fact in files}
    context = sheet.parts[CONTEXT]
    context.extend(excerpts.spoken_lines("told", picked))
    for topic, group in excerpts.by_topic(picked).items():
        listed = [excerpt for excerpt in group if excerpt.kind == "listing"]
        used = [excerpt for excerpt in group if excerpt.kind in ("ran", "searched")]
        rest = [excerpt for excerpt in group if excerpt.kind not in ABOUT_NO_FILE]
        if listed:
            context.extend(excerpts.listing_lines(topic, listed))
        if used:
            context.extend(excerpts.use_lines(topic, (excerpt.text for excerpt in used), _is_other))
        if not topic:
            context.extend(excerpts.plain_line(excerpt, _is_other) for excerpt in rest)
        elif rest:
            fact = known.get(path_key(topic))
            context.extend(about_files.lines_of(relative(fact.path, base) if fact else topic, rest, fact))


ABOUT_NO_FILE = frozenset(("asked", "told", "listing", "ran", "searched"))
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
        if about_files.is_about(item):
            yield from about_files.read(item, rank)
        else:
            yield from excerpts.read(line, rank)


def _is_other(line: str) -> bool:
    """Whether a line is read as something else than a plain item or what was run."""
    return (
        line.removeprefix(MARK).startswith(LABELS)
        or values.read(line) is not None
        or excerpts.is_spoken(line)
        or excerpts.is_listing(line)
        or about_files.is_about([line])
    )
