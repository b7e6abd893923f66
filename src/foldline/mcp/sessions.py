"""The sessions that the server answers from: those of a store, or transcripts that are read on as they grow.

A transcript is read into a store in memory, so that both are asked in the same way. Its file is looked at
before every answer: an agent writes a message down before it runs the tools that it calls.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from foldline.core.log.entries import Said
from foldline.core.log.messages import ToolCall
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
T = TypeVar("T")

LIKELY: Final = 20  # sessions, the last updated, among which the one that calls is looked for
RECENT: Final = 60  # seconds for which an open call of a stored session may be the one that is answered
LOOKS: Final = 10  # for a call that is written down only after it is made
PAUSE: Final = 0.1  # seconds between them
END: Final = 1024 * 1024  # bytes at the end of a transcript in which the call stands


class Listed(msgspec.Struct, frozen=True):
    """A session as a list shows it; `updated` is Unix time."""

    id: str
    updated: float
    about: str


class Caller(msgspec.Struct, frozen=True):
    """A call of a tool; `session` and `call` are ids, where its agent tells them."""

    tool: str
    arguments: Mapping[str, Any]
    writes: bool = False
    session: str = ""
    call: str = ""

    def made(self, call: ToolCall) -> bool:
        """Whether a call of a session is this one."""
        if self.call:
            return call.id == self.call
        named = call.name == self.tool or call.name.endswith(f"_{self.tool}")  # with the server's name before
        return named and call.arguments == self.arguments


class Sessions(Protocol):
    """Where the sessions come from."""

    writes: bool  # whether a fold can be kept

    async def open(self, name: str | None, caller: Caller) -> tuple[Session, str]:
        """Return a session as it is now, and words on where it is; None is the one that is served.

        Raises InputError where there is none, or where it cannot be told.
        """
        ...

    async def listed(self, limit: int) -> list[Listed]:
        """Return sessions, the last updated first."""
        ...

    async def close(self) -> None:
        """Close what is open."""
        ...


class StoredSessions:
    """The sessions of a store; the one that is served is named, or the one in which the call stands."""

    writes = True

    def __init__(self, store: Store, name: str | None) -> None:
        self._store = store
        self._name = name
        self._open: dict[str, Session] = {}

    async def open(self, name: str | None, caller: Caller) -> tuple[Session, str]:
        """Return a session of the store."""
        name = name or self._name or await self._served(caller)
        if await self._store.info(name) is None:
            raise InputError(f"no session {name!r} in the store: list_sessions tells which there are")
        session = self._open.setdefault(name, open_session(self._store, name))
        await session.follow()
        return session, "stored by Foldline"

    async def _served(self, caller: Caller) -> str:
        """Return the session that calls, or else the only one there is, where nothing is written."""
        if not await self._store.sessions(limit=1):
            raise InputError("nothing is stored yet: `foldline import FILE` puts a session into the store")
        if calling := await _looked_for(lambda: self._calling(caller)):
            return calling
        found = await self._store.sessions(limit=2)
        if len(found) != 1 or caller.writes:
            raise InputError(
                "which session this is cannot be told: pass `session` (list_sessions names them)"
            )
        return found[0].id

    async def _calling(self, caller: Caller) -> str | None:
        """Return the session whose newest message makes the call; None where it is none, or several."""
        found = await self._store.sessions(limit=LIKELY)
        recent = [one.id for one in found if one.updated > time.time() - RECENT]
        calling = [name for name in recent if any(map(caller.made, await self._open_calls(name)))]
        return calling[0] if len(calling) == 1 else None

    async def _open_calls(self, name: str) -> tuple[ToolCall, ...]:
        said = [one for one in await self._store.tail(name, 5) if isinstance(one, Said)]  # marks may follow
        return said[-1].message.calls if said else ()

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
    """The transcripts of a folder's agents.

    The one that is served is a file, or the one in which the call stands, or that of the session that the
    agent names, or the newest of them.
    """

    writes = False

    def __init__(self, folder: Path, agent: str | None = None, file: Path | None = None) -> None:
        self._folder = folder
        self._agent = agent
        self._file = file
        self._read: dict[Path, _Read] = {}
        self._one = asyncio.Lock()  # reads a file at a time

    async def open(self, name: str | None, caller: Caller) -> tuple[Session, str]:
        """Return the session of a transcript, with all that its file has by now."""
        path = None
        if name is None and self._file is None and caller.call:
            path = await _looked_for(lambda: asyncio.to_thread(self._calling, caller.call))
        path = path or await asyncio.to_thread(self._path, name, caller.session)
        async with self._one:
            read = await self._now(path)
        unread = f"; {read.warnings} parts of it cannot be read" if read.warnings else ""
        return read.session, f"read from {path}{unread}"

    def _calling(self, call: str) -> Path | None:
        """Return the transcript that ends in a call."""
        likely = transcripts_of(self._folder, self._agent)[:LIKELY]
        return next((one.path for one in likely if call.encode() in _end_of(one.path)), None)

    def _path(self, name: str | None, calling: str) -> Path:
        if name is None and self._file is not None:
            return self._file
        told = name or calling or os.environ.get("CLAUDE_CODE_SESSION_ID")  # an older one, after /clear
        for one in self._transcripts() if told else ():
            if one.id == told or (name is None and one.id.endswith(f"-{told}")):  # Codex: after the time
                return one.path
        if name is None:
            return newest_transcript(self._folder, self._agent).path
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


async def _looked_for(look: Callable[[], Awaitable[T | None]]) -> T | None:
    """Return what a look finds, now or within a second."""
    for _ in range(LOOKS):
        if (found := await look()) is not None:
            return found
        await asyncio.sleep(PAUSE)
    return None


def _end_of(path: Path) -> bytes:
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - END))
        return file.read()
    return b""


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
    leaf = loaded.entries[-1].id if loaded.log else log[-1].id
    await restore(store, name, log, leaf, agent=loaded.agent)
