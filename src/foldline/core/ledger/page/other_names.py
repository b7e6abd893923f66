"""Names that may be needed and stand nowhere else on the page: one list at the end of the index."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.page.excerpts import made
from foldline.core.ledger.page.items import MARK
from foldline.core.ledger.page.sheet import INDEX, Sheet
from foldline.core.ledger.text import names

SHARE = 0.1  # of the budget
MOST = 300  # names
MARKS = 2  # tokens beside a name
LEAST_WORTH = 0.01
HEAD = f"{MARK}Other names that were met: "


def write(sheet: Sheet, excerpts: Sequence[Excerpt], most: int) -> None:
    """Write the names worth most that no line of the sheet holds, as many as fit."""
    told = names.keys((*sheet.lines(), *sheet.tail))
    chosen: list[str] = []
    left = most - sheet.count(HEAD)
    for text in _spelled(excerpts, _best(excerpts, told)):
        left -= sheet.count(text) + MARKS
        if left < 0:
            break
        chosen.append(text)
    if chosen:
        line = HEAD + ", ".join(f"`{text}`" for text in chosen)
        sheet.parts[INDEX].append(line)
        sheet.used += sheet.count(line)


def _best(excerpts: Iterable[Excerpt], told: AbstractSet[str]) -> list[str]:
    """Return the keys of the names worth most that are not told."""
    worth: dict[str, float] = {}
    for excerpt in excerpts:
        for key, value in excerpt.names.items():
            if value >= LEAST_WORTH and key not in told:
                worth[key] = max(worth.get(key, 0.0), value)
    return heapq.nlargest(MOST, worth, key=worth.__getitem__)


def _spelled(excerpts: Iterable[Excerpt], keys: Sequence[str]) -> list[str]:
    """Return the names as they were written, in the order of the keys."""
    wanted = set(keys)
    found: dict[str, str] = {}
    for excerpt in excerpts:
        if not wanted.isdisjoint(excerpt.names):
            for name in names.find(f"{excerpt.text} {excerpt.topic}"):
                if name.key in wanted and name.kind != "number" and not set("`,\n") & set(name.text):
                    found.setdefault(name.key, name.text)
    return [found[key] for key in keys if key in found]


def is_line(line: str) -> bool:
    """Whether a line is the one that `write` makes."""
    return line.startswith(HEAD)


def read(line: str, rank: int) -> Iterator[Excerpt]:
    """Read the names back."""
    for text in re.findall(r"`([^`]+)`", line.removeprefix(HEAD)):
        yield made(text, "mention", "", rank)
