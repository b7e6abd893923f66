"""What was run or searched, by the reason given for it, and the lines that it showed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.page.excerpts import MENTIONS, SHOWS, joined, made, shown_in, shown_lines, use_lines
from foldline.core.ledger.page.items import BELOW, MARK
from foldline.core.ledger.page.sheet import Count
from foldline.core.ledger.worth.selection import OPENING, OUTPUT, PageLine

USES = ("ran", "looked", "searched")
QUOTES = ("line", "hit", "mention")
OTHER = f"{MARK}Other output:"

_SHOWN = f"` {SHOWS}"  # between a command and the first line of what it showed
_USE = re.compile(r"- (?:(.*?): )?(?:ran )?([\w.:-]+ (?:pattern )?`.*)$")


def is_part(excerpt: Excerpt) -> bool:
    """Whether an excerpt is a command, a search, or a line that one of them showed and no file explains."""
    return excerpt.kind in USES or (excerpt.kind in QUOTES and not excerpt.topic)


def place_of(excerpt: Excerpt, count: Count) -> PageLine:
    """Return the place of a use under its reason; what was shown needs no line of its own."""
    if excerpt.kind not in USES:
        return PageLine(OUTPUT, 0)
    if not excerpt.topic:
        return PageLine("", 0)
    return PageLine(f"for {excerpt.topic}", count(excerpt.topic) + OPENING)


def lines_of(picked: Sequence[Excerpt], is_other: Callable[[str], bool]) -> list[str]:
    """Write what was run for each reason with what that showed, then what else was shown."""
    uses: dict[str, list[str]] = {}
    quotes: dict[str, list[Excerpt]] = {}
    for one in picked:
        if one.kind in USES:
            uses.setdefault(one.topic, []).append(one.text)
    for one in picked:
        if one.kind in QUOTES and not one.topic:
            quotes.setdefault(one.note if one.note in uses else "", []).append(one)
    other = quotes.pop("", ())
    lines: list[str] = []
    for reason, texts in uses.items():
        *before, last = use_lines(reason, (text.replace(_SHOWN, "' shows: ") for text in texts), is_other)
        shown = shown_lines(quotes.get(reason, ()))
        lines.extend((*before, f"{last} {shown[0]}" if shown else last))
        lines.extend(BELOW + line for line in shown[1:])
    if other:
        texts = [one for one in other if one.kind != "mention"]
        named = dict.fromkeys(name for one in other if one.kind == "mention" for name in one.text.split(", "))
        lines.extend((OTHER, *(BELOW + line for line in shown_lines(texts))))
        lines.extend(BELOW + MENTIONS + line for line in joined(named, ", "))
    return lines


def is_item(item: Sequence[str]) -> bool:
    """Whether an item is from `lines_of`."""
    return item[0] == OTHER or bool(_USE.match(item[0]))


def read(item: Sequence[str], rank: int) -> Iterator[Excerpt]:
    """Read the excerpts of one reason back."""
    use = _USE.match(item[0])
    reason, text = (use[1] or "", use[2]) if use else ("", "")
    text, shows, first = text.partition(_SHOWN)
    if text:
        text += "`" if shows else ""
        yield made(text, "searched" if text.startswith("searched") else "ran", reason, rank)
    for line in (*([first] if first else []), *item[1:]):
        kind = "mention" if line.startswith(MENTIONS) else "line"
        for text in line.removeprefix(MENTIONS).split(", ") if kind == "mention" else shown_in(line):
            yield msgspec.structs.replace(made(text, kind, "", rank), note=reason)
