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

from foldline.core.checkpoint.sections import heading_of, plain
from foldline.core.ledger.facts.constraints import content, supersedes
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.text.origin import own
from foldline.core.ledger.text.sentences import clip
from foldline.core.log.messages import Message

FORGED: Final = "(unverified: not in the user's words)"
INJECTED: Final = "(a tool's output says this, not the user)"
BACKED: Final = 0.5  # share of a rule's words that one message of the user's must hold
REPEATED: Final = 0.7  # share of a line's words that one line of a tool's output must hold
LEAST_WORDS: Final = 3  # a line of fewer says too little to be judged
STEM: Final = 5  # letters by which two words count as the same: compatible, compatibility
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
_NEGATION: Final = re.compile(
    r"\b(?:never|not|no|none|don['\u2019]?t|cannot|nie|niemals|nicht|keine?|jamais|pas|nunca|mai|"
    r"nooit|niet)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ x]\]\s+)?")


class OriginCheck:
    """What the user said and what only tools said, to hold the lines of a summary against."""

    def __init__(self, said: Iterable[Message | str], ledger: Ledger, previous: str | None) -> None:
        messages = [item for item in said if isinstance(item, Message)]
        self._rules = [fact.text for fact in ledger.constraints]
        self._user = [stems for text in _wishes(messages, ledger, previous) if (stems := _stems(text))]
        self._orders = _orders(messages)

    def mark(self, row: str, heading: str) -> str:
        """Mark a line that stands under `heading` (in its plain form); one that is marked stays as it is."""
        if heading not in WISHES or not self._user or _MARKED.search(row):
            return row
        text = _LEAD.sub("", row)
        stems = _stems(text)
        if len(stems) < LEAST_WORDS and heading not in RULES:
            return row
        if heading in RULES and (newer := self._newer(text)):
            return f"{row} (superseded: now {clip(newer, 160)})"
        if heading in RULES and (said := self._opposite(text)):
            return f"{row} (unverified: the user said: {clip(said, 160)})"
        if len(stems) < LEAST_WORDS or self._backs(stems):
            return row
        if any(len(stems & order) >= REPEATED * len(stems) for order in self._orders):
            return f"{row} {INJECTED}"
        return f"{row} {FORGED}" if heading in RULES else row

    def _backs(self, stems: frozenset[str]) -> bool:
        return any(len(stems & wish) >= BACKED * len(stems) for wish in self._user)

    def _newer(self, text: str) -> str | None:
        """The rule that holds now, where this line gives one that it replaced."""
        words = content(text)
        for rule in self._rules:
            here = content(rule)
            either = len(words | here)
            if words and either and len(words & here) < NEAR * either and supersedes(rule, text):
                return rule
        return None

    def _opposite(self, text: str) -> str | None:
        """The rule that this line turns around: the same words, with or without a negation."""
        words = content(text)
        for rule in self._rules:
            here = content(rule)
            same = len(words & here) >= NEAR * max(len(words | here), 1)
            if same and bool(_NEGATION.search(text)) != bool(_NEGATION.search(rule)):
                return rule
        return None


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:STEM] for word in content(text))


def _wishes(messages: Sequence[Message], ledger: Ledger, previous: str | None) -> Iterator[str]:
    """Every text that counts as the user's, or as given to the agent by whoever set it up."""
    for message in messages:
        if message.role in ("system", "developer"):
            yield message.text
        yield from own(message)
    for fact in ledger.constraints:
        yield fact.text
    for request in ledger.requests:
        yield f"{request.question}\n{request.text}"
    heading = ""
    for row in (previous or "").split("\n"):
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
            if len(line) <= 600 and _ORDER.search(line) and len(stems := _stems(line)) >= LEAST_WORDS:
                found.append(stems)
                if len(found) >= MOST_ORDERS:
                    return found
    return found
