"""`foldline undo`, `redo`, `merge` and `exclude`: change what is in the context of a stored session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import click
import msgspec

from foldline.cli.options import FOCUS, STORE, Shown, argument, command, option
from foldline.cli.output import escape, local_time, out, progress, row, table
from foldline.cli.reports.fold import print_figures, print_text
from foldline.cli.store import with_store
from foldline.core.log.entries import Receipt, Said
from foldline.errors import InputError, SessionNotFound
from foldline.session.opening import open_session
from foldline.session.session import Session
from foldline.session.tree import Branch
from foldline.stores import Store
from foldline.stores.ids import find_session

T = TypeVar("T")


def on_session(
    name: str, url: str | None, work: Callable[[Session], Awaitable[T]], model: str | None = None
) -> T:
    """Open the stored session that a part of an id names, and run work on it."""

    async def run(store: Store) -> T:
        async with open_session(store, await find_session(store, name), model=model) as opened:
            return await work(opened)

    return with_store(url, run)


# ---- undo and redo


class Changed(msgspec.Struct, frozen=True):
    """The result of an undo or redo: the session, the boundary's entry, and the view's new size in tokens."""

    session: str
    entry: str
    view_tokens: int


@command("foldline undo login-bug     restores what the newest compaction or exclusion removed")
def undo(session: str = argument("ID"), store_url: str | None = STORE) -> Shown:
    """Undo the newest compaction or exclusion of the stored session ID; later messages stay."""
    found = _changed(session, store_url, Session.undo, "there is no compaction to undo")
    text = f"undone: {found.entry[:8]}, the view has {found.view_tokens:,} tokens"
    revert = f"`foldline redo {escape(found.session)}` reverts this"
    return Shown(lambda: found, lambda: out().print(f"{text}; {revert}"))


@command("foldline redo login-bug     restores the compaction that was undone last")
def redo(session: str = argument("ID"), store_url: str | None = STORE) -> Shown:
    """Revert the newest undo of the stored session ID."""
    found = _changed(session, store_url, Session.redo, "there is no undo to revert")
    text = f"redone: {found.entry[:8]}, the view has {found.view_tokens:,} tokens"
    return Shown(lambda: found, lambda: out().print(text))


def _changed(
    name: str, url: str | None, change: Callable[[Session], Awaitable[str | None]], nothing: str
) -> Changed:
    async def work(session: Session) -> Changed:
        if (entry := await change(session)) is None:
            raise InputError(f"{nothing} in {session.id}: `foldline show {session.id}` lists its boundaries")
        return Changed(session.id, entry, session.view_tokens)

    return on_session(name, url, work)


# ---- merge


class Merged(msgspec.Struct, frozen=True):
    """The summary that was added: its session, its entry, and its text."""

    session: str
    entry: str
    text: str


@command(
    "foldline merge login-bug                    its branches, numbered",
    "foldline merge login-bug 2                  a summary of the second",
    "foldline merge login-bug login-bug-fork     a summary of a fork",
)
def merge(
    session: str = argument("ID"),
    branch: str | None = argument("[BRANCH|ID]", required=False),
    model: str | None = option("Have this model write the summary if its key is set.", metavar="NAME"),
    instructions: str | None = FOCUS,
    store_url: str | None = STORE,
) -> Shown:
    """Add a summary of another branch, from where it left the path, to the stored session ID.

    The branch does not change. BRANCH is a number of the list, the beginning of the id of a branch's newest
    entry, or a session such as a fork. Without it, the branches are listed.
    """

    async def work(session: Session) -> list[Branch] | Merged:
        branches = await session.branches()
        if branch is None:
            return branches
        other = _leaf(branches, branch) or await _find_fork(session, branch)
        entry = await session.merge(other, instructions=instructions)
        note = await session.store.entry(session.id, entry)
        if not isinstance(note, Said):
            raise InputError(f"the summary, entry {entry}, was deleted meanwhile")
        return Merged(session.id, entry, note.message.text)

    with progress("summarizing" if branch else "listing the branches"):
        found = on_session(session, store_url, work, model)
    if isinstance(found, Merged):
        return Shown(lambda: found, lambda: print_text(found.text, out()))
    return Shown(lambda: found, lambda: _print_branches(found))


def _leaf(branches: list[Branch], name: str) -> str | None:
    """Return the leaf of the branch that a number or the beginning of an id names, if any."""
    if name.isdecimal() and 1 <= int(name) <= len(branches):
        return branches[int(name) - 1].leaf
    found = [branch.leaf for branch in branches if branch.leaf.startswith(name)]
    return found[0] if len(found) == 1 else None


async def _find_fork(session: Session, fork: str) -> str:
    try:
        return await find_session(session.store, fork)
    except SessionNotFound as error:
        text = f"no branch {fork!r} (`foldline merge {session.id}` lists the branches), and {error}"
        raise SessionNotFound(text) from error


def _print_branches(branches: list[Branch]) -> None:
    rows = table("=branch", "=leaf", "#messages", "=updated", "newest message")
    for number, branch in enumerate(branches, 1):
        name = f"{number} (current)" if branch.current else str(number)
        row(rows, name, branch.leaf[:8], f"{branch.messages:,}", local_time(branch.at), branch.text)
    out().print(rows)


# ---- exclude


@command(
    "foldline exclude login-bug 1f09a2           a message, by the beginning of its id",
    "foldline exclude login-bug 1f09a2 --part 1  its second part, such as an image",
    "foldline undo login-bug                     restores it",
)
def exclude(
    session: str = argument("ID"),
    entry: str = argument("ENTRY"),
    part: int | None = option("Only this part of the message, counted from 0.", type=click.IntRange(min=0)),
    store_url: str | None = STORE,
) -> Shown:
    """Remove the message ENTRY from the context of the stored session ID.

    Neither the model nor any later fold sees it; the history keeps it. `foldline show ID` lists the entries,
    `foldline show ID --entry ENTRY` the parts of a message.
    """

    async def work(session: Session) -> Receipt:
        found = [info.entry for info in await session.entries() if info.entry.startswith(entry)]
        if len(found) != 1:
            text = f"{len(found)} messages have an id that begins with {entry!r}"
            raise InputError(f"{text}: `foldline show {session.id}` lists the ids")
        return await session.exclude(found[0], part)

    receipt = on_session(session, store_url, work)
    return Shown(lambda: {"receipt": receipt}, lambda: print_figures(receipt, out()))
