"""What a session without a title is called."""

from __future__ import annotations

from tests.support.live import session_on
from tests.support.talk import assistant, reminder, system, user

from foldline.config import ServeSettings, settings
from foldline.service.feed import Feed
from foldline.service.jobs.drafts import DraftLimit
from foldline.service.metrics import Metrics
from foldline.service.tenants import Tenant
from foldline.service.web.savings import SavingsBook
from foldline.service.webhooks import Webhooks
from foldline.stores import MemoryStore


async def test_a_session_is_called_by_its_title_else_its_first_words_else_its_id():
    store = MemoryStore()
    values = store.key_values
    feed = Feed("default", store, Metrics(), Webhooks((), bool))
    tenant = Tenant("default", store, ServeSettings(), DraftLimit(values), feed)
    book = SavingsBook(tenant, settings().catalogue())

    async def called():
        return (await book.names(await store.sessions()))["s"]

    session = session_on(store)
    await session.append(system("Be brief."))
    assert await called() == "s"
    await session.append(reminder(), user("Rename the table\nusers to members."), assistant("Done."))
    assert await called() == "Rename the table users to members."
    await session.note("title", title="A title")
    assert await called() == "A title"
