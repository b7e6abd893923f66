"""The SQLite store: its file, its migrations, and what may happen to them."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from tests.stores.build import compact, incompressible_text, path_of, say, talk
from tests.stores.writer import check_linear, run_writers

import foldline.stores.sqlite as sqlite_module
from foldline.core.log.entries import Entry
from foldline.errors import FormatError, StoreCorrupt, StoreError, StoreVersion
from foldline.stores import MemoryStore, SqliteStore, index, sqlite_database, tree

T = TypeVar("T")
ROOT = Path(__file__).parents[2]


def use(file: Path, body: Callable[[SqliteStore], Awaitable[T]], *, timeout: float = 60.0) -> T:
    """Open the store, do something, close it."""

    async def run() -> T:
        store = SqliteStore(file, timeout=timeout)
        try:
            return await body(store)
        finally:
            await store.close()

    return asyncio.run(run())


def told_by(script: str, file: Path) -> str:
    """Run a script on the file in a process of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def filled(file: Path, count: int = 20) -> list[Entry]:
    log = talk(None, *[f"message {n}" for n in range(count)])
    use(file, lambda store: store.append("s", log, seen=None))
    return log


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folders" / "s.db"


@pytest.fixture
async def store(file: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(file, timeout=60.0)
    yield opened
    await opened.close()


def test_files_and_directories_are_private(file: Path) -> None:
    async def body(store: SqliteStore) -> None:
        await store.append("s", talk(None, "secret"), seen=None)
        for name in file.parent.iterdir():
            assert stat.S_IMODE(name.stat().st_mode) == 0o600, name

    use(file, body)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.parent.parent.stat().st_mode) == 0o700


def test_the_settings_are_those_of_a_durable_log(file: Path) -> None:
    database = sqlite_database.connect(file, 1.0)
    asked = {
        name: database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    }
    assert asked == {"journal_mode": "wal", "synchronous": 2}
    assert database.execute("PRAGMA foreign_keys").fetchone() == (1,)
    database.close()


def test_a_file_of_another_page_size_keeps_it(file: Path) -> None:
    filled(file)
    made = sqlite3.connect(file)
    assert made.execute("PRAGMA page_size").fetchone() == (2048,)
    made.executescript("PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM")
    made.close()
    assert len(use(file, path_of)) == 20
    again = sqlite3.connect(file)
    assert again.execute("PRAGMA page_size").fetchone() == (4096,)
    assert again.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    again.close()


@pytest.mark.slow
def test_the_write_ahead_log_is_moved_into_the_file_between_appends(file: Path) -> None:
    async def size_of_log(store: SqliteStore) -> int:
        leaf = None
        for turn in range(40):
            batch = talk(leaf, f"{turn} " + incompressible_text(500_000))
            await store.append("s", batch, seen=leaf.id if leaf else None)
            leaf = batch[-1]
        return log.stat().st_size

    log = file.with_name("s.db-wal")
    assert use(file, size_of_log) < 10_000_000
    assert file.stat().st_size > 25_000_000


# -- migrations


async def test_a_database_of_the_first_version_is_migrated(store: SqliteStore, file: Path) -> None:
    log = await asyncio.to_thread(filled, file)
    database = sqlite3.connect(file)
    database.executescript(
        "DROP TABLE search; ALTER TABLE sessions DROP COLUMN indexed; DROP INDEX marks;"
        "DROP TABLE key_values; DROP INDEX sessions_by_update;"
        "DROP INDEX sessions_by_user; ALTER TABLE sessions DROP COLUMN of_user; DROP TABLE audit;"
        "CREATE INDEX events ON entries (key) WHERE kind IN ('compacted', 'lifted'); PRAGMA user_version = 1;"
    )
    database.close()

    assert await path_of(store) == log
    assert len(await store.search("message", limit=100)) == 20
    assert await store.verify() == []


def test_a_newer_database_is_left_alone(file: Path) -> None:
    filled(file)
    database = sqlite3.connect(file)
    database.execute("PRAGMA user_version = 99")
    database.close()
    before = file.read_bytes()
    with pytest.raises(StoreVersion, match="pip install --upgrade") as newer:
        use(file, lambda store: store.sessions())
    assert newer.value.exit_code == 2
    assert file.read_bytes() == before


def test_a_migration_that_fails_changes_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(file)
    good = sqlite_database.migrations("sqlite")
    monkeypatch.setattr(
        sqlite_database, "migrations", lambda _: [*good, "CREATE TABLE more (x);\nCREATE TABLE sessions (x);"]
    )
    with pytest.raises(StoreError, match="already exists"):
        use(file, path_of)
    monkeypatch.setattr(sqlite_database, "migrations", lambda _: good)
    assert use(file, path_of) == log
    database = sqlite3.connect(file)
    assert database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone() == (0,)
    database.close()


def test_many_processes_may_make_the_database_at_once(file: Path) -> None:
    command = [sys.executable, "-m", "tests.stores.writer", f"sqlite:///{file}"]
    writers = [
        subprocess.Popen([*command, f"s{n}", f"w{n}", "1"], cwd=ROOT, stdout=subprocess.PIPE)
        for n in range(4)
    ]
    assert [writer.wait(300) for writer in writers] == [0, 0, 0, 0]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()
    assert len(use(file, lambda store: store.sessions())) == 4


# -- files that are not ours, or not whole


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("these are my notes, do not touch them\n" * 100)
    before = file.read_bytes()
    with pytest.raises(FormatError, match=r"notes\.txt.*not a Foldline database") as error:
        use(file, lambda store: store.sessions())
    assert error.value.exit_code == 2
    assert file.read_bytes() == before


def test_another_program_s_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    database = sqlite3.connect(file)
    database.execute("CREATE TABLE theirs (x)")
    database.close()
    before = file.read_bytes()
    with pytest.raises(FormatError, match="another program"):
        use(file, lambda store: store.append("s", talk(None, "x"), seen=None))
    assert file.read_bytes() == before


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    file = tmp_path / "empty.db"
    file.touch()
    filled(file)
    assert use(file, lambda store: store.verify()) == []


@pytest.mark.parametrize("keep", [50, 100, 4096, 5000, 0.3, 0.6, 0.95])
def test_a_truncated_database_is_an_error_with_a_remedy(file: Path, keep: float) -> None:
    filled(file, 400)
    size = file.stat().st_size
    os.truncate(file, keep if keep > 1 else int(size * keep))
    with pytest.raises((StoreCorrupt, FormatError), match="backup"):
        use(file, path_of)


def test_a_damaged_page_is_found_by_verify(file: Path) -> None:
    filled(file, 400)
    with file.open("r+b") as raw:
        raw.seek(file.stat().st_size // 2)
        raw.write(os.urandom(8192))
    try:
        problems = use(file, lambda store: store.verify())
    except StoreCorrupt as error:
        problems = [str(error)]
    assert problems


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open"):
        use(tmp_path, lambda store: store.sessions())


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a directory that nobody can write to")
def test_a_place_that_cannot_be_written_is_named() -> None:
    with pytest.raises(StoreError, match="permissions"):
        use(Path("/proc/self/s.db"), lambda store: store.sessions())
    with pytest.raises(StoreError, match="permissions"):
        use(Path("/proc/self/deeper/s.db"), lambda store: store.sessions())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere: run as another user")
def test_a_read_only_directory_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="permissions"):
        use(tmp_path / "s.db", lambda store: store.sessions())


def test_ids_must_be_text_that_can_be_stored(file: Path) -> None:
    with pytest.raises(StoreError, match="surrogates"):
        use(file, lambda store: store.append("\ud83d", talk(None, "x"), seen=None))


# -- a full disk, a lock


async def test_a_full_disk_loses_nothing(store: SqliteStore, file: Path) -> None:
    log = await asyncio.to_thread(filled, file)

    await store.sessions()
    assert store._database is not None
    database = store._database.connection
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages + 5}")
    big = talk(log[-1], "small", incompressible_text(1_000_000))
    with pytest.raises(StoreError, match="disk is full"):
        await store.append("s", big, seen=log[-1].id)
    assert await path_of(store) == log
    small = talk(log[-1], "small")
    await store.append("s", small, seen=log[-1].id)
    database.execute("PRAGMA max_page_count = 100000")
    await store.append("s", big[1:], seen=small[-1].id)
    assert await path_of(store) == [*log, *big]
    assert await store.verify() == []


async def test_a_full_disk_does_not_end_a_search(store: SqliteStore) -> None:
    log = talk(None, "the old harbour", *[incompressible_text(2_000) for _ in range(40)])
    await store.append("s", log, seen=None)
    await store.search("harbour")
    more = talk(log[-1], "the new harbour", *[incompressible_text(30_000) for _ in range(10)])
    await store.append("s", more, seen=log[-1].id)
    assert store._database is not None
    database = store._database.connection
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages}")
    assert {hit.entry for hit in await store.search("harbour")} == {log[0].id, more[0].id}
    assert [hit.entry for hit in await store.search("harbour", limit=1)] == [log[0].id]
    database.execute("PRAGMA max_page_count = 100000")
    assert {hit.entry for hit in await store.search("harbour")} == {log[0].id, more[0].id}


LIMITED = """
import asyncio, resource, sys
from foldline.errors import StoreError
from foldline.stores import SqliteStore
from tests.stores.build import incompressible_text, talk

async def main(file):
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
    store = SqliteStore(file)
    leaf, done = None, 0
    try:
        while done < 1000:
            batch = talk(leaf, incompressible_text(50_000))
            await store.append("s", batch, seen=leaf.id if leaf else None)
            leaf, done = batch[-1], done + 1
    except StoreError as error:
        print(done, leaf.id, error)
        assert len([entry async for entry in store.path("s")]) == done
    finally:
        await store.close()

asyncio.run(main(sys.argv[1]))
"""


FORKED = """
import asyncio, os, sys
from foldline.errors import StoreError
from foldline.stores import SqliteStore
from tests.stores.build import talk

store = SqliteStore(sys.argv[1])
asyncio.run(store.append("s", talk(None, "parent"), seen=None))
child = os.fork()
if not child:
    try:
        asyncio.run(store.leaf("s"))
    except StoreError as error:
        print(error, flush=True)
    asyncio.run(store.close())
    os._exit(0)
os.waitpid(child, 0)
assert asyncio.run(store.leaf("s"))
asyncio.run(store.close())
"""


async def test_a_write_that_the_system_refuses_loses_nothing(store: SqliteStore, file: Path) -> None:
    """The kernel refuses to let a file grow: a real failing write, in the log or while it is checkpointed."""
    count, leaf, told = told_by(LIMITED, file).split(maxsplit=2)
    assert "disk" in told
    assert int(count) > 5

    assert await store.leaf("s") == leaf
    assert len(await path_of(store)) == int(count)
    assert await store.verify() == []


def test_a_lock_held_too_long_is_an_error_and_a_short_one_is_waited_for(file: Path) -> None:
    log = filled(file)
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    after = talk(log[-1], "after")
    with pytest.raises(StoreError, match="locked by another process"):
        use(file, lambda store: store.append("s", after, seen=log[-1].id), timeout=0.2)
    assert use(file, path_of) == log  # reading needs no lock
    release = threading.Timer(0.1, lambda: other.execute("ROLLBACK"))
    release.start()
    use(file, lambda store: store.append("s", after, seen=log[-1].id), timeout=60)
    release.join()
    other.close()
    assert use(file, path_of) == [*log, *after]


async def test_the_log_is_written_from_its_start_again(store: SqliteStore, file: Path) -> None:
    """A sync of a file that grows takes half as long again."""

    leaf: Entry | None = None
    for number in range(300):
        leaf = say(leaf, f"{number} " + "x" * 9_000)
        await store.append("s", [leaf], seen=leaf.parent)
        if number % 20 == 0:
            await asyncio.sleep(0.01)
    assert file.with_name("s.db-wal").stat().st_size < 2_500_000


def test_a_store_that_was_opened_before_a_fork_says_so(file: Path) -> None:
    """The child has neither the thread nor a connection of its own: it would wait for ever, or write into the void."""
    told = told_by(FORKED, file)
    assert "was opened before a fork: open a separate store in each process" in told


# -- several processes


def test_eight_processes_writing_one_session_lose_and_double_nothing(file: Path) -> None:
    told = run_writers(f"sqlite:///{file}", "s", 8, 10)
    use(file, lambda store: check_linear(store, "s", told, 10))


def killed_while_writing(file: Path, session: str, after: float) -> list[str]:
    """Run a writer, kill it, and return the ids that it had acknowledged."""
    command = [sys.executable, "-m", "tests.stores.writer", f"sqlite:///{file}", session, "w", "100000"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(after)
        writer.kill()
        lines = [first, *writer.stdout.read().splitlines()]
    return [line.strip() for line in lines if len(line.strip()) == 32]


def test_a_killed_writer_loses_nothing_that_it_acknowledged(file: Path) -> None:
    for round_ in range(4):
        session = f"s{round_ % 2}"
        acknowledged = killed_while_writing(file, session, 0.05 + 0.04 * round_)
        assert acknowledged
        path = [entry.id for entry in use(file, partial(path_of, session=session))]
        assert set(acknowledged) <= set(path)
        assert len(path) == len(set(path))
        assert len(path) % 2 == 0  # a turn is whole or absent
        assert use(file, lambda store: store.verify()) == []


@pytest.mark.soak
def test_fifty_killed_writers(file: Path) -> None:
    everything: set[str] = set()
    for round_ in range(50):
        everything |= set(killed_while_writing(file, "s", (round_ * 7919 % 100) / 250))
        path = {entry.id for entry in use(file, path_of)}
        assert everything <= path
    assert use(file, lambda store: store.verify()) == []


# -- the search index, and what a purge leaves behind


async def test_the_index_is_filled_outside_the_append(store: SqliteStore, file: Path) -> None:
    await store.append("s", talk(None, *[f"message {n}" for n in range(1200)]), seen=None)
    database = sqlite3.connect(file)
    assert database.execute("SELECT indexed, entries FROM sessions").fetchone() == (0, 1200)
    assert len(await store.search("message", limit=5000)) == 1200
    assert database.execute("SELECT indexed, entries FROM sessions").fetchone() == (1200, 1200)
    database.close()


async def test_an_append_comes_between_the_steps_of_a_search(store: SqliteStore) -> None:
    log = talk(None, *[f"message {n}" for n in range(3000)])
    await store.append("s", log, seen=None)
    search = asyncio.create_task(store.search("message", limit=5000))
    await asyncio.sleep(0)  # its first step is asked for
    await store.append("s", talk(log[-1], "new"), seen=log[-1].id)
    assert not search.done()
    assert len(await search) == 3000


async def test_a_cancelled_search_leaves_the_store_usable(store: SqliteStore) -> None:
    await store.append("s", talk(None, *[f"message {n}" for n in range(2000)]), seen=None)
    search = asyncio.create_task(store.search("message"))
    await asyncio.sleep(0.005)
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert len(await store.search("message", limit=5000)) == 2000
    assert await store.verify() == []


async def test_a_scan_goes_through_all_pages(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_PAGE", 7)

    await store.append("s", talk(None, *[f"message{n}" for n in range(50)]), seen=None)
    assert [hit.seq for hit in await store.search("essage", limit=100)] == list(range(50, 0, -1))
    assert [hit.seq for hit in await store.search("essage", limit=10)] == list(range(50, 40, -1))
    odd = talk(None, "half \ud83d an EMOJI")
    await store.append("odd", odd, seen=None)
    assert [hit.session for hit in await store.search("moji")] == ["odd"]


def test_a_purge_says_so_where_a_reader_keeps_the_log_from_being_emptied(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filled(file)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN")
    assert other.execute("SELECT count(*) FROM entries").fetchone()[0] == 20
    with pytest.raises(StoreError, match=r"is purged, but another process is reading .*s\.db-wal"):
        use(file, lambda store: store.purge("s"), timeout=0.1)
    assert "waiting up to 0.1 s for programs that are reading" in caplog.text
    other.close()
    assert use(file, SqliteStore.sessions) == []


def test_a_purge_leaves_no_trace(file: Path) -> None:
    async def body(store: SqliteStore) -> None:
        await store.append("a", talk(None, "the xylophonesecret", *["filler words"] * 50), seen=None)
        await store.append("b", talk(None, "stays here"), seen=None)
        assert len(await store.search("xylophonesecret")) == 1
        await store.purge("a")
        assert traces() == []
        assert len(await store.search("stays")) == 1

    def traces() -> list[Path]:
        return [name for name in file.parent.iterdir() if b"xylophone" in name.read_bytes()]

    use(file, body)
    assert traces() == []
    assert b"stays here" in file.read_bytes()


async def test_a_purge_that_nobody_waits_for_is_finished(store: SqliteStore, file: Path) -> None:
    """Cancelled between the tables and the log, it left what it deleted in the log, with no way to do it again."""

    for number in range(12):
        name, secret = f"s{number}", f"secret{number}of"
        await store.append(name, talk(None, secret, *["filler words"] * 50), seen=None)
        purging = asyncio.create_task(store.purge(name))
        await asyncio.sleep(number / 4_000)  # before it begins, in its middle, behind it
        purging.cancel()
        stored = {info.id for info in await store.sessions()}
        traces = [path for path in file.parent.iterdir() if secret.encode() in path.read_bytes()]
        assert (name in stored) == bool(traces)


async def test_many_purges_leave_an_index_that_can_be_searched(
    store: SqliteStore, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each adds a level to what the index knows of itself: after a thousand SQLite took it for damaged."""
    monkeypatch.setattr(sqlite_module, "_REBUILD_AFTER", 4)

    def levels() -> int:
        with sqlite3.connect(file) as database:
            (structure,) = database.execute("SELECT block FROM search_data WHERE id = 10").fetchone()
        database.close()
        return structure[4]

    await store.append("stays", talk(None, "the lasting word"), seen=None)
    most = 0
    for number in range(30):
        await store.append(f"s{number}", talk(None, "a passing word"), seen=None)
        assert len(await store.search("word")) == 2
        await store.purge(f"s{number}")
        most = max(most, levels())
        assert [hit.session for hit in await store.search("word")] == ["stays"]
    assert most < 20
    assert await store.verify() == []


# -- verify


TAMPERED = {
    "UPDATE entries SET payload = x'00' WHERE seq = 3": "cannot be read",
    "UPDATE entries SET payload = (SELECT payload FROM entries WHERE seq = 4) WHERE seq = 3": "does not match the entry",
    "UPDATE entries SET parent = 'gone' WHERE seq = 3": "does not match the entry",
    "UPDATE entries SET boundary = id WHERE seq = 3": "wrong boundary",
    "UPDATE entries SET boundary = NULL WHERE seq = 14": "wrong boundary",
    "UPDATE entries SET segment = 2 WHERE seq = 3": "wrong segment",
    "UPDATE entries SET messages = 9, tokens = 1 WHERE seq = 3": "wrong messages, tokens",
    "UPDATE sessions SET leaf = 'gone'": "leaf gone is missing",
    "UPDATE sessions SET entries = 99": "it has 14 entries, the last one number 14, not 99",
    "UPDATE entries SET payload = 'text' WHERE seq = 3": "cannot be read",
    "UPDATE entries SET payload = 5 WHERE seq = 3": "cannot be read",
    "UPDATE entries SET id = CAST(x'ff41' AS TEXT) WHERE seq = 3": "does not match the entry",
    "UPDATE entries SET kind = CAST(x'ff' AS TEXT) WHERE seq = 3": "does not match the entry",
    "UPDATE sessions SET title = CAST(x'ff41' AS TEXT), leaf = CAST(x'ff' AS TEXT)": "is missing",
    "UPDATE sessions SET id = CAST(x'ff41' AS TEXT)": "its id is not",
    "PRAGMA ignore_check_constraints = ON; UPDATE entries SET seq = 'x' WHERE seq = 3": "not a number",
    "UPDATE entries SET messages = 'x' WHERE seq = 3": "not a number",
    "DELETE FROM entries WHERE seq = 3": "missing",
    "DELETE FROM entries WHERE seq = 14": "leaf",
    "PRAGMA foreign_keys = OFF; DELETE FROM sessions": "belongs to no session",
}


@pytest.mark.parametrize("change", TAMPERED)
def test_verify_finds_what_was_changed(file: Path, change: str) -> None:
    log = talk(None, *[f"m{n}" for n in range(12)])
    boundary = compact(log[-1], log[8].id)
    after = say(boundary, "after", key=log[-1].said_key)
    use(file, lambda store: store.append("s", [*log, boundary, after], seen=None))
    database = sqlite3.connect(file)
    database.executescript(change)
    database.close()
    problems = use(file, lambda store: store.verify())
    assert any(TAMPERED[change] in line for line in problems), problems


def test_a_missing_entry_is_an_error_when_read(file: Path) -> None:
    log = filled(file)
    database = sqlite3.connect(file)
    database.executescript("DELETE FROM entries WHERE seq = 10")
    database.close()
    with pytest.raises(StoreCorrupt, match="verify"):
        use(file, path_of)
    assert use(file, lambda store: store.entry("s", log[0].id)) == log[0]


def test_a_missing_leaf_is_an_error_but_entries_can_still_be_read(file: Path) -> None:
    log = filled(file)
    database = sqlite3.connect(file)
    database.executescript("DELETE FROM entries WHERE seq = 20")
    database.close()
    for ask in (path_of, lambda store: store.append("s", talk(log[-1], "more"), seen=log[-1].id)):
        with pytest.raises(StoreCorrupt, match="leaf"):
            use(file, ask)
    assert use(file, lambda store: store.entries("s", [log[3].id, log[18].id])) == [log[3], log[18]]
    use(file, lambda store: store.move("s", log[18].id, seen=log[19].id))
    assert use(file, path_of) == log[:19]


def test_a_loop_in_the_rows_is_an_error(file: Path) -> None:
    filled(file)
    database = sqlite3.connect(file)
    database.executescript("UPDATE entries SET joint = 19 WHERE seq = 20")
    database.close()
    with pytest.raises(StoreCorrupt, match="later"):
        use(file, path_of)


# -- what opening and reading costs


def test_opening_a_view_reads_what_is_kept_and_no_more(file: Path) -> None:
    log = talk(None, *[f"m{n}" for n in range(3000)])
    boundary = compact(log[-1], log[-10].id, leading=(log[0].id,))
    use(file, lambda store: store.append("s", [*log, boundary], seen=None))

    async def body(store: SqliteStore) -> int:
        await store.sessions()
        assert store._database is not None
        database = store._database.connection
        steps = 0

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        database.set_progress_handler(step, 1)
        assert len(await store.active("s")) == 12
        return steps

    assert use(file, body) < 1000  # instructions of SQLite's machine; reading all takes over 20,000


def test_rewinding_many_times_stays_cheap() -> None:
    places: dict[int, tree.Place] = {}
    entries = talk(None, *[str(n) for n in range(3)])
    for seq, entry in enumerate(entries, 1):
        parent = places.get(seq - 1)
        places[seq] = tree.place(entry, seq, parent, list)
    branch = tree.place(talk(entries[0], "else")[0], 4, places[1], list)
    places[4] = branch
    assert tree.spans(places.__getitem__, 4) == [(1, 1), (4, 4)]
    assert tree.spans(places.__getitem__, 3) == [(1, 3)]
    assert tree.spans(places.__getitem__, 4, 2) == [(4, 4)]
    assert tree.spans(places.__getitem__, None) == []


def test_a_long_message_takes_less_room_than_it_came_in(file: Path) -> None:
    """It is stored as received and as read; both together are compressed."""
    text = Path(__file__).read_text(encoding="utf-8")
    log = talk(None, *[f"{number} {text}" for number in range(50)])
    use(file, lambda store: store.append("s", log, seen=None))
    assert use(file, path_of) == log
    assert use(file, lambda store: store.search("takes less room"))
    assert use(file, lambda store: store.search("ess roo"))
    assert file.stat().st_size < len(text) * 50


async def test_a_store_in_memory_frees_its_database_closed_or_dropped(monkeypatch) -> None:
    """From Python 3.13 on a connection that is left open says so where it is collected."""
    opened: list[sqlite3.Connection] = []

    def connect() -> sqlite3.Connection:
        opened.append(sqlite_database.connect_to_memory())
        return opened[-1]

    monkeypatch.setattr(sqlite_module, "connect_to_memory", connect)
    closed, dropped = MemoryStore(), MemoryStore()
    await closed.count()
    await closed.close()
    await dropped.count()
    del dropped
    gc.collect()
    assert len(opened) == 2
    for database in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            database.execute("SELECT 1")
