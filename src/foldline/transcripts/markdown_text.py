"""Lines of Markdown: text and code, the marks of speakers, and text that must not be read as a mark.

In our own export a line of a message that would be read as structure gets a backslash before it. Structure is
a heading or label that names a speaker, the label of a call or a result, a thought, an aside of the export,
a rule, and a code fence that is never closed. A line that begins with backslashes before such a form gets one
more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from foldline.transcripts.lines import moment
from foldline.transcripts.records import MAX_LINE, WarningRecord

_MEBIBYTE = 1024 * 1024
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
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
_BEFORE = re.compile(r"(?<![\d,])([\d,]+) tokens before")
CALL = re.compile(r"\*\*call\*\* `(?P<name>[^`]*)` \((?P<id>.*)\)$")
RESULT = re.compile(r"\*\*result(?P<failed> failed)?\*\* (?:of `[^`]*` )?\((?P<id>.*)\)$")
RULE = re.compile(r" {0,3}(-{3,}|\*{3,}|_{3,})\s*$")
ASIDE = re.compile(r"\*\((?:nothing|[^()*]+ left out)\)\*$")
THOUGHT = "*thinking*"
_FENCE_LIKE = re.compile(r" {0,3}(?:```|~~~)")

# ---- lines


class Words(NamedTuple):
    """A line without its line break, and its number."""

    number: int
    text: str


def prose(stream: BinaryIO) -> Iterator[Words | WarningRecord]:
    """Yield the lines of a text file, in O(line) memory; invalid UTF-8 is replaced, with a warning."""
    number = 0
    while raw := stream.readline(MAX_LINE + 1):
        number += 1
        if len(raw) > MAX_LINE:
            while not raw.endswith(b"\n") and (raw := stream.readline(_MEBIBYTE)):
                pass
            yield WarningRecord(number, f"skipped: a line may have {MAX_LINE // _MEBIBYTE} MiB at most")
            continue
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            yield WarningRecord(number, f"byte {error.start + 1} is not UTF-8; replaced")
            text = raw.decode("utf-8", "replace")
        yield Words(number, text.rstrip("\r\n"))


class Fence:
    """Whether a line is inside a code fence (CommonMark: closed by at least as many marks as opened it)."""

    def __init__(self) -> None:
        self.line = 0  # the line that opened the fence; 0: none is open
        self._mark = ""

    @property
    def open(self) -> bool:
        """Whether the next line is code."""
        return self.line > 0

    def take(self, words: Words) -> bool:
        """Take the next line; return whether it is code or a fence mark."""
        found = _FENCE.match(words.text)
        if not self.open:
            if found:
                self.line, self._mark = words.number, found[1]
            return self.open
        if found and found[1].startswith(self._mark) and not words.text.strip(" " + self._mark[0]):
            self.line = 0
        return True

    def leave(self) -> None:
        """Close an open fence."""
        self.line = 0


# ---- speakers


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


# ---- escapes


def escaped(text: str) -> str:
    """Return a text whose lines are all text to the reader; code in closed fences stays as it is."""
    lines = text.split("\n")
    told = [line if code else _escaped(line) for line, code in zip(lines, _code(lines), strict=True)]
    if told[0].startswith(">"):  # behind a thought it would go on with it
        told[0] = f"\\{told[0]}"
    return "\n".join(told)


def unescaped(line: str) -> str:
    """Return a line of text, outside code, as it was before `escaped`."""
    return line[1:] if line.startswith("\\") and _is_structure(line) else line


def _escaped(line: str) -> str:
    quote = line.startswith(">") and line[1:].strip() != THOUGHT
    return f"\\{line}" if _is_structure(line) and not quote else line


def _is_structure(line: str) -> bool:
    """Whether a line, without backslashes before it, would be read as more than text."""
    bare = line.lstrip("\\")
    forms = (CALL, RESULT, ASIDE, RULE, _FENCE_LIKE)
    return bare.startswith(">") or mark(bare) is not None or any(form.match(bare) for form in forms)


def _code(lines: list[str]) -> list[bool]:
    """Say of each line whether it is in a fence that is closed; from one that is not, nothing is."""
    fence = Fence()
    code = [fence.take(Words(number, line)) for number, line in enumerate(lines, 1)]
    if fence.open:
        code[fence.line - 1 :] = [False] * (len(lines) - fence.line + 1)
    return code
