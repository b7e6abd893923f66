"""`foldline import FILE`: put a session file into the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from foldline.cli.common import read_session, shown_name
from foldline.cli.memory import TO_READ
from foldline.cli.options import file_argument, json_option, store_option
from foldline.cli.output import escape, out, print_json, progress
from foldline.cli.store import with_store
from foldline.core.log.entries import Compacted, Entry, Noted, Said
from foldline.core.log.log import digest
from foldline.errors import InputError, LeafMoved
from foldline.loading import Loaded, with_notes
from foldline.stores import Store

PAGE = 500  # entries in one commit
TRIES = 5  # times that the rest is computed again because another process imports into the same session

EPILOG = """
\b
Examples:
  foldline import session.jsonl
  foldline import ~/.claude/projects/my-project/1234.jsonl --id login-bug
  foldline import session.jsonl --store sqlite:///team.db --json
"""


@click.command(epilog=EPILOG)
@file_argument
@click.option(
    "--id",
    "session",
    metavar="ID",
    help="The session's id  [default: the one in an export, else made from the file's name and content]",
)
@click.option("--from-start", is_flag=True, help="Leave out the compactions that the file holds.")
@store_option
@json_option
def command(file: str, session: str | None, from_start: bool, store_url: str | None, as_json: bool) -> None:
    """Put a session FILE of any known format into the store.

    The file's own compactions become boundaries. Importing the same file again changes nothing; if it has
    grown, the new messages are added.
    """
    loaded = read_session(file, from_start=from_start, room=TO_READ)
    log = with_notes(loaded)
    leaf = loaded.entries[-1].id if loaded.log else log[-1].id
    name = session or loaded.session or f"{_stem(file)}-{digest(log[0].id.encode())[:8]}"
    with progress("storing") as tick:
        new = with_store(store_url, lambda store: restore(store, name, log, leaf, tick), make=True)
    _tell(name, loaded, log, new, as_json=as_json)


def _tell(session: str, loaded: Loaded, log: list[Entry], new: int, *, as_json: bool) -> None:
    said = sum(isinstance(entry, Said) for entry in log)
    folds = sum(isinstance(entry, Compacted) for entry in log)
    if as_json:
        print_json(
            {
                "session": session,
                "format": loaded.format,
                "messages": said,
                "compactions": folds,
                "new_entries": new,
                "orphans": [{"index": index, "call_id": call} for index, call in loaded.orphans],
                "warnings": loaded.warnings,
            }
        )
        return
    folded = "1 compaction" if folds == 1 else f"{folds} compactions"
    out().print(
        f"[green]{escape(session)}[/]: {said:,} messages, {folded} ({loaded.format}), {new:,} entries new"
    )
    if loaded.orphans:
        out().print(f"[yellow]{len(loaded.orphans)} results had no call and were left out[/]")


def _stem(file: str) -> str:
    name = "stdin" if file == "-" else Path(shown_name(file)).name
    while (shorter := Path(name).stem) != name:
        name = shorter
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name) or "session"


async def restore(
    store: Store, session: str, log: list[Entry], leaf: str, tick: Callable[[int], None] = lambda _: None
) -> int:
    """Append the entries of a log that the store lacks, branches included; return their number.

    `log` is in append order; afterwards the session's leaf is `leaf`. Raises InputError if the stored session
    continued differently.
    """
    new = 0
    for left in range(TRIES, 0, -1):
        try:
            have = {entry.id async for entry in store.all(session)}
            await _check_same(store, session, log)
            missing = [entry for entry in log if entry.id not in have]
            await _append(store, session, missing, tick)
            new += len(missing)
            at = await store.leaf(session)
            if at != leaf and (
                missing or at == log[-1].id
            ):  # the latter: the process was killed just before the move
                await store.move(session, leaf, seen=at)
        except LeafMoved:
            if left == 1:
                raise
        else:
            break
    return new


async def _append(store: Store, session: str, entries: list[Entry], tick: Callable[[int], None]) -> None:
    """Append entries, one commit for each page of a chain, moving the leaf to where a branch grows."""
    at = await store.leaf(session)
    start = 0
    while start < len(entries):
        end = start + 1
        while end < min(start + PAGE, len(entries)) and entries[end].parent == entries[end - 1].id:
            end += 1
        parent = entries[start].parent
        if at != parent:
            await store.move(session, parent, seen=at)
        await store.append(session, entries[start:end], seen=parent)
        at, start = entries[end - 1].id, end
        tick(end)


async def _check_same(store: Store, session: str, log: list[Entry]) -> None:
    """Raise InputError if the newest message of the stored session is not in this log."""
    path = [entry async for entry in store.path(session)]
    newest = next((entry for entry in reversed(path) if not isinstance(entry, Noted)), None)
    if newest is None or any(entry.id == newest.id for entry in log):
        return
    if isinstance(newest, Said) and any(_goes_on(newest, entry) for entry in log):
        return
    raise InputError(f"session {session!r} exists and continued differently: choose another --id")


def _goes_on(old: Said, new: Entry) -> bool:
    """Return whether a stored message was incomplete: the new one has the same parts and more."""
    return (
        isinstance(new, Said)
        and (new.parent, new.message.role) == (old.parent, old.message.role)
        and old.message.role == "assistant"
        and new.message.parts[: len(old.message.parts)] == old.message.parts
    )
