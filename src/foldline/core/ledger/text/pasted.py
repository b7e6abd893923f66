"""What was pasted into a message rather than written: frames of a stack, screens, diffs, logs, errors."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

_PASTED = re.compile(
    r"\s*at (?:async )?\S.{0,300}[:(]\d{1,7}(?::\d{1,7})?\)?\s*$"  # a frame: at run (src/app.ts:12:5)
    r"|\s*File \"[^\"\n]{1,300}\", line \d"
    r"|.{0,200}[─━═╌┄│┃]{3}"  # the lines of a box
    r"|.{0,40}[\u2801-\u28ff]\s"  # a spinner
    r"|\s*Node\.js v\d"
    r"|\s*'?/\S*/(?:TemporaryItems|tmp)/.{0,200}\.(?:png|jpe?g)'?\s*$"  # a screenshot's own path
)


def is_pasted(line: str) -> bool:
    """Whether a line is one that no person types."""
    return bool(_PASTED.match(line))


_OBJECT = re.compile(r"\{\s*[\"']")
_BRACE = re.compile(r"[{}]")
_TYPED_OBJECT = 120  # characters of an object that a person may have typed
_MOST_OF_AN_OBJECT = 100_000  # characters that are searched for the end of a pasted object
_DIFF = re.compile(r"diff --git |index [0-9a-f]{6,}\.\.|@@ -|--- \S|\+\+\+ \S|[+\- ]|\\ No newline")
_DIFF_BEGINS = re.compile(r"diff --git |@@ -\d|--- (?:a/|/dev/null)|\+\+\+ (?:b/|/dev/null)")
_ADDED = re.compile(r"\s*\+")
_TAKEN_OUT = re.compile(r"\s*-")
_NUMBERED = re.compile(r"\s*(\d{1,6})\s*(?:[-+│|→]\s|[-+] *$|[│|→])")
_SCREEN = re.compile(r"\s*[⎿⏺✻✽│┃╭╰├└]")
_INDENTED = re.compile(r"\s{2,}\S")
_PROGRAM = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b|\[(?:INFO|WARN|WARNING|ERROR|DEBUG)\]"
    r"|(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b[ :\[]"
    r"|Traceback \(most recent"
    r"|(?:[\w$]+\.)*\w*(?:Error|Exception|Warning)(?: \[\w+\]|: \d{3})?(?:: | \{)"
    r"|(?:error|warning|fatal|panic)(?:\[\w+\])?: |(?:npm|pnpm|yarn) (?:ERR!|WARN|warn|error|notice)\b"
    r"|(?:\$|❯|>>>|\w+@[\w.-]+[:~ ][^\n]{0,60}[$%#])\s|>\s|[\w./-]+\.\w{1,5}:\d+[: ]|[\w./-]+\(\d+,\d+\): )"
)


def typed(text: str) -> str:
    """Return a message without the lines that were pasted into it: diffs, listings, logs, errors, screens.

    A list that the user numbered or marked with dashes stays.
    """
    return _typed_of_short(text) if len(text) <= SHORT else _typed(text)


def _typed(text: str) -> str:
    lines = _without_objects(text).split("\n") if "\n" in text or "{" in text else [text]
    counted = [int(found[1]) for line in lines if (found := _NUMBERED.match(line))]
    listing = bool(counted) and counted[0] != 1
    changed = any(map(_ADDED.match, lines)) and any(map(_TAKEN_OUT.match, lines))
    kept: list[str] = []
    within: re.Pattern[str] | None = None
    for line in lines:
        if _DIFF_BEGINS.match(line):
            within = _DIFF
        elif _SCREEN.match(line):
            within = _INDENTED
        elif within is not None and not within.match(line):
            within = None
        numbered = listing and _NUMBERED.match(line)
        patch = changed and (_ADDED.match(line) or _TAKEN_OUT.match(line))
        pasted = within or numbered or patch or _PROGRAM.match(line) or is_pasted(line)
        kept.append("" if pasted else line)
    return "\n".join(_without_output(kept, {at for at, line in enumerate(lines) if line and not kept[at]}))


def _without_output(lines: list[str], known: set[int]) -> list[str]:
    """Return a message that holds much of a program's output without that.

    `known` are the places of lines that were left out already. What stands before it is typed; sentences
    behind it may be, and in it where it is not most of all.
    """
    again = {line for line, times in Counter(map(str.strip, lines)).items() if line and times >= REPEATED}
    output = [
        at
        for at, line in enumerate(lines)
        if at in known or line.strip() in again or (line and is_output(line))
    ]
    told = sum(bool(line.strip()) for line in lines) + len(known)
    if len(output) < LEAST_OUTPUT or len(output) * MOST_TYPED < told:
        return lines
    first, last, mixed = output[0], output[-1], len(output) * 2 < told

    def is_typed(at: int, line: str) -> bool:
        if at < first:
            return True
        closed, prose = bool(_CLOSED.search(line[-LOOKED_AT:])), bool(_PROSE.search(line[:LOOKED_AT]))
        return (closed or prose) if at > last else closed and prose and (mixed or bool(_ORDER.match(line)))

    return [line if is_typed(at, line) else "" for at, line in enumerate(lines)]


@lru_cache(maxsize=1_024)
def _typed_of_short(text: str) -> str:
    return _typed(text)


def is_output(line: str) -> bool:
    """Whether a line is more likely a program's than a person's: data, a path, a step, a count."""
    return bool(_OUTPUT.match(line[:LOOKED_AT])) or line.rstrip()[-1:] in ("{", "[", "}", "]", ",", ";", "\\")


SHORT = 4_000  # characters of a message up to which what was typed of it is remembered
LOOKED_AT = 400  # characters at either end of a line that say what it is
LEAST_OUTPUT = 5  # lines that look like a program's output, from which a message may be mostly that
_ORDER = re.compile(r"\W*(?:always|never|don['’]?t|do not|please|only|make sure|use|keep)\b", re.IGNORECASE)
_CLOSED = re.compile(r"(?<!\.\.)[.!?。]\s*$")
MOST_TYPED = 3  # lines for each of those, that may be typed
REPEATED = 3  # times that a line stands in a message which no person repeats
_PROSE = re.compile(r"(?:[^\W\d_]+[,;:]? +){4,}[^\W\d_]+|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{4}")
_OUTPUT = re.compile(
    r"\s*(?:[={}\[\]\"'<✓✔✗✘×→⚠●○◐▶│┃├└╭╰]|===|---|\+\+\+|\.\.\.)"  # a frame, data, a tick
    r"|\s*\"?[\w.-]+\"?\s*[:=]\s*\S+\s*$"  # a name with its value
    r"|\s*\S*[/\\]\S*\s*$|\s*[\w-]+\.\w{1,5}:?\s*$"  # a path alone
    r"|\s*\d+(?:\.\d+)?\s*(?:%|ms|s|kb|mb|files? changed|passed|failed)\b"
    r"|\s*(?:create|delete) mode \d|\s*(?:rename|copy) .{1,80} => "
    r"|\s*(?:On branch|Your branch|nothing to commit)\b"
    r"|.*\b[0-9a-f]{10,}\b|.*\d\d:\d\d:\d\d|.*: (?:/|~/|[A-Z]:\\)\S+\s*$",
    re.IGNORECASE,
)


def _without_objects(text: str) -> str:
    """Return a text without the lines on which objects of JSON stand."""
    kept: list[str] = []
    at = 0
    while (found := _OBJECT.search(text, at)) is not None:
        end = _end_of_object(text, found.start())
        if end - found.start() <= _TYPED_OBJECT and "\n" not in text[found.start() : end]:
            kept.append(text[at:end])
            at = end
            continue
        kept.append(text[at : text.rfind("\n", at, found.start()) + 1])
        ends = text.find("\n", end)
        if ends < 0:
            return "".join(kept)
        at = ends
    return "".join((*kept, text[at:]))


def _end_of_object(text: str, start: int) -> int:
    """Return where the braces that open at `start` are closed, or the paragraph's end where they are not."""
    depth = 0
    for brace in _BRACE.finditer(text, start, start + _MOST_OF_AN_OBJECT):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.end()
    ends = text.find("\n\n", start)
    return ends if ends >= 0 else len(text)
