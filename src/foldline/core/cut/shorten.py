"""Head and tail of a text, under a token limit, cut where a reader would cut."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

Count = Callable[[str], int]

LEAST = "…"  # what is left of a text that cannot keep even a marker
REACH = 64  # characters that a cut moves at most to spare a combining sequence
CLOSE = 50  # a search ends within one part in so many of the limit

_JOINER = "\u200d"
_HANGUL_TAIL = range(0x1160, 0x1200)  # vowels and final consonants that complete a syllable
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)


def marker(characters: int, handle: str) -> str:
    """Return what stands between head and tail: how much is left out, and how to get it back."""
    return f"[… {characters:,} characters left out{way_back(handle)} …]"


def way_back(handle: str) -> str:
    """Return the words that name an entry to recall; none without a handle."""
    return f"; recall {handle}" if handle else ""


def shorten(text: str, limit: int, count: Count, handle: str, *, whole: int | None = None) -> str:
    """Return the text, or its head and tail around a marker, so that `count` is at most `limit` tokens.

    Lines are kept whole where that costs less than a quarter of a side; surrogate pairs and combining
    sequences always are. A limit too small for the marker leaves a shorter one, at the least "…". `whole` is
    the text's count, where it is known.
    """
    whole = count(text) if whole is None else whole
    if whole <= limit:
        return text
    best = next(
        (short for short in (marker(len(text), handle), "[… left out …]") if count(short) <= limit), LEAST
    )
    low, high = 0, min(len(text), len(text) * max(limit, 0) * 2 // whole + REACH)
    while high - low > max(1, high // CLOSE):
        middle = (low + high) // 2
        candidate = _around(text, middle, handle)
        if count(candidate) <= limit:
            best, low = candidate, middle
        else:
            high = middle
    return best


def _around(text: str, characters: int, handle: str) -> str:
    """Head and tail of about so many characters in all."""
    head = _head_end(text, characters // 2)
    tail = _tail_start(text, max(head, len(text) - characters // 2))
    before = "" if not head or text[head - 1] == "\n" else "\n"
    after = "\n" if tail < len(text) else ""
    return f"{text[:head]}{before}{marker(tail - head, handle)}{after}{text[tail:]}"


def _head_end(text: str, at: int) -> int:
    line = text.rfind("\n", at - at // 4, at)
    return line + 1 if line >= 0 else spared(text, at, -1)


def _tail_start(text: str, at: int) -> int:
    if at == 0 or text[at - 1] == "\n":
        return at
    line = text.find("\n", at, at + (len(text) - at) // 4)
    return line + 1 if line >= 0 else spared(text, at, 1)


def spared(text: str, at: int, step: int) -> int:
    """Return the nearest index from `at` on, going by `step`, at which a cut splits no character."""
    for _ in range(REACH):
        if not splits(text, at):
            return at
        at += step
    return at


def splits(text: str, at: int) -> bool:
    """Whether a cut before `text[at]` takes apart what is read as one character."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    code = ord(after)
    if code < 0x300:
        return before == "\r" and after == "\n"
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    if code in _FLAG_LETTERS and ord(before) in _FLAG_LETTERS:
        return _flags_before(text, at) % 2 == 1
    joined = _JOINER in (before, after) or code in _HANGUL_TAIL or code in _SKIN_TONES
    return joined or unicodedata.category(after).startswith("M")


def _flags_before(text: str, at: int) -> int:
    run = 0
    while run < at and ord(text[at - 1 - run]) in _FLAG_LETTERS:
        run += 1
    return run


def level(sizes: Sequence[int], budget: int) -> int:
    """Return the largest cap under which the sizes fit: the sum of each at most the cap is within the budget.

    So what is small stays whole and only the largest give way.
    """
    left, remaining = budget, len(sizes)
    for size in sorted(sizes):
        if size * remaining > left:
            return max(0, left // remaining)
        left -= size
        remaining -= 1
    return max(sizes, default=0)


def shorten_all(
    texts: Sequence[str], sizes: Sequence[int], budget: int, count: Count, handle: str
) -> list[str]:
    """Return the texts (of `sizes` tokens) with the largest shortened: about `budget` tokens in all."""
    cap = level(sizes, budget)
    return [
        shorten(text, cap, count, handle, whole=size) if size > cap else text
        for text, size in zip(texts, sizes, strict=True)
    ]
