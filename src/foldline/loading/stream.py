"""Read a session file of any known format from an open stream, or take entries from a store.

Other tools' files are read as records, which become entries; our own form stores entries directly.
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
    stream: BinaryIO, name: str, *, from_start: bool = False, through: Through = lambda records: records
) -> Loaded:
    """Read a session of any known format; `through` filters the records of other tools' files.

    `from_start` leaves out the file's compactions. Raises FormatError (file and line) for an unreadable file,
    InputError if it has no message.
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
    """Read our own interchange form: the entries as written, each checked against its id.

    `entries` are the path to the leaf that the header names, or to the newest entry if that leaf is missing.
    """
    warnings: list[str] = []
    header: dict[str, Any] = {}
    entries = load(
        stream, name=name, warn=lambda warning: warnings.append(warning_text(warning)), about=header.update
    )
    log = list(entries)
    loaded = from_entries(_path(log, header.get("leaf")))
    session = header.get("session")
    loaded.warnings, loaded.log = warnings, log
    loaded.session = session if isinstance(session, str) and session else None
    return loaded


def from_entries(entries: Sequence[Entry]) -> Loaded:
    """Return stored entries of a path as loaded; their notes hold title, model, system prompt and tools."""
    messages = [entry for entry in entries if isinstance(entry, Said)]
    native = next((e.message.native for e in reversed(messages) if e.message.native is not None), None)
    notes = {entry.kind: entry.data for entry in entries if isinstance(entry, Noted)}
    return Loaded(
        entries=list(entries),
        index={entry.id: index for index, entry in enumerate(messages)},
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
    by_id = {entry.id: entry for entry in log}
    entry = by_id.get(leaf) if isinstance(leaf, str) else None
    entry = entry or (log[-1] if log else None)
    path: list[Entry] = []
    while entry is not None:
        path.append(entry)
        entry = by_id.get(entry.parent) if entry.parent is not None else None
    return path[::-1]


def with_notes(loaded: Loaded) -> list[Entry]:
    """Return the entries to store: the loaded ones, then notes with the session's facts.

    Our own form already contains its notes, and is stored unchanged with all its branches.
    """
    if loaded.log:
        return list(loaded.log)
    notes: dict[str, dict[str, Any]] = {
        "title": {"title": loaded.title and redact(loaded.title)},
        "model": {"model": loaded.model},
        "system": {"system": loaded.system, "dialect": loaded.system_dialect or loaded.dialect},
        "tools": {"tools": loaded.tools},
    }
    entries = list(loaded.entries)
    stored_notes = {(e.kind, str(e.data)) for e in entries if isinstance(e, Noted)}
    for kind, data in notes.items():
        if data[kind] and (kind, str(data)) not in stored_notes:
            entries.append(chained(Noted("", None, kind, data), entries[-1].id if entries else None))
    return entries
