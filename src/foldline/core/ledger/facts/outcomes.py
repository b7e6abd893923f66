"""How a run ended, in one line: its exit code, what passed and failed, and its first error."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from foldline.core.ledger.facts.calls import ends, exit_code
from foldline.core.ledger.text.sentences import cut, uncoloured

LINE = 160  # characters of a line that is quoted
FEW = 2  # lines of an output that is quoted whole

_COUNTS = re.compile(
    r"\b\d+ (?:passed|passing|failed|failing|failures?|errors?|skipped|pending|problems?|warnings?|todo|"
    r"total|tests?|specs?|examples?|assertions?)\b|\b(?:passed|failed|failures|errors|tests)[:=] ?\d+",
    re.IGNORECASE,
)
_BAD_COUNT = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?|problems?)\b|\b(?:failed|failures|errors)[:=] ?[1-9]",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"^\W{0,4}(?:[\w.]*(?:Error|Exception)\b[:(]|error\b[\[: ]|fatal: |panic: |FAIL(?:ED)?\b|--- FAIL|E   \S)"
    r"|: error\b|\berror(?: TS\d+|\[E\d+\]):|command not found|No such file|Permission denied"
    r"|^make: \*\*\* |npm ERR!|^Traceback|segmentation fault",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"^(?:ok|PASS|FAIL)\b|test result: |All checks passed|no issues found|^Success\b|build succeeded",
    re.IGNORECASE,
)
_ENVELOPE = re.compile(
    r"\s*(?:> \S|Exit code\b|Wall time\b|Total output lines\b|Output:|Process exited|Chunk ID|Command exited|"
    r"\(no output\)|Original token|Process Group PGID|Background PIDs|Command:|Directory:|Signal:|Stderr:|"
    r"Stdout:)"
)


class Outcome(msgspec.Struct, frozen=True):
    """Whether a run passed (None: nothing says so), the line that tells, and whether it counts anything."""

    passed: bool | None
    text: str
    counted: bool = False


def outcome(output: str, *, is_error: bool) -> Outcome:
    """Read the outcome of a run from its output and the flag that came with it."""
    text = uncoloured(output)
    code = exit_code(text)
    lines = [line.strip() for line in ends(text).split("\n") if line.strip() and not _ENVELOPE.match(line)]
    counts = [line for line in lines if _COUNTS.search(line) and len(line) <= 2 * LINE]
    bad = [line for line in counts if _BAD_COUNT.search(line)]
    failed = is_error or bool(code) or bool(bad)
    verdict = (bad or counts or [line for line in lines if _VERDICT.search(line)])[-1:]
    told = [*(["exit " + str(code)] if code else []), *(cut(line, LINE) for line in verdict)]
    if failed:
        told += [cut(line, LINE) for line in _first_error(lines, verdict)]
        return Outcome(False, _joined(told) or _first(lines), bool(counts))
    passed = True if code == 0 or verdict else None
    return Outcome(passed, _joined(told) or _last(lines), bool(counts))


def _first_error(lines: Sequence[str], verdict: Sequence[str]) -> list[str]:
    return [line for line in lines if _ERROR.search(line[: 2 * LINE]) and line not in verdict][:1]


def _joined(told: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(told))


def _first(lines: Sequence[str]) -> str:
    return cut(lines[0], LINE) if lines else ""


def _last(lines: Sequence[str]) -> str:
    """Quote a short output whole, and of a longer one its last line."""
    if len(lines) <= FEW:
        return cut(" / ".join(lines), LINE)
    return cut(lines[-1], LINE)
