"""Summaries of a branch: one that was left, or one that is merged back.

The summary is appended as data, not as a request of the user, and omits what the branch shares with the path.
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

BRANCH_NOTE = "branch_summary"  # kind of the note with a summary's writer, usage and price
MERGED = "merged"  # in such a note: the merged session and its last merged entry
BRANCH_TOKENS = 2_048  # limit of a branch summary

_BranchEnd = tuple[str, str]  # a session and the last entry of its branch


class Left(msgspec.Struct, frozen=True):
    """What was said only on a branch, and its checkpoint if that folds any of it."""

    entries: tuple[Said, ...]
    boundary: Compacted | None


async def left_behind(
    store: Store, session: str, state: ViewState, at: str | None, *, place: str | None = None
) -> Left:
    """Return what a view shows that is neither on a session's path to `at` nor merged into it.

    The view belongs to the session `place` (None: the same one). Its checkpoint counts if it folds any of it.
    """
    shared_ids: set[str] = set()
    if at is not None:
        for id_, leaf in [(session, at), *await merged_into(store, session, at)]:
            shared_ids |= {entry.id async for entry in store.path(id_, leaf)}
    boundary = state.boundary
    if boundary is not None:
        before = store.path(place or session, boundary.id)
        alone = [entry.id async for entry in before if isinstance(entry, Said) and entry.id not in shared_ids]
        boundary = boundary if alone else None
    shown = (*state.quoted, *state.kept)
    return Left(tuple(entry for entry in shown if entry.id not in shared_ids), boundary)


async def said_on_branch(
    store: Store, session: str, leaf: str | None, other: str, counter: Counter
) -> tuple[Left, _BranchEnd]:
    """Return what was said only on another branch of a session or in another session, and where that ends.

    `other` is an entry of the session, or another session of the store. Raises InputError if it is neither.
    """
    place, end = session, other
    if await store.entry(session, other) is None:
        place, end = other, await store.leaf(other)
    if end is None:
        raise InputError(f"session {session} has no entry {other!r}, and the store no session of that name")
    state = ViewState(await store.active(place, end), counter=counter)
    return await left_behind(store, session, state, leaf, place=place), (place, end)


async def merged_into(store: Store, session: str, leaf: str) -> list[_BranchEnd]:
    """Return the branches that were merged into a session's path."""
    merged: list[_BranchEnd] = []
    for note in await store.marks(session, leaf, kinds=["noted"]):
        if isinstance(note, Noted) and note.kind == BRANCH_NOTE and MERGED in note.data:
            with suppress(msgspec.ValidationError):  # an imported log may hold anything
                merged.append(msgspec.convert(note.data[MERGED], _BranchEnd))
    return merged


def plan_summary(
    kind: Literal["branch", "merge"], left: Left, ask: FoldRequest, counter: Counter
) -> Generator[SummaryRequest, SummaryReply | None, SummaryReply | None]:
    """Plan the summary of a branch; returns None if nothing was said there."""
    if not left.entries and left.boundary is None:
        return None
    before = msgspec.convert(left.boundary.ledger, Ledger) if left.boundary is not None else Ledger()
    clean = CleanEntries()
    entries = clean(left.entries)
    cap = summary_cap(ask.policy, ask.window, ask.usable)
    summary_request = request(
        ask.policy,
        kind=kind,
        folded=entries,
        previous=left.boundary.checkpoint.summary if left.boundary is not None else None,
        ledger=redact_facts(extended(before, entries)),
        tokens=min(cap, BRANCH_TOKENS),
        instructions=ask.instructions,
    )
    summary_request = msgspec.structs.replace(summary_request, secrets=bool(clean.secrets))
    reply = (yield from obtain(summary_request, counter)).reply
    return msgspec.structs.replace(reply, text=Sweep(clean.secrets).text(reply.text))


def summary_note(reply: SummaryReply, *, merged: _BranchEnd | None = None) -> Noted:
    """Return the note with a branch summary's writer, usage and price, and what was merged."""
    fields = {"summarizer": reply.summarizer, "usage": reply.usage, "price": reply.price}
    data = {name: msgspec.to_builtins(value) for name, value in fields.items() if value is not None}
    data |= {MERGED: merged} if merged is not None else {}
    return Noted("", None, BRANCH_NOTE, data, at=time.time())


def left_message(summary: str) -> Message:
    """Return the message with the summary of a left branch, as data and not as a request of the user."""
    return _branch_message("A branch of this conversation was left, and the work goes on from here.", summary)


def merged_message(summary: str) -> Message:
    """Return the message with the summary of a merged branch, as data."""
    return _branch_message(
        "On another branch of this conversation work was done beside what was done here.", summary
    )


def _branch_message(how: str, summary: str) -> Message:
    record = f"<branch-summary>\n{neutral(summary.strip())}\n</branch-summary>"
    text = f"{how} What was done on it, as a record:\n\n{record}"
    return Message("user", (Text(text),), injected=True)
