"""Files read again at a fold: what the session used of them stands in the checkpoint as it is on disk now.

A session knows which files were read and changed, not how to read one: a program that does attaches a reader.
The policy says how many are read (`reread`). Instructions and skills go first, then what was used last; what
was only read, and is in what a fold keeps, is left out. The texts are live state: shortened to its room, free
of secrets, frozen until the next boundary.
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
from foldline.session.shared import Shared
from foldline.session.state import known_live
from foldline.waiting import aside

NAME: Final = "files"  # of the live state
HEAD: Final = "Read again from disk, as data: "
ROOM: Final = 0.8  # of what live state may take, the part that files may
INSTRUCTIONS: Final = ("SKILL.md", "AGENTS.md", "CLAUDE.md")
_SKILL = re.compile(r"Base directory for this skill: ([^\n]{1,1000})\n")

Reader = Callable[[str], "str | Awaitable[str | None] | None"]


class Rereading:
    """Reads the files of one session again."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def attach_files(self, read: Reader) -> Callable[[], None]:
        """Have files read again at every fold, as many as the policy's `reread` says; returns what ends that.

        `read` gets the path of a file that was read or changed, as it was named in the session, and returns
        its text, or None where it cannot or must not be read; it may be a coroutine function. Nothing but
        `read` decides what may be read.
        """
        return self._shared.live.attach(NAME, partial(self._render, read))

    async def _render(self, read: Reader) -> str:
        setup, state = self._shared.model.setup, self._shared.cursor.state
        policy = setup.policy
        if not policy.reread:
            return ""
        usable, found = usable_of(policy, setup.window), list[Live]()
        keep = policy.keep.amount.resolve(setup.window, usable) if policy.keep.amount else 0
        sure = min(keep // 2, state.tokens // 4)  # a fold keeps at least that much
        for path in await aside(state.tokens * 4, partial(files_of, state, sure)):
            made = read(path)
            text = await made if inspect.isawaitable(made) else made
            if text and text.strip():
                found.append(Live(path, text))
            if len(found) == policy.reread:
                break
        texts = [f"### {one.name}\n{one.text}" for one in fitted(found, int(usable * ROOM), setup.counter)]
        return "\n\n".join([HEAD + json.dumps([one.name for one in found]), *texts]) if texts else ""


def files_of(state: ViewState, keep: int) -> list[str]:
    """Return the paths of the files that a session used: instructions and skills first, the newest first.

    What was only read in the newest `keep` tokens, and what was deleted, is left out.
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
    """Yield the ids of the newest messages that have room in so many tokens."""
    for entry in reversed(kept):
        tokens -= entry.tokens
        if tokens < 0:
            return
        yield entry.id


def _skills(entry: Said) -> Iterator[str]:
    """Yield the folders of the skills whose text a message is."""
    for part in entry.message.parts if entry.message.role == "user" else ():
        if isinstance(part, Text) and (found := _SKILL.match(part.text)):
            yield found[1].strip().rstrip("/\\")


def _earlier(state: ViewState) -> list[str]:
    """Return the paths of the files that the checkpoint holds: its first line, which code wrote."""
    first = known_live(state).get(NAME, "").partition("\n")[0]
    if not first.startswith(HEAD):
        return []
    try:
        found = json.loads(first.removeprefix(HEAD))
    except ValueError:  # its middle had no room
        return []
    return [path for path in cast("list[Any]", found) if isinstance(path, str)]
