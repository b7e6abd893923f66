"""Choose the passages that carry what the future is likely to need, within a bound."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

import msgspec

from foldline.core.ledger.facts import answers
from foldline.core.ledger.facts.edits import FileEdit
from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.page import layout
from foldline.core.ledger.text.words import words
from foldline.core.ledger.worth.noise import quiet
from foldline.core.ledger.worth.passages import LONG_QUOTE, QUOTE, Reader, TopicPassage
from foldline.core.ledger.worth.salience import WEIGHTS, worth
from foldline.core.ledger.worth.stale import Edits
from foldline.core.ledger.worth.survey import NameSurvey, root, survey
from foldline.core.log.entries import Said

PER_NAME = 4  # passages kept for one name
MOST = 3_000  # excerpts of one range
QUOTED_WORDS = 2  # plain words that make a line of code or output worth quoting
QUOTED_WORTH = 0.02  # or the worth of a name in it
LEAST_WORTH = 0.002
LITTLE = 30_000  # characters of a range up to which its lines are quoted at length

# How well each kind of passage tells a reader what a name is: a sentence better than a line of code.
_TELLING = {"hit": 0.9, "line": 0.8, "listing": 0.95}
NAMED = 0.4  # of a name's worth, what naming it brings; the rest is for words that say what it is about


@lru_cache(maxsize=4_096)
def telling(kind: str, text: str) -> float:
    """Rate from 0 to 1 how well a passage ties its names to what they are about: by kind and plain words."""
    return _telling(kind, len(words(text)))


def _telling(kind: str, plain: int) -> float:
    return _TELLING.get(kind, 1.0) * (NAMED + (1 - NAMED) * min(plain, 3) / 3)


def choose(
    entries: Sequence[Said],
    met: NameSurvey | None = None,
    weights: Sequence[float] | None = None,
    most: int = MOST,
    *,
    made: Sequence[FileEdit] = (),
    base: str | None = None,
    gone: AbstractSet[str] = frozenset(),
    stopped: AbstractSet[str] = frozenset(),
) -> tuple[Excerpt, ...]:
    """Return the excerpts of the entries worth carrying, in order: for each name its few best passages.

    `met` is the survey of the same entries, where it has been made already; `made` the edits in them, after
    which quoted lines are reworded or gone; `base` the directory that paths are spelled from; `gone` the
    openings of what was said and holds no more; `stopped` the entries of calls that the user stopped.
    """
    seen = met or survey(entries)
    value = {key: worth(name, seen, weights or WEIGHTS) for key, name in seen.names.items()}
    place = {entry.id: number for number, entry in enumerate(entries, 1)}
    quote = QUOTE if seen.size > LITTLE else LONG_QUOTE
    passages = quiet(Edits(made, place).current(Reader(seen.lines, quote).read(entries)))
    said = [len(words(passage.text)) for passage in passages]
    scored = [
        (_score(passage, value, said[index]), index)
        for index, passage in enumerate(passages)
        if _worth_quoting(passage, value, said[index])
        and not _is_gone(passage, gone)
        and not (passage.kind == "ran" and passage.entry in stopped)
    ]
    chosen = _best_of_each(scored, passages, value)
    chosen.update(
        {index: score for score, index in scored if passages[index].kind in ("asked", "said") and score}
    )
    order = sorted(heapq.nlargest(most, chosen, key=lambda index: chosen[index]))
    place_of = root(seen) if base is None else base
    return tuple(_excerpt(passages[index], value, seen, place_of, chosen[index]) for index in order)


def _best_of_each(
    scored: Sequence[tuple[float, int]], passages: Sequence[TopicPassage], value: Mapping[str, float]
) -> dict[int, float]:
    """Return the few best passages of each name that is likely to be needed: index to score."""
    kept: dict[str, list[tuple[float, int]]] = {}
    for score, index in scored:
        for key in passages[index].names:
            if value.get(key, 0.0) >= LEAST_WORTH:
                best = kept.setdefault(key, [])
                heapq.heappush(best, (score, index))
                if len(best) > PER_NAME:
                    heapq.heappop(best)
    return {index: score for best in kept.values() for score, index in best}


def opening_of(text: str) -> str:
    """Return the beginning of a sentence by which it is known again."""
    return text[:60]


def _is_gone(passage: TopicPassage, gone: AbstractSet[str]) -> bool:
    """Whether what was said holds no more."""
    return passage.kind in ("said", "asked", "line") and any(text in passage.text for text in gone)


def _worth_quoting(passage: TopicPassage, value: Mapping[str, float], plain: int) -> bool:
    """Whether a quoted line, of so many plain words, says something or holds a name that is likely to be needed."""
    if plain >= QUOTED_WORDS or passage.kind not in ("line", "hit"):
        return True
    own = (value.get(key, 0.0) for key in passage.names if key != passage.topic)
    return max(own, default=0.0) >= QUOTED_WORTH


def _score(passage: TopicPassage, value: Mapping[str, float], plain: int) -> float:
    carried = 0.0
    for key in passage.names:
        carried += value.get(key, 0.0)
    carried += 0.5 * value.get(passage.topic, 0.0)
    return carried * _telling(passage.kind, plain) / (10 + len(passage.text) / 4)


def _excerpt(
    passage: TopicPassage, value: Mapping[str, float], seen: NameSurvey, base: str, score: float
) -> Excerpt:
    """Make an excerpt of a passage, its paths spelled from the working directory on."""
    keys = {key: round(value.get(key, 0.0), 4) for key in (*passage.names, passage.topic) if key in value}
    known = seen.names.get(passage.topic)
    topic = layout.relative(known.text, base) if known else passage.topic
    text = layout.relative(passage.text, base) if passage.kind == "listing" else passage.text
    if len(base) > 3:
        text = text.replace(base, "")
    return Excerpt(
        text=text,
        topic=topic,
        weight=round(score, 5),
        entry=passage.entry,
        kind=passage.kind,
        names=keys,
        note=passage.note,
    )


def pick(
    excerpts: Sequence[Excerpt],
    budget: int,
    count: Callable[[str], int],
    *,
    covered: dict[str, float] | None = None,
    boost: Callable[[str], float] | None = None,
) -> list[int]:
    """Pick the excerpts (indices, in order) that carry most within `budget` tokens; repeats are discounted.

    Greedy by worth newly carried per token, which is within a constant of the best for such coverage
    (Nemhauser, Wolsey and Fisher, 1978). `covered` says how well each name is carried already, 0 to 1.
    """
    state = _Picking(excerpts, count, {} if covered is None else covered, boost)
    heap = [(-state.rate(index), index) for index in range(len(excerpts))]
    heapq.heapify(heap)
    chosen: list[int] = []
    left = budget
    while heap and left > 8:
        rate, index = heapq.heappop(heap)
        now = -state.rate(index)
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


QUOTES = ("asked", "told", "line", "hit")
PROSE = ("asked", "told", "said", "opened", "changed", "ran", "searched")
AGAIN = 0.002  # of a name's worth, what one more quoted line about it brings
AGAIN_IN_PROSE = 0.02  # and one more sentence, which says something else of it
MOST_QUOTES = 6  # quoted lines under one topic
MOST_ITEMS = 14  # items of any kind under one topic


DECAY = 0.7  # what a name's worth keeps of itself from one fold to the next


def merge(old: Sequence[Excerpt], new: Sequence[Excerpt], most: int = MOST) -> tuple[Excerpt, ...]:
    """Merge the excerpts of two ranges: old worth fades, a name met again gains, the best `most` stay."""
    if not old:
        return tuple({(excerpt.topic, excerpt.text): excerpt for excerpt in new}.values())
    fresh: dict[str, float] = {}
    for excerpt in new:
        for key, value in excerpt.names.items():
            fresh[key] = max(fresh.get(key, 0.0), value)
    faded: dict[str, float] = {}
    for excerpt in old:
        for key, value in excerpt.names.items():
            faded[key] = max(faded.get(key, 0.0), value * DECAY)

    def again(excerpt: Excerpt, factor: float) -> Excerpt:
        worths = {
            key: round(1 - (1 - fresh.get(key, 0.0)) * (1 - faded.get(key, 0.0)), 4) for key in excerpt.names
        }
        return msgspec.structs.replace(excerpt, names=worths, weight=round(excerpt.weight * factor, 5))

    joined = {
        (excerpt.topic, excerpt.text): again(excerpt, DECAY) for excerpt in old if excerpt.kind != "latest"
    }
    for excerpt in new:
        joined.pop((excerpt.topic, excerpt.text), None)
        joined[excerpt.topic, excerpt.text] = again(excerpt, 1.0)
    facts = answers.newest(joined.values())
    kept = sorted(heapq.nlargest(most, range(len(facts)), key=lambda index: facts[index].weight))
    return tuple(facts[index] for index in kept)


SHOWN = 0.4  # of a name's worth, what is left where the kept messages name it themselves


def beside(folded: Sequence[Excerpt], kept: Sequence[Excerpt]) -> tuple[Excerpt, ...]:
    """Return the excerpts of what is folded, names that kept messages carry anyway counting less."""
    shown = {key for excerpt in kept for key in excerpt.names}
    return tuple(
        msgspec.structs.replace(
            excerpt,
            names={
                key: round(value * SHOWN, 4) if key in shown else value
                for key, value in excerpt.names.items()
            },
        )
        for excerpt in folded
    )


# Tokens of the marks that an excerpt of a kind stands between: a list item's, or a separator in a line.
_AROUND = {
    "outline": 1,
    "listing": 2,
    "ran": 1,
    "searched": 1,
    "opened": 1,
    "changed": 1,
    "hit": 4,
    "line": 4,
}


def _itself(excerpt: Excerpt) -> str:
    """What an excerpt adds to a page: of a listed path its last part, as the folder is written once."""
    return excerpt.text.rpartition("/")[2] if excerpt.kind == "listing" else excerpt.text


class _Picking:
    """What has been picked so far: names carried, topics opened, quotes under each."""

    def __init__(
        self,
        excerpts: Sequence[Excerpt],
        count: Callable[[str], int],
        covered: dict[str, float],
        boost: Callable[[str], float] | None,
    ) -> None:
        self.excerpts = excerpts
        self.covered = covered
        self.costs = [count(_itself(excerpt)) + _AROUND.get(excerpt.kind, 3) for excerpt in excerpts]
        self.openings: dict[str, int] = {}
        self.quality = [telling(excerpt.kind, excerpt.text) for excerpt in excerpts]
        self.boosts = [boost(excerpt.text) if boost else 1.0 for excerpt in excerpts]
        for excerpt in excerpts:
            if excerpt.topic not in self.openings:
                self.openings[excerpt.topic] = count(excerpt.topic) + 8 if excerpt.topic else 0
        self.items: dict[str, int] = {}
        self.quotes: dict[str, int] = {}

    def cost(self, index: int) -> int:
        topic = self.excerpts[index].topic
        return self.costs[index] + (0 if topic in self.items else self.openings[topic])

    def rate(self, index: int) -> float:
        """Worth newly carried per token."""
        quality = self.quality[index]
        again = quality * (AGAIN_IN_PROSE if self.excerpts[index].kind in PROSE else AGAIN)
        gain = 0.0
        for key, value in self.excerpts[index].names.items():
            gain += value * max(quality - self.covered.get(key, 0.0), again)
        return gain * self.boosts[index] / self.cost(index)

    def take(self, index: int) -> bool:
        """Note an excerpt as picked; False where its topic is full."""
        excerpt = self.excerpts[index]
        quoted = excerpt.kind in QUOTES
        if self.items.get(excerpt.topic, 0) >= (MOST_ITEMS if excerpt.topic else 10**6):
            return False
        if quoted and excerpt.topic and self.quotes.get(excerpt.topic, 0) >= MOST_QUOTES:
            return False
        self.items[excerpt.topic] = self.items.get(excerpt.topic, 0) + 1
        self.quotes[excerpt.topic] = self.quotes.get(excerpt.topic, 0) + quoted
        for key in excerpt.names:
            self.covered[key] = max(self.covered.get(key, 0.0), self.quality[index])
        return True
