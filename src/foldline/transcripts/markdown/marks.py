"""Speaker marks in Markdown: headings and bold labels that name a role."""

from __future__ import annotations

import re
from typing import NamedTuple

from foldline.transcripts.shared.values import moment

_ROLES = {
    "user": r"user|human|you|me",
    "assistant": r"assistant|ai|ai assistant|model|bot|claude|chatgpt|gpt|gemini|copilot",
    "system": r"system|system prompt|developer",
    "tool": r"tool|tool (?:output|result|response|call output)s?|function(?: output| result)?",
    "injected": r"program, in the user's name",
    "folded": r"compacted|conversation summary|summary of the conversation",
}
_NAMES = "|".join(f"(?P<{role}>{names})" for role, names in _ROLES.items())
_HEADING = re.compile(
    rf"(?P<level>#{{1,6}})\s+[*_]*(?:{_NAMES})[*_]*(?=$|\s*[:·(,])(?P<rest>.*)$", re.IGNORECASE
)
_LABEL = re.compile(
    rf"(?:\*\*|__)(?:{_NAMES})(?::(?:\*\*|__)|(?:\*\*|__):|(?:\*\*|__)\s*$)(?P<rest>.*)$", re.IGNORECASE
)
_ADDED = re.compile(r"\s*\((?P<kind>[a-z]+), added by the view\)")
_STOPS = {"aborted": "aborted", "failed": "error", "cut off": "length"}
_BEFORE = re.compile(r"([\d,]+) tokens before")


class SpeakerMark(NamedTuple):
    """Who speaks next: the role, the heading's level (0: a label), text on the line, and its facts."""

    role: str
    level: int
    rest: str = ""
    at: float | None = None
    model: str | None = None
    stop: str | None = None
    tokens_before: int | None = None


def mark(text: str) -> SpeakerMark | None:
    """Read a line as the mark of a speaker; None for any other."""
    if found := _HEADING.match(text):
        return _titled(found)
    if found := _LABEL.match(text):
        return SpeakerMark(_role(found), 0, found["rest"].strip())
    return None


def _role(found: re.Match[str]) -> str:
    return next(role for role in _ROLES if found[role])


def _titled(found: re.Match[str]) -> SpeakerMark:
    """Read a heading: after the role it may name a model, a time and how the message ended, between dots."""
    role, level, rest = _role(found), len(found["level"]), found["rest"].strip()
    if added := _ADDED.match(rest):
        role, rest = "injected" if role == "user" else role, rest[added.end() :].strip()
    known = SpeakerMark(role, level)
    if role == "folded" and (before := _BEFORE.search(rest)):
        known = known._replace(tokens_before=int(before[1].replace(",", "")))
    for piece in rest.strip(":( )").split("·"):
        word = piece.strip()
        if (at := moment(word)) is not None:
            known = known._replace(at=at)
        elif word in _STOPS:
            known = known._replace(stop=_STOPS[word])
        elif word and role == "assistant":
            known = known._replace(model=word)
    return known
