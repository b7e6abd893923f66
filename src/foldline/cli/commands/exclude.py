"""`foldline exclude SESSION ENTRY`: take a message, or a part of it, out of a stored session's context."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from foldline.cli.options import STORE, Shown, argument, command, option
from foldline.cli.output import out
from foldline.cli.reports.fold import print_figures
from foldline.cli.store import known, with_store
from foldline.core.log.entries import Compacted, Pruned, Receipt
from foldline.core.log.log import undone
from foldline.errors import InputError
from foldline.session.opening import open_session
from foldline.session.session import Session
from foldline.stores import Store


@command(
    "foldline exclude login-bug 1f09a2           a message, by the beginning of its id",
    "foldline exclude login-bug 1f09a2 --part 1  its second part, such as an image",
    "foldline exclude login-bug --undo           the newest one is brought back",
)
def exclude(
    session: str = argument("ID"),
    entry: str | None = argument("[ENTRY]", required=False),
    part: int | None = option("Only this part of it, from 0.", type=click.IntRange(min=0)),
    undo: bool = option("Bring back what was taken out last."),
    store_url: str | None = STORE,
) -> Shown:
    """Take the message ENTRY out of the context of the stored session ID.

    Neither the model nor any later fold sees it; the history keeps it. `foldline show ID` lists the entries,
    `foldline show ID --entry ENTRY` the parts of one.
    """
    if undo == (entry is not None):
        raise InputError("give the ENTRY to take out, or --undo")

    async def work(store: Store) -> Receipt | str:
        async with open_session(store, await known(store, session)) as opened:
            if entry is None:
                return await _undone(opened)
            return await opened.exclude(await _named(opened, entry), part)

    found = with_store(store_url, work)

    def document() -> dict[str, Any]:
        return {"undone": found} if isinstance(found, str) else {"receipt": msgspec.to_builtins(found)}

    def show() -> None:
        if isinstance(found, str):
            out().print(f"brought back: {found[:8]}")
            return
        print_figures(found, out())

    return Shown(document, show)


async def _named(session: Session, start: str) -> str:
    """Return the id of the message that the beginning of it names."""
    found = [info.entry for info in await session.entries() if info.entry.startswith(start)]
    if len(found) != 1:
        raise InputError(f"{len(found)} messages begin with {start!r}: foldline show {session.id} lists them")
    return found[0]


async def _undone(session: Session) -> str:
    """Undo the newest boundary, if it is an exclusion; return its id."""
    marks = await session.store.marks(session.id, kinds=("compacted", "pruned", "lifted"))
    lifted = undone(marks)
    made = (one for one in reversed(marks) if isinstance(one, Compacted | Pruned))
    newest = next((one for one in made if one.id not in lifted), None)
    if isinstance(newest, Pruned) and newest.excludes:
        if await session.undo() == newest.id:
            return newest.id
        await session.redo()  # a compaction of the provider's is newer
    raise InputError("the newest boundary of this session took nothing out: nothing can be brought back")
