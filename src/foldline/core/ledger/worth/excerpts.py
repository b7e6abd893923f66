"""Excerpts: the passages that carry what the future is likely to need."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from foldline.core.ledger.facts.edits import FileEdit
from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.text import paths
from foldline.core.ledger.text.words import words
from foldline.core.ledger.worth.noise import quiet
from foldline.core.ledger.worth.passages import LONG_QUOTE, QUOTE, Reader, TopicPassage
from foldline.core.ledger.worth.salience import worth
from foldline.core.ledger.worth.selection import clarity
from foldline.core.ledger.worth.stale import Edits
from foldline.core.ledger.worth.survey import NameSurvey, root, survey
from foldline.core.log.entries import Said

PER_NAME = 4  # passages kept for one name
MOST = 3_000  # excerpts of one range
CARRIED = 400  # excerpts from fold to fold, beside those that were written
QUOTED_WORDS = 2  # plain words that make a line of code or output worth quoting
QUOTED_WORTH = 0.02  # or the worth of a name in it
LEAST_WORTH = 0.002  # worth of a name from which passages are kept for it
OF_TOPIC = 0.5  # share of its topic's worth that a passage carries beside its names
LITTLE = 30_000  # characters of a range up to which its lines are quoted at length
DECAY = 0.7  # what a name's worth keeps of itself from one fold to the next
SHOWN = 0.4  # of a name's worth, what is left where the kept messages name it themselves


def collect(
    entries: Sequence[Said],
    met: NameSurvey | None = None,
    *,
    edits: Sequence[FileEdit] = (),
    base: str | None = None,
    gone: AbstractSet[str] = frozenset(),
    stopped: AbstractSet[str] = frozenset(),
    names_of_code: bool = False,
) -> tuple[Excerpt, ...]:
    """Take the excerpts of the entries that are worth carrying, in order: for each name its few best.

    `met` is the survey of the same entries, where it has been made already; `edits` are those in them, after
    which quoted lines are reworded or gone; `base` is the directory that paths are spelled from; `gone` the
    openings of what was said and holds no more; `stopped` the entries of calls that the user stopped. Lines
    of code are left out, or stand as the names in them (`names_of_code`).
    """
    met = met or survey(entries)
    value = {key: worth(name, met) for key, name in met.names.items()}
    passages = [
        passage
        for passage in _current_passages(entries, met, edits, names_of_code=names_of_code)
        if not _is_gone(passage, gone)
        and not (passage.kind in ("ran", "looked") and passage.entry in stopped)
    ]
    scores = _scores(passages, value)
    chosen = _best_of_each(passages, scores, value)
    chosen |= {at: score for at, score in scores.items() if score and passages[at].kind in ("asked", "said")}
    best = sorted(heapq.nlargest(MOST, chosen, key=chosen.__getitem__))
    base = root(met) if base is None else base
    return tuple(_excerpt(passages[at], value, met, base, scores[at]) for at in best)


def opening_of(text: str) -> str:
    """Return the beginning of a sentence by which it is known again."""
    return text[:60]


def _current_passages(
    entries: Sequence[Said], met: NameSurvey, edits: Sequence[FileEdit], *, names_of_code: bool
) -> list[TopicPassage]:
    """Read the passages of the entries as they stand after the edits, without noise."""
    place = {entry.id: number for number, entry in enumerate(entries, 1)}
    quote = QUOTE if met.size > LITTLE else LONG_QUOTE
    passages = Edits(edits, place).current(Reader(met.lines, quote).read(entries))
    return quiet(passages, names_of_code=names_of_code)


def _is_gone(passage: TopicPassage, gone: AbstractSet[str]) -> bool:
    """Whether what was said holds no more."""
    return passage.kind in ("said", "asked", "line") and any(text in passage.text for text in gone)


def _scores(passages: Sequence[TopicPassage], value: Mapping[str, float]) -> dict[int, float]:
    """Score the passages that are worth quoting, by index: the worth they carry clearly, for their length."""
    found: dict[int, float] = {}
    for index, passage in enumerate(passages):
        plain = len(words(passage.text))
        if _is_worth_quoting(passage, value, plain):
            carried = 0.0
            for key in passage.names:
                carried += value.get(key, 0.0)
            carried += OF_TOPIC * value.get(passage.topic, 0.0)
            found[index] = carried * clarity(passage.kind, plain) / (10 + len(passage.text) / 4)
    return found


def _is_worth_quoting(passage: TopicPassage, value: Mapping[str, float], plain: int) -> bool:
    """Whether a quoted line, of so many plain words, says something or holds a name that may be needed."""
    if plain >= QUOTED_WORDS or passage.kind not in ("line", "hit"):
        return True
    own = (value.get(key, 0.0) for key in passage.names if key != passage.topic)
    return max(own, default=0.0) >= QUOTED_WORTH


def _best_of_each(
    passages: Sequence[TopicPassage], scores: Mapping[int, float], value: Mapping[str, float]
) -> dict[int, float]:
    """Return the few best passages of each name that is likely to be needed: index to score."""
    kept: dict[str, list[tuple[float, int]]] = {}
    for index, score in scores.items():
        for key in passages[index].names:
            if value.get(key, 0.0) >= LEAST_WORTH:
                best = kept.setdefault(key, [])
                heapq.heappush(best, (score, index))
                if len(best) > PER_NAME:
                    heapq.heappop(best)
    return {index: score for best in kept.values() for score, index in best}


def _excerpt(
    passage: TopicPassage, value: Mapping[str, float], met: NameSurvey, base: str, score: float
) -> Excerpt:
    """Make an excerpt of a passage, its paths spelled from the working directory on."""
    keys = {key: round(value.get(key, 0.0), 4) for key in (*passage.names, passage.topic) if key in value}
    known = met.names.get(passage.topic)
    topic = paths.relative(known.text, base) if known else passage.topic
    text = paths.relative(passage.text, base) if passage.kind == "listing" else passage.text
    if len(base) > 3:
        quoted = passage.kind in ("ran", "looked", "searched") or _COMMAND.search(text)
        text = at_home(text, base) if quoted else text.replace(base, "")
    return Excerpt(
        text=text,
        topic=topic,
        weight=round(score, 5),
        entry=passage.entry,
        kind=passage.kind,
        names=keys,
        note=passage.note,
    )


_COMMAND = re.compile(r"(?:^[$>] |\bcommand: |\b(?:cd|ls|cat|cp|mv|rm) /)")
"""A line that quotes a command."""


def at_home(text: str, base: str) -> str:
    """Return a quoted command with the base directory, which the page names, left out and marked so."""
    place = base.rstrip("/")
    for quote in ("", "'", '"'):
        text = text.replace(f"`cd {quote}{place}{quote} && ", "`")
    return text.replace(base, "…/")


def merge(old: Sequence[Excerpt], new: Sequence[Excerpt]) -> tuple[Excerpt, ...]:
    """Merge the excerpts of two ranges: old worth fades, a name met again gains, the best `MOST` stay."""
    if not old:
        return tuple({(excerpt.topic, excerpt.text): excerpt for excerpt in new}.values())
    fresh = _best_worths(new, 1.0)
    faded = _best_worths(old, DECAY)

    def again(excerpt: Excerpt, factor: float) -> Excerpt:
        worths = {
            key: round(1 - (1 - fresh.get(key, 0.0)) * (1 - faded.get(key, 0.0)), 4) for key in excerpt.names
        }
        return msgspec.structs.replace(excerpt, names=worths, weight=round(excerpt.weight * factor, 5))

    joined = {(excerpt.topic, excerpt.text): again(excerpt, DECAY) for excerpt in old}
    for excerpt in new:
        joined.pop((excerpt.topic, excerpt.text), None)
        joined[excerpt.topic, excerpt.text] = again(excerpt, 1.0)
    facts = tuple(joined.values())
    kept = sorted(heapq.nlargest(MOST, range(len(facts)), key=lambda index: facts[index].weight))
    return tuple(facts[index] for index in kept)


def _best_worths(excerpts: Iterable[Excerpt], factor: float) -> dict[str, float]:
    """Return the most that each name is worth in any of the excerpts, times a factor."""
    found: dict[str, float] = {}
    for excerpt in excerpts:
        for key, value in excerpt.names.items():
            found[key] = max(found.get(key, 0.0), value * factor)
    return found


def beside(folded: Sequence[Excerpt], kept: Sequence[Excerpt]) -> tuple[Excerpt, ...]:
    """Return the excerpts of what is folded, names that kept messages carry anyway counting less."""
    shown = {key for excerpt in kept for key in excerpt.names}

    def discounted(excerpt: Excerpt) -> Excerpt:
        worths = {
            key: round(value * SHOWN, 4) if key in shown else value for key, value in excerpt.names.items()
        }
        return msgspec.structs.replace(excerpt, names=worths)

    return tuple(map(discounted, folded))


def bound(facts: Sequence[Excerpt], written: Sequence[Excerpt] = ()) -> tuple[Excerpt, ...]:
    """Return the excerpts that are carried on: all that were `written`, and the best of the others."""
    kept = {id(fact) for fact in written}
    rest = sorted((fact for fact in facts if id(fact) not in kept), key=lambda fact: -fact.weight)
    kept.update(id(fact) for fact in rest[:CARRIED])
    return tuple(fact for fact in facts if id(fact) in kept)
