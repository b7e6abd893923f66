"""How a call ended: whether it worked, and of a run one line: its exit code, counts, its first error.

Exit codes and flags first; a few words that programs print where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from foldline.core.ledger.text.sentences import cut, uncoloured
from foldline.core.log.messages import ToolResult

HEAD, TAIL = 600, 1_500  # characters at the two ends of a result in which its verdict is looked for
_EXIT = re.compile(
    r"^\W{0,3}(?:(?:process |command )?exit(?:ed)? ?(?:with )?(?:code|status)|returncode)\W{0,3}(-?\d{1,9})\b"
    r"|(?:\"exit_?code\"\s*:\s*|(?:completed|finished) with exit code |exit status |\" exited with code )"
    r"(-?\d{1,10})\b",
    re.IGNORECASE | re.MULTILINE,
)
_ERROR_SAID = re.compile(
    r"\s*(?:<tool_use_error>|<error>|\[?error\]?\b\s*(?:\[\w+\])?:|error (?:executing|running|applying) |"
    r"apply_patch verification failed|invalid (?:arg|input|param|patch)|unknown tool)",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\s*(?:failed to |could(?: not|n't) |can(?:not|'t) |no such file|"
    r"(?:file|path) (?:not found|does not exist)|(?:permission|access) denied|"
    r"(?:string to replace|old_?string) not found|tool .{1,60} not found|enoent|eacces|"
    r"command (?:aborted|timed out)|traceback \(most recent call last\))",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"[\W_]{0,4}(?:<tool_use_error>|error:)?\s*(?:the user doesn['’]t want to (?:proceed with|take) this|"
    r"the user (?:has )?(?:rejected|denied|declined|cancelled) (?:this|the|permission|to)\b|"
    r"\[?request interrupted by user|operation cancelled\] reason: user|"
    r"(?:exec command|patch|command) rejected by (?:the )?user)",
    re.IGNORECASE,
)
_REFUSED_BRIEFLY = re.compile(
    r"\W{0,4}(?:<tool_use_error>|error:)?\s*(?:user (?:rejected|denied|declined|cancelled)|"
    r"(?:\w+ ){0,3}rejected by (?:the )?user|(?:the )?tool use was rejected)",
    re.IGNORECASE,
)  # too short to be told from a tool's output without the error flag
_FELL = re.compile(
    r"\W{0,4}(?:<tool_use_error>)?\s*(?:sibling tool call|cancelled: parallel tool call)", re.IGNORECASE
)
_WORDS = re.compile(
    r"(?:the user said|(?:following|user) (?:feedback|comment|message|reason)s?):\s*(.+)",
    re.IGNORECASE | re.DOTALL,
)


def refusal(result: ToolResult, *, quotes: bool = True) -> str | None:
    """Return the user's words in the refusal of a call, "" for none; None for a call that was not refused.

    Only a result that begins as a harness writes a refusal is one: the rest is text of a tool. What a call
    `quotes` of others may begin so, too: there words count only with the flag of an error.
    """
    head = result.text[:HEAD]
    if not (_REFUSAL.match(head) or (result.is_error and _REFUSED_BRIEFLY.match(head))):
        return None
    if quotes and not result.is_error and (len(result.text) > HEAD or _WORDS.search(head)):
        return None
    said = _WORDS.search(result.text)
    return said[1].strip() if said and said.start() < HEAD else ""


def fell(result: ToolResult) -> bool:
    """Whether a call never ran because another of its batch failed."""
    return bool(_FELL.match(result.text[:HEAD]))


def says_error(result: ToolResult) -> bool:
    """Whether a result is an error of the tool itself: by the flag, or as tools begin such a text."""
    return result.is_error or bool(_ERROR_SAID.match(result.text[:HEAD]))


def exit_code(text: str) -> int | None:
    """Return the exit code that a result names at its head or tail, one that failed before others."""
    text = ends(text)
    lowered = text.lower()
    if "exit" not in lowered and "returncode" not in lowered:  # most say neither, and the pattern is slow
        return None
    found = [int(one or other) for one, other in _EXIT.findall(text)]
    return next((code for code in found if code), 0) if found else None


def worked(result: ToolResult) -> bool | None:
    """Say whether a call worked: by the flag, the exit code or the first words of its result."""
    head = result.text[:HEAD]
    if result.is_error or _REFUSAL.match(head) or _FELL.match(head):
        return False
    code = exit_code(result.text)
    if code is not None:
        return code == 0
    return False if says_error(result) or _REFUSED.match(head) else None


def ends(text: str) -> str:
    """Return the head and the tail of a result in whole lines: all of it where it is short."""
    if len(text) <= HEAD + TAIL:
        return text
    return f"{text[:HEAD]}\n{text[-TAIL:].partition(chr(10))[2]}"


# ---- runs

LINE = 160  # characters of a line that is quoted
FEW = 2  # lines of an output that is quoted whole
ALIKE = 4  # lines in a row that differ only in numbers and are all shown
_NUMBER = re.compile(r"\d+(?:\.\d+)?")

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
_FAILED = re.compile(r"^(?:--- )?FAIL\b")  # Go's verdict on a test or a package, Jest's on a file
_ENVELOPE = re.compile(
    r"\s*(?:> \S|Exit code\b|Wall time\b|Total output lines\b|Output:|Process exited|Chunk ID|Command exited|"
    r"\(no output\)|Original token|Process Group PGID|Background PIDs|Command:|Directory:|Signal:|Stderr:|"
    r"Stdout:|Shell cwd was reset|</?[\w:-]+>\s*$|`{3,}\w*\s*$)"
)


class RunEnd(msgspec.Struct, frozen=True):
    """Whether a run passed (None: unknown), the line that says so, and whether that line has counts."""

    passed: bool | None
    text: str
    counted: bool = False


def outcome(output: str, *, is_error: bool) -> RunEnd:
    """Read the outcome of a run from its output and the flag that came with it."""
    text = uncoloured(output)
    code = exit_code(text)
    lines = [line.strip() for line in _own(ends(text))]
    counts = [line for line in lines if _COUNTS.search(line) and len(line) <= 2 * LINE]
    bad = [line for line in counts if _BAD_COUNT.search(line)]
    fails = [line for line in lines if _FAILED.match(line)]
    failed = is_error or bool(code) or bool(bad or fails)
    verdict = (bad or counts or fails or [line for line in lines if _VERDICT.search(line)])[-1:]
    parts = [*(["exit " + str(code)] if code else []), *(cut(line, LINE) for line in verdict)]
    if failed:
        parts += [cut(line, LINE) for line in _first_error(lines, verdict)]
        return RunEnd(False, _joined(parts) or _first(lines) or "failed", bool(counts))
    passed = True if code == 0 or verdict else None
    return RunEnd(passed, _joined(parts) or _last(lines), bool(counts))


def printed(output: str, most: int) -> str:
    """Return the last lines that a run itself printed, in at most `most` characters."""
    text = "\n".join(_each_shape(_own(uncoloured(output[-4 * most :]))))
    return text if len(text) <= most else text[-most:].partition("\n")[2]


def _own(text: str) -> list[str]:
    """Return the lines of an output that are the program's own, not those of what ran it, and not empty."""
    return [line.rstrip() for line in text.split("\n") if line.strip() and not _ENVELOPE.match(line)]


def _each_shape(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines; of several in a row that differ only in numbers the first and the last."""
    for _, found in groupby(lines, lambda line: _NUMBER.sub("0", line)):
        alike = list(found)
        left_out = [f"[… {len(alike) - 2} like these]"] if len(alike) > ALIKE else alike[1:-1]
        yield from (*alike[:1], *left_out, *alike[1:][-1:])


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
