"""Sessions that are open: closed when nobody uses them, and a new one under an old id is another one."""

from __future__ import annotations

from tests.support.live import session_on

from foldline.service.open_sessions import OpenSessions
from foldline.stores import MemoryStore


async def test_who_used_a_deleted_session_does_not_close_the_one_begun_anew():
    store = MemoryStore()
    opened = OpenSessions(store, most=0)

    def opener(name):
        return session_on(store, name=name)

    old = opened.take("s", opener)
    opened.forget("s")
    new = opened.take("s", opener)
    opened.release(old)
    assert opened.take("s", opener) is new
    for _ in range(2):
        opened.release(new)
    assert len(opened) == 0
    await opened.close(1.0)
