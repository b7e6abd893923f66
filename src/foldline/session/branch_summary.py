"""What was done on a branch, summed up as a note: of one that is left, and of one that is merged back.

It is told as data: nothing in it is a wish of the user's. What the branch shares with the path on which it is
told is left out.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import suppress
from typing import Literal

import msgspec

from foldline.core.checkpoint.obtain import obtain
from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.checkpoint.serialize import neutral
from foldline.core.checkpoint.summary import request
from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.policy import summary_cap
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.table import extended
from foldline.core.log.entries import Compacted, Noted, Said
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import Counter
from foldline.core.secrets.derived import Sweep, redact_facts
from foldline.core.secrets.entries import CleanEntries
from foldline.core.view import ViewState
from foldline.errors import InputError
from foldline.stores.base import Store

BRANCH_NOTE = "branch_summary"  # the kind of note that says what a summary took
MERGED = "merged"  # in such a note: the session and the entry up to which it was merged
BRANCH_TOKENS = 2_048  # the most that the summary of a branch takes

_End = tuple[str, str]  # a session, and the entry of it with which a branch ends


class Left(msgspec.Struct, frozen=True):
    """What was said on a branch alone, and the checkpoint it follows where that is on the branch as well."""

    entries: tuple[Said, ...]
    boundary: Compacted | None


async def left_behind(
    store: Store, session: str, state: ViewState, at: str | None, *, place: str | None = None
) -> Left:
    """Return what of a view neither stands on the path of a session to `at` nor was merged into it.

    The view is of the session `place` (None: of the same one). A checkpoint counts where it folds any of it.
    """
    there: set[str] = set()
    if at is not None:
        for id_, leaf in [(session, at), *await merged_into(store, session, at)]:
            there |= {entry.id async for entry in store.path(id_, leaf)}
    boundary = state.boundary
    if boundary is not None:
        before = store.path(place or session, boundary.id)
        alone = [entry.id async for entry in before if isinstance(entry, Said) and entry.id not in there]
        boundary = boundary if alone else None
    shown = (*state.quoted, *state.kept)
    return Left(tuple(entry for entry in shown if entry.id not in there), boundary)


async def done_on(
    store: Store, session: str, leaf: str | None, other: str, counter: Counter
) -> tuple[Left, _End]:
    """Return what was said on another branch of a session, or in another session, and not on its path.

    `other` is an entry of the session, else a session of the store; the session and the entry with which that
    ends are returned as well. Raises InputError where it is neither.
    """
    place, end = session, other
    if await store.entry(session, other) is None:
        place, end = other, await store.leaf(other)
    if end is None:
        raise InputError(f"session {session} has no entry {other!r}, and the store no session of that name")
    state = ViewState(await store.active(place, end), counter=counter)
    return await left_behind(store, session, state, leaf, place=place), (place, end)


async def merged_into(store: Store, session: str, leaf: str) -> list[_End]:
    """Return what was merged into the path of a session."""
    found: list[_End] = []
    for note in await store.marks(session, leaf, kinds=["noted"]):
        if isinstance(note, Noted) and note.kind == BRANCH_NOTE and MERGED in note.data:
            with suppress(msgspec.ValidationError):  # a log may hold anything
                found.append(msgspec.convert(note.data[MERGED], _End))
    return found


def summarised(
    kind: Literal["branch", "merge"], left: Left, ask: FoldRequest, counter: Counter
) -> Generator[SummaryRequest, SummaryReply | None, SummaryReply | None]:
    """Plan the summary of what was done on a branch; None where nothing was said there."""
    if not left.entries and left.boundary is None:
        return None
    before = msgspec.convert(left.boundary.ledger, Ledger) if left.boundary is not None else Ledger()
    clean = CleanEntries()
    entries = clean(left.entries)
    cap = summary_cap(ask.policy, ask.window, ask.usable)
    wanted = request(
        ask.policy,
        kind=kind,
        folded=entries,
        previous=left.boundary.checkpoint.summary if left.boundary is not None else None,
        ledger=redact_facts(extended(before, entries)),
        tokens=min(cap, BRANCH_TOKENS),
        instructions=ask.instructions,
    )
    wanted = msgspec.structs.replace(wanted, secrets=bool(clean.secrets))
    reply = (yield from obtain(wanted, counter)).reply
    return msgspec.structs.replace(reply, text=Sweep(clean.secrets).text(reply.text))


def cost_of(reply: SummaryReply, *, merged: _End | None = None) -> Noted:
    """Return the note that says who wrote the summary of a branch, what that took, and what was merged."""
    known = {"summarizer": reply.summarizer, "usage": reply.usage, "price": reply.price}
    data = {name: msgspec.to_builtins(value) for name, value in known.items() if value is not None}
    data |= {MERGED: merged} if merged is not None else {}
    return Noted("", None, BRANCH_NOTE, data, at=time.time())


def left_told(summary: str) -> Message:
    """Return the message that tells of a left branch, as data: never a wish of the user's."""
    return _told("A branch of this conversation was left, and the work goes on from here.", summary)


def merged_told(summary: str) -> Message:
    """Return the message that tells of a branch that is merged, in the same way."""
    return _told("On another branch of this conversation work was done beside what was done here.", summary)


def _told(how: str, summary: str) -> Message:
    record = f"<branch-summary>\n{neutral(summary.strip())}\n</branch-summary>"
    text = f"{how} What was done on it, as a record:\n\n{record}"
    return Message("user", (Text(text),), injected=True)
