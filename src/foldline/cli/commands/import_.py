"""`foldline import FILE`: put a session file into the store."""

from __future__ import annotations

from pathlib import Path

from foldline.cli.common import TO_READ, read_session, shown_name
from foldline.cli.options import FILE, STORE, Shown, command, option
from foldline.cli.output import escape, out, progress
from foldline.cli.store import with_store
from foldline.core.log.entries import Compacted, Said
from foldline.core.log.log import digest
from foldline.loading import restore, with_notes


@command(
    "foldline import session.jsonl",
    "foldline import ~/.claude/projects/my-project/1234.jsonl --id login-bug",
    "foldline import session.jsonl --store sqlite:///team.db --json",
)
def import_(
    file: str = FILE,
    session: str | None = option(
        "The session's id  [default: the one in an export, else made from the file's name and content]",
        "--id",
        metavar="ID",
    ),
    from_start: bool = option("Leave out the compactions in the file."),
    store_url: str | None = STORE,
) -> Shown:
    """Put a session FILE of any known format into the store.

    The file's own compactions become boundaries. Importing the same file again changes nothing; if it has
    grown, the new messages are added.
    """
    loaded = read_session(file, from_start=from_start, room=TO_READ)
    log = with_notes(loaded)
    leaf = loaded.entries[-1].id if loaded.log else log[-1].id
    name = session or loaded.session or f"{_stem(file)}-{digest(log[0].id.encode())[:8]}"
    with progress("storing") as tick:
        new = with_store(
            store_url,
            lambda store: restore(store, name, log, leaf, tick, agent=loaded.agent),
            make=True,
        )
    messages = sum(isinstance(entry, Said) for entry in log)
    compactions = sum(isinstance(entry, Compacted) for entry in log)

    def show() -> None:
        folded = "1 compaction" if compactions == 1 else f"{compactions} compactions"
        counts = f"{messages:,} messages, {folded} ({loaded.format}), {new:,} new entries"
        out().print(f"[green]{escape(name)}[/]: {counts}")
        if loaded.orphans:
            out().print(f"[yellow]results left out because they answer no call: {len(loaded.orphans)}[/]")

    document = {
        "session": name,
        "format": loaded.format,
        "messages": messages,
        "compactions": compactions,
        "new_entries": new,
        "orphans": [{"index": index, "call_id": call} for index, call in loaded.orphans],
        "warnings": loaded.warnings,
    }
    return Shown(lambda: document, show)


def _stem(file: str) -> str:
    name = "stdin" if file == "-" else Path(shown_name(file)).name
    while (shorter := Path(name).stem) != name:
        name = shorter
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name) or "session"
