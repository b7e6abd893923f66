"""The words that make a sentence a standing constraint, and those that unmake it."""

from __future__ import annotations

import re

STANDING = re.compile(
    r"\b(?:always|never|from now on|at all times|in general|remember (?:to|that)|no matter what|every time|under no circumstances)\b",
    re.IGNORECASE,
)
FORBIDS = re.compile(
    r"\b(?:do not|don't|dont|must not|mustn't|should not|shouldn't|no need to|avoid)\b", re.IGNORECASE
)
DEMANDS = re.compile(r"\b(?:must|only|make sure|prefer)\b", re.IGNORECASE)
ONE_OFF = re.compile(r"\?\s*$|\b(?:yet|now|this time)\b", re.IGNORECASE)


def is_constraint(sentence: str) -> bool:
    """Whether a sentence of the user's states what must always or never hold."""
    if ONE_OFF.search(sentence):
        return False
    return any(pattern.search(sentence) for pattern in (STANDING, FORBIDS, DEMANDS))
