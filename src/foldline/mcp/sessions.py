"""The sessions that the server serves: those of a store, or transcripts that agents are writing.

A transcript is read into a store in memory, so that both kinds have the same interface. Its file is checked
before every answer: an agent writes a message before it runs the tools that the message calls.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
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

Stamp = tuple[int, int, int]  # of a file: inode, size, time of the last change
T = TypeVar("T")

LIKELY: Final = 20  # the last updated sessions, in which the calling one is searched
RECENT: Final = 60  # seconds since the last update of a stored session that may be the calling one
ATTEMPTS: Final = 10  # to find a call: it may be written just after it is made
PAUSE: Final = 0.1  # seconds between them
END: Final = 1024 * 1024  # bytes at the end of a transcript in which the call is searched


class Caller(msgspec.Struct, frozen=True):
    """A call of a tool; `session` and `call` are ids, "" if the agent does not send them."""

    tool: str
    arguments: Mapping[str, Any]
    writes: bool = False
    session: str = ""
    call: str = ""

    def made(self, call: ToolCall) -> bool:
        """Whether a call in a session is this one."""
        if self.call:
            return call.id == self.call
        same_tool = call.name == self.tool or call.name.endswith(f"_{self.tool}")  # after the server's name
        return same_tool and call.arguments == self.arguments


class Sessions(Protocol):
    """A source of sessions."""

    writes: bool  # whether a fold can be stored

    async def open(self, name: str | None, caller: Caller) -> tuple[Session, str]:
        """Return the current state of a session (None: the one that is served), and where it is stored.

        Raises InputError if there is no such session, or several may be the one that is served.
        """
        ...

    async def listed(self, limit: int) -> list[str]:
        """Return a line for each session, the last updated first."""
        ...

    async def close(self) -> None:
        """Close all sessions."""
        ...


class StoredSessions:
    """The sessions of a store; serves the named one, or the one that contains the call."""

    writes = True

    def __init__(self, store: Store, name: str | None) -> None:
        self._store = store
        self._name = name
        self._open: dict[str, Session] = {}

    async def open(self, name: str | None, caller: Caller) -> tuple[Session, str]:
        """Return a session of the store."""
        name = name or self._name or await self._served(caller)
        if await self._store.info(name) is None:
            raise InputError(f"no session {name!r} in the store: list_sessions lists those there are")
        session = self._open.setdefault(name, open_session(self._store, name))
        await session.follow()
        return session, "stored by Foldline"

    async def _served(self, caller: Caller) -> str:
        """Return the session that calls, or for a tool that does not write the only session."""
        if not await self._store.sessions(limit=1):
            raise InputError("nothing is stored yet: `foldline import FILE` stores a session")
        if calling := await _find_soon(lambda: self._calling(caller)):
            return calling
        sessions = await self._store.sessions(limit=2)
        if len(sessions) != 1 or caller.writes:
            raise InputError("it is unclear which session this is: pass `session` (list_sessions lists them)")
        return sessions[0].id

    async def _calling(self, caller: Caller) -> str | None:
        """Return the session whose newest message makes the call; None if there is not exactly one."""
        sessions = await self._store.sessions(limit=LIKELY)
        recent = [session.id for session in sessions if session.updated > time.time() - RECENT]
        calling = [name for name in recent if any(map(caller.made, await self._open_calls(name)))]
        return calling[0] if len(calling) == 1 else None

    async def _open_calls(self, name: str) -> tuple[ToolCall, ...]:
        tail = await self._store.tail(name, 5)  # marks may follow
        said = [entry for entry in tail if isinstance(entry, Said)]
        return said[-1].message.calls if said else ()

    async def listed(self, limit: int) -> list[str]:
        """Return a line for each session of the store."""
        lines: list[str] = []
        for info in await self._store.sessions(limit=limit):
            size = f"{info.messages:,} messages, {info.tokens:,} tokens, {info.compactions:,} compactions"
            title = f": {redact(info.title)}" if info.title else ""
            lines.append(_line(info.id, info.updated, size + title))
        return lines

    async def close(self) -> None:
        """Close the sessions and the store."""
        for session in self._open.values():
            await session.close()
        await self._store.close()


class _LoadedTranscript(NamedTuple):
    """A transcript as it was read; `warnings` counts the parts that could not be read."""

    stamp: Stamp
    store: MemoryStore
    session: Session
    warnings: int


class TranscriptSessions:
    """The transcripts of a folder's agents.

    Serves the named file, or the transcript that contains the call, or that of the session that the agent
    names, or the newest.
    """

    writes = False

    def __init__(self, folder: Path, agent: str | None = None, file: Path | None = None) -> None:
        self._folder = folder
        self._agent = agent
        self._file = file
        self._transcripts: dict[Path, _LoadedTranscript] = {}
        self._reading = asyncio.Lock()  # one file at a time

    async def open(self, name: str | None, caller: Caller) -> tuple[Session, str]:
        """Return the session of a transcript, up to date with its file."""
        path = None
        if name is None and self._file is None and caller.call:
            path = await _find_soon(lambda: asyncio.to_thread(self._calling, caller.call))
        path = path or await asyncio.to_thread(self._path, name, caller.session)
        async with self._reading:
            transcript = await self._current(path)
        unread = f"; {transcript.warnings} parts of it cannot be read" if transcript.warnings else ""
        return transcript.session, f"read from {path}{unread}"

    def _calling(self, call: str) -> Path | None:
        """Return the transcript that ends with a call."""
        recent = transcripts_of(self._folder, self._agent)[:LIKELY]
        return next((found.path for found in recent if call.encode() in _end_of(found.path)), None)

    def _path(self, name: str | None, calling: str) -> Path:
        if name is None and self._file is not None:
            return self._file
        session = name or calling or os.environ.get("CLAUDE_CODE_SESSION_ID")  # outdated after /clear
        for found in self._find() if session else ():
            # Codex has the time before the id
            if found.id == session or (name is None and found.id.endswith(f"-{session}")):
                return found.path
        if name is None:
            return newest_transcript(self._folder, self._agent).path
        raise InputError(f"no session {name!r} for {self._folder}: list_sessions lists those there are")

    def _find(self) -> list[FoundTranscript]:
        """Return the named file and the transcripts of the folder."""
        transcripts = transcripts_of(self._folder, self._agent)
        if self._file is None or any(found.path == self._file for found in transcripts):
            return transcripts
        status = self._file.stat()
        return [FoundTranscript("named", self._file, status.st_mtime, status.st_size), *transcripts]

    async def listed(self, limit: int) -> list[str]:
        """Return a line for each transcript."""
        return [
            _line(found.id, found.modified, f"{found.agent}, {found.size:,} bytes")
            for found in (await asyncio.to_thread(self._find))[:limit]
        ]

    async def _current(self, path: Path) -> _LoadedTranscript:
        """Return a transcript, after storing what was added to its file."""
        stamp = await asyncio.to_thread(_stamp, path)
        before = self._transcripts.get(path)
        if before is not None and before.stamp == stamp:
            return before
        loaded = await asyncio.to_thread(_load, path)
        store = before.store if before is not None else MemoryStore()
        name = FoundTranscript("", path, 0, 0).id
        try:
            await _store(store, name, loaded)
        except SessionDiverged:  # the user went back, or it is another file
            store = MemoryStore()
            await _store(store, name, loaded)
        session = open_session(store, name)
        await session.follow()  # the one before stays open: another answer may be reading it
        transcript = _LoadedTranscript(stamp, store, session, len(loaded.warnings))
        self._transcripts[path] = transcript
        return transcript

    async def close(self) -> None:
        """Close the sessions and their stores."""
        for transcript in self._transcripts.values():
            await transcript.session.close()
            await transcript.store.close()


async def _find_soon(find: Callable[[], Awaitable[T | None]]) -> T | None:
    """Return the result of a search, which is repeated for a second."""
    for _ in range(ATTEMPTS):
        if (result := await find()) is not None:
            return result
        await asyncio.sleep(PAUSE)
    return None


def _line(session: str, updated: float, about: str) -> str:
    return f"- {session} {datetime.fromtimestamp(updated, UTC):%Y-%m-%d %H:%M} UTC, {about}"


def _end_of(path: Path) -> bytes:
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - END))
        return file.read()
    return b""


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    return status.st_ino, status.st_size, status.st_mtime_ns


def _load(path: Path) -> Loaded:
    with open_transcript(path) as stream:
        return from_stream(stream, str(path))


async def _store(store: Store, name: str, loaded: Loaded) -> None:
    log = with_notes(loaded)
    leaf = loaded.entries[-1].id if loaded.log else log[-1].id
    await restore(store, name, log, leaf, agent=loaded.agent)
