"""Choices that were made, in the words they were made in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foldline.core.ledger.facts import DecisionFact
from foldline.core.ledger.origin import prompts
from foldline.core.ledger.sentences import sentences, word_set
from foldline.core.log.entries import Said

LONGEST = 400
_SCANNED = 30_000
"""Characters of one message in which decisions are looked for."""

_CHOICE = re.compile(
    r"\b(?:decided|we(?:'ve| have)? chose|I(?:'ve| have)? chose|chosen|opted (?:for|to)|settled on|"
    r"going with|go with|went with|sticking with|stick with|let's (?:use|keep|stick|switch|drop|avoid)|"
    r"(?:we'll|we will|I'll|I will|we should|we're going to) (?:use|keep|switch to|stay with|drop|avoid|store|skip|leave)|"
    r"will use|instead of|rather than|switch(?:ed|ing)? (?:from .{1,60} )?to|replac(?:e|ed|ing) .{1,60} with|"
    r"the (?:plan|approach|decision|design) is|prefer(?:red)? .{1,60} over|no longer (?:use|need)|"
    r"entschieden|statt|stattdessen|wir (?:nehmen|verwenden|bleiben)|décidé|au lieu de|plutôt que|"
    r"decidí|decidimos|en lugar de|usaremos)\b|决定|改用|而不是|采用|选择|ことにし|代わりに|결정",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"\b(?:instead of|rather than|replac(?:e|ed|ing)|switch(?:ed|ing)?|will use|go with)\b", re.IGNORECASE
)
_ACTOR = re.compile(
    r"\b(?:we|I|let's|us|our|I'll|we'll|user|now uses?|should|decision|approach|must|please|use)\b",
    re.IGNORECASE,
)
_NOT_A_CHOICE = re.compile(
    r"[?:]\W*$|\bfor now\b|\b(?:skill|subagent|todowrite|the \w+ (?:tool|agent))\b|\bI wonder\b|^\W*(?:now|let me|first|next)\b|^\W*(?:should (?:I|we)|do you|would you|if you|could|maybe|perhaps|option \w)\b|\bor should\b|"
    r"\bwould you (?:like|prefer)\b|^\W*(?:\d+[:→]|[+>|])",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-zÀ-ÿ_][\w.-]{2,}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,4}")
_COMMON = word_set(
    "the and for use uses using used with will instead rather than over into from that this have has had not now "
    "let lets keep going switch switched switching decided decide chose chosen choose because since are was were "
    "should would can could all our your their its it's i'll we'll we've i've actually also just one new old"
)


def subject_of(text: str) -> frozenset[str]:
    """Return the content words of a choice."""
    return frozenset(
        word for word in (found.lower().strip(".-") for found in _WORD.findall(text)) if word not in _COMMON
    )


def is_choice(sentence: str) -> bool:
    """Whether a sentence states a choice that was made."""
    if not (12 if sentence.isascii() else 5) <= len(sentence) <= LONGEST or _NOT_A_CHOICE.search(sentence):
        return False
    found = _CHOICE.search(sentence)
    return bool(found) and (not _WEAK.fullmatch(found.group()) or bool(_ACTOR.search(sentence)))


def _said(entries: Sequence[Said]) -> Iterator[tuple[str, str]]:
    """Yield (entry id, text) of what the user and the assistant said, oldest first."""
    mine = {entry.id: spans for entry, spans in prompts(entries)}
    for entry in entries:
        if entry.message.role == "assistant":
            yield entry.id, entry.message.text
        else:
            for span in mine.get(entry.id, ()):
                yield entry.id, span


def collect(entries: Sequence[Said]) -> tuple[DecisionFact, ...]:
    """Take the choices from what the assistant and the user said; a later one replaces what it reverses."""
    found = [
        DecisionFact(sentence, entry)
        for entry, text in _said(entries)
        if _CHOICE.search(text[:_SCANNED])
        for sentence in sentences(text[:_SCANNED])
        if is_choice(sentence)
    ]
    return settled(found)


def settled(facts: Sequence[DecisionFact]) -> tuple[DecisionFact, ...]:
    """Drop each choice that a later one repeats or reverses: most of its content words come again."""
    kept: list[tuple[DecisionFact, frozenset[str]]] = []
    by_word: dict[str, set[int]] = {}
    seen: set[tuple[str, str]] = set()
    dropped: set[int] = set()
    for fact in facts:
        if (fact.entry, fact.text) in seen:
            continue
        seen.add((fact.entry, fact.text))
        words = subject_of(fact.text)
        shared: dict[int, int] = {}
        for word in words:
            for index in by_word.get(word, ()):
                shared[index] = shared.get(index, 0) + 1
        for index, count in shared.items():
            if index not in dropped and count >= 2 and count >= 0.7 * min(len(kept[index][1]), len(words)):
                dropped.add(index)
                for word in kept[index][1]:
                    by_word[word].discard(index)
        for word in words:
            by_word.setdefault(word, set()).add(len(kept))
        kept.append((fact, words))
    return tuple(fact for index, (fact, _) in enumerate(kept) if index not in dropped)


def merge(old: Sequence[DecisionFact], new: Sequence[DecisionFact]) -> tuple[DecisionFact, ...]:
    """Merge the choices of two ranges, `new` following `old`."""
    return settled((*old, *new))
