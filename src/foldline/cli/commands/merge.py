"""`foldline merge SESSION BRANCH`: add a summary of another branch, or of a fork, to a stored session."""

from __future__ import annotations

import msgspec

from foldline.cli.options import STORE, Shown, argument, command, option
from foldline.cli.output import local_time, out, progress, row, table
from foldline.cli.reports.fold import print_text
from foldline.cli.store import with_store
from foldline.core.log.entries import Said
from foldline.errors import InputError, SessionNotFound
from foldline.session.opening import open_session
from foldline.session.session import Session
from foldline.session.tree import Branch
from foldline.stores import Store
from foldline.stores.ids import find_session


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
    instructions: str | None = option("What the summary should focus on.", metavar="TEXT"),
    store_url: str | None = STORE,
) -> Shown:
    """Add a summary of another branch, from where it left the path, to the stored session ID.

    The branch does not change. BRANCH is a number of the list, the beginning of the id of a branch's newest
    entry, or a session such as a fork. Without it, the branches are listed.
    """

    async def work(store: Store) -> list[Branch] | Merged:
        name = await find_session(store, session)
        async with open_session(store, name, model=model) as opened:
            branches = await opened.branches()
            if branch is None:
                return branches
            other = _leaf(branches, branch) or await _find_fork(store, name, branch)
            return await _merged(opened, other, instructions)

    with progress("summarizing" if branch else "listing the branches"):
        found = with_store(store_url, work)
    if isinstance(found, Merged):
        return Shown(lambda: msgspec.to_builtins(found), lambda: print_text(found.text, out()))
    return Shown(lambda: msgspec.to_builtins(found), lambda: _print_branches(found))


def _leaf(branches: list[Branch], name: str) -> str | None:
    """Return the leaf of the branch that a number or the beginning of an id names, if any."""
    if name.isdecimal() and 1 <= int(name) <= len(branches):
        return branches[int(name) - 1].leaf
    found = [branch.leaf for branch in branches if branch.leaf.startswith(name)]
    return found[0] if len(found) == 1 else None


async def _find_fork(store: Store, session: str, fork: str) -> str:
    try:
        return await find_session(store, fork)
    except SessionNotFound as error:
        text = f"no branch {fork!r} (`foldline merge {session}` lists the branches), and {error}"
        raise SessionNotFound(text) from error


async def _merged(session: Session, other: str, instructions: str | None) -> Merged:
    entry = await session.merge(other, instructions=instructions)
    note = await session.store.entry(session.id, entry)
    if not isinstance(note, Said):
        raise InputError(f"the summary, entry {entry}, was deleted meanwhile")
    return Merged(session.id, entry, note.message.text)


def _print_branches(branches: list[Branch]) -> None:
    rows = table("=branch", "=leaf", "#messages", "=updated", "newest message")
    for number, branch in enumerate(branches, 1):
        name = f"{number} (current)" if branch.current else str(number)
        row(rows, name, branch.leaf[:8], f"{branch.messages:,}", local_time(branch.at), branch.text)
    out().print(rows)
