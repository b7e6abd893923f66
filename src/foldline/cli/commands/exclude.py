"""`foldline exclude SESSION ENTRY`: remove a message, or a part of it, from a stored session's context."""

from __future__ import annotations

import click
import msgspec

from foldline.cli.options import STORE, Shown, argument, command, option
from foldline.cli.output import out
from foldline.cli.reports.fold import print_figures
from foldline.cli.store import with_store
from foldline.core.log.entries import Receipt
from foldline.errors import InputError
from foldline.session.opening import open_session
from foldline.session.session import Session
from foldline.stores import Store
from foldline.stores.ids import find_session


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

    async def work(store: Store) -> Receipt:
        async with open_session(store, await find_session(store, session)) as opened:
            return await opened.exclude(await _find_message(opened, entry), part)

    receipt = with_store(store_url, work)
    return Shown(lambda: {"receipt": msgspec.to_builtins(receipt)}, lambda: print_figures(receipt, out()))


async def _find_message(session: Session, start: str) -> str:
    """Return the one message id that begins with `start`; raises InputError if none or several do."""
    found = [info.entry for info in await session.entries() if info.entry.startswith(start)]
    if len(found) != 1:
        text = f"{len(found)} messages have an id that begins with {start!r}"
        raise InputError(f"{text}: `foldline show {session.id}` lists the ids")
    return found[0]
