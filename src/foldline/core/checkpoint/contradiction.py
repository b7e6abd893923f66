"""Whether a line says the opposite of what the user said.

Two sentences about the same thing are compared: which of them forbids, which allows with a condition,
which of two things each prefers, which numbers each names. Only what words show is judged; in doubt they
agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from foldline.core.ledger.text.subjects import content

STEM: Final = 5  # letters by which two words count as the same: compatible, compatibility
SAME_THING: Final = 0.6  # share of what a rule is about that a line must hold to be about the same
WELL_KNOWN: Final = 0.75  # the same for a line without a word that allows something

_NEGATION: Final = re.compile(
    r"\b(?:never|not|no|none|without|don['\u2019]?t|cannot|avoid\w*|forb[ia]d\w*|prohibit\w*"
    r"|disallow\w*|bann?ed|refrain\w*|untouched|alone|off[- ]limits"
    r"|nie|niemals|nicht|keine?n?|jamais|pas|nunca"
    r"|mai|nooit|niet|geen|никогда|не|нельзя)\b|n['\u2019]t\b|不要|禁止|しない|するな|하지",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(
    r"\b(?:unless|except|only|before|until|first|ask\w*|approv\w*|permission|confirm\w*|consent|if|"
    r"other than|nur|seulement|solo|sauf|außer|excepto)\b",
    re.IGNORECASE,
)
_ALLOWS: Final = re.compile(
    r"\b(?:may|can|allowed|fine|freely|free to|whenever|where needed|if needed|always|permitted|"
    r"okay|ok|should|directly)\b",
    re.IGNORECASE,
)
_UNASKED: Final = re.compile(
    r"\bwithout (?:first )?(?:ask|approv|permission|confirm|consent|wait|review)\w*.*", re.IGNORECASE
)
_EVERYBODY: Final = re.compile(r"\b(?:everybody|everyone|anybody|anyone|all users|any user)\b", re.IGNORECASE)
_ONLY: Final = re.compile(r"\bonly\b", re.IGNORECASE)
_PREFERENCE: Final = re.compile(
    r"(?P<liked>[\w./@-]*\w)(?:\s+\w+){0,2}?\s*(?:\b(?:instead of|rather than|over)|,\s*not|\(not)\s+"
    r"(?P<other>[\w./@-]*\w)",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(r"[,;:()]\s*|\s[-\u2013\u2014]\s|\b(?:and|but|because|since)\b")
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)")
_CONDITION_START: Final = re.compile(r"\b(?:without|unless|except|until|before)\b", re.IGNORECASE)
_HARM: Final = re.compile(
    r"\b(?:break\w*|los(?:e|ing)|violat\w*|miss\w*|forget\w*|ignor\w*)\b", re.IGNORECASE
)
_SKIP: Final = re.compile(r"\b(?:skip\w*|omit\w*|leave out)\b", re.IGNORECASE)
_ORDER: Final = re.compile(
    r"\b(?:always|must|has to|have to|immer|toujours|siempre|ensure|make sure)\b", re.IGNORECASE
)
_WITHHELD: Final = frozenset(  # words that only say that something must not be done, as stems
    ("avoid", "untou", "alone", "leav", "prohi", "befor", "after", "witho", "whene", "stay", "stays")
)


def stems(text: str) -> frozenset[str]:
    """Return the beginnings of a text's content words, so that the forms of one word are the same."""
    return frozenset(_root(word)[:STEM] for word in content(text)) - _WITHHELD


def _root(word: str) -> str:
    """Return an English word without what its other forms do not share: dropped, dropping, drop."""
    word = word.removesuffix("ing") if len(word) > 5 else word
    word = word.removesuffix("ed") if len(word) > 4 else word
    word = word[:-1] if len(word) > 3 and word[-1] == word[-2] else word
    return word.removesuffix("e") if len(word) > 3 else word


class Statement(msgspec.Struct, frozen=True):
    """One sentence of the user's: its text, and what it is about."""

    text: str
    stems: frozenset[str]


def statement(text: str) -> Statement:
    """Read a sentence."""
    return Statement(text, stems(text))


def contradicts(line: str, said: Statement) -> bool:
    """Whether a line turns a sentence of the user's around."""
    about = stems(line)
    if not about & said.stems:
        return False
    return (
        _prefers_the_other(line, said.text)
        or _other_number(line, about, said)
        or _reversed(line, about, said)
    )


def _prefers_the_other(line: str, said: str) -> bool:
    """Whether of two things the one is preferred here and the other there."""
    here, there = _PREFERENCE.search(_lower(line)), _PREFERENCE.search(_lower(said))
    if here is None or there is None:
        return False
    return (here["liked"], here["other"]) == (there["other"], there["liked"])


def _lower(text: str) -> str:
    return re.sub(r"\b(?:use|prefer|always|the)\s+", "", text.lower())


def _other_number(line: str, about: frozenset[str], said: Statement) -> bool:
    """Whether the same is said with another number."""
    here, there = set(_NUMBER.findall(line)), set(_NUMBER.findall(said.text))
    return bool(here and there and not here & there) and len(about & said.stems) >= WELL_KNOWN * len(about)


def _reversed(line: str, about: frozenset[str], said: Statement) -> bool:
    """Whether one forbids what the other asks for or allows."""
    return any(
        _opened(line, about, clause) or _forbidden(line, about, clause) or _allowed(line, about, clause, said)
        for clause in _clauses(said.text)
    )


def _opened(line: str, about: frozenset[str], clause: str) -> bool:
    """Whether everybody may what only some may."""
    return bool(_ONLY.search(clause) and _EVERYBODY.search(line)) and _about(clause, about, SAME_THING)


def _forbidden(line: str, about: frozenset[str], clause: str) -> bool:
    """Whether a line forbids, or leaves out, what the user wants done always."""
    if _forbids(clause) or not _ORDER.search(clause) or _HARM.search(line):
        return False
    if bool(_SKIP.search(line)) == _forbids(line):
        return False
    left = about - stems("skip omit leave out")
    return len(left) > 1 and len(left & stems(clause)) >= WELL_KNOWN * len(left)


def _allowed(line: str, about: frozenset[str], clause: str, said: Statement) -> bool:
    """Whether a line wants or allows, without a condition, what the user forbade."""
    line = _UNASKED.sub("", line)
    if not _forbids(clause) or _forbids(line) or _CONDITION.search(line):
        return False
    forbidden = _CONDITION_START.split(clause)[0]
    if len(stems(forbidden)) < 2 and len(about & said.stems) < WELL_KNOWN * len(about):
        return False
    return _about(forbidden, about, SAME_THING if _ALLOWS.search(line) else WELL_KNOWN)


def _about(clause: str, about: frozenset[str], least: float) -> bool:
    """Whether what a line is about is what a clause is about."""
    what = stems(clause)
    return bool(what) and len(about & what) >= least * len(what)


def _clauses(text: str) -> Iterator[str]:
    """Yield the parts of a sentence that forbid or ask for something each."""
    yield from (part for part in _CLAUSE_END.split(_without_others(text)) if part.strip())


def _without_others(text: str) -> str:
    """Take out what is only named as the other choice: "npm" in "yarn, not npm"."""
    return _PREFERENCE.sub(lambda found: found["liked"], text)


def _forbids(text: str) -> bool:
    return bool(_NEGATION.search(_without_others(text)))
