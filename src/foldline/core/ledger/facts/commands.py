"""Shell commands, whether they passed, and the line of the result that tells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

import msgspec

from foldline.core.ledger.facts.calls import Use, arguments, as_list, ends, exit_code, holds, plain, rejected
from foldline.core.ledger.facts.kinds import CommandFact
from foldline.core.ledger.text import shell
from foldline.core.ledger.text.reasons import reason as told
from foldline.core.ledger.text.sentences import clip, cut, uncoloured, word_set
from foldline.core.log.messages import ToolCall

CARRIED = 60  # commands from fold to fold: the newest
OUTCOME = 160
LINE = 240
"""Characters beyond which a line of output is data and tells nothing."""
COMMAND = 400
CITED = 12
AT_HOME = 0.4  # share of the commands that run in a directory from which it is the home of all

_COMMAND_KEYS = ("command", "cmd", "commandline", "shellcommand", "script", "bashcommand", "argv", "commands")
_REASON_KEYS = ("description", "explanation", "reason", "purpose", "justification")
_SHELL_NAME = re.compile(r"bash|shell|terminal|exec|^run|command|powershell|console|process")
_FOLDER_KEYS = ("workdir", "cwd", "workingdirectory", "dirpath", "directory", "workingdir")
_NOT_SHELL = word_set("view create strreplace insert undoedit read write edit delete append replace")
_TRIVIAL = word_set(
    "ls ll la pwd cat head tail less more bat nl wc which whoami date true clear type file stat tree find "
    "fd grep "
    "rg ag ack egrep fgrep zgrep jq echo printf sleep read history env printenv id uname sed awk cut sort "
    "uniq tr "
    "diff cmp dirname basename realpath readlink man Get-Content Get-ChildItem Select-String test [ : exit "
    "export "
    "set cd pushd popd source . column xxd od strings du df ps top lsof kill pkill wait local"
)
_TRIVIAL_GIT = word_set(
    "status log diff show branch blame rev-parse ls-files remote config describe grep reflog"
)
_SEARCHES = word_set("grep rg ag ack egrep fgrep diff cmp test [ which pgrep find fd")

BEFORE, BEHIND = 200, 300  # characters of a telling line before and behind what tells
# The two patterns of lines are for lower-case text: to match without regard to case takes twice as long.
_FAILED_LINE = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?\b(?! ?\())|\bfailures?: ?[1-9]|\berrors?: ?[1-9]|"
    r"^\W{0,4}(?:fail|failed|error|build failed)\b|--- fail|test result: failed|\bfailed \(|npm err!|"
    r"elifecycle|^\W*err_[a-z]{2,}_[a-z_]+\b|^\W*(?:\w+\W+)?command \S{2,40} not found|"
    r"error(?:\[e\d+\]|:| ts\d+)|^fatal: |traceback \(most recent|command not found|make: \*\*\* |panic: |"
    r"^[\w.]*(?:error|exception): |segmentation fault|no such file or directory|[✖✗✘×] \d* ?(?:problem|fail|"
    r"error)"
)
_DEFINITE = re.compile(
    r"^[\w.]*(?:Error|Exception)\b.*: |\bE  +\w+(?:Error|Exception)\b|error(?: TS\d+|\[E\d+\]):|--- FAIL: |"
    r"^FAILED? \S+::|"
    r"^\S+:\d+(?::\d+)?: .*\berror|^(?:fatal|error): |command not found|No such file"
)
_SOME = re.compile(r"[1-9]\d* (?:fail|err)", re.IGNORECASE)
_ZERO = re.compile(r"\b0 (?:failed|failing|failures?|errors?)\b", re.IGNORECASE)
_PASSED_LINE = re.compile(
    r"\b\d+ (?:passed|passing)\b|test result: ok|^ok  ?\t?\S|^pass\b|\bok \(|^ok$|\b0 (?:failed|errors|"
    r"problems|failures)\b|"
    r"all checks passed|no issues found|successfully|\bbuild succeeded|compiled successfully|^done in |✓ "
    r"built|up to date|"
    r"success(?:ful)?\b|no errors|^\[[\w./-]+ [0-9a-f]{7,}\]"
)
_STRONG = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?)\b|--- FAIL|^FAIL\b|^FAILED\b|test result: FAILED|\bFAILED \(|"
    r"BUILD FAILED|"
    r"npm ERR!|ELIFECYCLE|error(?: TS\d+|\[E\d+\]):|^fatal: |Traceback \(most recent|command not found|"
    r"make: \*\*\* |^\W*(?:\w+\W+)?Command \S{2,40} not found|^\W*ERR_[A-Z]{2,}_[A-Z_]+\b|"
    r"\bFound [1-9]\d* errors?\b|[✖✗✘×] [1-9]\d* (?:problem|error)",
    re.MULTILINE,
)


_COUNTED = re.compile(
    r"^[1-9]\d* (?:problems?|violations?|offen[cs]es|issues?)(?: found)?[.!]?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""A line that counts what is wrong, in the output of a command that did not fail for it."""


# What each of the patterns above needs: a text or a line without any of its words cannot match.
_FAILED_WORDS = (
    "fail", "err", "elifecycle", "fatal: ", "traceback", "not found", "***", "panic: ", "exception",
    "segmentation", "no such", "problem",
)  # fmt: skip
_PASSED_WORDS = (
    "pass", "ok", "0 ", "success", "no issues", "succeeded", "done in", "built", "up to date",
    "no errors", "[",
)  # fmt: skip


def _text_of(value: Any) -> str | None:
    """Return a command line from a string or an argument list."""
    if isinstance(value, str):
        return value
    items = as_list(value)
    if items and all(isinstance(item, str) for item in items):
        return shell.script(items)
    return None


def command_of(call: ToolCall) -> str | None:
    """Return the command line that a call runs in a shell, or None where it runs none."""
    name = plain(call.name)
    args = arguments(call)
    for key in _COMMAND_KEYS:
        text = _text_of(args.get(key))
        if not text or not text.strip() or plain(text) in _NOT_SHELL:
            continue
        if key != "commands" or _SHELL_NAME.search(name):
            return text.strip()
    if _SHELL_NAME.search(name) and isinstance(args.get("input"), str) and len(args) == 1:
        return str(args["input"]).strip() or None
    return None


def command_in(use: Use) -> str | None:
    """Return the command line of a use, worked out once."""
    if "command" not in use.known:
        use.known["command"] = command_of(use.call)
    return use.known["command"]


def folder_of(call: ToolCall) -> str:
    """Return the folder that the call says it runs in, or ""."""
    args = arguments(call)
    return next((value for key in _FOLDER_KEYS if isinstance(value := args.get(key), str)), "").rstrip("/")


def is_notable(command: str) -> bool:
    """Whether a command does more than look around."""
    for step in shell.steps(command):
        words = shell.bare(step.words)
        if not words:
            continue
        name = words[0].rsplit("/", 1)[-1]
        if name == "git":
            if not _TRIVIAL_GIT.issuperset(shell.git_words(words)[:1]):
                return True
        elif name not in _TRIVIAL or any(
            effect.status not in ("read", "created") for effect in shell.effects(step)
        ):
            return True
    return False


def last_name(command: str) -> str:
    """Return the program whose exit code the command line ends with."""
    all_steps = shell.steps(command)
    words = shell.bare(all_steps[-1].words) if all_steps else ()
    return words[0].rsplit("/", 1)[-1] if words else ""


Judged = tuple[bool | None, str]
"""Whether a call passed (None: nothing says so), and the line of its output that tells."""


def judge(use: Use, silent_means_passed: bool = False) -> Judged:
    """Say whether a command passed, and the line that tells.

    In this order: the error flag or a non-zero exit code; a test runner's or compiler's failure line (a
    pipe hides the exit code); a count of problems, which says neither; exit code zero; a success line; for a
    tool that names only the codes that are not zero, silence.
    """
    if use.result is None:
        return None, ""
    text = uncoloured(use.result.text)
    shown = ends(text)
    command = command_in(use) or ""
    code = exit_code(text)
    if use.passed is False:
        if code == 1 and last_name(command) in _SEARCHES and not re.search(r"error|No such file", shown):
            return None, ""
        return False, telling(shown, failed=True)
    looks = not is_notable(command)
    if not looks and holds(shown, _FAILED_WORDS) and _STRONG.search(shown):
        return False, telling(shown, failed=True)
    counted = None if looks else _COUNTED.search(shown)
    if counted:
        return None, counted.group().strip()
    if code == 0 or (silent_means_passed and use.passed is None) or (not looks and _success(shown)):
        return True, "" if looks else telling(shown, failed=False)
    return None, "" if looks else telling(shown, failed=False)


def _lines(lines: Iterable[str], pattern: re.Pattern[str], words: Sequence[str]) -> Iterator[str]:
    """Yield the lines that a pattern matches; only those with one of its words are tried."""
    return (line.strip() for line in lines if holds(line, words) and _tells(line, pattern))


def _tells(line: str, pattern: re.Pattern[str]) -> bool:
    """Whether a pattern for lower-case text stands in a line, near enough to its two ends."""
    found = pattern.finditer(line.lower())
    return any(match.start() <= BEFORE and len(line) - match.end() <= BEHIND for match in found)


def _success(text: str) -> str:
    """Return the last line that tells of success, "" where none does."""
    return next(_lines(reversed(text.split("\n")), _PASSED_LINE, _PASSED_WORDS), "")


def telling(text: str, *, failed: bool) -> str:
    """Return the most telling line of an output: its most definite error, or its last line of success."""
    if failed:
        found = _lines(text.split("\n"), _FAILED_LINE, _FAILED_WORDS)
        lines = [line for line in found if not _ZERO.search(line) or _SOME.search(line)]
        definite = [line for line in lines if _DEFINITE.search(line)]
        if lines:
            return cut((definite or lines)[0], OUTCOME)
    elif success := _success(text):
        return cut(success, OUTCOME)
    rest = [
        line.strip()
        for line in text.splitlines()
        if len(line) <= LINE and re.search(r"\w{2}", line) and not _ENVELOPE.match(line)
    ]
    return cut(rest[0] if failed else rest[-1], OUTCOME) if rest else ""


def is_verdict(line: str) -> bool:
    """Whether a line of output says how a run went, rather than being merely its last."""
    return _tells(line, _FAILED_LINE) or _tells(line, _PASSED_LINE) or bool(_COUNTED.match(line))


_CHECK = re.compile(
    r"(?:^|[\s/:])(?:tests?|checks?|lint|build|compile|typecheck|tsc|vet|clippy|mypy|pyright|ruff|eslint|pytest|"
    r"jest|vitest|mocha|tox|nox|make|gradlew?|mvn|bazel|install|deploy|publish|release|migrate|commit|push|"
    r"merge|checkout|switch|rebase|tag|pr)(?=[\s:;)]|$)"
)
"""A word of a command that checks, builds, records or delivers the work."""


def is_check(fact: CommandFact) -> bool:
    """Whether a run checks, builds, records or delivers the work."""
    return bool(_CHECK.search(fact.command))


def tells(fact: CommandFact) -> bool:
    """Whether a run says how the work stands, rather than being one of its steps."""
    return fact.passed is False or is_verdict(fact.outcome) or is_check(fact)


_ENVELOPE = re.compile(
    r"\s*(?:Exit code\b|Wall time\b|Total output lines\b|Output:|Process exited|Chunk ID|Command exited|"
    r"\(no output\)|Original token|Process Group PGID|Background PIDs|Command:|Directory:|Signal:|Stderr:|"
    r"Stdout:|> \S+@\S+|> [\w./-]+ |\$ )"
)


def judged(calls: Sequence[Use]) -> list[Judged]:
    """Say of each call that ran a command whether it passed, and the line that tells."""
    speaks = speaking(calls)
    return [
        judge(use, use.call.name in speaks)
        if use.result is not None and not rejected(use.result) and command_in(use)
        else (use.passed, "")
        for use in calls
    ]


def collect(
    calls: Sequence[Use], outcomes: Sequence[Judged] | None = None, changed_in: AbstractSet[str] = frozenset()
) -> tuple[CommandFact, ...]:
    """Take the commands that do more than look around, in the order of their last run.

    `outcomes` is what `judged` says of the calls, where that is known already; `changed_in` are the entries
    in which calls changed files.
    """
    found: dict[str, CommandFact] = {}
    since: set[str] = set()  # the commands that ran after the last change of a file
    for use, (passed, outcome) in zip(calls, outcomes or judged(calls), strict=True):
        if use.entry in changed_in:
            since.clear()
        command = command_in(use)
        if command is None or use.result is None or rejected(use.result) or not is_notable(command):
            continue
        key = normal(command)
        old = found.pop(key, None)
        found[key] = CommandFact(
            command=command[:COMMAND],
            passed=passed,
            outcome=outcome,
            uses=old.uses + 1 if old else 1,
            entries=cited(old.entries if old else (), (use.entry, use.answered_in)),
            why=_why(use),
        )
        since.add(key)
    return tuple(fact if key in since or not changed_in else _outdated(fact) for key, fact in found.items())


def _outdated(fact: CommandFact) -> CommandFact:
    """Return a command as it stands after a file was changed."""
    return fact if fact.outdated else msgspec.structs.replace(fact, outdated=True)


def _why(use: Use) -> str:
    """Return the reason given for a command: its own description, else what was said before it."""
    args = arguments(use.call)
    own = next((text for key in _REASON_KEYS if isinstance(text := args.get(key), str)), "")
    return clip(own or told(use.why), OUTCOME)


def speaking(calls: Sequence[Use]) -> frozenset[str]:
    """Return the tools whose results name exit codes or raise flags only when something failed."""
    loud: set[str] = set()
    quiet: set[str] = set()
    for use in calls:
        if use.result is None:
            continue
        code = exit_code(use.result.text)
        if use.result.is_error or code:
            loud.add(use.call.name)
        elif code == 0:
            quiet.add(use.call.name)
    return frozenset(loud - quiet)


_LEADING_FOLDER = re.compile(r"^cd\s+(?:'[^']*'|\"[^\"]*\"|[^\s;&|]+)\s*(?:&&|;|\n)\s*")
_HOME = re.compile(r"cd\s+(?:'([^']*)'|\"([^\"]*)\"|([^\s;&|]+))\s*&&")


def home(calls: Iterable[Use]) -> str:
    """Return the directory in which most commands ran, with its last slash; "" where there is none."""
    found: Counter[str] = Counter()
    total = 0
    for use in calls:
        command = command_in(use)
        if command is None:
            continue
        match = _HOME.match(command)
        folder = "".join(filter(None, match.groups())) if match else folder_of(use.call)
        total += 1
        found[folder.rstrip("/")] += 1
    place, times = next(
        ((place, times) for place, times in found.most_common(2) if place.startswith("/")), ("", 0)
    )
    return f"{place}/" if times >= AT_HOME * max(1, total) else ""


_OUTPUT_CUT = re.compile(
    r"\s*(?:2>&1)?\s*(?:\|\s*(?:head|tail|grep|rg|less|cat)\b(?:[^|;&'\"]|'[^']*'|\"[^\"]*\")*)?\Z"
)


@lru_cache(maxsize=1_024)
def normal(command: str) -> str:
    """Return a command as two runs of it are equal: no `cd` before it, no pipe that cuts its output."""
    short = _LEADING_FOLDER.sub("", command[:COMMAND].strip())
    for _ in range(3):
        short = _OUTPUT_CUT.sub("", short)
    return " ".join(short.split())


def cited(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """Join citations, oldest first, the newest kept."""
    return tuple(dict.fromkeys(id_ for id_ in (*old, *new) if id_))[-CITED:]


def merge(
    old: Sequence[CommandFact], new: Sequence[CommandFact], *, changed: bool = False
) -> tuple[CommandFact, ...]:
    """Merge the commands of two ranges: repeats counted, the newest outcome wins.

    `changed` says that files were changed in the newer range.
    """
    found = {normal(fact.command): _outdated(fact) if changed else fact for fact in old}
    for fact in new:
        known = found.get(normal(fact.command))
        if known and set(fact.entries) <= set(known.entries):  # told before: it stands in kept messages
            found[normal(fact.command)] = msgspec.structs.replace(known, outdated=fact.outdated)
            continue
        found.pop(normal(fact.command), None)
        found[normal(fact.command)] = msgspec.structs.replace(
            fact,
            uses=fact.uses + (known.uses if known else 0),
            entries=cited(known.entries if known else (), fact.entries),
        )
    return tuple(found.values())


def bound(facts: Sequence[CommandFact]) -> tuple[CommandFact, ...]:
    """Return the commands that are carried on to the next fold."""
    return tuple(facts[-CARRIED:])
