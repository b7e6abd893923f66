"""Deletion by age: of what nobody has used for long, and of nothing that is used again meanwhile."""

from __future__ import annotations

import time

from tests.support.live import prompt, session_on

from foldline.config import ServeSettings
from foldline.service.api.administration import delete_idle
from foldline.service.tenants import Tenants


async def test_a_session_that_is_used_again_while_older_ones_are_deleted_stays(tmp_path):
    tenants = Tenants(ServeSettings(), f"sqlite:///{tmp_path / 's.db'}")
    (tenant,) = tenants.all()
    for name in ("one", "two"):
        session = session_on(tenant.store, name=name)
        await session.append(prompt(0, 1))
        await session.close()
    deleted = []

    async def tell(action, name, **_):
        deleted.append((action, name))
        if len(deleted) == 1:
            other = session_on(tenant.store, name="two" if name == "one" else "one")
            await other.append(prompt(1, 1))
            await other.close()

    tenant.feed.tell = tell
    await delete_idle(tenant, time.time())
    assert len(deleted) == 1
    assert await tenant.store.count() == 1
    await tenants.finish(60.0)
    await tenants.close()
