"""What is committed and what is not: the newest commit, whether it was pushed, the files changed since."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from foldline.core.ledger.facts.calls import Use
from foldline.core.ledger.facts.commands import Judged, command_in
from foldline.core.ledger.facts.files import touches
from foldline.core.ledger.facts.kinds import CommitFact
from foldline.core.ledger.text import shell
from foldline.core.ledger.text.sentences import clip, sentences, uncoloured
from foldline.core.log.entries import Said

SUBJECT = 120  # characters of a commit's first line
CITED = 40  # entries that a commit cites: the newest
LATER = 40  # files changed since: the newest

_MADE = re.compile(r"^\[([^\s\]]+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] ([^\n]*)$", re.MULTILINE)
"""What `git commit` prints: [branch hash] subject."""
_UNCOMMITTED = re.compile(
    r"\b(?:nothing (?:has been |is |was )?|not (?:yet |been )*|\w+n['’]t (?:yet |been )*|un)committed\b",
    re.IGNORECASE,
)
SCANNED = 12_000  # characters of a message that are read for sentences that say so
_OUTSIDE = re.compile(r"^(?:~|/tmp/|/var/|/private/)")


def collect(calls: Sequence[Use], outcomes: Sequence[Judged]) -> tuple[CommitFact, ...]:
    """Take the newest commit with what was changed after it; nothing where nothing was committed."""
    found: CommitFact | None = None
    for use, (passed, _) in zip(calls, outcomes, strict=True):
        if use.result is None or use.passed is False:
            continue
        command = command_in(use)
        made = _made(use, command) if command else None
        if made is not None:
            found = made
        elif found is not None:
            found = _after(found, use, command or "", passed)
    return (found,) if found else ()


def outdated(entries: Sequence[Said], calls: Sequence[Use], outcomes: Sequence[Judged]) -> Iterator[str]:
    """Yield what the assistant said to be uncommitted before the newest commit was made."""
    made = collect(calls, outcomes)
    newest = made[0].entries[0] if made else ""
    places = [at for at, entry in enumerate(entries) if newest and entry.id == newest]
    for entry in entries[: places[0]] if places else ():
        if entry.message.role == "assistant" and "committed" in entry.message.text:
            yield from filter(_UNCOMMITTED.search, sentences(entry.message.text[:SCANNED].replace("**", "")))


def _made(use: Use, command: str) -> CommitFact | None:
    """Read the last commit that a command made."""
    if "commit" not in command or use.result is None:
        return None
    made = list(_MADE.finditer(uncoloured(use.result.text)))
    if not made:
        return None
    branch, key, subject = made[-1].groups()
    cites = tuple(dict.fromkeys((use.entry, use.answered_in)))
    return CommitFact(key, branch, clip(subject, SUBJECT), _pushes(command), entries=cites)


def _after(fact: CommitFact, use: Use, command: str, passed: bool | None) -> CommitFact:
    """Bring a commit up to date by what was done behind it."""
    if command and _pushes(command) and passed is not False:
        return msgspec.structs.replace(fact, pushed=True, entries=(*fact.entries, use.entry)[-CITED:])
    changed = [
        touch.path for touch in touches(use) if touch.status != "read" and not _OUTSIDE.match(touch.path)
    ]
    if not changed:
        return fact
    later = tuple(dict.fromkeys((*fact.later, *changed)))[-LATER:]
    return msgspec.structs.replace(fact, later=later, entries=(*fact.entries, use.entry)[-CITED:])


def _pushes(command: str) -> bool:
    steps = (shell.bare(step.words) for step in shell.steps(command))
    return any(words[:1] == ("git",) and shell.git_words(words)[:1] == ("push",) for words in steps)


def merge(
    old: Sequence[CommitFact], new: Sequence[CommitFact], later: Sequence[str]
) -> tuple[CommitFact, ...]:
    """Return the newest commit of two ranges; `later` are the files that the newer one changed."""
    if new or not old:
        return tuple(new[-1:])
    fact = old[-1]
    more = [path for path in later if path not in fact.later and not _OUTSIDE.match(path)]
    return (msgspec.structs.replace(fact, later=(*fact.later, *more)[-LATER:]) if more else fact,)
