"""Text inside an exported message: lines that would be read as structure stand behind a backslash.

Structure is a heading or label that names a speaker, the label of a call or a result, a thought, a rule, and
a code fence that is never closed. A line that begins with backslashes before such a form gets one more.
"""

from __future__ import annotations

import re

from foldline.transcripts.markdown.marks import mark
from foldline.transcripts.shared.prose import Fence, Words

CALL = re.compile(r"\*\*call\*\* `(?P<name>[^`]*)` \((?P<id>.*)\)$")
RESULT = re.compile(r"\*\*result(?P<failed> failed)?\*\* (?:of `[^`]*` )?\((?P<id>.*)\)$")
RULE = re.compile(r" {0,3}(-{3,}|\*{3,}|_{3,})\s*$")
THOUGHT = "*thinking*"
_FENCE = re.compile(r" {0,3}(?:```|~~~)")


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
    forms = (CALL, RESULT, RULE, _FENCE)
    return bare.startswith(">") or mark(bare) is not None or any(form.match(bare) for form in forms)


def _code(lines: list[str]) -> list[bool]:
    """Say of each line whether it is in a fence that is closed; from one that is not, nothing is."""
    fence = Fence()
    code = [fence.take(Words(number, line)) for number, line in enumerate(lines, 1)]
    if fence.open:
        code[fence.line - 1 :] = [False] * (len(lines) - fence.line + 1)
    return code
