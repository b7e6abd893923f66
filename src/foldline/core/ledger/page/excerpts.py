"""Excerpts as lines: what was said under its heading, what a search showed, what was run, and plain items."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.page.items import BELOW, MARK, NOTED, one_line, told_apart
from foldline.core.ledger.text import names
from foldline.core.ledger.text.paths import of_folder
from foldline.core.ledger.text.sentences import clip

LONGEST_LINE = 240  # characters at which a joined line is broken: each line starts with what it is about
LONGEST_REASON = 110  # characters of why something was run
ALSO = "also "  # before more that was run for the same reason
SHOWS = "shows: "  # before quoted lines of code or output
PARTED = " · "  # between two of them

FIRST_WORTH = 0.4  # worth of a name in the first line of a part; what stands first was worth most
FADING = 0.985  # from one line to the next
LEAST_WORTH = 0.05

_SPOKEN = {"asked": "Asked", "told": "Noted earlier"}
_SPOKEN_KINDS = {label: kind for kind, label in _SPOKEN.items()}
_UNDER = re.compile(r'- (Asked|Noted earlier)(?: under "(.*)")?:$')
_ALONE = re.compile(r"- (Asked|Noted earlier): (.*)$")
_LISTING = re.compile(r"- seen (?:\((.*?)\)|in a listing): (`.*)$")


def by_topic(excerpts: Iterable[Excerpt], *, in_order: bool = False) -> dict[str, list[Excerpt]]:
    """Group excerpts by topic, the topic worth most first, or `in_order` as they were said."""
    groups: dict[str, list[Excerpt]] = {}
    for excerpt in excerpts:
        groups.setdefault(excerpt.topic, []).append(excerpt)
    if in_order:
        return groups
    worths = {topic: max(excerpt.weight for excerpt in group) for topic, group in groups.items()}
    return {topic: groups[topic] for topic in sorted(groups, key=lambda topic: -worths[topic])}


def made(text: str, kind: str, topic: str, rank: int) -> Excerpt:
    """Make an excerpt of what stands on a page; `rank` is the number of its item, the first worth most."""
    worth = max(LEAST_WORTH, FIRST_WORTH * FADING**rank)
    keys = dict.fromkeys((name.key for name in names.find(f"{text} {topic}")), round(worth, 4))
    return Excerpt(text, topic, round(worth / 10, 5), "", kind, keys)


def spoken_lines(kind: str, picked: Iterable[Excerpt]) -> Iterator[str]:
    """Write the user's words, or what a program put beside them, under the headings that they stood below."""
    label = _SPOKEN[kind]
    groups = by_topic((excerpt for excerpt in picked if excerpt.kind == kind), in_order=True)
    for topic, group in groups.items():
        texts = [one_line(excerpt.text) for excerpt in group]
        yield f'{MARK}{label} under "{one_line(topic)}":' if topic else f"{MARK}{label}:"
        yield from (BELOW + text for text in texts)


def is_spoken(line: str) -> bool:
    """Whether a line is one of `spoken_lines`."""
    return bool(_UNDER.match(line) or _ALONE.match(line))


def read_spoken(items: Iterable[Sequence[str]]) -> Iterator[Excerpt]:
    """Read what was said back from all items of a page's parts."""
    for rank, item in enumerate(items):
        under, alone = _UNDER.match(item[0]), _ALONE.match(item[0])
        if under:
            for text in item[1:]:
                yield made(text, _SPOKEN_KINDS[under.group(1)], under.group(2) or "", rank)
        elif alone:
            yield made(alone.group(2), _SPOKEN_KINDS[alone.group(1)], "", rank)


def use_lines(reason: str, group: Iterable[str], is_other: Callable[[str], bool]) -> list[str]:
    """Write what was run or searched for one reason: an item with the reason first, the rest below it."""
    before = clip(one_line(reason), LONGEST_REASON).rstrip(" .:")
    first, *rest = joined(dict.fromkeys(map(one_line, group)))
    return [
        told_apart(f"{before}: {first}" if before else first, NOTED, is_other),
        *(BELOW + ALSO + line for line in rest),
    ]


def plain_line(excerpt: Excerpt, is_other: Callable[[str], bool]) -> str:
    """Write an excerpt that is about no file; `is_other` says which lines are read as something else."""
    return told_apart(one_line(excerpt.text), NOTED, is_other)


def shown_lines(quotes: Iterable[Excerpt]) -> list[str]:
    """Write quoted lines of code or output, as many on one line as its length allows."""
    texts = dict.fromkeys(one_line(quote.text).replace(PARTED, " - ") for quote in quotes)
    return [SHOWS + line for line in joined(texts, PARTED)]


def shown_in(line: str) -> list[str]:
    """Return the quoted lines that stand on one line."""
    return line.removeprefix(SHOWS).split(PARTED)


def joined(pieces: Iterable[str], mark: str = "; ") -> list[str]:
    """Join pieces to as few lines as their length allows."""
    lines: list[str] = []
    for piece in pieces:
        if lines and len(lines[-1]) + len(piece) + len(mark) <= LONGEST_LINE:
            lines[-1] += mark + piece
        else:
            lines.append(piece)
    return lines


def is_listing(line: str) -> bool:
    """Whether a line names what a search or a listing showed, as pages of older versions do."""
    return _LISTING.match(line) is not None


def read(line: str, rank: int) -> Iterator[Excerpt]:
    """Read one line back that is neither a value's nor about a file."""
    listing = _LISTING.match(line)
    if line.startswith(MARK + NOTED):
        yield made(line.removeprefix(MARK + NOTED).removeprefix(SHOWS), "said", "", rank)
    elif listing:
        for several in re.findall(r"`([^`]+)`", listing.group(2)):
            for path in of_folder(several):
                yield made(path, "listing", listing.group(1) or "", rank)
    else:
        yield made(line.removeprefix(MARK).removeprefix(SHOWS), "said", "", rank)
