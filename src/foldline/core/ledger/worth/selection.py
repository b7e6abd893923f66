"""Pick the excerpts that carry most of what the future is likely to need into a number of tokens."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.text.words import words

NAMED = 0.4  # of a name's worth, what naming it brings; the rest is for words that say what it is about
QUOTES = ("asked", "told", "line", "hit")
PROSE = ("asked", "told", "said", "opened", "changed", "ran", "looked", "searched")
MENTIONED = 0.4  # and where it stands in a list of names below the file that they are in
AGAIN = 0.002  # of a name's worth, what one more quoted line about it brings
AGAIN_IN_PROSE = 0.02  # and one more sentence, which says something else of it
MOST_QUOTES = 6  # quoted lines under one topic
MOST_ITEMS = 14  # items of any kind under one topic
MOST_OUTPUT = 48  # lines of output that stand below no file
OUTPUT = "output"
"""The place of such lines."""
OPENING = 8  # tokens of a new topic's line beside the topic itself
LEAST_ROOM = 8  # tokens below which nothing fits any more

# How clearly each kind of passage says what a name is: a sentence better than a line of code.
_CLARITY = {"hit": 0.9, "line": 0.8, "listing": 0.95, "looked": 0.8, "searched": 0.8}
# Tokens of the marks that an excerpt of a kind stands between: a list item's, or a separator in a line.
_MARKS = {
    "outline": 1,
    "listing": 2,
    "ran": 1,
    "looked": 1,
    "searched": 1,
    "opened": 1,
    "changed": 1,
    "hit": 2,
    "line": 2,
    "mention": 1,
}
_MARKS_OF_AN_ITEM = 3


def clarity(kind: str, plain: int) -> float:
    """Rate from 0 to 1 how clearly a passage says what its names are about: by its kind and plain words."""
    if kind == "mention":
        return MENTIONED
    return _CLARITY.get(kind, 1.0) * (NAMED + (1 - NAMED) * min(plain, 3) / 3)


@lru_cache(maxsize=4_096)
def _clarity_of(kind: str, text: str) -> float:
    return clarity(kind, len(words(text)))


def pick(
    excerpts: Sequence[Excerpt],
    budget: int,
    count: Callable[[str], int],
    *,
    covered: dict[str, float] | None = None,
    boost: Callable[[str], float] | None = None,
    places: Sequence[PageLine] | None = None,
) -> list[int]:
    """Pick the excerpts (indices, in order) that carry most within `budget` tokens; repeats are discounted.

    Greedy by worth newly carried per token, which is within a constant of the best for such coverage
    (Nemhauser, Wolsey and Fisher, 1978). `covered` says how well each name is carried already, 0 to 1;
    `places` under what each excerpt stands, without it under its topic.
    """
    state = _Selection(excerpts, count, {} if covered is None else covered, boost, places)
    heap = [(-state.rate(index), index) for index in range(len(excerpts))]
    heapq.heapify(heap)
    chosen: list[int] = []
    left = budget
    while heap and left > LEAST_ROOM:
        rate, index = heapq.heappop(heap)
        now = -state.rate(index)  # less than when it was queued, where others carry its names by now
        if now >= 0:
            continue
        if heap and now > heap[0][0] + 1e-12 and now > rate + 1e-12:
            heapq.heappush(heap, (now, index))
            continue
        cost = state.cost(index)
        if cost <= left and state.take(index):
            left -= cost
            chosen.append(index)
    return sorted(chosen)


class PageLine(NamedTuple):
    """Under what an excerpt stands, and the tokens of the line that opens it."""

    under: str
    opening: int


def place_of(excerpt: Excerpt, count: Callable[[str], int]) -> PageLine:
    """Return the place of an excerpt under its topic."""
    return PageLine(excerpt.topic, count(excerpt.topic) + OPENING if excerpt.topic else 0)


class _Selection:
    """What has been picked so far: names carried, topics opened, quotes under each."""

    def __init__(
        self,
        excerpts: Sequence[Excerpt],
        count: Callable[[str], int],
        covered: dict[str, float],
        boost: Callable[[str], float] | None,
        places: Sequence[PageLine] | None,
    ) -> None:
        self._excerpts = excerpts
        self._covered = covered
        self._costs = [count(_itself(one)) + _MARKS.get(one.kind, _MARKS_OF_AN_ITEM) for one in excerpts]
        self._clarity = [_clarity_of(one.kind, one.text) for one in excerpts]
        self._boosts = [boost(one.text) if boost else 1.0 for one in excerpts]
        self._places = places or [place_of(one, count) for one in excerpts]
        self._items: dict[str, int] = {}
        self._quotes: dict[str, int] = {}

    def cost(self, index: int) -> int:
        """Tokens that an excerpt takes, with the line of its topic where that does not stand yet."""
        place = self._places[index]
        return self._costs[index] + (0 if place.under in self._items else place.opening)

    def rate(self, index: int) -> float:
        """Worth newly carried per token."""
        best = self._clarity[index]
        again = best * (AGAIN_IN_PROSE if self._excerpts[index].kind in PROSE else AGAIN)
        gain = 0.0
        for key, value in self._excerpts[index].names.items():
            gain += value * max(best - self._covered.get(key, 0.0), again)
        return gain * self._boosts[index] / self.cost(index)

    def take(self, index: int) -> bool:
        """Note an excerpt as picked; False where its topic is full."""
        one = self._excerpts[index]
        quoted = one.kind in QUOTES
        group = self._places[index].under
        most, most_quotes = (
            (MOST_OUTPUT, MOST_OUTPUT) if group.startswith(OUTPUT) else (MOST_ITEMS, MOST_QUOTES)
        )
        if group and self._items.get(group, 0) >= most:
            return False
        if quoted and group and self._quotes.get(group, 0) >= most_quotes:
            return False
        self._items[group] = self._items.get(group, 0) + 1
        self._quotes[group] = self._quotes.get(group, 0) + quoted
        for key in one.names:
            self._covered[key] = max(self._covered.get(key, 0.0), self._clarity[index])
        return True


def _itself(excerpt: Excerpt) -> str:
    """What an excerpt adds to a page: of a listed path its last part, as the folder is written once."""
    return excerpt.text.rpartition("/")[2] if excerpt.kind == "listing" else excerpt.text
