"""Lines of Markdown: text and code, the marks of speakers, and escapes.

Our own export puts a backslash before a line of a message that would be read as structure: a heading or label
with a speaker, the label of a call or a result, a thought, an aside of the export, a rule, or a code fence
that is never closed. If such a line already begins with backslashes, it gets one more.
"""

from __future__ import annotations

import codecs
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


class TextLine(NamedTuple):
    """A line without its line break, and its number."""

    number: int
    text: str


def text_lines(stream: BinaryIO) -> Iterator[TextLine | WarningRecord]:
    """Yield the lines of a text file, in O(line) memory; invalid UTF-8 is replaced, with a warning.

    A character of which the file has only the beginning is left out: its program has not written it yet.
    """
    number = 0
    while raw := stream.readline(MAX_LINE + 1):
        number += 1
        if len(raw) > MAX_LINE:
            while not raw.endswith(b"\n") and (raw := stream.readline(_MEBIBYTE)):
                pass
            yield WarningRecord(number, f"skipped: longer than {MAX_LINE // _MEBIBYTE} MiB")
            continue
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            yield WarningRecord(number, f"byte {error.start + 1} is not UTF-8; replaced")
            text, _ = codecs.utf_8_decode(raw, "replace", raw.endswith(b"\n"))
        yield TextLine(number, text.rstrip("\r\n"))


class Fence:
    """Tracks whether a line is inside a code fence (CommonMark: closed by at least as many marks)."""

    def __init__(self) -> None:
        self.line = 0  # the line that opened the fence; 0: not in a fence
        self._mark = ""

    @property
    def open(self) -> bool:
        """Whether the next line is code."""
        return self.line > 0

    def take(self, line: TextLine) -> bool:
        """Take the next line; return whether it is code or a fence."""
        found = _FENCE.match(line.text)
        if not self.open:
            if found:
                self.line, self._mark = line.number, found[1]
            return self.open
        if found and found[1].startswith(self._mark) and not line.text.strip(" " + self._mark[0]):
            self.line = 0
        return True

    def leave(self) -> None:
        """Close an open fence."""
        self.line = 0


# ---- speakers


class SpeakerMark(NamedTuple):
    """The mark of a speaker: role, level of the heading (0: a label), text on the line, and metadata."""

    role: str
    level: int
    rest: str = ""
    at: float | None = None
    model: str | None = None
    stop: str | None = None
    tokens_before: int | None = None


def read_mark(text: str) -> SpeakerMark | None:
    """Read a line as the mark of a speaker; return None if it is not one."""
    if match := _HEADING.match(text):
        return _read_heading(match)
    if match := _LABEL.match(text):
        return SpeakerMark(_role(match), 0, match["rest"].strip())
    return None


def _role(match: re.Match[str]) -> str:
    return next(role for role in _ROLES if match[role])


def _read_heading(match: re.Match[str]) -> SpeakerMark:
    """Read a heading: the role, then optionally model, time and how the message ended, between dots."""
    role, level, rest = _role(match), len(match["level"]), match["rest"].strip()
    if added := _ADDED.match(rest):
        role, rest = "injected" if role == "user" else role, rest[added.end() :].strip()
    mark = SpeakerMark(role, level)
    if role == "folded" and (before := _BEFORE.search(rest)):
        mark = mark._replace(tokens_before=int(before[1].replace(",", "")))
    for piece in rest.strip(":( )").split("·"):
        word = piece.strip()
        if (at := moment(word)) is not None:
            mark = mark._replace(at=at)
        elif word in _STOPS:
            mark = mark._replace(stop=_STOPS[word])
        elif word and role == "assistant":
            mark = mark._replace(model=word)
    return mark


# ---- escapes


def escaped(text: str) -> str:
    """Escape the lines of a text that would be read as structure; code in closed fences is unchanged."""
    lines = text.split("\n")
    escaped_lines = [line if code else _escaped(line) for line, code in zip(lines, _code(lines), strict=True)]
    if escaped_lines[0].startswith(">"):  # after a thought it would continue that
        escaped_lines[0] = f"\\{escaped_lines[0]}"
    return "\n".join(escaped_lines)


def unescaped(line: str) -> str:
    """Undo `escaped` for a line of text outside code."""
    return line[1:] if line.startswith("\\") and _is_structure(line) else line


def _escaped(line: str) -> str:
    quote = line.startswith(">") and line[1:].strip() != THOUGHT
    return f"\\{line}" if _is_structure(line) and not quote else line


def _is_structure(line: str) -> bool:
    """Return whether a line would be read as structure, without its leading backslashes."""
    bare = line.lstrip("\\")
    forms = (CALL, RESULT, ASIDE, RULE, _FENCE_LIKE)
    return bare.startswith(">") or read_mark(bare) is not None or any(form.match(bare) for form in forms)


def _code(lines: list[str]) -> list[bool]:
    """Return for each line whether it is code; an unclosed fence and the lines after it are not."""
    fence = Fence()
    code = [fence.take(TextLine(number, line)) for number, line in enumerate(lines, 1)]
    if fence.open:
        code[fence.line - 1 :] = [False] * (len(lines) - fence.line + 1)
    return code
