"""`foldline undo SESSION` and `redo SESSION`: undo the newest compaction, and revert the undo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from foldline.cli.options import STORE, Shown, argument, command
from foldline.cli.output import out
from foldline.cli.store import with_store
from foldline.errors import InputError
from foldline.session.opening import open_session
from foldline.session.session import Session
from foldline.stores import Store
from foldline.stores.ids import find_session


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
    return _shown(found, f"{text}; `foldline redo {found.session}` reverts this")


@command("foldline redo login-bug     restores the compaction that was undone last")
def redo(session: str = argument("ID"), store_url: str | None = STORE) -> Shown:
    """Revert the newest undo of the stored session ID."""
    found = _changed(session, store_url, Session.redo, "there is no undo to revert")
    return _shown(found, f"redone: {found.entry[:8]}, the view has {found.view_tokens:,} tokens")


def _changed(
    session: str, url: str | None, change: Callable[[Session], Awaitable[str | None]], nothing: str
) -> Changed:
    async def work(store: Store) -> Changed:
        name = await find_session(store, session)
        async with open_session(store, name) as opened:
            if (entry := await change(opened)) is None:
                raise InputError(f"{nothing} in {name}: `foldline show {name}` lists its boundaries")
            return Changed(name, entry, opened.view_tokens)

    return with_store(url, work)


def _shown(found: Changed, text: str) -> Shown:
    return Shown(lambda: msgspec.to_builtins(found), lambda: out().print(text))
