"""The sessions that the server answers from: those of a store, or transcripts that are read on as they grow.

A transcript is read into a store in memory, so that both are asked in the same way. Its file is looked at
before every answer: an agent writes a message down before it runs the tools that it calls.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from foldline.core.secrets.redact import redact
from foldline.errors import InputError, SessionDiverged
from foldline.loading import Loaded, from_stream, restore, with_notes
from foldline.session.opening import open_session
from foldline.session.session import Session
from foldline.stores.base import Store
from foldline.stores.sqlite import MemoryStore
from foldline.transcripts import open_transcript
from foldline.transcripts.places import FoundTranscript, newest_transcript, transcripts_of

Stamp = tuple[int, int, int]  # of a file: which it is, its size, when it was written


class Listed(msgspec.Struct, frozen=True):
    """A session as a list shows it; `updated` is Unix time."""

    id: str
    updated: float
    about: str


class Sessions(Protocol):
    """Where the sessions come from."""

    writes: bool  # whether a fold can be kept

    async def open(self, name: str | None) -> tuple[Session, str]:
        """Return a session as it is now, and words on where it is; None is the one that is served.

        Raises InputError where there is none.
        """
        ...

    async def listed(self, limit: int) -> list[Listed]:
        """Return sessions, the last updated first."""
        ...

    async def close(self) -> None:
        """Close what is open."""
        ...


class StoredSessions:
    """The sessions of a store; the one that is served is named, or the last updated of them."""

    writes = True

    def __init__(self, store: Store, name: str | None) -> None:
        self._store = store
        self._name = name
        self._open: dict[str, Session] = {}

    async def open(self, name: str | None) -> tuple[Session, str]:
        """Return a session of the store."""
        name = name or self._name or await self._newest()
        if await self._store.info(name) is None:
            raise InputError(f"no session {name!r} in the store: list_sessions tells which there are")
        session = self._open.setdefault(name, open_session(self._store, name))
        await session.follow()
        return session, "stored by Foldline"

    async def _newest(self) -> str:
        found = await self._store.sessions(limit=1)
        if not found:
            raise InputError("nothing is stored yet: `foldline import FILE` puts a session into the store")
        return found[0].id

    async def listed(self, limit: int) -> list[Listed]:
        """Return the sessions of the store."""
        return [
            Listed(
                one.id,
                one.updated,
                f"{one.messages:,} messages, {one.tokens:,} tokens, {one.compactions:,} compactions"
                + (f": {redact(one.title)}" if one.title else ""),
            )
            for one in await self._store.sessions(limit=limit)
        ]

    async def close(self) -> None:
        """Close the sessions and the store."""
        for session in self._open.values():
            await session.close()
        await self._store.close()


class _Read(NamedTuple):
    """A transcript as it was read; `warnings` are how many lines of it could not be."""

    stamp: Stamp
    store: MemoryStore
    session: Session
    warnings: int


class TranscriptSessions:
    """The transcripts of a folder's agents; the one that is served is a file, or the newest of them."""

    writes = False

    def __init__(self, folder: Path, agent: str | None = None, file: Path | None = None) -> None:
        self._folder = folder
        self._agent = agent
        self._file = file
        self._read: dict[Path, _Read] = {}
        self._one = asyncio.Lock()  # reads a file at a time

    async def open(self, name: str | None) -> tuple[Session, str]:
        """Return the session of a transcript, with all that its file has by now."""
        path = await asyncio.to_thread(self._path, name)
        async with self._one:
            read = await self._now(path)
        unread = f"; {read.warnings} parts of it cannot be read" if read.warnings else ""
        return read.session, f"read from {path}{unread}"

    def _path(self, name: str | None) -> Path:
        if name is None:
            return self._file or newest_transcript(self._folder, self._agent).path
        for one in self._transcripts():
            if one.id == name:
                return one.path
        raise InputError(f"no session {name!r} for {self._folder}: list_sessions tells which there are")

    def _transcripts(self) -> list[FoundTranscript]:
        """Return those of the folder, after the file that is served."""
        found = transcripts_of(self._folder, self._agent)
        if self._file is None or any(one.path == self._file for one in found):
            return found
        stamp = self._file.stat()
        return [FoundTranscript("named", self._file, stamp.st_mtime, stamp.st_size), *found]

    async def listed(self, limit: int) -> list[Listed]:
        """Return the transcripts."""
        found = await asyncio.to_thread(self._transcripts)
        return [Listed(one.id, one.modified, f"{one.agent}, {one.size:,} bytes") for one in found[:limit]]

    async def _now(self, path: Path) -> _Read:
        """Return a transcript as it is now; what was read before is not stored again."""
        stamp = await asyncio.to_thread(_stamp, path)
        known = self._read.get(path)
        if known is not None and known.stamp == stamp:
            return known
        loaded = await asyncio.to_thread(_load, path)
        store = known.store if known is not None else MemoryStore()
        name = FoundTranscript("", path, 0, 0).id
        try:
            await _put(store, name, loaded)
        except SessionDiverged:  # the user went back, or it is another file
            store = MemoryStore()
            await _put(store, name, loaded)
        session = open_session(store, name)
        await session.follow()
        if known is not None:
            await known.session.close()
            if store is not known.store:
                await known.store.close()
        self._read[path] = read = _Read(stamp, store, session, len(loaded.warnings))
        return read

    async def close(self) -> None:
        """Close the sessions and their stores."""
        for read in self._read.values():
            await read.session.close()
            await read.store.close()


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    return found.st_ino, found.st_size, found.st_mtime_ns


def _load(path: Path) -> Loaded:
    with open_transcript(path) as stream:
        return from_stream(stream, str(path))


async def _put(store: Store, name: str, loaded: Loaded) -> None:
    log = with_notes(loaded)
    await restore(store, name, log, loaded.entries[-1].id if loaded.log else log[-1].id)
