"""Sessions copied from store to store: all of them, whole, and again where it was left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.stores.build import compact, lift, say, talk, title

from foldline.core.log.entries import Entry
from foldline.errors import InputError
from foldline.stores import MemoryStore, SqliteStore, Store, open_store
from foldline.stores.audit import audit_sessions
from foldline.stores.sqlite_database import SqliteDatabase, connect
from foldline.stores.tables import Tables
from foldline.stores.transfer import differences, transfer


@pytest.fixture(params=["sqlite to postgres", "postgres to sqlite", "sqlite to memory"])
async def pair(request, tmp_path):
    made = {
        "sqlite": lambda: SqliteStore(tmp_path / "s.db"),
        "postgres": lambda: open_store(request.getfixturevalue("postgres_url")),
        "memory": MemoryStore,
    }
    source, target = request.param.split(" to ")
    found = made[source](), made[target]()
    yield found
    for one in found:
        await one.close()


async def filled(store: Store) -> None:
    """Sessions with branches, folds, titles, odd times, a large message, and one before its first entry."""
    trunk = talk(None, *[f"m{n}" for n in range(700)])
    fold = compact(trunk[-1], trunk[650].id, leading=(trunk[0].id,))
    named = title(fold, "First")
    await store.append("tree", [*trunk, fold, named], seen=None)
    await store.move("tree", trunk[300].id, seen=named.id)
    side = [first := say(trunk[300], "side", at=77.5), say(first, "x" * 700_000, at=3.25)]
    await store.append("tree", [*side, title(side[-1], "Second")], seen=trunk[300].id)
    await store.move("tree", named.id, seen=title(side[-1], "Second").id)
    await store.append("tree", [lift(named, fold.id)], seen=named.id)
    await store.append("back\\slash 日本", [say(None, "one", at=5.0)], seen=None)
    root = talk(None, "first")
    await store.append("empty", root, seen=None)
    await store.move("empty", None, seen=root[0].id)
    await store.append("empty", talk(None, "other root"), seen=None)
    await store.move("empty", None, seen=talk(None, "other root")[0].id)


async def every(store: Store, session: str) -> list[Entry]:
    return [entry async for entry in store.all(session)]


async def test_everything_arrives(pair):
    source, target = pair
    await filled(source)
    copied = [one async for one in transfer(source, target)]
    assert [one.problem for one in copied] == ["", "", ""]
    assert await target.sessions() == await source.sessions()
    for info in await source.sessions():
        assert await every(target, info.id) == await every(source, info.id)
        assert await target.active(info.id) == await source.active(info.id)
    assert [line async for line in differences(source, target)] == await target.verify() == []
    again = [one async for one in transfer(source, target)]
    assert sum(one.entries for one in again) == 0


async def test_it_goes_on_where_it_was_left(pair):
    source, target = pair
    await filled(source)
    entries = await every(source, "tree")
    await target.append("tree", entries[:400], seen=None)  # as after a kill between two appends
    copied = {one.session: one async for one in transfer(source, target)}
    assert copied["tree"].entries == len(entries) - 400
    leaf = await source.leaf("tree")
    more = say(await source.entry("tree", leaf), "said since", at=9.0)
    await source.append("tree", [more], seen=leaf)
    copied = {one.session: one async for one in transfer(source, target)}
    assert {name: one.entries for name, one in copied.items() if one.entries} == {"tree": 1}
    assert [line async for line in differences(source, target)] == []


async def test_another_session_of_that_name_stays_as_it_is(pair):
    source, target = pair
    await source.append("a", talk(None, "one", "two"), seen=None)
    await source.append("b", talk(None, "one"), seen=None)
    await source.append("c", talk(None, "one", "two"), seen=None)
    await target.append("a", talk(None, "one", "other"), seen=None)
    await target.append("b", talk(None, "one", "two"), seen=None)
    before = [await every(target, name) for name in "ab"]
    problems = {one.session: one.problem async for one in transfer(source, target)}
    assert "entry 2 differs in the target" in problems["a"]
    assert "2 entries of it, the source 1" in problems["b"]
    assert problems["c"] == ""
    assert [await every(target, name) for name in "ab"] == before
    assert len([line async for line in differences(source, target)]) == 2


async def test_a_store_without_times_is_no_target():
    class Bare:
        async def sessions(self):
            return []

    with pytest.raises(InputError, match="cannot take copies"):
        [one async for one in transfer(MemoryStore(), Bare())]


@pytest.mark.parametrize("read", [0, 300])
async def test_a_session_that_is_purged_meanwhile_is_not_copied(pair, read):
    """Before it is read, or after some of its entries were copied."""
    source, target = pair
    for name in ("first", "second"):
        await source.append(name, talk(None, *[f"{name} {n}" for n in range(600)]), seen=None)

    class Purging:
        """The source, from which another process purges a session when some entries of it were read."""

        def __getattr__(self, name: str) -> Any:
            return getattr(source, name)

        async def all(self, session: str, *, after: int = 0) -> AsyncIterator[Entry]:
            if session == "first" and not read:
                await source.purge(session)
            count = 0
            async for entry in source.all(session, after=after):
                yield entry
                count += 1
                if session == "first" and count == read:
                    await source.purge(session)

    copied = [one.session async for one in transfer(Purging(), target)]
    assert copied == ["second"]
    assert await target.info("first") is None
    assert [line async for line in differences(source, target)] == await target.verify() == []


async def test_a_session_that_is_purged_during_an_audit_is_no_problem(tmp_path):
    other = SqliteStore(tmp_path / "s.db")
    for name in ("first", "second"):
        await other.append(name, talk(None, name), seen=None)
    connection = connect(tmp_path / "s.db", 1)
    connection.execute("UPDATE entries SET messages = 7")
    lines = audit_sessions(Tables(SqliteDatabase(connection)))
    found = next(lines)
    await other.purge("first" if "second" in found else "second")
    assert list(lines) == []
    connection.close()
    await other.close()
