"""Prose into sentences, in several languages; every sentence is a slice of the text it came from."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_BREAK = re.compile(r"\n(?=[^a-zäöüßà-ÿ])|\n\s*\n|(?<=[.!?;])[\"')\]*_]*\s+(?=\S)|(?<=[。！？；])[」』”）]?")
_BULLET = re.compile(r"\s*(?:(?:[-*+•–·]|\(?\d{1,2}[.)]|\(?[a-z]\)|#{1,6}|\[[ xX]\])\s+)*")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|resp|approx|incl|z\.B|d\.h|usw|bzw|p\.ex|Mr|Ms|Dr|St|No|fig)\.|;)"
    r"\Z",
    re.IGNORECASE,
)
_NUMBERING = re.compile(
    r"(?:\A|[\n:;,(])\s*(?:(?:step|section|chapter|item|rule|version|part|phase)\s+)?\d{1,2}\.\Z",
    re.IGNORECASE,
)
"""A number that begins what follows, not one that ends a sentence ("set the retries to 10.")."""
_NUMBERED = 40
"""Characters before a full stop that are searched for such a number."""
_HALF_QUOTED = re.compile(r'\A"|(?<=[.!?])"\Z')
"""A mark of a quotation that holds more than the one sentence."""
_LONGEST = 600
"""Characters beyond which a "sentence" is data, not prose."""
_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Z]|[0-?@-Z\\-_])")


def without_code(text: str) -> Iterator[str]:
    """Yield the text outside fenced blocks, in order."""
    at = 0
    for match in _FENCE.finditer(text) if "```" in text or "~~~" in text else ():
        yield text[at : match.start()]
        at = match.end()
    yield text[at:]


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences and list items of a text.

    Fenced blocks are left out, bullets, heading marks and half a pair of quotes cut off.
    """
    for prose in without_code(text):
        start = 0
        for match in _BREAK.finditer(prose):
            at = match.start()
            stops = prose[at - 1 : at] in (".", ";") and "\n" not in match.group()
            if stops and _runs_on(prose, start, match):
                continue
            yield from _sentence(prose[start : match.end()])
            start = match.end()
        yield from _sentence(prose[start:])


def _runs_on(prose: str, start: int, stop: re.Match[str]) -> bool:
    """Whether the full stop or semicolon at `stop` ends no sentence."""
    before = prose[max(start, stop.start() - 8) : stop.start()]
    if before[-2:-1].isdigit() and before[-1] == ".":
        follows = prose[stop.end() : stop.end() + 1]
        lead = max(start, stop.start() - _NUMBERED)
        return follows.islower() or bool(_NUMBERING.search(prose, lead, stop.start()))
    return bool(_ABBREVIATION.search(before))


def _sentence(piece: str) -> Iterator[str]:
    """Yield the piece without its bullet, if it is prose at all."""
    lead = _BULLET.match(piece)
    trimmed = piece[lead.end() if lead else 0 :].strip()
    if trimmed.count('"') == 1:
        trimmed = _HALF_QUOTED.sub("", trimmed)
    if 2 <= len(trimmed) <= _LONGEST:
        yield trimmed


def uncoloured(text: str) -> str:
    """Return a text without the codes that colour a terminal and move its cursor (ECMA-48)."""
    return _CODES.sub("", text) if "\x1b" in text else text


def one_line(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def clip(text: str, limit: int) -> str:
    """Shorten to at most `limit` characters on one line, at a word where possible, marked by an ellipsis."""
    line = " ".join(text[: limit * 8].split())
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    space = head.rfind(" ")
    return (head[:space] if space > limit * 2 // 3 else head) + "…"


def cut(line: str, limit: int) -> str:
    """Shorten one line to at most `limit` characters, its spaces as they are, marked by an ellipsis."""
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list that is written as one string."""
    return frozenset(text.split())
