"""Standing rules: what the user wrote that must always or never hold, word for word, and what became of it.

Only the user's own words are read (see `origin`). A newer rule replaces an older one that says the same again
or the opposite; an order or a permission such as "actually, use tabs" or "you may now push" takes the place
of the rule that it turns around, and is nothing where there is none. In doubt both stay, the newer one marked
as later.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, Literal

import msgspec

from foldline.core.ledger.facts.actions import Stretch
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.ledger.text.origin import REPEATED, UserSpeech, is_plan, typed
from foldline.core.ledger.text.sentences import sentences, word_set
from foldline.core.ledger.text.wording import Change, change_of, clauses, is_rule
from foldline.core.log.entries import Said

_HEAD, _TAIL = 20_000, 5_000
"""Characters at the two ends of one message that are read for rules: the middle of a paste is data."""

SAME = 0.75  # share of all their words that two rules have in common from which one restates the other
_COMMON = 200  # rules from which on a word that all of them hold finds none of them
TURNED = 0.6  # share of the shorter one's words that a sentence shares with the one that it changes
COVERED = 0.75  # share of a rule's words that a permission names where it lifts the whole of it

Verdict = Literal["none", "later", "replaces", "lifts"]
"""What a newer sentence does to an older rule; "later": it may change it, so both stay."""


class Ended(msgspec.Struct, frozen=True):
    """A rule that no longer holds, the later sentence that ended it, and how."""

    fact: ConstraintFact
    by: ConstraintFact
    how: Literal["replaced", "lifted"]


def candidates(span: str) -> Iterator[str]:
    """Yield the sentences of a span that the user can have meant as prose of their own, each whole."""
    if is_plan(span):
        return
    if len(span) <= _HEAD + _TAIL:
        yield from _said_once(span)
        return
    head, tail = span[:_HEAD].rstrip(), span[-_TAIL:].lstrip()
    yield from (sentence for sentence in _said_once(head) if not head.endswith(sentence))
    yield from (sentence for sentence in _said_once(tail) if not tail.startswith(sentence))


def _said_once(text: str) -> Iterator[str]:
    """Yield the typed sentences that do not repeat as a program's do."""
    return (sentence for sentence in sentences(typed(text)) if text.count(sentence) < REPEATED)


# ---- what sentences are about

_NUMBERED = re.compile(
    r"\b(order|item|step|rule|section|chapter|issue|ticket|case|task|number|no|page|row|user|customer|part|room)"
    r"[ #]+(\d+)\b",
    re.IGNORECASE,
)
"""Nouns whose number names one of many; any other bare number is a value that a newer sentence may change."""
_WORD = re.compile(
    r"[A-Za-zÀ-ÿ_$@][A-Za-zÀ-ÿ0-9_./@-]{0,200}[A-Za-zÀ-ÿ0-9_]|[Ѐ-ӿ]{3,}|日本(?=語)|[\u30a1-\u30fa\u30fc]{2,}|[\u4e00-\u9fff]|"
    r"[\uac00-\ud7af]{2,}"
)
_EMPTY: Final = word_set(
    "a an the and or but so if then than as at by for from in into of on onto to with without within "
    "under over up out off per via is are was were be been am do does did don dont doesn not no nor "
    "never always ever only just also pls please must mustn should shouldn shall may can cannot could "
    "would will won need needs needn have has had i you we they he she it its this that these those "
    "there here my your our their me us them make sure ensure use uses used using keep want wants let "
    "lets go going now actually instead any all every each again still too very really more most much "
    "some such what when where which who how why remember forget avoid prefer ok okay yes well about one "
    "ll re ve longer anymore time times thing things way rule rules requirement constraint important allowed "
    "forbidden s t m d sein müssen bitte immer nie niemals nicht kein keine nur der die das den dem ein "
    "eine und oder ist sind auf mit für zu du darfst darf jetzt nun ab neue regel wieder mehr ne pas "
    "jamais toujours le la les un une des de et ou est sont dans pour tu peux au aux maintenant "
    "désormais en nunca siempre el los las y o es son para por favor ya puedes ahora mejor usa utiliza "
    "不 要 别 勿 请 用 了 的 在 现 可 以 后 都 必 须 只 能 把 与 和 或 也 再 是 前"
)
_ALTERNATIVES: Final = """\
tab tabulador space espacio
npm pnpm yarn bun deno
pip uv poetry conda pipenv
single double
british american us uk
snake_case camelcase pascalcase kebab-case
english german french spanish chinese japanese deutsch englisch anglais français inglés 中 英 日 德 法 日本
merge rebase squash
light dark
postgres mysql sqlite
pytest unittest jest vitest
celsius fahrenheit
metric imperial
utc local
"""
"""Words of which a newer one takes the older one's place."""
_LIST = re.compile(r"\b(?:or|and|nor|oder|und|ou|et|y|o)\b|[,、]")
_WHEN = re.compile(r"\b(?:before|after|when|whenever|prior to)\b.*", re.IGNORECASE)
_ENDING = re.compile(r"(?<=...)(?:ing|ed|al|e)$")


@lru_cache(maxsize=4_096)
def roots(text: str) -> tuple[str, ...]:
    """Return the words of a sentence that say what it is about, in order, without their English endings."""
    text = _NUMBERED.sub(r"\1_\2", text)
    words = (word.lower().strip(".-") for word in _WORD.findall(text))
    return tuple(dict.fromkeys(_root(word) for word in words if word not in _EMPTY))


def _root(word: str) -> str:
    if len(word) < 4 or not word.isalpha():
        return word
    word = re.sub(r"(?<!s)s$", "", word)
    word = re.sub(r"ie$", "y", word) if len(word) > 4 else word
    word = _ENDING.sub("", word) if len(word) > 4 else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


_SETS: Final = tuple(frozenset(map(_root, words.split())) for words in _ALTERNATIVES.splitlines())


# ---- what a newer sentence does


def verdict(new: str, old: str) -> Verdict:
    """Say what the newer of two sentences does to the older one, a rule.

    It takes its place where it names another one of a set of alternatives, where one restates the other (all
    words of one are the other's, and most of all are common), or where it is an order that changes something
    about the same thing; a permission lifts it. In doubt, or where it agrees with a ban, it is a later one.
    """
    change = change_of(new)
    found = _changed(new, change, old)
    return "later" if found in ("replaces", "lifts") and new != old and _agrees(new, change, old) else found


def _agrees(new: str, change: Change, old: str) -> bool:
    """Whether a sentence leaves a ban in force: it lifts a duty, or asks for something else."""
    first, second, banned = frozenset(roots(old)), frozenset(roots(change.said)), _banned(old)
    if change.waives:
        return first & second <= banned
    if not banned.isdisjoint(roots(change.displaced)):
        return True
    for members in _SETS:
        here, there = first & members, second & members
        if here and there and here.isdisjoint(there) and (here <= banned or there <= _banned(new)):
            return True
    return False


def _banned(text: str) -> frozenset[str]:
    """Return the words of a sentence that it bans, and does not ask for as well."""
    words: dict[bool, set[str]] = {True: set(), False: set()}
    for clause, bans in clauses(text):
        words[bans].update(roots(clause))
    return frozenset(words[True] - words[False])


def _changed(new: str, change: Change, old: str) -> Verdict:
    """Say by its words alone what a sentence does to a rule."""
    first, second = frozenset(roots(old)), frozenset(roots(change.said))
    if not first or not second:
        return "replaces" if old == new else "none"
    share = len(first & second) / min(len(first), len(second))
    if change.kind == "lifts":
        return _lifting(change, old, share)
    if share == 1 and len(first & second) / len(first | second) >= SAME:
        return "later" if change.kind == "turns" and change.hedged else "replaces"
    if change.kind == "adds":
        return "none"
    for members in _SETS:
        here, there = first & members, second & members
        if here and there and here != there:
            return _alternative(first - members, second - members)
    return _turning(change, first, second) if change.kind in ("turns", "announces") else "none"


def _lifting(change: Change, old: str, share: float) -> Verdict:
    """What a permission does: it must name what the rule is about, but for the verb of either."""
    before, after = roots(old), roots(change.said)
    first, second = frozenset(before), frozenset(after)
    named = frozenset(roots(change.lifted))
    if named and named <= first:
        return "lifts"
    if share < TURNED:
        return "none"
    own = second - first - frozenset(after[:1])
    if change.waives:  # when it was to be done need not be named
        before = roots(_WHEN.sub("", old))
    about = frozenset(before) - (frozenset(before[:1]) - second)
    part = bool(_LIST.search(old)) and not first <= second
    whole = bool(about) and len(about & second) >= COVERED * len(about)
    return "lifts" if whole and not (own or part or change.hedged) else "later"


def _turning(change: Change, first: frozenset[str], second: frozenset[str]) -> Verdict:
    """What an order that says it changes something does to a rule with the words `first`."""
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


def _alternative(here: frozenset[str], there: frozenset[str]) -> Verdict:
    """What a sentence that names another one of a set of alternatives does, by the other words of both."""
    common = len(here & there)
    if not there or (here and common >= TURNED * min(len(here), len(there))):
        return "replaces"
    return "later" if common or not here else "none"


# ---- the rules that hold


class ConstraintHistory:
    """The rules that hold after the user's words so far, as the conversation goes on.

    Rules are indexed by their words: what a new sentence may change is a lookup, however many there are.
    """

    def __init__(self, facts: Iterable[ConstraintFact] = ()) -> None:
        self.ended: list[Ended] = []
        """Those that a later sentence ended, in the order in which they did."""
        self._prompts = UserSpeech()
        self._facts: dict[int, ConstraintFact] = {}
        self._places: dict[str, set[int]] = {}
        self._next = 0
        for fact in facts:
            self._append(fact)

    @property
    def standing(self) -> tuple[ConstraintFact, ...]:
        """The rules that hold, oldest first."""
        return tuple(self._facts.values())

    def read(self, entries: Iterable[Said], proven: Container[str] = ()) -> None:
        """Take what the user says in the entries that come next.

        Sentences that are `proven` (a model named them as rules, and the user said them) are rules whatever
        their words.
        """
        for entry in entries:
            for sentence in chain.from_iterable(map(candidates, self._prompts.own(entry))):
                self.say(sentence, entry.id, entry.message.name or "", proven=sentence in proven)

    def say(self, sentence: str, entry: str, by: str = "", *, proven: bool = False) -> None:
        """Take one more sentence of the user's."""
        standing = proven or is_rule(sentence)
        if standing or change_of(sentence).kind in ("lifts", "turns", "announces"):
            self.add(ConstraintFact(sentence, entry, by=by), standing=standing)

    def add(self, fact: ConstraintFact, *, standing: bool = True) -> None:
        """Append a fact, and take out what it ends; a sentence that is not a rule must change one.

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
                self.ended.append(Ended(self._end(place), fact, how))
        later = fact.later or found in ({"later"}, {"none", "later"})
        self._append(msgspec.structs.replace(fact, later=later))

    def _near(self, text: str) -> list[int]:
        """Return the places, in order, of what a text can end or change; what is pinned is not among them."""
        change = change_of(text)
        keys = (*_keys(change.said), *roots(change.lifted))
        found = (self._places.get(key, set()) for key in keys)
        near = set(chain.from_iterable(places for places in found if len(places) <= _COMMON))
        return [at for at in sorted(near) if not self._facts[at].pinned]

    def _append(self, fact: ConstraintFact) -> None:
        place, self._next = self._next, self._next + 1
        self._facts[place] = fact
        for key in _keys(fact.text):
            self._places.setdefault(key, set()).add(place)

    def _end(self, place: int) -> ConstraintFact:
        fact = self._facts.pop(place)
        for key in _keys(fact.text):
            self._places[key].discard(place)
        return fact


def _keys(text: str) -> Iterator[str]:
    """Yield what a rule is found by: its words, all of them as one, the sets of alternatives of its words."""
    words = roots(text) or (text,)
    yield from words
    yield " ".join(sorted(words))
    yield from (f"{at}" for at, members in enumerate(_SETS) if not members.isdisjoint(words))


def standing(entries: Iterable[Said], before: Iterable[ConstraintFact] = ()) -> tuple[ConstraintFact, ...]:
    """Return the rules that the user's own words leave standing, oldest first; `before` stood before them."""
    found = ConstraintHistory(before)
    found.read(entries)
    return found.standing


def collect(found: Stretch) -> tuple[ConstraintFact, ...]:
    """Bring the rules that stood before a stretch of entries up to date."""
    return standing(found.entries, found.before.constraints)


def merge(
    old: Sequence[ConstraintFact], new: Sequence[ConstraintFact], _later: Ledger
) -> tuple[ConstraintFact, ...]:
    """Add rules that came without the user's words to those that hold."""
    held = ConstraintHistory(old)
    for fact in new:
        if fact not in old:
            held.add(fact)
    return held.standing
