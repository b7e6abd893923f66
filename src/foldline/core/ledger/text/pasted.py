"""What was pasted into a message rather than typed: logs, diffs, listings, stacks, data, checkpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence

REPEATED = 3  # times that a line or a sentence stands in a message which no person repeats
_LOOKED_AT = 400  # characters of a line that say what it is
_MOST_TYPED = 3  # lines for each of a program's, from which on a message is not mostly that
_LEAST_OUTPUT = 5  # lines of a program's, from which on a message may be mostly that

_PROGRAM = re.compile(
    r"\s*(?:at (?:async )?\S.{0,300}[:(]\d{1,7}(?::\d{1,7})?\)?\s*$|File \"[^\"\n]{1,300}\", line \d"
    r"|Traceback |diff --git |@@ -\d|(?:---|\+\+\+) (?:[ab]/|/dev/null)|index [0-9a-f]{6,}\.\.|[⎿⏺✻✽│┃╭╰├└❯]"
    r"|\d{2,6} ?(?:[-+│|→]\s|[│|→])|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b"
    r"|\[?(?:INFO|WARN|WARNING|ERROR|DEBUG|FATAL)\b[\]: ]|p?npm (?:ERR!|WARN|warn|error|notice)\b"
    r"|(?:[\w$]+\.)*\w*(?:Error|Exception|Warning)(?: \[\w+\]|: \d{3})?(?:: | \{)"
    r"|(?:error|warning|fatal|panic)(?:\[\w+\])?: |(?:\$|>>>|\w+@[\w.-]+[:~ ][^\n]{0,60}[$%#])\s|>\s"
    r"|[\w./-]+\.\w{1,5}(?::\d+[: ]|\(\d+,\d+\): )|Node\.js v\d|\{\s*[\"'][^{}\n]*(?:$|.{120}))"
    r"|.{0,200}[─━═╌┄│┃]{3}|.{0,40}[\u2801-\u28ff]\s|\S.{0,30}\{\s*\"\w+\"\s*:\s*[\"{\[]"
)
"""A line that no person types: what follows it in its paragraph is a program's too."""
_OUTPUT = re.compile(
    r"\s*(?:[={}\[\]\"'<✓✔✗✘×→⚠●○◐▶]|---|\.\.\.|\"?[\w.-]+\"?\s*[:=]\s*\S+\s*$|\S*[/\\]\S*\s*$"
    r"|[\w-]+\.\w{1,5}:?\s*$|\d+(?:\.\d+)?\s*(?:%|ms|s|kb|mb|passed|failed)\b"
    r"|.*(?:\b[0-9a-f]{10,}\b|\d\d:\d\d:\d\d))|.*[{\[,;\\]\s*$",
    re.IGNORECASE,
)
"""A line that may be a program's: data, a path, a step, a count."""


_HEADING = re.compile(r"\s{0,3}#{1,4}\s{1,3}(?P<name>\S[^\n#]{0,40}?)[\s:#]{0,9}$")
_OF_A_CHECKPOINT = frozenset(
    """\
goal; constraints & preferences; progress; done; in progress; blocked; key decisions; next steps
critical context; task; rules; state; remaining work; references; turn in progress
accomplished; current work; files; plan; context & decisions
requests & intent; concepts & technology; files & code; errors & fixes; problem solving; user messages
open tasks; next step; next; user requests & constraints; technical decisions; conversation""".replace(
        "\n", "; "
    ).split("; ")
)
"""Headings of checkpoints, in lower case. A person may write a few of them."""
_TYPED_BY_NOBODY = frozenset(("constraints & preferences", "user requests & constraints", "conversation"))
_LEAST_HEADINGS = 4  # headings of a checkpoint from which on a text is one


def _checkpoint_lines(lines: Sequence[str]) -> set[int]:
    """Return the places of the lines that stand under the headings of a checkpoint, these included."""
    headings = {at: found["name"].lower() for at, line in enumerate(lines) if (found := _HEADING.match(line))}
    known = _OF_A_CHECKPOINT.intersection(headings.values())
    if len(known) < _LEAST_HEADINGS:
        known &= _TYPED_BY_NOBODY
    places: set[int] = set()
    inside = False
    for at in range(len(lines)) if known else ():
        inside = headings[at] in known if at in headings else inside
        places |= {at} if inside else set()
    return places


def printed(line: str) -> bool:
    """Whether no person types such a line: it is a program's."""
    return bool(_PROGRAM.match(line[:_LOOKED_AT]))


def typed(text: str) -> str:
    """Return a message without what was pasted into it. A list that the user numbered or marked stays."""
    lines = text.split("\n")
    plus, minus = (any(line.lstrip()[:1] == mark for line in lines) for mark in "+-")
    kept: list[str] = []
    output: list[int] = []  # places of lines that may be a program's
    pasted = False
    checkpoint = _checkpoint_lines(lines)
    for at, line in enumerate(lines):
        head = line[:_LOOKED_AT].strip()
        patch = plus and minus and head[:1] in ("+", "-")
        pasted = bool(head) and (pasted or patch or at in checkpoint or printed(line))
        if head and not pasted and _OUTPUT.match(head):
            output.append(len(kept))
        kept.append("" if pasted else line)
    told = sum(bool(line.strip()) for line in kept)
    if len(output) >= _LEAST_OUTPUT and len(output) * _MOST_TYPED >= told:  # typed: before it, and behind it
        ends = next((at for at in range(output[-1], len(kept)) if not kept[at].strip()), len(kept))
        kept[output[0] : ends] = []
    return "\n".join(kept)
