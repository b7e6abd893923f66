"""`foldline merge SESSION BRANCH`: note in a stored session what was done on another branch, or in a fork."""

from __future__ import annotations

import msgspec

from foldline.cli.options import STORE, Shown, argument, command, option
from foldline.cli.output import local_time, out, progress, row, table
from foldline.cli.reports.fold import print_text
from foldline.cli.store import with_store
from foldline.core.log.entries import Said
from foldline.errors import InputError
from foldline.session.opening import open_session
from foldline.session.session import Session
from foldline.session.tree import Branch
from foldline.stores import Store
from foldline.stores.ids import find_session


class Merged(msgspec.Struct, frozen=True):
    """What was noted: the session, the entry of the note, and its text."""

    session: str
    entry: str
    text: str


@command(
    "foldline merge login-bug                    its branches, numbered",
    "foldline merge login-bug 2                  what was done on the second",
    "foldline merge login-bug login-bug-fork     what was done in a fork of it",
)
def merge(
    session: str = argument("ID"),
    branch: str | None = argument("[BRANCH|ID]", required=False),
    model: str | None = option("Have this model write the summary if its key is set.", metavar="NAME"),
    instructions: str | None = option("What the summary should look at first.", metavar="TEXT"),
    store_url: str | None = STORE,
) -> Shown:
    """Note in the stored session ID what was done on another branch since it left the path.

    The branch stays as it is. BRANCH is a number of the list, the beginning of a branch's newest entry, or a
    session such as a fork. Without it, the branches are listed.
    """

    async def work(store: Store) -> list[Branch] | Merged:
        name = await find_session(store, session)
        async with open_session(store, name, model=model) as opened:
            branches = await opened.branches()
            if branch is None:
                return branches
            other = _leaf(branches, branch) or await find_session(store, branch)
            return await _merged(opened, other, instructions)

    with progress("summing up"):
        found = with_store(store_url, work)
    if isinstance(found, Merged):
        return Shown(lambda: msgspec.to_builtins(found), lambda: print_text(found.text, out()))
    return Shown(lambda: msgspec.to_builtins(found), lambda: _print_branches(found))


def _leaf(branches: list[Branch], words: str) -> str | None:
    """Return the leaf of the branch that a number or the beginning of an id names; None for none."""
    if words.isdecimal() and 1 <= int(words) <= len(branches):
        return branches[int(words) - 1].leaf
    found = [one.leaf for one in branches if one.leaf.startswith(words)]
    return found[0] if len(found) == 1 else None


async def _merged(session: Session, other: str, instructions: str | None) -> Merged:
    entry = await session.merge(other, instructions=instructions)
    note = await session.store.entry(session.id, entry)
    if not isinstance(note, Said):
        raise InputError(f"the note {entry} was deleted meanwhile")
    return Merged(session.id, entry, note.message.text)


def _print_branches(branches: list[Branch]) -> None:
    rows = table("=branch", "=leaf", "#messages", "=updated", "the newest words")
    for number, one in enumerate(branches, 1):
        here = " (here)" if one.current else ""
        row(rows, f"{number}{here}", one.leaf[:8], f"{one.messages:,}", local_time(one.at), one.text)
    out().print(rows)
