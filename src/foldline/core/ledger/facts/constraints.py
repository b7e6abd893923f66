"""Standing constraints: what the user wrote that must always or never hold, word for word.

Only the user's own words are read (see `origin`). A newer constraint replaces an older one that says the
same again or the opposite; an order or a permission such as "actually, use tabs" or "you may now push" takes
the place of the constraint that it turns around, and is nothing where there is none. In doubt both stay, and
the newer one is marked as later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal

import msgspec

from foldline.core.ledger.facts.actions import Stretch
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.ledger.text.changes import Change, change_of
from foldline.core.ledger.text.cues import is_constraint
from foldline.core.ledger.text.origin import UserSpeech, is_plan
from foldline.core.ledger.text.pasted import REPEATED, typed
from foldline.core.ledger.text.sentences import sentences
from foldline.core.ledger.text.subjects import alternative_sets, alternatives, content, roots, subject_of
from foldline.core.log.entries import Said

_HEAD = 20_000
_TAIL = 5_000
"""Characters at the two ends of one message that are read for constraints: the middle of a paste is data."""

SAME = 0.75
"""Share of all their content words that two constraints have in common from which one restates the other."""
TURNED = 0.6
"""Share of the shorter one's words that a sentence shares with the one that it changes."""
COVERED = 0.75
"""Share of a constraint's words that a permission names where it lifts the whole of it."""

_LIST = re.compile(r"\b(?:or|and|nor|oder|und|ou|et|y|o)\b|[,、]")

_DUTY = re.compile(r"\b(?:needs?|need(?: not|n['’]t)|ha(?:ve|s) to|required|necessary)\b", re.IGNORECASE)
_WHEN = re.compile(r"\b(?:before|after|when|whenever|prior to)\b.*", re.IGNORECASE)
"""What a sentence that lifts a duty says, and the end of a rule that says when to do it."""

Verdict = Literal["none", "later", "replaces", "lifts"]
"""What a newer sentence does to an older constraint; "later": it may change it, so both stay."""


class Ended(msgspec.Struct, frozen=True):
    """A constraint that no longer holds, the later sentence that ended it, and how."""

    fact: ConstraintFact
    by: ConstraintFact
    how: Literal["replaced", "lifted"]


def candidates(span: str) -> Iterator[str]:
    """Yield the sentences of a span that the user can have meant as prose of their own."""
    if is_plan(span):
        return
    ends = [span] if len(span) <= _HEAD + _TAIL else [span[:_HEAD], span[-_TAIL:]]
    for end in ends:
        for sentence in sentences(typed(end)):
            if end.count(sentence) < REPEATED:  # a person says it once
                yield sentence


def verdict(new: str, old: str) -> Verdict:
    """Say what the newer of two sentences does to the older one, a constraint.

    It takes its place where it names another member of one set of alternatives, where one restates the other
    (all content words of one are the other's, and most of all are common), or where it is an order that
    changes something about the same thing; a permission lifts it. In doubt it is only a later one.
    """
    change = change_of(new)
    first, second = frozenset(roots(old)), frozenset(roots(change.said))
    if not first or not second:
        return "replaces" if old == new else "none"
    common = len(first & second)
    share = common / min(len(first), len(second))
    if change.kind == "lifts":
        return _lifting(new, change, old, share)
    if share == 1 and common / len(first | second) >= SAME:
        return "later" if change.kind == "turns" and change.hedged else "replaces"
    if change.kind == "adds":
        return "none"
    if found := _alternative(old, change):
        return found
    if change.kind in ("turns", "announces"):
        return _turning(change, first, second)
    return "none"


def _lifting(new: str, change: Change, old: str, share: float) -> Verdict:
    """What a permission does: it must name what the constraint is about, but for the verb of either."""
    before, after = roots(old), roots(change.said)
    first, second = frozenset(before), frozenset(after)
    named = frozenset(roots(change.lifted))
    if named and named <= first:
        return "lifts"
    if share < TURNED:
        return "none"
    own = second - first - frozenset(after[:1])
    if _DUTY.search(new):  # when it was to be done need not be named
        before = roots(_WHEN.sub("", old))
    about = frozenset(before) - (frozenset(before[:1]) - second)
    part = bool(_LIST.search(old)) and not first <= second
    whole = bool(about) and len(about & second) >= COVERED * len(about)
    return "lifts" if whole and not (own or part or change.hedged) else "later"


def _turning(change: Change, first: frozenset[str], second: frozenset[str]) -> Verdict:
    """What an order that says it changes something does to a constraint with the words `first`."""
    common = first & second
    displaced = frozenset(roots(change.displaced))
    if displaced and displaced <= first and (common - displaced or first == displaced):
        return "replaces"
    if len(common) < TURNED * min(len(first), len(second)):
        return "later" if change.kind == "announces" and len(common) * 2 >= len(first) else "none"
    if change.kind == "announces":
        return "replaces" if len(common) > 1 or len(first) <= 2 else "later"
    if len(common) == 1 and first != common:
        return "none"
    return "replaces" if (first <= second or second <= first) and not change.hedged else "later"


def _alternative(old: str, change: Change) -> Verdict | None:
    """What a sentence that names another member of a set of alternatives does, None where it names none."""
    found: Verdict | None = None
    for here, there in alternatives(content(old), content(change.said)):
        common = len(here & there)
        if not there or (here and common >= TURNED * min(len(here), len(there))):
            return "replaces"
        if not here:
            found = "later" if change.kind == "none" else "replaces"
        elif common:
            found = "later"
    return found


def supersedes(new: str, old: str) -> bool:
    """Whether the newer of two sentences takes the older one's place, or lifts it; in doubt both stay."""
    return verdict(new, old) in ("replaces", "lifts")


class _Held:
    """The constraints that hold, in order, found by their words."""

    def __init__(self, facts: Iterable[ConstraintFact] = ()) -> None:
        self._facts: dict[int, ConstraintFact] = {}
        self._places: dict[str, list[int]] = {}
        self._sizes: list[int] = []  # how many words each has, those that ended included
        self.ended: list[Ended] = []
        for fact in facts:
            self._append(fact)

    @property
    def facts(self) -> list[ConstraintFact]:
        return list(self._facts.values())

    def say(self, sentence: str, entry: str, by: str = "", *, proven: bool = False) -> None:
        """Take one more sentence of the user's; one that is `proven` is a constraint whatever its words."""
        standing = proven or is_constraint(sentence)
        if standing or change_of(sentence).kind in ("lifts", "turns", "announces"):
            self.add(ConstraintFact(sentence, entry, subject_of(sentence), by=by), standing=standing)

    def add(self, fact: ConstraintFact, *, standing: bool = True) -> None:
        """Append a fact, and take out what it ends; what is no constraint itself must change one.

        It is a later one only where it ends nothing: "you may now log the tokens of search" is about that.
        What one named speaker stated, another one does not end.
        """
        changes = {
            place: verdict(fact.text, self._facts[place].text)
            for place in self._near(fact.text)
            if not fact.by or self._facts[place].by in ("", fact.by)
        }
        found = set(changes.values())
        if not standing and found <= {"none"}:
            return
        for place, change in changes.items():
            if change in ("replaces", "lifts"):
                how = "replaced" if change == "replaces" else "lifted"
                self.ended.append(Ended(self._facts.pop(place), fact, how))
        later = fact.later or found in ({"later"}, {"none", "later"})
        self._append(msgspec.structs.replace(fact, later=later))

    def _near(self, text: str) -> list[int]:
        """Return the places, in order, of what a text can end or change; what is pinned is not among them."""
        change = change_of(text)
        words = _words(change.said)
        shared = Counter(chain.from_iterable(self._places.get(word, ()) for word in words))
        named = set(shared)
        if change.kind in (
            "none",
            "adds",
        ):  # it only restates: all words of one are the other's, see `verdict`
            named = {at for at, count in shared.items() if count == min(len(words), self._sizes[at])}
        named.update(*(self._places.get(key, ()) for key in (*roots(change.lifted), *alternative_sets(text))))
        return [at for at in sorted(named) if at in self._facts and not self._facts[at].pinned]

    def _append(self, fact: ConstraintFact) -> None:
        words, place = _words(fact.text), len(self._sizes)
        self._facts[place] = fact
        self._sizes.append(len(words))
        for key in (*words, *alternative_sets(fact.text)):
            self._places.setdefault(key, []).append(place)


def _words(text: str) -> Sequence[str]:
    """What a constraint is compared by: itself where it has no word with a meaning of its own."""
    return roots(text) or (text,)


def applied(current: Sequence[ConstraintFact], sentence: str, entry: str) -> list[ConstraintFact]:
    """Return the constraints that hold after the user said one more sentence."""
    held = _Held(current)
    held.say(sentence, entry)
    return held.facts


class ConstraintHistory:
    """The constraints that the user's own words leave standing in a conversation that goes on.

    Sentences that are `proven` (a model named them as rules, and the user said them) count as constraints.
    """

    def __init__(self) -> None:
        self._held = _Held()
        self._prompts = UserSpeech()

    @property
    def standing(self) -> tuple[ConstraintFact, ...]:
        """Those that stand, oldest first."""
        return tuple(self._held.facts)

    @property
    def ended(self) -> tuple[Ended, ...]:
        """Those that a later sentence ended, in the order in which they did."""
        return tuple(self._held.ended)

    def inherit(self, facts: Iterable[ConstraintFact]) -> None:
        """Begin with the constraints of another conversation, of which this one goes on."""
        for fact in facts:
            self._held.add(fact)

    def read(self, entries: Iterable[Said], proven: Container[str] = ()) -> None:
        """Take what the user says in the entries that come next."""
        for entry in entries:
            for sentence in chain.from_iterable(map(candidates, self._prompts.own(entry))):
                self._held.say(sentence, entry.id, entry.message.name or "", proven=sentence in proven)


def standing(entries: Sequence[Said]) -> tuple[ConstraintFact, ...]:
    """Return the standing constraints of the user's own words, oldest first; superseded ones are gone."""
    found = ConstraintHistory()
    found.read(entries)
    return found.standing


def collect(found: Stretch) -> tuple[ConstraintFact, ...]:
    """Take the standing constraints of a stretch of entries."""
    return standing(found.entries)


def merge(
    old: Sequence[ConstraintFact], new: Sequence[ConstraintFact], later: Ledger
) -> tuple[ConstraintFact, ...]:
    """Merge the constraints of two ranges.

    What the user said in the later one may turn around an older constraint without being one by itself.
    """
    if not old:
        return tuple(new)
    held = _Held(old)
    for item in later.items:
        for sentence in candidates(item.text) if item.kind == "user" else ():
            held.say(sentence, item.entry, item.by)
    present = {(fact.text, fact.entry) for fact in held.facts}
    for fact in new:
        if (fact.text, fact.entry) not in present:
            held.add(fact)
    return tuple(held.facts)


def bound(facts: Sequence[ConstraintFact]) -> tuple[ConstraintFact, ...]:
    """Return all of them: a rule that was found is never dropped."""
    return tuple(facts)
