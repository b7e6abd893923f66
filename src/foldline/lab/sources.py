"""Find sessions by paths, patterns and URLs of stores, and read a file as a stream of entries."""

from __future__ import annotations

import asyncio
import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from foldline.core.cut.repair import repair
from foldline.core.log.entries import Said
from foldline.core.log.log import said
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.errors import InputError
from foldline.stores import MemoryStore, SqliteStore, Store, open_store
from foldline.transcripts import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord

SUFFIXES: Final = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
EVERY: Final = 2**31 - 1
CHUNK: Final = 1_000  # stored sessions whose newest entries are looked up together
_STORE: Final = re.compile(r"[a-z][a-z0-9+.-]*://.*", re.DOTALL)
_PASSWORD: Final = re.compile(r"//[^/@:]*:[^/@]+@|[?&]password=")


class SessionSource(msgspec.Struct, frozen=True):
    """One session: a file, or `URL#ID` in a store.

    `whole` is equal for all names of the session, `inside` is its path in the folder or store that the user
    named, `state` changes when the session does; `size` is in bytes, 0 for a stored session.
    """

    name: str
    whole: str
    inside: str
    state: str
    size: int = 0


def session_files(names: Sequence[str]) -> list[str]:
    """Return the session files of paths, folders and patterns.

    Raises InputError for a folder or pattern without any, and for a stream, which can be read only once.
    """
    files = [file for name in names for path in _matching(name) for file in _files(path)]
    for file in files:
        if file == "-" or (Path(file).exists() and not Path(file).is_file()):
            name = "standard input" if file == "-" else file
            raise InputError(f"{name} can be read only once: save it to a file first")
    return files


def sources(names: Sequence[str]) -> Iterator[SessionSource]:
    """Yield the sessions of files, folders, patterns (`logs/**/*.jsonl`) and URLs of stores.

    Raises InputError for a folder, pattern or store without any, and for a URL with a password.
    """
    for name in names:
        if _STORE.fullmatch(name):
            yield from _stored_sources(name)
        else:
            for path in _matching(name):
                yield from _file_sources(path)


def is_stored(name: str) -> bool:
    """Return whether a source is a stored session."""
    return _STORE.fullmatch(name) is not None


def split_stored(name: str) -> tuple[str, str]:
    """Split the name of a stored session into the store's URL and the session's id."""
    url, _, session = name.partition("#")
    return url, session


def _matching(name: str) -> list[str]:
    """Return the paths that match a pattern; an existing path, or one without wildcards, matches itself."""
    if not glob.has_magic(name) or Path(name).exists():
        return [name]
    paths = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - a pattern may be absolute
    if not paths:
        raise InputError(f"{name}: no file matches this pattern")
    return paths


def _file_sources(name: str) -> Iterator[SessionSource]:
    top = Path(name)
    for file in _files(name):
        path = Path(file)
        inside = path.relative_to(top) if path != top else Path(path.name)
        try:
            status = path.stat()
            state, size = f"{status.st_size} {status.st_mtime_ns}", status.st_size
        except OSError:
            state, size = "missing", 0
        yield SessionSource(file, str(path.resolve()), inside.as_posix(), state, size)


def _files(name: str) -> Iterator[str]:
    if not Path(name).is_dir():
        yield name
        return
    empty = True
    for file in _walk(name):
        empty = False
        yield file
    if empty:
        raise InputError(f"{name}: no session file in this folder ({', '.join(SUFFIXES)})")


def _walk(folder: str) -> Iterator[str]:
    """Yield the session files below a folder, by name; only one folder is in memory at a time."""
    try:
        with os.scandir(folder) as scanned:
            inside = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in scanned)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from error
    for name, is_folder in inside:
        path = Path(folder) / name
        if is_folder:
            yield from _walk(str(path))
        elif name.endswith(SUFFIXES) and path.is_file():
            yield str(path)


def _stored_sources(url: str) -> Iterator[SessionSource]:
    if "#" in url:
        raise InputError(f"{url}: the URL of a store must not contain '#' here")
    if _PASSWORD.search(url):
        raise InputError(
            "a store's URL must not contain a password here, because the results would show it: "
            "set PGPASSWORD, or write it into ~/.pgpass"
        )
    store = open_store(url)
    if isinstance(store, MemoryStore):
        raise InputError(f"{url}: a store in memory belongs to one process: use a store in a file")
    if isinstance(store, SqliteStore) and not store.file.is_file():
        raise InputError(f"there is no store at {url}")
    with asyncio.Runner() as runner:
        try:
            ids = runner.run(store.ids("", EVERY))[::-1]
            if not ids:
                raise InputError(f"{url}: no session in this store")
            for start in range(0, len(ids), CHUNK):
                chunk = ids[start : start + CHUNK]
                leaves = runner.run(_leaves(store, chunk))
                for session, leaf in zip(chunk, leaves, strict=True):
                    yield SessionSource(f"{url}#{session}", f"{url}#{session}", _as_path(session), leaf)
        finally:
            runner.run(store.close())


async def _leaves(store: Store, sessions: Sequence[str]) -> list[str]:
    return [await store.leaf(session) or "" for session in sessions]


def _as_path(session: str) -> str:
    """Return a session's id as a file name; a system limits its bytes."""
    name = re.sub(r"[^\w.-]", "_", session).lstrip(".")[:120]
    return name.encode()[:200].decode(errors="ignore") or "_"


# ---- the entries of a file, in constant memory

MAX_HELD = 256  # messages that wait for the result of a call

Step = Said | CompactionRecord | FactRecord | WarningRecord


def steps(records: Iterable[Record]) -> Iterator[Step]:
    """Yield the entries of a transcript in their order, and the file's other records.

    As when a file is loaded, results move to their calls if they follow within `MAX_HELD` messages; a later
    result is left out with a warning.
    """
    chain = _Chain()
    held: list[MessageRecord] = []
    waiting: set[str] = set()
    for record in records:
        if not isinstance(record, MessageRecord):
            yield record
            continue
        held.append(record)
        waiting |= {call.id for call in record.message.calls}
        waiting -= {result.call_id for result in record.message.results}
        if not waiting or len(held) >= MAX_HELD:
            yield from chain.ordered(held)
            held, waiting = [], set[str]()
    yield from chain.ordered(held)


class _Chain:
    """Makes entries, each linked to the previous one as in a log."""

    def __init__(self) -> None:
        self._parent: str | None = None
        self._key = ""

    def ordered(self, held: list[MessageRecord]) -> Iterator[Step]:
        """Yield the entries of some messages, with every result after its call."""
        repaired = repair([record.message for record in held])
        for index, call in repaired.orphans:
            yield WarningRecord(held[index].line, f"a result without a call: {call} (left out)")
        for index, message in repaired.messages:
            tokens, at = message_tokens(message, OFFLINE), held[index].at
            entry = said(message, parent=self._parent, said_key=self._key, tokens=tokens, at=at)
            self._parent, self._key = entry.id, entry.said_key
            yield entry
