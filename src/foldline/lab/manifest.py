"""What a batch is to do and has done: an SQLite file in its output folder, so that any batch can resume.

What is done stands under a key, a hash of the session's name and state and of what was asked; where any of
them differs, or the result is gone, the session is done again. The list of what is to do is made anew by each
run. The file is kept locked, so that two batches do not write to one folder.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec

from foldline.core.log.codec import encode
from foldline.errors import FoldlineError, InputError
from foldline.lab.sources import SUFFIXES, SessionSource

NAME: Final = "manifest.db"
OWN: Final = (NAME.encode(), b"results.jsonl", b"results.parquet")  # names that no session's result has
PAGE: Final = 1_000  # tasks that are read at once
Found = dict[str, Any]
State = Literal["left", "earlier", "done", "failed"]

_TABLES: Final = """
create table if not exists asked (wish blob not null);
create table if not exists done (
    key blob primary key,
    output blob not null,
    bytes integer not null,
    found blob not null
);
drop table if exists task;
create table task (
    number integer primary key,
    name blob not null,
    whole blob not null unique,
    output blob not null,
    fold blob not null,
    key blob not null,
    rank integer not null,
    state text not null,
    error text not null default ''
);
create index task_by_rank on task (state, rank, number);
"""


class Task(msgspec.Struct, frozen=True):
    """A session of an archive, and the name of its result below the output folder."""

    number: int
    file: str
    output: str


class Result(msgspec.Struct, frozen=True):
    """What came of a session: done now, done earlier, or failed and why."""

    file: str
    output: str
    state: State
    found: Found = {}
    error: str = ""


class Manifest:
    """The manifest of an output folder; close it at the end."""

    def __init__(self, folder: Path) -> None:
        """Open it. Raises InputError where the folder cannot be written to, or another batch is at work."""
        self._folder = folder
        self._path = folder / NAME
        self._wish = b""  # a hash of what is asked
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be written to: {error.strerror or error}") from error
        with self._told():
            self._database = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        try:
            with self._told():
                # locked by one process, a log needs no shared memory: https://www.sqlite.org/wal.html#noshm
                self._database.execute("pragma locking_mode = exclusive")
                self._database.execute("pragma journal_mode = wal")
                self._database.execute("pragma synchronous = normal")
                self._database.executescript(f"begin immediate; {_TABLES} commit;")
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def ask(self, wish: Any, *, force: bool) -> None:
        """Keep what is asked of the batch; raises InputError where the folder holds one asked otherwise.

        With `force` all that was done before is forgotten.
        """
        asked = msgspec.to_builtins(wish)
        self._wish = hashlib.sha256(encode(asked)).digest()
        with self._told():
            if force:
                self._database.execute("delete from done")
                self._database.execute("delete from asked")
            row = self._database.execute("select wish from asked").fetchone()
            if row is None:
                self._database.execute("insert into asked values (?)", (encode(asked),))
            else:
                _check_same(msgspec.json.decode(row[0]), asked, self._folder)

    def fill(self, sources: Iterable[SessionSource], ending: str) -> int:
        """List what is to do, each session once, its result's name ending in `ending`; return how many.

        Results are laid out as their sources are; a source in the output folder itself is left out. Where two
        results would have the same name, a hash of the path is added.
        """
        own = self._folder.resolve()
        with self._told(), self._at_once():
            for source in sources:
                if Path(source.whole).is_relative_to(own):
                    continue
                output = f"{_plain(source.inside)}{ending}"
                self._database.execute(
                    "insert or ignore into task (name, whole, output, fold, key, rank, state)"
                    " values (?, ?, ?, ?, ?, ?, 'left')",
                    (
                        os.fsencode(source.name),
                        os.fsencode(source.whole),
                        os.fsencode(output),
                        os.fsencode(output.casefold()),
                        self._key(source),
                        -source.size,
                    ),
                )
            self._tell_apart(ending)
            self._find_earlier()
            return self._database.execute("select count(*) from task").fetchone()[0]

    def _key(self, source: SessionSource) -> bytes:
        raw = b"\0".join((os.fsencode(source.whole), source.state.encode(), self._wish))
        return hashlib.sha256(raw).digest()[:16]

    def _tell_apart(self, ending: str) -> None:
        """Give other names to results whose names are the same, or are names of the batch itself."""
        same = self._database.execute(
            "select number, whole, output from task where fold in (?, ?, ?)"
            " or fold in (select fold from task group by fold having count(*) > 1)",
            OWN,
        ).fetchall()
        for number, whole, output in same:
            digest = hashlib.sha256(whole).hexdigest()[:8]
            other = f"{os.fsdecode(output).removesuffix(ending)}-{digest}{ending}"
            self._database.execute(
                "update task set output = ? where number = ?", (os.fsencode(other), number)
            )

    def _find_earlier(self) -> None:
        """Mark what was done by an earlier run and is still there."""
        at = 0
        while True:
            page = self._database.execute(
                "select task.number, task.output, done.bytes from task join done using (key)"
                " where task.output = done.output and task.number > ? order by task.number limit ?",
                (at, PAGE),
            ).fetchall()
            if not page:
                return
            there = [(number,) for number, output, size in page if self._size(os.fsdecode(output)) == size]
            self._database.executemany("update task set state = 'earlier' where number = ?", there)
            at = page[-1][0]

    def _size(self, output: str) -> int | None:
        try:
            return (self._folder / output).stat().st_size
        except OSError:
            return None

    def left(self) -> Iterator[Task]:
        """Yield what is to do, the largest first."""
        rank, number = -(2**63), 0
        while True:
            with self._told():
                page = self._database.execute(
                    "select rank, number, name, output from task where state = 'left'"
                    " and (rank, number) > (?, ?) order by rank, number limit ?",
                    (rank, number, PAGE),
                ).fetchall()
            if not page:
                return
            rank, number = page[-1][:2]
            for _, at, name, output in page:
                yield Task(at, os.fsdecode(name), os.fsdecode(output))

    def done(self, task: Task, found: Found) -> Result:
        """Keep that a task is done, after its result was written. Raises FoldlineError for a full disk."""
        size = self._size(task.output)
        with self._told(), self._at_once():
            self._database.execute(
                "insert or replace into done select key, output, ?, ? from task where number = ?",
                (size if size is not None else -1, encode(found), task.number),
            )
            self._database.execute("update task set state = 'done' where number = ?", (task.number,))
        return Result(task.file, task.output, "done", found)

    def failed(self, task: Task, error: str) -> Result:
        """Keep why a task failed."""
        with self._told():
            self._database.execute(
                "update task set state = 'failed', error = ? where number = ?",
                (error.encode("utf-8", "backslashreplace").decode(), task.number),
            )
        return Result(task.file, task.output, "failed", error=error)

    def results(self, state: State | None = None) -> Iterator[Result]:
        """Yield what came of all tasks, or of those of one state, in the order of the sources."""
        number = 0
        while True:
            with self._told():
                page = self._database.execute(
                    "select task.number, name, task.output, state, error, found"
                    " from task left join done using (key)"
                    " where task.number > ? and state = coalesce(?, state) order by task.number limit ?",
                    (number, state, PAGE),
                ).fetchall()
            if not page:
                return
            number = page[-1][0]
            for _, name, output, came_to, error, raw in page:
                found: Found = {} if raw is None or came_to == "failed" else msgspec.json.decode(raw)
                yield Result(os.fsdecode(name), os.fsdecode(output), came_to, found, error)

    @contextmanager
    def _at_once(self) -> Generator[None]:
        """Do all or nothing."""
        self._database.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._database.execute("rollback")
            raise
        self._database.execute("commit")

    @contextmanager
    def _told(self) -> Generator[None]:
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


def _plain(name: str) -> str:
    """Return a name without the ending that a session file has."""
    return next(
        (name[: -len(end)] for end in reversed(SUFFIXES) if name.endswith(end) and len(name) > len(end)),
        name,
    )


def _check_same(before: Any, asked: Any, folder: Path) -> None:
    """Raise InputError, naming what differs, where what was asked before is not what is asked now."""
    now = msgspec.json.decode(encode(asked))
    old, new = _flat(before), _flat(now)
    other = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if other:
        raise InputError(
            f"{folder} holds a batch with other options ({', '.join(other)}): name another folder, "
            "or do everything again with --force"
        )


def _flat(asked: Any) -> dict[str, Any]:
    """Return what was asked by name; what was asked of a replay stands one level deeper."""
    if not isinstance(asked, dict):
        return {"what is done": asked}
    known = cast("dict[str, Any]", asked)
    deeper = known.get("wanted")
    return {**{k: v for k, v in known.items() if k != "wanted"}, **(_flat(deeper) if deeper else {})}
