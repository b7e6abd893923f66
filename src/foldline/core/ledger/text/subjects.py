"""What a sentence is about: its content words, by which a newer rule finds the older one that it changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from foldline.core.ledger.text.sentences import word_set

_NUMBERED = re.compile(
    r"\b(order|item|step|rule|section|chapter|issue|pr|ticket|case|task|number|no|page|row|user|customer|"
    r"part|phase|room|layer)"
    r"[ #]+(\d+)\b",
    re.IGNORECASE,
)
"""Nouns whose number names one of many; any other bare number is a value that a newer sentence may change."""
_PARTICLE = re.compile(r"\b(log|sign|check|set|turn|shut|back)[ -](in|on|out|off|up|down)\b", re.IGNORECASE)
"""Verbs that another word makes a different one of: to log on is not to log."""
_TONGUE: Final = "中英日德法韩俄西"
_WORD = re.compile(
    rf"[A-Za-zÀ-ÿ_$@][A-Za-zÀ-ÿ0-9_./@-]*[A-Za-zÀ-ÿ0-9_]|[Ѐ-ӿ]{{3,}}|[{_TONGUE}](?=[文语語])|日本(?=語)|"
    r"[\u30a1-\u30fa\u30fc]{2,}|[\u4e00-\u9fff]|[\uac00-\ud7af]{2,}"
)
_EMPTY = word_set(
    "a an the and or but so if then than as at by for from in into of on onto to with without within under "
    "over up out off per via is are was were be been being am do does did don dont doesn not no "
    "nor never always ever only just also pls please must mustn should shouldn shall may can cannot could "
    "would will won need needs needn have has had i you we they he she it its this that these those there "
    "here my your our their me us them make sure ensure use uses used using keep want wants let lets go "
    "going now actually instead any all every each again still too very really more most much some such "
    "what when where which who how why remember forget avoid prefer ok okay yes well about one re ve "
    "ll longer anymore time times thing things way rule rules constraint constraints requirement allowed "
    "forbidden s t m d "
    "bitte immer nie niemals nicht kein keine nur der die das den dem ein eine und oder ist sind auf mit "
    "für zu du darfst darf jetzt nun ab neue regel wieder mehr "
    "ne pas jamais toujours le la les un une des de du et ou est sont dans pour plaît te tu peux au aux "
    "maintenant désormais en "
    "nunca siempre el los las una y o es son para por favor ya puedes ahora mejor usa utiliza "
    "不 要 别 勿 请 用 了 的 在 现 可 以 后 都 必 须 只 能 把 与 和 或 也 再 是 前"
)
_ENDING = re.compile(r"(?:ing|ed|al|e)$")
_LANGUAGES = (
    "english german french spanish italian portuguese chinese japanese korean russian dutch polish turkish "
    "danish swedish norwegian finnish czech deutsch englisch französisch anglais français allemand español "
    "inglés"
)


def _stem(word: str) -> str:
    """Reduce an English plural or -ing form to what its other forms share."""
    if "/" in word or "." in word or len(word) < 4:
        return word
    if word.endswith("ing") and len(word) > 6:
        bare = word[:-3]  # running is of run
        doubled = len(bare) == 4 and bare[-1] == bare[-2] and bare[-1] not in "fls"
        return bare[:-1] if doubled else bare
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


_ALTERNATIVES = tuple(
    frozenset(_stem(word) for word in line.split())
    for line in (
        "tab tabulador space espacio",
        "npm pnpm yarn bun deno",
        "pip uv poetry conda pipenv",
        "single double",
        "british american us uk",
        "snake_case camelcase pascalcase kebab-case",
        _LANGUAGES,
        " ".join((*_TONGUE, "日本")),
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
_ANY_ALTERNATIVE = frozenset[str]().union(*_ALTERNATIVES)


@lru_cache(maxsize=4_096)
def content(text: str) -> frozenset[str]:
    """Return the content words of a sentence, lower case: no polarity, no function words, no bare numbers."""
    return frozenset(_words(text))


@lru_cache(maxsize=4_096)
def roots(text: str) -> tuple[str, ...]:
    """Return the content words in order, without the endings that forms of one English word differ by."""
    return tuple(dict.fromkeys(_root(word) for word in _words(text)))


def _words(text: str) -> Iterator[str]:
    text = _PARTICLE.sub(r"\1\2", _NUMBERED.sub(r"\1_\2", text))
    found = (word.lower().strip(".-") for word in _WORD.findall(text))
    return (_stem(word) for word in found if word not in _EMPTY)


def _root(word: str) -> str:
    if len(word) < 5 or not word.isalpha():
        return word
    if word.endswith("ie"):  # the plural's s is gone already
        return word[:-2] + "y"
    word = _ENDING.sub("", word)
    return word[:-1] if word[-1] == word[-2] else word


def subject_of(text: str) -> str:
    """Return the content words of a constraint, sorted: what a newer one must share to supersede it."""
    return " ".join(sorted(content(text)))


def alternative_sets(text: str) -> list[str]:
    """Name the sets of alternatives of which a text holds a member."""
    words = content(text)
    return [f"{at}" for at, members in enumerate(_ALTERNATIVES) if words & members]


def alternatives(old: frozenset[str], new: frozenset[str]) -> Iterator[tuple[frozenset[str], ...]]:
    """Yield what is left of the words of both, for each set of which they name different members."""
    if new.isdisjoint(_ANY_ALTERNATIVE):
        return
    for members in _ALTERNATIVES:
        here, there = old & members, new & members
        if here and there and here != there:
            yield old - members, new - members
