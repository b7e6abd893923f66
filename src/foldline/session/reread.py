"""Read files again at a fold, so that the checkpoint has their current contents.

The host attaches a reader, as a session knows which files were used but not how to read them. The policy's
`reread` limits their number. Instructions and skills come first, then the most recently used files; files
that were only read in the messages kept by the fold are skipped. The texts are live state: shortened to its
limit, redacted, and frozen until the next boundary.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, cast

import msgspec

from foldline.core.checkpoint.checkpoint import fitted
from foldline.core.decide.policy import usable_of
from foldline.core.ledger.facts.files import tracked
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.table import collect, merge
from foldline.core.log.entries import Live, Said
from foldline.core.log.messages import Text
from foldline.core.view import ViewState
from foldline.session.hooks import known_live
from foldline.session.shared import Shared
from foldline.waiting import run_off_loop

NAME: Final = "files"  # of the live state
HEAD: Final = "Read again from disk, as data: "
ROOM: Final = 0.8  # share of the room for live state that files may take
INSTRUCTIONS: Final = ("SKILL.md", "AGENTS.md", "CLAUDE.md")
_SKILL = re.compile(r"Base directory for this skill: ([^\n]{1,1000})\n")

Reader = Callable[[str], "str | Awaitable[str | None] | None"]


class Rereading:
    """Reads the files of one session again at folds."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def attach_files(self, read: Reader) -> Callable[[], None]:
        """Read files again at every fold, up to the policy's `reread`; returns a function that stops it.

        `read` gets the path of a used file as named in the session and returns its text, or None if it cannot
        or must not be read; it may be a coroutine function. Only `read` decides what may be read.
        """
        return self._shared.live.attach(NAME, partial(self._render, read))

    async def _render(self, read: Reader) -> str:
        setup, state = self._shared.model.setup, self._shared.cursor.state
        policy = setup.policy
        if not policy.reread:
            return ""
        usable, found = usable_of(policy, setup.window), list[Live]()
        keep = policy.keep.amount.resolve(setup.window, usable) if policy.keep.amount else 0
        kept_tokens = min(keep // 2, state.tokens // 4)  # a fold keeps at least this much
        for path in await run_off_loop(state.tokens * 4, partial(files_of, state, kept_tokens)):
            answer = read(path)
            text = await answer if inspect.isawaitable(answer) else answer
            if text and text.strip():
                found.append(Live(path, text))
            if len(found) == policy.reread:
                break
        texts = [f"### {file.name}\n{file.text}" for file in fitted(found, int(usable * ROOM), setup.counter)]
        return "\n\n".join([HEAD + json.dumps([file.name for file in found]), *texts]) if texts else ""


def files_of(state: ViewState, keep: int) -> list[str]:
    """Return the paths of files that a session used: instructions and skills first, then newest first.

    Files that were deleted, or only read in the newest `keep` tokens, are left out.
    """
    boundary, said = state.boundary, state.clean((*state.past, *state.quoted, *state.kept))
    before = msgspec.convert(boundary.ledger, Ledger) if boundary is not None else Ledger()
    found = collect(said)
    earlier, later = tracked(state.notes, before.files, found.files, said)
    files = merge(merge(merge(before, earlier), found), later).files
    shown = frozenset(_newest(state.kept, keep))
    used = [
        fact.path
        for fact in reversed(files)
        if fact.status != "deleted" and not (fact.status == "read" and shown.intersection(fact.entries))
    ]
    skills = [
        f"{folder}/SKILL.md" for entry in reversed(said) if entry.id not in shown for folder in _skills(entry)
    ]
    first = [path for path in (*used, *skills, *_earlier(state)) if path.endswith(INSTRUCTIONS)]
    return list(dict.fromkeys((*first, *used)))


def _newest(kept: Sequence[Said], tokens: int) -> Iterator[str]:
    """Yield the ids of the newest messages that fit into a number of tokens."""
    for entry in reversed(kept):
        tokens -= entry.tokens
        if tokens < 0:
            return
        yield entry.id


def _skills(entry: Said) -> Iterator[str]:
    """Yield the folders of skills whose text a message contains."""
    for part in entry.message.parts if entry.message.role == "user" else ():
        if isinstance(part, Text) and (found := _SKILL.match(part.text)):
            yield found[1].strip().rstrip("/\\")


def _earlier(state: ViewState) -> list[str]:
    """Return the paths of the files in the checkpoint, from the first line of its live state."""
    first = known_live(state).get(NAME, "").partition("\n")[0]
    if not first.startswith(HEAD):
        return []
    try:
        found = json.loads(first.removeprefix(HEAD))
    except ValueError:  # it was shortened
        return []
    return [path for path in cast("list[Any]", found) if isinstance(path, str)]
