"""The timeline of a session: how its view grew and was folded, with undos, without holding others up."""

from __future__ import annotations

import threading

import pytest
from tests.service.api.client import api, chat

from foldline.core.log.entries import Compacted, Lifted
from foldline.core.log.log import chained
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.service.api import boundaries
from foldline.stores import SqliteStore


@pytest.fixture
def built(monkeypatch):
    """The length of each path that a view was built of, and the threads that did it."""
    found = []

    def build(path, *, counter):
        found.append((len(path), threading.current_thread()))
        return ViewState(path, counter=counter)

    monkeypatch.setattr(boundaries, "ViewState", build)
    return found


def lifted(parent, target, count):
    """Undos and redos of a boundary in turn, behind an entry."""
    for number in range(count):
        one = chained(Lifted("", None, target, number % 2 == 0, at=float(number)), parent)
        parent = one.id
        yield one


async def test_undos_and_redos_are_told_without_counting_the_view_again(tmp_path, built):
    with api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _):
        client.begin("one", messages=chat(1_000))
        client.post("/sessions/one/compact")
        client.post("/sessions/one/undo")
        whole = client.get("/sessions/one/timeline").json()["points"][-1]["tokens"]
        assert whole == client.get("/sessions/one/view").json()["tokens"]
        client.post("/sessions/one/redo")
        store = SqliteStore(tmp_path / "s.db")
        path = [entry async for entry in store.path("one")]
        fold = next(entry for entry in path if isinstance(entry, Compacted))
        for count in (1_000, 1):
            path += lifted(path[-1].id, fold.id, count)
            await store.append("one", path[-count:], seen=path[-count - 1].id)
            last = client.get("/sessions/one/timeline").json()["points"][-1]
            assert last["tokens"] == (fold.receipt.tokens_after if count == 1_000 else whole)
            assert last["tokens"] == client.get("/sessions/one/view").json()["tokens"]
        await store.close()
    assert not built


async def test_what_no_receipt_tells_is_counted_in_a_thread_and_for_the_newest_alone(tmp_path, built):
    with api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _):
        client.begin("one", messages=chat(100))
        store = SqliteStore(tmp_path / "s.db")
        path = [entry async for entry in store.path("one")]
        path += lifted(path[-1].id, path[-1].id, 30)
        await store.append("one", path[-30:], seen=path[-31].id)
        await store.close()
        points = client.get("/sessions/one/timeline").json()["points"]
    assert points[-1]["tokens"] == ViewState(path, counter=OFFLINE).tokens
    assert [length for length, _ in built] == list(range(len(path) - 19, len(path) + 1))
    assert all(thread.name.startswith("asyncio") for _, thread in built)
