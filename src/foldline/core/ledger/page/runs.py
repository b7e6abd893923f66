"""What was run or searched, by the reason given for it, and the lines that it showed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.page.excerpts import ALSO, SHOWS, made, shown_in, shown_lines, use_lines
from foldline.core.ledger.page.items import BELOW, MARK, one_line
from foldline.core.ledger.page.sheet import Count
from foldline.core.ledger.text.sentences import clip
from foldline.core.ledger.text.words import words
from foldline.core.ledger.worth.noise import ASKED
from foldline.core.ledger.worth.selection import OPENING, OUTPUT, PageLine

USES = ("ran", "looked", "searched")
QUOTES = ("line", "hit")
OTHER = f"{MARK}Other output:"
SENTENCE = 3  # plain words from which a line tells something by itself
LONGEST_REASON = 80  # characters of the reason that lines were met for

_SHOWN = f"` {SHOWS}"  # between a command and the first line of what it showed
_USE = re.compile(r"- (?:(.*?): )?(?:ran )?([\w.:-]+ (?:pattern )?`.*)$")
_SEEN = re.compile(r"- Seen (when asked|for): (.*)$")
_WHILE = {"when asked": ASKED, "for": ""}
"""What begins the reason of lines whose command is not told."""


def is_part(excerpt: Excerpt) -> bool:
    """Whether an excerpt is a command, a search, or a line that one of them showed and no file explains."""
    return excerpt.kind in USES or (excerpt.kind in QUOTES and not excerpt.topic)


def says_little(excerpt: Excerpt) -> bool:
    """Whether an excerpt is names alone, or a line of output that no file explains and no sentence is.

    What is worth it of such names stands among the other names of a page.
    """
    if excerpt.kind in QUOTES and not excerpt.topic:
        return len(words(excerpt.text)) < SENTENCE
    return excerpt.kind in ("mention", "listing")


def place_of(excerpt: Excerpt, count: Count) -> PageLine:
    """Return the place of a use, or of a line that was shown, under its reason."""
    reason = excerpt.topic if excerpt.kind in USES else excerpt.note
    if not reason:
        return PageLine("" if excerpt.kind in USES else OUTPUT, 0)
    return PageLine(f"{OUTPUT} for {reason}", count(reason) + OPENING)


def lines_of(picked: Sequence[Excerpt], is_other: Callable[[str], bool]) -> list[str]:
    """Write what was run for each reason with what that showed, then what else was shown, by reason."""
    uses: dict[str, list[str]] = {}
    quotes: dict[str, list[Excerpt]] = {}
    for one in picked:
        if one.kind in USES:
            uses.setdefault(one.topic, []).append(one.text)
        elif one.kind in QUOTES and not one.topic:
            quotes.setdefault(one.note, []).append(one)
    other = quotes.pop("", ())
    lines: list[str] = []
    for reason, texts in uses.items():
        *before, last = use_lines(reason, (text.replace(_SHOWN, "' shows: ") for text in texts), is_other)
        shown = shown_lines(quotes.pop(reason, ()))
        lines.extend((*before, f"{last} {shown[0]}" if shown else last))
        lines.extend(BELOW + line for line in shown[1:])
    for reason, group in quotes.items():
        lines.extend((_seen(reason), *(BELOW + line for line in shown_lines(group))))
    if other:
        lines.extend((OTHER, *(BELOW + line for line in shown_lines(other))))
    return lines


def _seen(reason: str) -> str:
    """Write under what lines stand whose command is not told: the request, or the reason given."""
    when = "when asked" if reason.startswith(ASKED) else "for"
    text = one_line(reason.removeprefix(_WHILE[when])).rstrip(" .:")
    return f"{MARK}Seen {when}: {clip(text, LONGEST_REASON)}"


def is_item(item: Sequence[str]) -> bool:
    """Whether an item is from `lines_of`."""
    return item[0] == OTHER or bool(_SEEN.match(item[0]) or _USE.match(item[0]))


def read(item: Sequence[str], rank: int) -> Iterator[Excerpt]:
    """Read the excerpts of one reason back."""
    seen = _SEEN.match(item[0])
    if seen:
        yield from _read_shown(item[1:], _WHILE[seen[1]] + seen[2], rank)
        return
    use = _USE.match(item[0])
    reason, text = (use[1] or "", use[2]) if use else ("", "")
    text, shows, first = text.partition(_SHOWN)
    if text:
        text += "`" if shows else ""
        yield made(text, "searched" if text.startswith("searched") else "ran", reason, rank)
    for line in item[1:]:
        if line.startswith(ALSO):
            yield made(line.removeprefix(ALSO), "ran", reason, rank)
    shown = (line for line in item[1:] if not line.startswith(ALSO))
    yield from _read_shown([*([first] if first else []), *shown], reason, rank)


def _read_shown(lines: Sequence[str], reason: str, rank: int) -> Iterator[Excerpt]:
    for line in lines:
        for text in shown_in(line):
            yield msgspec.structs.replace(made(text, "line", "", rank), note=reason)
