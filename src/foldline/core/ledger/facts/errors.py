"""Distinct errors, where they came from, and whether the same thing worked later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from foldline.core.ledger.facts.calls import Use, ends, rejected
from foldline.core.ledger.facts.commands import (
    Judged,
    cited,
    command_in,
    is_notable,
    is_verdict,
    judged,
    normal,
    telling,
)
from foldline.core.ledger.facts.edits import FileEdit
from foldline.core.ledger.facts.files import touches
from foldline.core.ledger.facts.kinds import ErrorFact
from foldline.core.ledger.text import shell
from foldline.core.ledger.text.sentences import clip, uncoloured

SOURCE = 160
CARRIED = 60  # errors from fold to fold: the newest

_NO_ERROR = re.compile(
    r"File has not been read yet|exceeds maximum allowed tokens|^\(?no output\)?$",
    re.IGNORECASE,
)
_WAITS = re.compile(r"(?i)stop|kill|poll|wait|cancel")
"""Tools that look after a process: what they cannot do stands in nobody's way."""
_LOOKS = re.compile(r"(?i)(?:read|get|list|ls|view|search|grep|glob|find|fetch|show|open)(?![a-z])")
"""Tools that only look, nor does what these cannot."""
_VARIES = re.compile(
    r"0x[0-9a-f]+|(?:/private)?/(?:tmp|var/folders)/[^\s:'\"]+|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)*(?:ms|s)?|\s+",
    re.IGNORECASE,
)
_TAGS = re.compile(r"</?(?:tool_use_error|error)>")
_ABOUT = re.compile(
    r"(?i)\b(?:no module named|cannot find (?:module|name|package)|cannot import name|name|undefined:|"
    r"unresolved import) "
    r"['\"`]?([A-Za-z_@][\w./@-]{2,60})"
)
"""What a missing name is called: an error that goes with the name."""


class Failure(msgspec.Struct, frozen=True):
    """One failed call: its error line and what has to work later for it to count as fixed."""

    text: str
    source: str
    keys: frozenset[str]
    entries: tuple[str, ...]


def key_of(text: str) -> str:
    """Return what stays the same when an error comes back: numbers, addresses and temporary paths dropped."""
    return _VARIES.sub(" ", text.lower()).strip()[:200]


def runner(command: str) -> tuple[str, frozenset[str]]:
    """Return what a command runs (`go test`, `pytest`) and the words that narrow it."""
    for step in shell.steps(command):
        words = shell.bare(step.words)
        if words and words[0] not in ("cd", "export", "source", "set", "echo", "mkdir"):
            plain_words = [word for word in words if not word.startswith("-")]
            head = 2 if len(plain_words) > 1 and re.fullmatch(r"[a-z][\w:-]*", plain_words[1]) else 1
            if len(plain_words) > 2 and plain_words[1] in ("run", "exec"):
                head = 3
            return " ".join(plain_words[:head]), frozenset(words) - set(plain_words[:head])
    return "", frozenset()


def _failure(use: Use) -> Failure | None:
    """Read a failed call."""
    assert use.result is not None
    text = _TAGS.sub("\n", uncoloured(use.result.text))
    line = telling(ends(text), failed=True)
    command = command_in(use)
    if not line or _NO_ERROR.search(line) or _WAITS.search(use.call.name):
        return None
    if command and not (is_notable(command) and is_verdict(line)):
        return None
    if not command and _LOOKS.match(use.call.name):
        return None
    paths = frozenset(touch.path for touch in touches(use))
    source = command or f"{use.call.name} {min(paths)}" if command or paths else use.call.name
    keys = frozenset({normal(command)}) if command else paths or frozenset({use.call.name})
    return Failure(line, clip(source, SOURCE), keys, (use.entry, use.answered_in))


class _Passed:
    """What worked, and at which call it last did."""

    def __init__(self) -> None:
        self.keys: dict[str, int] = {}
        self.runs: dict[str, list[tuple[int, frozenset[str]]]] = {}

    def add(self, use: Use, index: int) -> None:
        """Remember a call that worked."""
        command = command_in(use)
        if command:
            self.keys[normal(command)] = index
            name, narrow = runner(command)
            self.runs.setdefault(name, []).append((index, narrow))
        else:
            for path in {touch.path for touch in touches(use)} or {use.call.name}:
                self.keys[path] = index

    def later(self, failure: Failure, use: Use, index: int) -> bool:
        """Whether the same thing, or a wider run of it, worked after call `index`."""
        if any(self.keys.get(key, -1) > index for key in failure.keys):
            return True
        command = command_in(use)
        if not command:
            return False
        name, narrow = runner(command)
        return any(at > index and wider <= narrow for at, wider in reversed(self.runs.get(name, [])[-20:]))


def collect(
    calls: Sequence[Use],
    outcomes: Sequence[Judged] | None = None,
    edits: Sequence[FileEdit] = (),
    order: Mapping[str, int] | None = None,
) -> tuple[ErrorFact, ...]:
    """Take the errors from failed calls, in the order of their last occurrence.

    `outcomes` is what `commands.judged` says of the calls, where that is known already. An error that one of
    the `edits` has outlived counts as fixed; `order` maps the ids of entries to their place.
    """
    passed, failures = _passed_and_failed(calls, outcomes or judged(calls))
    found: dict[str, ErrorFact] = {}
    for index, use, failure in failures:
        key = key_of(failure.text)
        old = found.pop(key, None)
        found[key] = ErrorFact(
            text=failure.text,
            source=failure.source,
            fixed=passed.later(failure, use, index),
            uses=old.uses + 1 if old else 1,
            entries=cited(old.entries if old else (), failure.entries),
        )
    return tuple(
        msgspec.structs.replace(fact, fixed=True) if _outlived(fact, edits, order or {}) else fact
        for fact in found.values()
    )


def _passed_and_failed(
    calls: Sequence[Use], outcomes: Sequence[Judged]
) -> tuple[_Passed, list[tuple[int, Use, Failure]]]:
    """Sort the calls by what became of them; each failed one comes with its index."""
    passed = _Passed()
    failures: list[tuple[int, Use, Failure]] = []
    for index, (use, (outcome, _)) in enumerate(zip(calls, outcomes, strict=True)):
        if use.result is None or rejected(use.result):
            continue
        command = command_in(use)
        if outcome is False:
            failure = _failure(use)
            if failure:
                failures.append((index, use, failure))
        elif failures and (outcome or not command or not is_notable(command)):
            passed.add(use, index)
        elif failures and command:
            passed.keys[normal(command)] = index
    return passed, failures


def _outlived(error: ErrorFact, edits: Sequence[FileEdit], place: Mapping[str, int]) -> bool:
    """Whether an error is about a name that later edits took out, and that none put back."""
    match = _ABOUT.search(error.text)
    at = max((place.get(entry, -1) for entry in error.entries), default=-1)
    if match is None or at < 0:
        return False
    word = re.compile(rf"(?<!\w){re.escape(match.group(1))}(?!\w)")
    later = [edit for edit in edits if place.get(edit.entry, -1) > at]
    taken = any(word.search(edit.old) and not word.search(edit.new) for edit in later)
    return taken and not any(word.search(edit.new) for edit in later)


def merge(
    old: Sequence[ErrorFact], new: Sequence[ErrorFact], passed: Iterable[str] = ()
) -> tuple[ErrorFact, ...]:
    """Merge the errors of two ranges; `passed` are the commands and paths that worked in the newer one."""
    worked = {normal(source) for source in passed}
    found = {key_of(fact.text): fact for fact in old}
    for key, fact in found.items():
        source = normal(fact.source)
        if not fact.fixed and (source in worked or source.partition(" ")[2] in worked):
            found[key] = msgspec.structs.replace(fact, fixed=True)
    for fact in new:
        key = key_of(fact.text)
        known = found.get(key)
        if known and set(fact.entries) <= set(known.entries):
            continue
        found.pop(key, None)
        found[key] = msgspec.structs.replace(
            fact,
            uses=fact.uses + (known.uses if known else 0),
            entries=cited(known.entries if known else (), fact.entries),
        )
    return tuple(found.values())


def bound(facts: Sequence[ErrorFact]) -> tuple[ErrorFact, ...]:
    """Return the errors that are carried on to the next fold."""
    return tuple(facts[-CARRIED:])
