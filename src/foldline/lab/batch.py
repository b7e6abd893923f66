"""The same work on an archive of sessions, which can be killed and goes on where it was.

A result is written whole by the process that made it, and then recorded in the manifest, an SQLite file
beside the results. Its key is a hash of the session's name and state, and of the name of the result: where
one of them differs, or the result is gone, the session is done again. The file is kept locked, so that two
batches never write to one folder.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

import msgspec

from foldline.core.log.codec import encode
from foldline.errors import FoldlineError, InputError
from foldline.lab.runner import Failed, Runner
from foldline.lab.sources import SUFFIXES, SessionSource

MANIFEST: Final = "manifest.db"
TABLES: Final = {"jsonl": "results.jsonl", "parquet": "results.parquet"}
Found = dict[str, Any]
W = TypeVar("W")
Work = Callable[[W, str, Path], Found]  # (wish, session, where to write) -> what is recorded of it

_TABLES: Final = """
begin immediate;
create table if not exists asked (options blob not null);
create table if not exists done (key blob primary key, bytes integer not null, found blob not null);
commit;
"""


class Task(msgspec.Struct, frozen=True):
    """A session, the name of its result below the folder, and the key of that in the manifest."""

    file: str
    output: str
    key: bytes


class Result(msgspec.Struct, frozen=True):
    """What came of a session: done now, done earlier, or failed and why."""

    file: str
    output: str
    state: Literal["earlier", "done", "failed"]
    found: Found = {}
    error: str = ""


class BatchFolder:
    """A batch in its folder; close it, as `with` does. `tasks` stand in the order of the sources."""

    def __init__(self, folder: Path, options: dict[str, Any], *, force: bool = False) -> None:
        """Open the manifest of a folder; with `force`, what was done before is forgotten.

        `options` are all that a result depends on beside its session. Raises InputError where the folder
        cannot be written to, is in use, or holds a batch with other options.
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
            raise InputError(f"{folder}: cannot be written to: {error.strerror or error}") from error
        with self._explained():
            self._database = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        try:
            with self._explained():
                # locked by one process, a log needs no shared memory: https://www.sqlite.org/wal.html#noshm
                self._database.execute("pragma locking_mode = exclusive")
                self._database.execute("pragma journal_mode = wal")
                self._database.execute("pragma synchronous = normal")
                self._database.executescript(_TABLES)
                self._ask(options, force=force)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _ask(self, options: dict[str, Any], *, force: bool) -> None:
        if force:
            self._database.execute("delete from done")
            self._database.execute("delete from asked")
        asked: dict[str, Any] = msgspec.json.decode(encode(options))
        row = self._database.execute("select options from asked").fetchone()
        if row is None:
            self._database.execute("insert into asked values (?)", (encode(asked),))
            return
        before = msgspec.json.decode(row[0])
        if other := sorted(name for name in {*before, *asked} if before.get(name) != asked.get(name)):
            raise InputError(
                f"{self._folder} holds a batch with other options ({', '.join(other)}): name another "
                "folder, or do everything again with --force"
            )

    def add(self, sources: Iterable[SessionSource], ending: str) -> None:
        """Add what is to be done, each session once, the name of its result ending in `ending`.

        Results are laid out as their sources are; a source in the folder itself is left out. Where two
        results would have one name, a hash of the path is added. Raises InputError where no session is left.
        """
        own = self._folder.resolve()
        once = {one.whole: one for one in sources if not Path(one.whole).is_relative_to(own)}
        names = {whole: f"{_plain(one.inside)}{ending}" for whole, one in once.items()}
        taken = Counter([MANIFEST, *TABLES.values(), *(name.casefold() for name in names.values())])
        for whole, source in once.items():
            raw, output = os.fsencode(whole), names[whole]
            if taken[output.casefold()] > 1:
                output = f"{output.removesuffix(ending)}-{hashlib.sha256(raw).hexdigest()[:8]}{ending}"
            key = hashlib.sha256(b"\0".join((raw, source.state.encode(), os.fsencode(output)))).digest()
            self.tasks.append(Task(source.name, output, key))
            self._sizes[source.name] = source.size
            if (row := self._recorded(key, "bytes")) is not None and row == self._size(output):
                self._earlier.add(key)
        if not self.tasks:
            raise InputError(f"there is no session file outside of {self._folder}")

    def run(
        self, work: Work[W], wish: W, *, runner: Runner, tick: Callable[[Result], None] = lambda _: None
    ) -> None:
        """Do the work on all that is left, the largest first, where `runner` does.

        `work` is a function of a module, called as work(wish, session, target); it writes the result whole
        and returns what the manifest keeps of it. `tick` gets each result as soon as it is there.
        """
        for task in self.tasks:
            if task.key in self._earlier:
                tick(self._result(task))
        left = [task for task in self.tasks if task.key not in self._earlier]
        left.sort(key=lambda task: -self._sizes[task.file])
        for task, found in runner.each(left, partial(_one, work, wish, self._folder), file=_file):
            if isinstance(found, Failed):
                self._failed[task.key] = found.error.encode("utf-8", "backslashreplace").decode()
            else:
                with self._explained():
                    self._database.execute(
                        "insert or replace into done values (?, ?, ?)",
                        (task.key, self._size(task.output), encode(found)),
                    )
            tick(self._result(task))

    def results(self) -> Iterator[Result]:
        """Yield what came of all sessions, in the order of the sources."""
        return map(self._result, self.tasks)

    def _result(self, task: Task) -> Result:
        if (error := self._failed.get(task.key)) is not None:
            return Result(task.file, task.output, "failed", error=error)
        found = msgspec.json.decode(self._recorded(task.key, "found"))
        return Result(task.file, task.output, "earlier" if task.key in self._earlier else "done", found)

    def _recorded(self, key: bytes, column: str) -> Any:
        with self._explained():
            row = self._database.execute(f"select {column} from done where key = ?", (key,)).fetchone()  # noqa: S608
        return row[0] if row else None

    def _size(self, output: str) -> int:
        try:
            return (self._folder / output).stat().st_size
        except OSError:
            return -1

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Say what SQLite's errors mean here."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                text = f"{self._folder}: another batch writes to this folder: wait for it, or name another"
                raise InputError(text) from error
            kind = InputError if "readonly" in str(error) or "unable to open" in str(error) else FoldlineError
            raise kind(f"{self._path}: cannot be written: {error}") from error
        except sqlite3.DatabaseError as error:
            text = f"{self._path}: damaged ({error}): remove it, and everything is done again"
            raise InputError(text) from error


def _one(work: Work[W], wish: W, folder: Path, task: Task) -> Found:
    target = folder / task.output
    target.parent.mkdir(parents=True, exist_ok=True)
    return work(wish, task.file, target)


def _file(task: Task) -> str:
    return task.file


def _plain(name: str) -> str:
    """Return a name without the ending that a session file has."""
    return next(
        (name[: -len(end)] for end in reversed(SUFFIXES) if name.endswith(end) and len(name) > len(end)),
        name,
    )
