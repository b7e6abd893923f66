"""What a path, a pattern or a store's URL stands for: session files, and the sessions of a store."""

from __future__ import annotations

import asyncio
import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from foldline.errors import InputError
from foldline.stores import MemoryStore, SqliteStore, Store, open_store

SUFFIXES: Final = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
EVERY: Final = 2**31 - 1
AT_ONCE: Final = 1_000  # stored sessions whose newest entries are looked up between two results
_STORE: Final = re.compile(r"[a-z][a-z0-9+.-]*://.*", re.DOTALL)
_PASSWORD: Final = re.compile(r"//[^/@:]*:[^/@]+@|[?&]password=")


class SessionSource(msgspec.Struct, frozen=True):
    """One session: a file, or `URL#ID` in a store.

    `whole` is the same for two names of one session, `inside` its path below the folder or store that was
    named, `state` changes when the session does; `size` is in bytes, of a stored session 0.
    """

    name: str
    whole: str
    inside: str
    state: str
    size: int = 0


def session_files(names: Sequence[str]) -> list[str]:
    """Return the session files that paths and patterns name; a folder stands for those in it.

    Raises InputError for a folder or a pattern without any, and for what can be read only once.
    """
    found = [file for name in names for path in _matching(name) for file in _files(path)]
    for file in found:
        if file == "-" or (Path(file).exists() and not Path(file).is_file()):
            shown = "standard input" if file == "-" else file
            raise InputError(f"{shown} is no file that can be read more than once: save it to one first")
    return found


def sources(names: Sequence[str]) -> Iterator[SessionSource]:
    """Yield the sessions that files, folders, patterns (`logs/**/*.jsonl`) and the URLs of stores stand for.

    Raises InputError for a folder, a pattern or a store without any, and for a URL with a password.
    """
    for name in names:
        if _STORE.fullmatch(name):
            yield from _stored(name)
        else:
            for one in _matching(name):
                yield from _named(one)


def is_stored(name: str) -> bool:
    """Return whether a source's name is that of a stored session."""
    return _STORE.fullmatch(name) is not None


def place_of(name: str) -> tuple[str, str]:
    """Return the URL and the id of a stored session from its source's name."""
    url, _, session = name.partition("#")
    return url, session


def _matching(name: str) -> list[str]:
    """Return the paths that a pattern stands for; what is no pattern, or there, is a path."""
    if not glob.has_magic(name) or Path(name).exists():
        return [name]
    found = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - a pattern may be absolute
    if not found:
        raise InputError(f"{name}: no file matches this pattern")
    return found


def _named(name: str) -> Iterator[SessionSource]:
    top = Path(name)
    for file in _files(name):
        path = Path(file)
        inside = path.relative_to(top) if path != top else Path(path.name)
        try:
            told = path.stat()
            state, size = f"{told.st_size} {told.st_mtime_ns}", told.st_size
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
    """Yield the session files below a folder, by name, in memory that grows with one folder alone."""
    try:
        with os.scandir(folder) as scanned:
            inside = sorted((one.name, one.is_dir(follow_symlinks=False)) for one in scanned)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from error
    for name, is_folder in inside:
        path = Path(folder) / name
        if is_folder:
            yield from _walk(str(path))
        elif name.endswith(SUFFIXES) and path.is_file():
            yield str(path)


def _stored(url: str) -> Iterator[SessionSource]:
    if "#" in url:
        raise InputError(f"{url}: the URL of a store as a source can have no '#'")
    if _PASSWORD.search(url):
        raise InputError(
            "a store's URL as a source can have no password, as the results would show it: "
            "set PGPASSWORD, or write it into ~/.pgpass"
        )
    store = open_store(url)
    if isinstance(store, MemoryStore):
        raise InputError(f"{url}: a store in memory is seen by one process alone")
    if isinstance(store, SqliteStore) and not store.file.is_file():
        raise InputError(f"{url}: there is no store")
    with asyncio.Runner() as runner:
        try:
            ids = runner.run(store.ids("", EVERY))[::-1]
            if not ids:
                raise InputError(f"{url}: no session in this store")
            for at in range(0, len(ids), AT_ONCE):
                some = ids[at : at + AT_ONCE]
                leaves = runner.run(_leaves(store, some))
                for session, leaf in zip(some, leaves, strict=True):
                    yield SessionSource(f"{url}#{session}", f"{url}#{session}", _as_path(session), leaf)
        finally:
            runner.run(store.close())


async def _leaves(store: Store, sessions: Sequence[str]) -> list[str]:
    return [await store.leaf(session) or "" for session in sessions]


def _as_path(session: str) -> str:
    """Return a session's id as the name of a file."""
    return re.sub(r"[^\w.-]", "_", session).lstrip(".")[:120] or "_"
