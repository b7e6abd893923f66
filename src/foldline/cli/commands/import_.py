"""`foldline import FILE`: put a session file into the store."""

from __future__ import annotations

from pathlib import Path

import click

from foldline.cli.common import TO_READ, read_session, shown_name
from foldline.cli.options import file_argument, json_option, store_option
from foldline.cli.output import escape, out, print_json, progress
from foldline.cli.store import with_store
from foldline.core.log.entries import Compacted, Entry, Said
from foldline.core.log.log import digest
from foldline.loading import Loaded, restore, with_notes

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
