"""The same work on many sessions; a batch that was killed resumes where it stopped.

A process writes each result atomically and records it in the manifest, an SQLite file in the same folder. The
key is a hash of the session's name and state and the result's name: if one of them changes, or the result was
deleted, the session is processed again. The manifest stays locked, so that two batches cannot write to one
folder.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

import msgspec

from foldline.core.log.codec import encode
from foldline.errors import FoldlineError, InputError
from foldline.lab.runner import Failed, Runner
from foldline.lab.sources import SUFFIXES, SessionSource

MANIFEST: Final = "manifest.db"
TABLES: Final = {"jsonl": "results.jsonl", "parquet": "results.parquet"}
Details = dict[str, Any]
W = TypeVar("W")
Work = Callable[[W, str, Path], Details]  # (options, session, target file) -> details for the manifest

_TABLES: Final = """
begin immediate;
create table if not exists asked (options blob not null);
create table if not exists done (key blob primary key, bytes integer not null, found blob not null);
commit;
"""


class Task(msgspec.Struct, frozen=True):
    """A session, the path of its result in the folder, and the result's key in the manifest."""

    file: str
    output: str
    key: bytes


class Result(msgspec.Struct, frozen=True):
    """The result of a session: done in this run or in an earlier one, or failed with an error."""

    file: str
    output: str
    state: Literal["earlier", "done", "failed"]
    details: Details = {}
    error: str = ""


class BatchFolder:
    """A batch and its folder; a context manager. `tasks` are in the order of the sources."""

    def __init__(self, folder: Path, options: dict[str, Any], *, force: bool = False) -> None:
        """Open the manifest of a folder; `force` discards earlier results.

        `options` has everything that results depend on, except the sessions. Raises InputError if the folder
        is not writable, is in use, or has a batch with other options.
        """
        self.tasks: list[Task] = []
        self._sizes: dict[str, int] = {}
        self._earlier: set[bytes] = set()
        self._failed: dict[bytes, str] = {}
        self._folder = folder
        self._path = folder / MANIFEST
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot write to this folder: {error.strerror or error}") from error
        with self._sqlite_errors():
            self._database = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        try:
            with self._sqlite_errors():
                # a log locked by one process needs no shared memory: https://www.sqlite.org/wal.html#noshm
                self._database.execute("pragma locking_mode = exclusive")
                self._database.execute("pragma journal_mode = wal")
                self._database.execute("pragma synchronous = normal")
                self._database.executescript(_TABLES)
                self._check_options(options, force=force)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the manifest."""
        self._database.close()

    def _check_options(self, options: dict[str, Any], *, force: bool) -> None:
        if force:
            self._database.execute("delete from done")
            self._database.execute("delete from asked")
        current: dict[str, Any] = msgspec.json.decode(encode(options))
        row = self._database.execute("select options from asked").fetchone()
        if row is None:
            self._database.execute("insert into asked values (?)", (encode(current),))
            return
        stored = msgspec.json.decode(row[0])
        if changed := sorted(name for name in {*stored, *current} if stored.get(name) != current.get(name)):
            raise InputError(
                f"{self._folder} has a batch with other options ({', '.join(changed)}): use another folder, "
                "or process everything again with --force"
            )

    def add(self, sources: Iterable[SessionSource], ending: str) -> None:
        """Add sessions, each once; the names of their results end in `ending`.

        Results have the folders of their sources. Sources in the batch's folder are ignored. If two results
        had the same name, a hash of the path is added. Raises InputError if there is no session.
        """
        folder = self._folder.resolve()
        unique = {source.whole: source for source in sources if not Path(source.whole).is_relative_to(folder)}
        names = {whole: f"{_without_suffix(source.inside)}{ending}" for whole, source in unique.items()}
        taken = Counter([MANIFEST, *TABLES.values(), *(name.casefold() for name in names.values())])
        for whole, source in unique.items():
            raw, output = os.fsencode(whole), names[whole]
            if taken[output.casefold()] > 1:
                output = f"{output.removesuffix(ending)}-{hashlib.sha256(raw).hexdigest()[:8]}{ending}"
            key = hashlib.sha256(b"\0".join((raw, source.state.encode(), os.fsencode(output)))).digest()
            self.tasks.append(Task(source.name, output, key))
            self._sizes[source.name] = source.size
            if (row := self._recorded(key, "bytes")) is not None and row == self._size(output):
                self._earlier.add(key)
        if not self.tasks:
            raise InputError(f"no session file: those in {self._folder} are results of this batch")

    def run(
        self, work: Work[W], options: W, *, runner: Runner, tick: Callable[[Result], None] = lambda _: None
    ) -> None:
        """Process all sessions without a result with `runner`, the largest first.

        `work` is a module's function, called as work(options, session, target); it writes the result
        atomically and returns details for the manifest. `tick` gets each result as soon as it exists.
        """
        for task in self.tasks:
            if task.key in self._earlier:
                tick(self._result(task))
        pending = [task for task in self.tasks if task.key not in self._earlier]
        pending.sort(key=lambda task: -self._sizes[task.file])
        process = partial(_process, work, options, self._folder)
        for task, details in runner.each(pending, process, file=attrgetter("file")):
            if isinstance(details, Failed):
                self._failed[task.key] = details.error.encode("utf-8", "backslashreplace").decode()
            else:
                with self._sqlite_errors():
                    self._database.execute(
                        "insert or replace into done values (?, ?, ?)",
                        (task.key, self._size(task.output), encode(details)),
                    )
            tick(self._result(task))

    def results(self) -> Iterator[Result]:
        """Yield the results of all sessions, in the order of the sources."""
        return map(self._result, self.tasks)

    def _result(self, task: Task) -> Result:
        if (error := self._failed.get(task.key)) is not None:
            return Result(task.file, task.output, "failed", error=error)
        details = msgspec.json.decode(self._recorded(task.key, "found"))
        return Result(task.file, task.output, "earlier" if task.key in self._earlier else "done", details)

    def _recorded(self, key: bytes, column: str) -> Any:
        with self._sqlite_errors():
            row = self._database.execute(f"select {column} from done where key = ?", (key,)).fetchone()  # noqa: S608
        return row[0] if row else None

    def _size(self, output: str) -> int:
        try:
            return (self._folder / output).stat().st_size
        except OSError:
            return -1

    @contextmanager
    def _sqlite_errors(self) -> Generator[None]:
        """Turn SQLite's errors into Foldline's, with advice."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                text = f"{self._folder}: another batch is writing to this folder: wait, or use another folder"
                raise InputError(text) from error
            kind = InputError if "readonly" in str(error) or "unable to open" in str(error) else FoldlineError
            raise kind(f"{self._path}: cannot be written: {error}") from error
        except sqlite3.DatabaseError as error:
            text = f"{self._path}: damaged ({error}): delete it, then all sessions are processed again"
            raise InputError(text) from error


def _process(work: Work[W], options: W, folder: Path, task: Task) -> Details:
    target = folder / task.output
    target.parent.mkdir(parents=True, exist_ok=True)
    return work(options, task.file, target)


def _without_suffix(name: str) -> str:
    """Return a name without the suffix of a session file."""
    return next(
        (name[: -len(end)] for end in reversed(SUFFIXES) if name.endswith(end) and len(name) > len(end)),
        name,
    )
