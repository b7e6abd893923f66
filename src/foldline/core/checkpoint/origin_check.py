"""Whose wishes a summary holds: lines under its rules that the user never said, or took back, are marked.

A summariser reads tool output beside the user's words, and may take an instruction that stands in a file or a
web page for one of the user's, or make one up. Nothing is taken away; a mark says what code knows:

- a rule that shares too few words with anything that the user wrote is "not in the user's words";
- a rule that a newer one of the user's replaced is superseded; one that says the opposite is not theirs;
- a line that repeats an instruction which only a tool's output holds says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from foldline.core.checkpoint.contradiction import contradicts, statement, stems
from foldline.core.checkpoint.sections import heading_of, plain
from foldline.core.ledger.facts.constraints import candidates, supersedes
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.text.origin import own
from foldline.core.ledger.text.sentences import clip
from foldline.core.log.messages import Message

FORGED: Final = "(unverified: not in the user's words)"
INJECTED: Final = "(a tool's output says this, not the user)"
BACKED: Final = 0.5  # a rule must share more of its words than that with one passage of the user's
REPEATED: Final = 0.7  # share of a line's words that one line of a tool's output must hold
LEAST_WORDS: Final = 3  # a line that is no rule and has fewer says too little to be judged
PASSAGE: Final = 3  # sentences in a row that a line may sum up
NEAR: Final = 0.75  # two sentences with that share of their words in common say the same
MOST_ORDERS: Final = 5_000  # lines of tool output that are kept to compare with

RULES: Final = frozenset(
    plain(heading)
    for heading in ("Constraints & Preferences", "Rules", "User Requests & Constraints", "User Messages")
)
WISHES: Final = RULES | frozenset(
    plain(heading)
    for heading in (
        "Goal", "Task", "Requests & Intent", "Next Steps", "Remaining Work", "Plan", "Open Tasks", "Next",
        "Next Step",
    )
)  # fmt: skip
_ORDER: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b"
    r"|\b(?:must|should|shall|always|never|important|urgent|required|instructions?|do not|don['\u2019]t|"
    r"you are|user wants)\b"
    r"|^\W*(?:(?:please|now|then|next|first)\W+)?"
    r"(?:run|execute|send|post|upload|e-?mail|mail|delete|remove|forward|reveal|"
    r"print|tell|copy|open|visit|install|add|commit|push|call|use|write|fetch|download|approve|disable)\b",
    re.IGNORECASE,
)
_MARKED: Final = re.compile(r"\((?:unverified|superseded|a tool's output)\b")
_RULE_CUE: Final = re.compile(
    r"\b(?:use|never|always|no|not|only|avoid|prefer|don['\u2019]?t|do not|keep|must)\b", re.IGNORECASE
)
_LEAD: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ x]\]\s+)?")


class OriginCheck:
    """What the user said and what only tools said, to hold the lines of a summary against."""

    def __init__(self, said: Iterable[Message | str], ledger: Ledger, previous: str | None) -> None:
        messages = [item for item in said if isinstance(item, Message)]
        wishes = list(_wishes(messages, ledger))
        self._rules = [fact.text for fact in ledger.constraints]
        newest_first = dict.fromkeys(reversed(list(_sentences(wishes))))
        self._said = [statement(text) for text in newest_first if stems(text)]
        known = [*wishes, *_believed(previous or "")]
        self._passages = list(dict.fromkeys(found for text in known for found in _passages(text)))
        self._orders = _orders(messages)

    def mark(self, row: str, heading: str) -> str:
        """Mark a line that stands under `heading` (in its plain form); one that is marked stays as it is."""
        if heading not in WISHES or not self._passages or _MARKED.search(row):
            return row
        text = _LEAD.sub("", row)
        about = stems(text)
        if heading in RULES and _is_rule(text, about):
            return self._judged(row, text, about)
        if len(about) >= LEAST_WORDS and not self._backs(about) and self._ordered(about):
            return f"{row} {INJECTED}"
        return row

    def _judged(self, row: str, text: str, about: frozenset[str]) -> str:
        """Mark a line that stands as a rule, unless it is the user's."""
        if text.strip() in self._rules or any(text.strip() == known.text for known in self._said):
            return row
        if said := self._opposite(text):
            return f"{row} (unverified: the user said: {clip(said, 160)})"
        if newer := self._newer(text, about):
            return f"{row} (superseded: now {clip(newer, 160)})"
        if self._backs(about):
            return row
        return f"{row} {INJECTED if self._ordered(about) else FORGED}"

    def _backs(self, about: frozenset[str]) -> bool:
        return any(len(about & said) > BACKED * len(about) for said in self._passages)

    def _ordered(self, about: frozenset[str]) -> bool:
        return any(len(about & order) >= REPEATED * len(about) for order in self._orders)

    def _newer(self, text: str, about: frozenset[str]) -> str | None:
        """The rule that holds now, where this line gives one that it replaced."""
        for rule in self._rules:
            here = stems(rule)
            restated = about <= here or len(about & here) >= NEAR * len(about | here)
            if here and not restated and supersedes(rule, text):
                return rule
        return None

    def _opposite(self, text: str) -> str | None:
        """The sentence of the user's that this line turns around, unless a newer one says the same as it."""
        for rule in self._rules:
            if contradicts(text, statement(rule)):
                return rule
        about = stems(text)
        for known in self._said:
            if contradicts(text, known):
                return known.text
            if len(about & known.stems) >= NEAR * len(about):
                return None
        return None


def _is_rule(text: str, about: frozenset[str]) -> bool:
    """Whether a line says enough to be judged: two words, or one with a word that makes it a rule."""
    return len(about) >= 2 or (len(about) == 1 and bool(_RULE_CUE.search(text)))


def _sentences(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from candidates(text)


def _passages(text: str) -> Iterator[frozenset[str]]:
    """Yield the words of each few sentences in a row: a line may sum up as many."""
    found = [stems(sentence) for sentence in candidates(text)]
    for index in range(max(1, len(found) - PASSAGE + 1)):
        if words := frozenset[str]().union(*found[index : index + PASSAGE]):
            yield words


def _wishes(messages: Sequence[Message], ledger: Ledger) -> Iterator[str]:
    """Yield every text that counts as the user's, or as given to the agent by whoever set it up, in order."""
    for request in ledger.requests:
        yield f"{request.question}\n{request.text}"
    for fact in ledger.constraints:
        yield fact.text
    for message in messages:
        if message.role in ("system", "developer"):
            yield message.text
        yield from own(message)


def _believed(previous: str) -> Iterator[str]:
    """Yield the rules of the previous summary that carry no mark."""
    heading = ""
    for row in previous.split("\n"):
        heading = heading_of(row) or heading
        if heading in RULES and not _MARKED.search(row):
            yield row


def _orders(messages: Sequence[Message]) -> list[frozenset[str]]:
    """The lines of what tools and harnesses said that read like an instruction."""
    found: list[frozenset[str]] = []
    for message in messages:
        texts = [result.text for result in message.results]
        if message.injected:
            texts.append(message.text)
        for line in (line for text in texts for line in text.split("\n")):
            if len(line) <= 600 and _ORDER.search(line) and len(words := stems(line)) >= LEAST_WORDS:
                found.append(words)
                if len(found) >= MOST_ORDERS:
                    return found
    return found
