"""What was run or searched, by the reason given for it, and the lines that it showed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.page.excerpts import SHOWS, made, shown_in, shown_lines, use_lines
from foldline.core.ledger.page.items import BELOW, MARK, one_line
from foldline.core.ledger.page.sheet import Count
from foldline.core.ledger.text.sentences import clip
from foldline.core.ledger.worth.selection import OPENING, PageLine

USES = ("ran", "searched")
QUOTES = ("line", "hit", "mention")
LONGEST_REASON = 120  # characters of a reason that stands alone, before what was shown

_USE = re.compile(r"- (?:(.*?): )?(?:ran )?([\w.:-]+ (?:pattern )?`.*)$")
_REASON = re.compile(r"- (.+):$")


def is_part(excerpt: Excerpt) -> bool:
    """Whether an excerpt is a command, a search, or a line that one of them showed and no file explains."""
    return excerpt.kind in USES or (excerpt.kind in QUOTES and not excerpt.topic)


def reason_of(excerpt: Excerpt) -> str:
    """Return why it was run or looked up."""
    return excerpt.topic if excerpt.kind in USES else excerpt.note


def place_of(excerpt: Excerpt, count: Count) -> PageLine:
    """Return the place of an excerpt under its reason."""
    reason = reason_of(excerpt)
    return PageLine(f"for {reason}", count(clip(reason, LONGEST_REASON)) + OPENING if reason else 0)


def lines_of(reason: str, group: Sequence[Excerpt], is_other: Callable[[str], bool]) -> Iterator[str]:
    """Write what was run for one reason, then the lines that it showed."""
    uses = [excerpt.text for excerpt in group if excerpt.kind in USES]
    quotes = [excerpt for excerpt in group if excerpt.kind in QUOTES]
    if uses:
        yield from use_lines(reason, uses, is_other)
    else:
        yield f"{MARK}{clip(one_line(reason), LONGEST_REASON).rstrip(' .:') or 'Output'}:"
    yield from (BELOW + line for line in shown_lines(quotes))


def is_item(item: Sequence[str]) -> bool:
    """Whether an item is from `lines_of`."""
    return bool(_USE.match(item[0])) or (bool(_REASON.match(item[0])) and _shows(item))


def _shows(item: Sequence[str]) -> bool:
    return len(item) > 1 and all(line.startswith(SHOWS) for line in item[1:])


def read(item: Sequence[str], rank: int) -> Iterator[Excerpt]:
    """Read the excerpts of one reason back."""
    use, alone = _USE.match(item[0]), _REASON.match(item[0])
    reason = (use[1] if use else alone[1] if alone else "") or ""
    if use:
        text = use[2]
        yield made(text, "searched" if text.startswith("searched") else "ran", reason, rank)
    for line in item[1:]:
        for text in shown_in(line):
            yield msgspec.structs.replace(made(text, "line", "", rank), note=reason)
