"""`foldline import FILE`: a session file into the store."""

from __future__ import annotations

from pathlib import Path

import click

from foldline.cli.common import (
    escape,
    file_argument,
    json_option,
    out,
    print_json,
    progress,
    read_session,
    store_option,
)
from foldline.cli.stored import with_store
from foldline.core.log.entries import Compacted, Said
from foldline.core.log.log import digest
from foldline.errors import InputError
from foldline.loading import Loaded, with_notes
from foldline.stores import Store

PAGE = 500  # entries in one commit

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
    "--id", "session", metavar="ID", help="The session's id  [default: from the file's name and content]"
)
@click.option("--from-start", is_flag=True, help="Leave out the compactions that the file holds.")
@store_option
@json_option
def command(file: str, session: str | None, from_start: bool, store_url: str | None, as_json: bool) -> None:
    """Put a session FILE of any known format into the store.

    The file's own compactions become boundaries. Importing the same file again changes nothing; one that
    has grown since is caught up.
    """
    loaded = read_session(file, from_start=from_start)
    entries = with_notes(loaded)
    name = session or f"{_stem(file)}-{digest(entries[0].id.encode())[:8]}"
    with progress("storing") as tick:
        new = with_store(store_url, lambda store: _store(store, name, loaded, tick))
    said = sum(isinstance(entry, Said) for entry in entries)
    folds = sum(isinstance(entry, Compacted) for entry in entries)
    if as_json:
        print_json(
            {
                "session": name,
                "format": loaded.format,
                "messages": said,
                "compactions": folds,
                "new_entries": new,
                "orphans": [{"index": index, "call_id": call} for index, call in loaded.orphans],
                "warnings": loaded.warnings,
            }
        )
        return
    out().print(
        f"[green]{escape(name)}[/]: {said:,} messages, {folds} compactions ({loaded.format}), {new:,} entries new"
    )
    if loaded.orphans:
        out().print(f"[yellow]{len(loaded.orphans)} results had no call and were left out[/]")


def _stem(file: str) -> str:
    name = "stdin" if file == "-" else Path(file).name
    while (shorter := Path(name).stem) != name:
        name = shorter
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name) or "session"


async def _store(store: Store, session: str, loaded: Loaded, tick: object) -> int:
    """Append what the store does not have yet; return how many entries that were."""
    entries = with_notes(loaded)
    have = (
        {entry.id async for entry in store.path(session)}
        if await store.leaf(session) is not None
        else set[str]()
    )
    missing = [entry for entry in entries if entry.id not in have]
    shared = len(entries) - len(missing)
    if have and (shared == 0 or await store.leaf(session) != entries[shared - 1].id):
        if not missing:
            return 0
        raise InputError(f"session {session!r} exists and went on differently: give another --id")
    for start in range(0, len(missing), PAGE):
        page = missing[start : start + PAGE]
        await store.append(session, page, seen=page[0].parent)
        if callable(tick):
            tick(start + len(page))
    return len(missing)
