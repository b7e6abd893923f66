"""A session file of any known format, from an open stream; our own form, and the entries of a store.

Other tools' files become records, and those entries. Our own form has its entries as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from foldline.core.log.entries import Entry, Noted, Said
from foldline.core.log.log import chained
from foldline.core.measure.tokens import OFFLINE
from foldline.core.secrets.redact import redact
from foldline.errors import InputError
from foldline.loading.chain import Loaded
from foldline.loading.records import from_records, warning_text
from foldline.transcripts import Record, format_of, load, read

Through = Callable[[Iterator[Record]], Iterator[Record]]


def from_stream(
    stream: BinaryIO,
    name: str,
    *,
    from_start: bool = False,
    through: Through = lambda records: records,
) -> Loaded:
    """Read a session of any known format; `through` sees the records of other tools' files go by.

    `from_start` leaves out the compactions that the file holds. Raises FormatError (place and line) for what
    cannot be read, InputError if there is no message.
    """
    if not from_start and format_of(stream, name) == "foldline":
        loaded = from_own(stream, name)
    else:
        loaded = from_records(through(read(stream, name=name)), OFFLINE, from_start=from_start)
    if not loaded.entries:
        raise InputError(f"{name}: no message in this file")
    return loaded


# ---- our own form


def from_own(stream: BinaryIO, name: str) -> Loaded:
    """Read our own interchange form: the entries as they were written, each proved against its id.

    `entries` are the path to the leaf that the header names; to the newest entry where that one is missing.
    """
    warnings: list[str] = []
    header: dict[str, Any] = {}
    log = list(
        load(
            stream, name=name, warn=lambda warned: warnings.append(warning_text(warned)), about=header.update
        )
    )
    loaded = from_entries(_path(log, header.get("leaf")))
    session = header.get("session")
    loaded.warnings, loaded.log = warnings, log
    loaded.session = session if isinstance(session, str) and session else None
    return loaded


def from_entries(entries: Sequence[Entry]) -> Loaded:
    """Take the entries of a path as they are stored; their notes say what stands beside the messages."""
    spoken = [entry for entry in entries if isinstance(entry, Said)]
    native = next((e.message.native for e in reversed(spoken) if e.message.native is not None), None)
    notes = {entry.kind: entry.data for entry in entries if isinstance(entry, Noted)}
    return Loaded(
        entries=list(entries),
        index={entry.id: index for index, entry in enumerate(spoken)},
        dialect=native.dialect if native is not None else "openai-chat",
        model=notes.get("model", {}).get("model"),
        title=notes.get("title", {}).get("title"),
        system=notes.get("system", {}).get("system"),
        system_dialect=notes.get("system", {}).get("dialect") or "",
        tools=notes.get("tools", {}).get("tools"),
        format="foldline",
    )


def _path(log: Sequence[Entry], leaf: Any) -> list[Entry]:
    """Return the entries from the root to the leaf."""
    known = {entry.id: entry for entry in log}
    at = known.get(leaf) if isinstance(leaf, str) else None
    at = at or (log[-1] if log else None)
    path: list[Entry] = []
    while at is not None:
        path.append(at)
        at = known.get(at.parent) if at.parent is not None else None
    return path[::-1]


def with_notes(loaded: Loaded) -> list[Entry]:
    """Return the entries to store: those loaded, and behind them what the file says of its session.

    Our own form has its notes among its entries, and is stored with all its branches as it is.
    """
    if loaded.log:
        return list(loaded.log)
    known: dict[str, dict[str, Any]] = {
        "title": {"title": loaded.title and redact(loaded.title)},
        "model": {"model": loaded.model},
        "system": {"system": loaded.system, "dialect": loaded.system_dialect or loaded.dialect},
        "tools": {"tools": loaded.tools},
    }
    entries = list(loaded.entries)
    noted = {(e.kind, str(e.data)) for e in entries if isinstance(e, Noted)}
    for kind, data in known.items():
        if data[kind] and (kind, str(data)) not in noted:
            entries.append(chained(Noted("", None, kind, data), entries[-1].id if entries else None))
    return entries
