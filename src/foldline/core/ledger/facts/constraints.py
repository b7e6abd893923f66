"""Standing constraints: what the user wrote that must always or never hold, word for word.

Only the user's own words are read (see `origin`). A newer constraint replaces an older one that says the
same again or the opposite; a sentence such as "actually, use tabs" or "you may now push" takes the place
of the constraint that it turns around, and is nothing where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from foldline.core.ledger.facts.kinds import ConstraintFact, RequestFact
from foldline.core.ledger.text.cues import is_constraint
from foldline.core.ledger.text.origin import is_plan, prompts
from foldline.core.ledger.text.sentences import sentences, word_set
from foldline.core.log.entries import Said

_HEAD = 20_000
_TAIL = 5_000
"""Characters at the two ends of one message that are read for constraints: the middle of a paste is data."""

SAME = 0.75
"""Share of all their content words that two constraints have in common from which one restates the other."""
TURNED = 0.6
"""Share of the shorter one's words from which a sentence that says it changes something changes the other."""

_NUMBERED = re.compile(
    r"\b(order|item|step|rule|section|chapter|issue|pr|ticket|case|task|number|no|page|row|user|customer|"
    r"part|phase|room|layer)"
    r"[ #]+(\d+)\b",
    re.IGNORECASE,
)
"""Nouns whose number names one of many; any other bare number is a value that a newer sentence may change."""
_WORD = re.compile(r"[A-Za-zÀ-ÿ_$@][\w./@-]*[\w]|[Ѐ-ӿ]{3,}|[\u3040-\u30ff\u4e00-\u9fff]|[\uac00-\ud7af]{2,}")
_EMPTY = word_set(
    "a an the and or but so if then than as at by for from in into of on onto to with without within under "
    "over "
    "up out off per via is are was were be been being am do does did don dont doesn not no nor never always "
    "ever "
    "only just also please pls must mustn should shouldn shall may can cannot could would will won need "
    "needs "
    "have has had i you we they he she it its this that these those there here my your our their me us them "
    "make sure ensure use uses used using keep want wants let lets go going now actually instead any all "
    "every each "
    "again still too very really more most much some such what when where which who how why "
    "remember forget avoid prefer ok okay yes well about one re ve ll longer anymore time times thing "
    "things way "
    "rule rules constraint constraints requirement allowed forbidden s t m d "
    "bitte immer nie niemals nicht kein keine nur der die das den dem ein eine und oder ist sind auf mit "
    "für zu "
    "ne pas jamais toujours le la les un une des de du et ou est sont dans pour plaît te "
    "nunca siempre el los las una y o es son en para por favor"
)
_LANGUAGES = (
    "english german french spanish italian portuguese chinese japanese korean russian dutch polish turkish"
)
_TURNS = re.compile(
    r"\b(?:actually|instead|on second thoughts?|changed my mind|scratch that|switch (?:back )?to|after all|"
    r"no longer|"
    r"any ?more|let['’]?s (?:use|go with)|doch|stattdessen|finalement|mejor|ahora)\b|改用|改成|改为|やっぱり",
    re.IGNORECASE,
)
_ADDS = re.compile(r"\b(?:also|either|too|as well|additionally|auch|aussi|también)\b|也", re.IGNORECASE)
_LIFTS = re.compile(
    r"\b(?:(?:forget(?: about| what i said about)?|ignore|drop|lift|disregard|never ?mind)"
    r"\b.{0,60}\b(?:rule|constraint|requirement|"
    r"restriction|ban|limit|instruction|convention|thing)\b|forget (?:about|what i said)\b|"
    r"you (?:may|can|are (?:now )?allowed to)(?: now| again)\b|now you (?:may|can)\b|"
    r"^\W*(?:(?:ok|okay|yes|well),? )?you (?:may|can) (?!see|find|tell|imagine|not)(?:(?!\b(?:if|when|once|"
    r"after|before|unless|until)\b)[^,.;?]){1,60}"
    r"\b(?:now|again)\W*$|^\W*\w+ing\b[^,.;?]{0,60}\b(?:is|are) (?:now (?:allowed|permitted|ok|okay|fine)|"
    r"(?:allowed|permitted|ok|okay|fine) (?:now|again))\W*$|(?:it['’]?s|it is|that['’]?s) "
    r"(?:now )?(?:ok|okay|fine|allowed)(?: now)? (?:to|if)\b|no longer (?:have|has|need|needs|applies|"
    r"required|necessary)\b|"
    r"do(?:es)?n['’]?t (?:need|have) to\b.{1,80}\bany ?more\b|darfst (?:du )?(?:jetzt|nun|wieder)\b|tu peux "
    r"maintenant\b|"
    r"ya puedes\b)|现在可以|不用再|もう.{0,12}(?:いい|必要ない)",
    re.IGNORECASE,
)

_KEEPS = re.compile(
    r"\b(?:do not|don['’]?t|never) (?:ever )?(?:forget|ignore|drop|lift|disregard)\b", re.IGNORECASE
)
_LIFTED = re.compile(
    r"^\W*(?:(?:please|ok|okay|actually|and|now|so),? )*(?:forget|ignore|drop|lift|disregard)"
    r"\b.{0,40}?\b(?:rule|constraint|requirement|restriction|ban|limit|instruction|convention|thing|said) "
    r"(?:about|on|for|of|that|with) ([^;,.!?]+)",
    re.IGNORECASE,
)
"""What a sentence that lifts says it lifts: "forget the rule about 3 sentences"."""


def candidates(span: str) -> Iterator[str]:
    """Yield the sentences of a span that the user can have meant as prose of their own."""
    if is_plan(span):
        return
    if len(span) <= _HEAD + _TAIL:
        yield from sentences(span)
        return
    yield from sentences(span[:_HEAD])
    yield from sentences(span[-_TAIL:])


def _stem(word: str) -> str:
    """Reduce an English plural or -ing form to what its other forms share."""
    if "/" in word or "." in word or len(word) < 4:
        return word
    if word.endswith("ing") and len(word) > 6:
        return word[:-3]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


_ALTERNATIVES = tuple(
    frozenset(_stem(word) for word in line.split())
    for line in (
        "tab space",
        "npm pnpm yarn bun deno",
        "pip uv poetry conda pipenv",
        "single double",
        "british american us uk",
        "snake_case camelcase pascalcase kebab-case",
        f"{_LANGUAGES} deutsch englisch französisch anglais français allemand español inglés",
        "merge rebase squash",
        "light dark",
        "sync async",
        "postgres postgresql mysql sqlite",
        "pytest unittest jest vitest mocha",
        "celsius fahrenheit",
        "metric imperial",
        "utc local",
    )
)
"""Words of which a newer one takes the older one's place, as `content` writes them."""


@lru_cache(maxsize=1_024)
def content(text: str) -> frozenset[str]:
    """Return the content words of a sentence, lower case: no polarity, no function words, no bare numbers."""
    text = _NUMBERED.sub(r"\1_\2", text)
    found = (word.lower().strip(".-") for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in found if word not in _EMPTY)


def subject_of(text: str) -> str:
    """Return the content words of a constraint, sorted: what a newer one must share to supersede it."""
    return " ".join(sorted(content(text)))


def _alternative(old: frozenset[str], new: frozenset[str]) -> bool:
    """Whether the two name different members of one set of alternatives, for the same purpose."""
    for members in _ALTERNATIVES:
        here, there = old & members, new & members
        if here and there and here != there:
            rest_old, rest_new = old - members, new - members
            if not rest_old or not rest_new or rest_old & rest_new:
                return True
    return False


def supersedes(new: str, old: str) -> bool:
    """Whether the newer of two sentences takes the older one's place.

    It does where it names another member of one set of alternatives, where one restates the other (all
    content words of one are the other's, and most of all are common), or where it says that it changes
    something and shares most of the shorter one's words. In doubt both stay.
    """
    first, second = content(old), content(_TURNS.sub(" ", new))
    if not first or not second:
        return old == new
    common = len(first & second)
    least = min(len(first), len(second))
    if common == least and common / len(first | second) >= SAME:
        return True
    adds, lifts, turns = _changes(new)
    if adds:
        return False
    if _alternative(first, second):
        return True
    if lifts:
        named = _LIFTED.search(new)
        if named and (what := content(named.group(1))) and what <= first:
            return True
        return common / least >= TURNED and (least > 1 or len(first) <= 2)
    return turns and common > 1 and common / least >= TURNED


@lru_cache(maxsize=256)
def _changes(sentence: str) -> tuple[bool, bool, bool]:
    """Say whether a sentence adds to what holds, lifts it, turns it around."""
    lifts = bool(_LIFTS.search(sentence)) and not _KEEPS.search(sentence)
    return bool(_ADDS.search(sentence)), lifts, bool(_TURNS.search(sentence))


def applied(current: Sequence[ConstraintFact], sentence: str, entry: str) -> list[ConstraintFact]:
    """Return the constraints that hold after the user said one more sentence."""
    standing = is_constraint(sentence)
    if not standing and not any(_changes(sentence)[1:]):
        return list(current)
    if sentence.rstrip().endswith(("?", "？")) and not standing:
        return list(current)
    kept = [fact for fact in current if fact.pinned or not supersedes(sentence, fact.text)]
    if not standing and len(kept) == len(current):
        return kept
    kept.append(ConstraintFact(sentence, entry, subject_of(sentence)))
    return kept


def _follow(current: Sequence[ConstraintFact], said: Iterable[tuple[str, str]]) -> list[ConstraintFact]:
    """Apply the sentences of (entry id, span) pairs, oldest first."""
    held = list(current)
    for entry, span in said:
        for sentence in candidates(span):
            held = applied(held, sentence, entry)
    return held


def collect(entries: Sequence[Said]) -> tuple[ConstraintFact, ...]:
    """Take the standing constraints from the user's own words, oldest first; superseded ones are gone."""
    return tuple(_follow((), ((entry.id, span) for entry, spans in prompts(entries) for span in spans)))


def merge(
    old: Sequence[ConstraintFact], new: Sequence[ConstraintFact], requests: Sequence[RequestFact] = ()
) -> tuple[ConstraintFact, ...]:
    """Merge the constraints of two ranges.

    `requests` are the newer range's: what the user says there may turn around a constraint of the older
    one without being a constraint by itself.
    """
    if not old:
        return tuple(new)
    held = _follow(old, ((request.entry, request.text) for request in requests))
    present = {(fact.text, fact.entry) for fact in held}
    for fact in new:
        if (fact.text, fact.entry) in present:
            continue
        held = [known for known in held if known.pinned or not supersedes(fact.text, known.text)]
        held.append(fact)
    return tuple(held)
