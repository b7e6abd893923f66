"""A copy of a store in use is whole or absent, and a damaged boundary does not stop a session."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.stores.build import compact, imported, say, talk

import foldline
from foldline.core.log.entries import Entry
from foldline.errors import InputError, StoreCorrupt
from foldline.stores import MemoryStore, SqliteStore
from foldline.stores.transfer import back_up

ROOT = Path(__file__).parents[2]


def paths(file: Path, session: str = "s") -> list[Entry]:
    async def run() -> list[Entry]:
        store = SqliteStore(file)
        try:
            assert await store.verify() == []
            return [entry async for entry in store.path(session)]
        finally:
            await store.close()

    return asyncio.run(run())


def writer(file: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.stores.writer", f"sqlite:///{file}", "s", "w", "100000"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_a_store_in_use_is_backed_up(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    with writer(file) as running:
        assert running.stdout is not None
        acknowledged = [running.stdout.readline().strip() for _ in range(40)]
        for number in range(3):
            back_up(SqliteStore(file), tmp_path / f"copy{number}.db")
        running.kill()
        running.stdout.read()
    for number in range(3):
        copied = [entry.id for entry in paths(tmp_path / f"copy{number}.db")]
        assert set(acknowledged) <= set(copied)
        assert len(copied) % 2 == 0


def test_a_store_is_backed_up_where_a_file_can_have_one_name_alone(tmp_path: Path, monkeypatch) -> None:
    file, copy = tmp_path / "s.db", tmp_path / "copy.db"
    asyncio.run(fill(SqliteStore(file), talk(None, "one", "two")))

    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", link)
    back_up(SqliteStore(file), copy)
    assert [entry.id for entry in paths(copy)] == [entry.id for entry in paths(file)]
    with pytest.raises(InputError, match="already exists"):
        back_up(SqliteStore(file), copy)
    assert sorted(one.name for one in tmp_path.iterdir() if one.name.startswith(".")) == []


def test_a_backup_that_is_killed_leaves_no_half_file(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    store = SqliteStore(file)
    asyncio.run(fill(store, talk(None, *["x" * 50_000 for _ in range(200)])))
    script = (
        "import sys; from pathlib import Path; import foldline.stores.transfer as b; from time import sleep;"
        "from foldline.stores import SqliteStore; b._sync = lambda path: (print('copied', flush=True), sleep(60));"
        "b.back_up(SqliteStore(sys.argv[1]), Path(sys.argv[2]))"
    )
    target = tmp_path / "copy.db"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(file), str(target)], cwd=ROOT, stdout=subprocess.PIPE
    ) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"copied\n"  # and not named yet
        one.kill()
    assert not target.exists()
    back_up(SqliteStore(file), target)
    assert len(paths(target)) == 200


async def fill(store: SqliteStore, log: list) -> None:
    await store.append("s", log, seen=None)
    await store.close()


def test_a_backup_never_replaces_a_file(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    asyncio.run(fill(SqliteStore(file), talk(None, "one")))
    with pytest.raises(InputError, match="already exists"):
        back_up(SqliteStore(file), file)
    with pytest.raises(InputError, match="pg_dump"):
        back_up(MemoryStore(), tmp_path / "c.db")
    with pytest.raises(InputError, match="no store"):
        back_up(SqliteStore(tmp_path / "none.db"), tmp_path / "c.db")
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"]


def broken(file: Path, where: str) -> None:
    database = sqlite3.connect(file)
    database.execute(f"UPDATE entries SET payload = x'00' WHERE {where}")
    database.commit()
    database.close()


@pytest.mark.parametrize("damaged", [1, 2])
def test_a_damaged_boundary_is_passed_over_with_a_warning(tmp_path: Path, caplog, damaged: int) -> None:
    file = tmp_path / "s.db"
    log = talk(None, *[f"m{n}" for n in range(6)])
    first = compact(log[-1], log[2].id)
    more = say(first, "more", key=log[-1].said_key)
    second = compact(more, log[4].id)
    asyncio.run(fill(SqliteStore(file), [*log, first, more, second]))
    broken(file, "kind = 'compacted'" if damaged == 2 else f"id = '{second.id}'")

    async def run() -> list[str]:
        async with foldline.open(f"sqlite:///{file}", "s", window=100_000) as session:
            await session.append({"role": "user", "content": "go on"})
            return [message["content"] for message in await session.context()]

    with caplog.at_level(logging.WARNING, logger="foldline"):
        view = asyncio.run(run())
    assert second.id in caplog.text
    assert "session s" in caplog.text
    assert "verify" in caplog.text
    assert view[-2:] == ["more", "go on"]
    assert ("m0" in view) == (damaged == 2)


async def test_a_damaged_boundary_is_passed_over_by_a_search_and_purged(tmp_path: Path) -> None:
    store, log = SqliteStore(tmp_path / "s.db"), talk(None, "the harbour lamp")
    await store.append("stays", log, seen=None)
    await store.append("s", [*log, imported(log[-1], "quayword")], seen=None)
    broken(tmp_path / "s.db", "kind = 'compacted'")
    assert {hit.session for hit in await store.search("lamp")} == {"s", "stays"}
    assert await store.search("arbou quayw") == []
    await store.purge("s")
    assert [hit.session for hit in await store.search("lamp")] == ["stays"]
    assert await store.verify() == []
    await store.close()


@pytest.mark.parametrize("indexed_before", [False, True])
async def test_a_damaged_message_is_passed_over_by_a_search(tmp_path: Path, indexed_before: bool) -> None:
    store = SqliteStore(tmp_path / "s.db")
    await store.append("stays", talk(None, "the harbour lamp"), seen=None)
    await store.append("s", talk(None, "a lamp", "the lamp of the quay"), seen=None)
    if indexed_before:
        assert len(await store.search("lamp")) == 3
    broken(tmp_path / "s.db", "seq = 2")
    for query in ("lamp", "amp", "lamp zebra"):
        assert {(hit.session, hit.seq) for hit in await store.search(query)} == {("s", 1), ("stays", 1)}
    assert await store.search("quay") == []
    await store.close()


async def test_a_damaged_note_is_passed_over(tmp_path: Path) -> None:
    async with foldline.open(f"sqlite:///{tmp_path / 's.db'}", "s") as session:
        await session.append({"role": "user", "content": "Hello."})
        await session.note("title", title="T")
    broken(tmp_path / "s.db", "kind = 'noted'")
    async with foldline.open(f"sqlite:///{tmp_path / 's.db'}", "s") as session:
        assert await session.context() == await session.history() == [{"role": "user", "content": "Hello."}]


def test_a_damaged_message_is_still_an_error(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    asyncio.run(fill(SqliteStore(file), talk(None, "one", "two", "three")))
    broken(file, "seq = 2")
    with pytest.raises(StoreCorrupt, match=r"session s, entry 2: .*foldline verify --session s`"):
        asyncio.run(read(file))


async def read(file: Path) -> None:
    async with foldline.open(f"sqlite:///{file}", "s") as session:
        await session.context()
