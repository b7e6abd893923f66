"""What every store must do with small values that expire; each is opened twice, as by two processes."""

from __future__ import annotations

import asyncio

import pytest
from tests.stores.build import talk

from foldline.errors import StoreError
from foldline.stores import MemoryStore, SqliteStore, open_store
from foldline.stores.key_values import LARGEST


def opened(kind, request):
    if kind == "memory":
        one = MemoryStore()
        return one, one
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url")
        return open_store(url), open_store(url)
    file = request.getfixturevalue("tmp_path") / "s.db"
    return SqliteStore(file), SqliteStore(file)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def stores(request):
    found = opened(request.param, request)
    yield found
    for one in found:
        await one.close()


async def test_the_first_who_adds_a_key_has_it(stores):
    one, two = (store.key_values for store in stores)
    assert await two.get("space", "k") is None
    assert await one.add("space", "k", b"first", seconds=60) is None
    assert await two.add("space", "k", b"second", seconds=60) == b"first"
    assert await two.get("space", "k") == b"first"
    assert await two.get("other", "k") is None
    assert await two.add("other", "k", b"third", seconds=60) is None


async def test_a_value_is_replaced_and_deleted_by_who_knows_it(stores):
    one, two = (store.key_values for store in stores)
    await one.add("space", "k", b"a", seconds=60)
    assert await two.replace("space", "k", b"a", b"b", seconds=60)
    assert await two.replace("space", "k", b"a", b"b", seconds=60)  # again: its answer was lost
    assert not await one.replace("space", "k", b"a", b"c", seconds=60)
    assert not await one.delete("space", "k", b"a")
    assert await one.get("space", "k") == b"b"
    assert await one.delete("space", "k", b"b")
    assert not await one.delete("space", "k")
    assert not await one.replace("space", "k", b"b", b"c", seconds=60)
    assert await two.get("space", "k") is None


async def test_the_keys_of_a_space_are_told_while_they_have_a_value(stores):
    one, two = (store.key_values for store in stores)
    for key in ("a", "b", "gone"):
        await one.add("space", key, b"x", seconds=60)
    await one.add("space", "old", b"x", seconds=-1)
    await one.add("other", "c", b"x", seconds=60)
    await one.delete("space", "gone")
    assert sorted(await two.keys("space")) == ["a", "b"]
    assert await two.keys("nothing") == []


async def test_of_many_at_once_one_adds_and_one_replaces(stores):
    values = [store.key_values for store in stores] * 8
    found = await asyncio.gather(
        *(one.add("space", "k", b"%d" % n, seconds=60) for n, one in enumerate(values))
    )
    assert found.count(None) == 1
    (winner,) = set(found) - {None}
    swapped = await asyncio.gather(
        *(one.replace("space", "k", winner, b"new %d" % n, seconds=60) for n, one in enumerate(values))
    )
    assert swapped.count(True) == 1
    assert await values[0].get("space", "k") == b"new %d" % swapped.index(True)


async def test_what_has_expired_is_free_again(stores):
    one, two = (store.key_values for store in stores)
    await one.add("space", "k", b"a", seconds=0)
    await one.add("space", "goes", b"a", seconds=60)
    assert await one.replace("space", "goes", b"a", b"b", seconds=0)
    await one.add("space", "stays", b"a", seconds=60)
    assert await two.get("space", "k") is None
    assert await two.get("space", "goes") is None
    assert not await two.replace("space", "k", b"a", b"b", seconds=60)
    assert not await two.delete("space", "k")
    assert await two.add("space", "k", b"c", seconds=60) is None
    assert await two.get("space", "stays") == b"a"


async def test_a_space_keeps_what_was_written_last(stores):
    one, two = (store.key_values for store in stores)
    for number in range(6):
        await one.add("space", str(number), b"a", seconds=60)
    await one.add("other", "k", b"a", seconds=60)
    await two.replace("space", "0", b"a", b"b", seconds=60)
    await two.trim("space", 3)
    left = [number for number in range(6) if await one.get("space", str(number)) is not None]
    assert left == [0, 4, 5]
    assert await one.get("other", "k") == b"a"


async def test_what_belongs_to_a_session_goes_with_it(stores):
    one, two = stores
    await one.append("s", talk(None, "one"), seen=None)
    await one.key_values.add("space", "of it", b"a", seconds=60, session="s")
    await one.key_values.replace("space", "of it", b"a", b"b", seconds=60)
    await one.key_values.add("space", "of another", b"a", seconds=60, session="t")
    await one.key_values.add("space", "of none", b"a", seconds=60)
    await two.purge("s")
    names = ["of it", "of another", "of none"]
    assert [await one.key_values.get("space", name) for name in names] == [None, b"a", b"a"]


async def test_a_value_has_a_bounded_size(stores):
    values = stores[0].key_values
    assert await values.add("space", "k", bytes(LARGEST), seconds=60) is None
    with pytest.raises(StoreError, match="too large"):
        await values.add("space", "more", bytes(LARGEST + 1), seconds=60)
    with pytest.raises(StoreError, match="too large"):
        await values.replace("space", "k", bytes(LARGEST), bytes(LARGEST + 1), seconds=60)


async def test_a_closed_store_has_no_values(tmp_path):
    store = SqliteStore(tmp_path / "s.db")
    await store.key_values.add("space", "k", b"a", seconds=60)
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.key_values.get("space", "k")


async def test_values_of_sessions_are_put_together_over_what_is_there_and_read_together(stores):
    one, two = (store.key_values for store in stores)
    await stores[0].append("a", talk(None, "Hello."), seen=None)
    await one.put_all("space", {"a": b"1", "b": b"2"}, seconds=60)
    await two.put_all("space", {"a": b"3"}, seconds=60)
    await one.put_all("other", {"a": b"4"}, seconds=60)
    await one.put_all("space", {}, seconds=60)
    assert await one.values("space") == await two.values("space") == {"a": b"3", "b": b"2"}
    with pytest.raises(StoreError, match="too large"):
        await one.put_all("space", {"c": b"5", "d": b"x" * (LARGEST + 1)}, seconds=60)
    await stores[1].purge("a")
    assert await one.values("space") == {"b": b"2"}
    assert await one.values("other") == {}
