"""Sessions that are open: closed when nobody uses them, and a new one under an old id is another one."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from tests.support.live import Gate, context_at, session_on
from tests.support.waiting import until

from foldline.service.at_hand import RequestAtHand, begin
from foldline.service.feed import Feed, Webhooks
from foldline.service.metrics import Metrics
from foldline.service.open_sessions import OpenSessions
from foldline.stores import MemoryStore


async def test_who_used_a_deleted_session_does_not_close_the_one_begun_anew():
    store = MemoryStore()
    opened = OpenSessions(store, most=0)

    def opener(name):
        return session_on(store, name=name)

    with ExitStack() as old:
        old.enter_context(opened.use("s", opener))
        opened.forget("s")
        with opened.use("s", opener) as new:
            old.close()
            with opened.use("s", opener) as again:
                assert again is new
    assert len(opened) == 0
    await opened.close(1.0)


async def test_what_is_folded_when_an_idle_session_is_closed_is_nobodys_in_the_audit_log():
    store, gate = MemoryStore(), Gate()
    feed = Feed("t", store, Metrics(), Webhooks([], lambda _: False))
    opened = OpenSessions(store, most=1)

    def opener(name):
        session = session_on(store, gate, name=name)
        feed.watch(session)
        return session

    with opened.use("old", opener) as session:
        await context_at(session, 5_950)  # above the soft trigger
        await asyncio.wait_for(gate.begun.wait(), 60)
    begin(RequestAtHand("r-2", token="another"))
    with opened.use("new", opener):
        pass
    gate.go.set()
    await until(lambda: store.audit_log.page(9))
    (line,) = await store.audit_log.page(9)
    assert (line.action, line.session, line.token, line.request) == ("compacted", "old", "", "")
    await opened.close(60.0)
