"""What sessions cost and what folds saved: counted from logs of known sizes, listed, summed up."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import httpx2
import msgspec
import pytest
from tests.service.api.client import Client, chat, reply, user
from tests.service.served import run_gateway
from tests.service.web.plain_browser import Browser, browsing
from tests.support.live import session_on
from tests.support.talk import assistant, reminder, system
from tests.support.talk import user as asks

import foldline
from foldline import dialects
from foldline.config import ServeSettings, settings
from foldline.core.decide.price import Price
from foldline.core.log.log import said as entry_of
from foldline.core.log.messages import Usage
from foldline.service.feed import Feed, Webhooks
from foldline.service.jobs.drafts import DraftLimit
from foldline.service.metrics import Metrics
from foldline.service.tenants import Tenant
from foldline.service.web import savings_book
from foldline.service.web.list_page import ListedSession, ListQuery
from foldline.service.web.overview import DAYS, HEIGHT, bars
from foldline.service.web.savings import Sum, counted
from foldline.service.web.savings_book import SavingsBook
from foldline.stores import MemoryStore

USAGE = Usage(input=1_000, cache_read=8_000, cache_write=1_000, output=100)
PRICE = Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
PAID = (3.0 * 1_000 + 0.3 * 8_000 + 3.75 * 1_000) / 1e6  # for the input of such a reply
WORDS = "It works as it was asked for, and every word of it is needed. " * 30


def said(session, number, **more):
    answer = assistant(f"Answer {number}. {WORDS}", usage=USAGE, model="sonnet", **more)
    return session.append(asks(f"Question {number}. {WORDS}"), answer)


def listed(pages, **query):
    """The list when the figures of its sessions were read."""
    while "Reading the figures" in (page := pages.get("/web/", **query)):
        time.sleep(0.1)
    return page


def book_of(store):
    feed = Feed("default", store, Metrics(), Webhooks((), bool))
    tenant = Tenant("default", store, ServeSettings(), DraftLimit(store.key_values), feed)
    return SavingsBook(tenant, settings().catalogue())


async def figures(store, name="s", known=None):
    return await counted(
        store, await store.info(name), known, lambda model: PRICE if model == "sonnet" else None
    )


async def both(store, known, name="s"):
    """The figures as they go on from what was known, which are those of a whole count."""
    found = await figures(store, name, known)
    assert msgspec.to_builtins(found) == msgspec.to_builtins(await figures(store, name))
    return found


async def test_each_reply_behind_a_fold_saves_what_the_fold_took_out():
    store = MemoryStore()
    async with foldline.open(store, "s", window=100_000) as session:
        for number in range(12):
            await said(session, number)
        before = await figures(store)
        assert (before.begins[:11], before.model) == ("Question 0.", "sonnet")
        assert before.at.size == USAGE.total
        assert (before.whole.replies, before.whole.saved, before.whole.gain) == (12, 0, 0)
        assert before.whole.spent == pytest.approx(12 * (PAID + 15.0 * 100 / 1e6))
        receipt = await session.compact()
        less = receipt.tokens_before - receipt.tokens_after
        assert less > 100
        folded = await both(store, before)
        assert (folded.at.size, folded.whole.saved, folded.at.folds) == (receipt.tokens_after, 0, 1)
        await said(session, 12)
        await said(session, 13)
        found = await both(store, folded)
        assert found.whole.saved == 2 * less
        assert found.whole.gain == pytest.approx(2 * less * PAID / 10_000)
        assert list(found.days) == [time.strftime("%Y-%m-%d", time.gmtime())]
        await session.undo()
        await said(session, 14)
        undone = await both(store, found)
        assert (undone.whole.saved, undone.at.folds) == (2 * less, 0)
        await session.redo()
        await said(session, 15)
        redone = await both(store, undone)
        assert (redone.whole.saved, redone.at.folds) == (3 * less, 1)


async def test_branches_count_with_what_holds_on_them_and_a_fork_with_what_is_its_own():
    store = MemoryStore()
    async with foldline.open(store, "s", window=100_000) as session:
        for number in range(12):
            await said(session, number)
        left = session.leaf
        await session.compact()
        await said(session, 12)
        folded = await figures(store)
        await session.branch(left)  # where nothing is folded
        back = await both(store, folded)
        assert back.at.size == USAGE.total
        await said(session, 13)
        found = await both(store, back)
        assert found.whole.saved == folded.whole.saved
        assert found.whole.replies == 14
        await session.fork("copy")
    async with foldline.open(store, "copy", window=100_000) as copy:
        assert (await figures(store, "copy")).whole.replies == 0
        await said(copy, 14)
        assert (await figures(store, "copy")).whole.replies == 1


async def test_what_is_not_known_is_counted_apart():
    store = MemoryStore()
    async with foldline.open(store, "s", window=100_000) as session:
        for number in range(12):
            await session.append(asks(f"Question {number}. {WORDS}"), assistant(f"Answer {number}. {WORDS}"))
        await session.compact()
        await session.append(asks("And now?"), assistant("Done."))
    whole = (await figures(store)).whole
    assert (whole.replies, whole.unpriced, whole.spent, whole.gain) == (13, 13, None, None)
    assert whole.unpriced_saved == whole.saved > 0


def test_the_days_are_drawn_by_what_they_saved():
    now = 1_790_000_000.0
    today, before = (time.strftime("%Y-%m-%d", time.gmtime(now - n * 86_400)) for n in (0, 3))
    drawn = bars({today: Sum(saved=50), before: Sum(saved=100), "": Sum(saved=999)}, now)
    assert len(drawn) == DAYS
    assert [(one.day, one.height) for one in drawn if one.sum.saved] == [
        (before, HEIGHT),
        (today, HEIGHT / 2),
    ]
    assert bars({}, now)[-1].height == 0


def test_a_session_of_the_gateway_has_its_agent_model_size_and_savings():
    with run_gateway(lambda asked: f"Answer {asked.index}. {WORDS}", window=12_000) as (url, _):
        messages, headers = [], {"user-agent": "claude-cli/2.1 (x)", "authorization": "Bearer key"}
        with httpx2.Client(base_url=url, timeout=60, headers=headers) as http:
            for number in range(20):
                messages.append(user(f"Question {number}. {WORDS}"))
                body = {"model": "gpt-5.2", "messages": messages}
                found = http.post("/v1/chat/completions", json=body).raise_for_status().json()
                messages.append(found["choices"][0]["message"])
            made = Browser(Client(url))
            page = listed(made)
            row = re.search(r"<tbody>(.*?)</tbody>", page, re.DOTALL)[1]
            assert "<td>claude-code</td>" in row
            assert 'title="gpt-5.2">gpt-5.2</td>' in row
            assert "of 12k" in row
            saved = re.search(r'data-unit="saved">([\d.]+k?)', row)[1]
            assert saved != "0"
            overview = made.get("/web/overview")
            assert 'href="/web/?agent=claude-code">claude-code</a>' in overview
            assert f"<dd>{saved}</dd>" in overview
            assert "1 session" not in overview  # all of them were read
            made.http.close()


def test_the_list_is_sorted_filtered_and_says_what_is_not_known(browser):
    browser.client.begin("small", title="A small one", messages=[user("Hello."), reply("Hello.")])
    browser.client.begin("large", title="A large one", messages=chat(10))
    raw = Path("examples/research.jsonl").read_bytes()
    imported = browser.client.send("POST", "/imports", content=raw).json()["session"]

    def names(**query):
        page = listed(browser, **query)
        return re.findall(r'<a id="s-([^"]+)"', page), page

    found, page = names()
    assert set(found) == {"small", "large", imported}
    assert 'aria-sort="descending"><a id="by-updated"' in page
    assert "<option>pi</option>" in page
    assert names(sort="messages")[0] == [imported, "large", "small"]
    assert names(sort="-messages")[0] == ["small", "large", imported]
    assert names(sort="spent")[0][0] == imported  # the only known price
    assert names(sort="nonsense")[0] == found
    assert names(f="SMALL one")[0] == ["small"]
    assert names(agent="pi")[0] == [imported]
    assert "No session matches" in names(f="zebra")[1]
    assert browser.again(names(f="small")[1], "list").status_code == 204
    browser.client.say("small", user("More."))
    assert browser.again(page, "list").status_code == 200


def test_what_was_read_is_kept_beside_the_log_and_goes_with_it(tmp_path):
    store = f"sqlite:///{tmp_path / 's.db'}"
    with browsing(store=store) as browser:
        browser.client.begin("one", messages=chat(5))
        browser.client.begin("two", messages=chat(5))
        browser.get("/web/overview")
        browser.client.send("DELETE", "/sessions/two")
    again = foldline.stores.find_store(store)

    async def kept():
        try:
            return set(await again.key_values.values("savings"))
        finally:
            await again.close()

    assert asyncio.run(kept()) == {"one"}


async def test_a_session_is_called_by_its_title_else_its_first_words_else_its_id():
    store = MemoryStore()
    book = book_of(store)

    async def called():
        return (await book.names(await store.sessions()))["s"]

    session = session_on(store)
    await session.append(system("Be brief."))
    assert await called() == "s"
    await session.append(reminder(), asks("Rename the table\nusers to members."), assistant("Done."))
    assert await called() == "Rename the table users to members."
    await session.note("title", title="A title")
    assert await called() == "A title"


def test_an_absurd_time_in_one_session_leaves_every_page_and_the_figures_of_the_others(tmp_path):
    store = f"sqlite:///{tmp_path / 's.db'}"

    async def begin():
        opened = foldline.stores.find_store(store)
        codec = dialects.get("openai-chat")
        for number, at in enumerate((1e18, -1e18, 253_402_300_800.0)):
            entry = entry_of(codec.decode(asks("Hello.")), parent=None, at=at)
            reply_ = entry_of(
                codec.decode(assistant("Hello.")), parent=entry.id, said_key=entry.said_key, at=at
            )
            await opened.append(f"odd{number}", [entry, reply_], seen=None)
        await opened.close()

    asyncio.run(begin())
    with browsing(store=store) as pages:
        pages.client.begin("sound", messages=[user("Look at the sea."), reply("Yes.")])
        page = listed(pages)
        assert "Look at the sea." in page
        assert "not read yet" not in pages.get("/web/overview")
        for name in ("odd0", "odd1", "odd2"):
            for path in ("", "/print", "/download", "/download?format=pi&save=1", "/panel/tokens"):
                pages.checked(pages.http.get(f"/web/s/{name}{path}"), 200)


async def test_figures_that_cannot_be_made_leave_those_of_the_others(monkeypatch):
    store = MemoryStore()
    for name in ("broken", "sound"):
        await session_on(store, name=name).append(asks("Look at the sea."), assistant("Yes."))
    real = savings_book.counted

    async def breaks(store, info, *given):
        if info.id == "broken":
            raise ZeroDivisionError
        return await real(store, info, *given)

    monkeypatch.setattr(savings_book, "counted", breaks)
    found = await book_of(store).look(await store.sessions())
    assert found["sound"].begins == "Look at the sea."
    assert found["broken"].at.size is None


async def test_of_a_session_that_is_deleted_nothing_is_kept(monkeypatch):
    store = MemoryStore()
    for name in ("left", "deleted", "meanwhile"):
        await session_on(store, name=name).append(asks("My secret."), assistant("Yes.", model=name))
    book = book_of(store)
    real = savings_book.counted

    async def slow(store, info, *given):
        found = await real(store, info, *given)
        if info.id == "meanwhile":
            await store.purge(info.id)
        return found

    monkeypatch.setattr(savings_book, "counted", slow)
    await book.look(await store.sessions())
    assert set(await store.key_values.values("savings")) == {"left", "deleted"}
    assert set(book.models) == {"left", "deleted"}
    await store.purge("deleted")
    await book.look(await store.sessions())
    assert book.models == ["left"]


def test_a_fold_that_was_undone_does_not_hold(browser):
    browser.client.begin("one", messages=chat(20))
    browser.client.post("/sessions/one/compact")
    assert '<span class="badge fold">1</span>' in listed(browser)
    assert "<dt>Folds in effect</dt><dd>1</dd>" in browser.get("/web/overview")
    browser.client.post("/sessions/one/undo")
    assert "badge fold" not in listed(browser)
    assert "<dt>Folds in effect</dt><dd>0</dd>" in browser.get("/web/overview")


async def test_a_session_is_listed_under_each_model_that_answered_in_it():
    store = MemoryStore()
    session = session_on(store)
    for model in ("earlier", "now"):
        await session.append(asks("Look at the sea."), assistant("Yes.", model=f"openai:{model}@here"))
    book, infos = book_of(store), await store.sessions()
    found = (await book.look(infos))["s"]
    assert sorted(book.models) == ["openai:earlier@here", "openai:now@here"]
    row = ListedSession(infos[0], "s", known=True, savings=found, window=None)
    shown = [bool(ListQuery(model=model).rows([row])) for model in ("earlier", "now", "other", "")]
    assert (row.model, shown) == ("now", [True, True, False, True])


async def test_a_sum_is_made_once_and_anew_where_the_session_has_grown():
    store = MemoryStore()
    session = session_on(store)
    await session.append(asks("Look at the sea."), assistant("Yes."))
    book = book_of(store)
    first = (await book.look(await store.sessions()))["s"]
    assert first.whole is first.whole  # a sorted list asks for that of every session
    await session.append(asks("And now?"), assistant("Still."))
    grown = (await book.look(await store.sessions()))["s"]
    assert (first.whole.replies, grown.whole.replies) == (1, 2)


async def test_two_first_looks_at_once_share_what_is_read(monkeypatch):
    store = MemoryStore()
    await session_on(store).append(asks("Look at the sea."), assistant("Yes.", model="now"))
    stored = store.key_values.values

    async def slow(space):
        found = await stored(space)
        await asyncio.sleep(0)  # as a database takes
        return found

    monkeypatch.setattr(store.key_values, "values", slow)
    book, infos = book_of(store), await store.sessions()
    found = await asyncio.gather(book.look(infos), book.look(infos))
    assert [set(one) for one in found] == [{"s"}, {"s"}]
    assert book.models == ["now"]
