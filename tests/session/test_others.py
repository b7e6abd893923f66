"""What other tasks and writers do to a session while one waits: it is seen, once, and nobody is blamed for it."""

import asyncio
import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from pydantic import TypeAdapter
from tests.support.live import WINDOW, Events, Gate, answer, grow_to, prompt, run_turns, session_on
from tests.support.waiting import until as settled

import foldline
from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Compacted
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.window import Window
from foldline.errors import OverflowRemains, ProviderError
from foldline.stores import MemoryStore
from foldline.testing import Scripted, serve

WIDE = Window(context=100_000, output=8_000)


def too_long(asked=12_000) -> ProviderError:
    sizes = Overflow(limit=None, asked=asked)
    return ProviderError("prompt is too long", kind="overflow", status=400, overflow=sizes)


async def compactions(store):
    return len([entry async for entry in store.path("s") if isinstance(entry, Compacted)])


# ---- two tasks, one view


@pytest.mark.parametrize("together", [True, False])
async def test_two_tasks_that_overflow_on_one_view_get_it_mended_once(store, together):
    session = session_on(store, window=WIDE)
    await run_turns(session, 10)
    await session.append(prompt(10))
    sent, first_done = asyncio.Barrier(2), asyncio.Event()

    async def ask(waits):
        before = await session.context()
        await sent.wait()
        if waits and not together:
            await first_done.wait()
        after = await session.overflowed(too_long(), view=before)
        first_done.set()
        assert after != before
        return after

    one, other = await asyncio.wait_for(asyncio.gather(ask(False), ask(True)), 60)
    assert one == other
    assert await compactions(store) == 1
    assert await session.context() == one
    with pytest.raises(OverflowRemains):
        await session.overflowed(too_long())


async def test_a_task_whose_mended_view_overflows_again_is_told_so(store):
    session = session_on(store, window=WIDE)
    await run_turns(session, 10)
    await session.append(prompt(10))

    async def ask():
        await session.context()
        await session.overflowed(too_long())
        with pytest.raises(OverflowRemains):
            await session.overflowed(too_long())

    await asyncio.create_task(ask())


async def test_a_task_mends_what_another_task_asked(store):
    """As a server does: one task asks, its errors are handled in others."""
    session = session_on(store, window=WIDE)
    await run_turns(session, 10)
    await session.append(prompt(10))
    stale = await asyncio.create_task(session.context())
    mended = await asyncio.create_task(session.overflowed(too_long(), view=stale))
    assert mended != stale
    assert await asyncio.create_task(session.overflowed(too_long(), view=stale)) == mended
    assert await session.context() == mended
    assert await compactions(store) == 1
    with pytest.raises(OverflowRemains):
        await asyncio.create_task(session.overflowed(too_long(), view=mended))


async def test_without_a_view_the_newest_that_was_handed_out_is_meant(store):
    session = session_on(store, window=WIDE)
    await run_turns(session, 10)
    await session.append(prompt(10))
    stale = await session.context()
    mended = await asyncio.create_task(session.overflowed(too_long()))
    assert mended != stale
    with pytest.raises(OverflowRemains):
        await session.overflowed(too_long(), view=list(mended))
    assert await session.overflowed(too_long(), view=stale) == mended


async def test_a_reply_asked_for_with_a_stale_view_is_mended_by_the_newer_one(store):
    session = session_on(store, window=WIDE)
    heard = Events(session)
    await run_turns(session, 10)
    await session.append(prompt(10))
    stale = await session.context()
    await session.compact()
    newer = await session.context()
    said = {"message": {"role": "assistant", "content": "First"}, "finish_reason": "length"}
    cut = {"choices": [said], "usage": {"prompt_tokens": 9_900, "completion_tokens": 100}}
    assert await session.overflowed(cut, view=stale, max_tokens=2_000) == newer
    assert [event.remedy for event in heard.named("overflow")] == ["newer_view"]


@pytest.mark.parametrize("url", ["memory://", "sqlite"])
@pytest.mark.parametrize("who", ["a thread", "by hand"])
def test_two_threads_with_one_stale_view_each_both_get_the_newer_one(url, who, tmp_path):
    url = url if url == "memory://" else f"sqlite:///{tmp_path / 's.db'}"
    with foldline.open_sync(url, "s", window=WIDE) as session, ThreadPoolExecutor(2) as threads:
        for number in range(10):
            session.append(prompt(number), answer(number))
        session.append(prompt(10))
        stale = [threads.submit(session.context).result() for _ in range(2)]
        if who == "by hand":
            session.compact()
        mended = [
            threads.submit(session.overflowed, too_long(), view=view).result(timeout=120) for view in stale
        ]
        assert mended[0] == mended[1] == session.context() != stale[0]
        assert session.stats().summaries == 1
        with pytest.raises(OverflowRemains):  # that view was asked with as well, and is no stale one
            session.overflowed(too_long(), view=mended[1])


async def test_the_messages_to_send_are_a_plain_list_to_everybody_else(store):
    session = session_on(store)
    await session.append(prompt(0), answer(0), prompt(1))
    messages = await session.context()
    assert messages == [prompt(0), answer(0), prompt(1)]
    assert isinstance(messages, list)
    assert json.loads(json.dumps(messages)) == messages == msgspec.json.decode(msgspec.json.encode(messages))
    assert pickle.loads(pickle.dumps(messages)).token == messages.token == copy.copy(messages).token == ()
    assert {type(other) for other in (messages[:1], [*messages], list(messages), messages.copy())} == {list}
    assert TypeAdapter(list[dict]).validate_python(messages, strict=True) == messages


# ---- other writers


async def test_context_shows_what_another_writer_said(store):
    one, other = session_on(store), session_on(store)
    await one.append(prompt(0))
    assert len(await one.context()) == 1
    assert len(await other.context()) == 1
    await other.append(answer(0), prompt(1))
    assert (await one.context())[-1] == prompt(1)
    await one.append(answer(1))
    assert (await other.context())[-1] == answer(1)
    await one.rewind()
    assert await other.context() == [prompt(0), answer(0)]


async def test_what_another_writer_said_is_looked_at_and_folded(store):
    one, other = session_on(store), session_on(store)
    await one.append(prompt(0))
    await one.context()
    await other.context()
    for number in range(20):
        await other.append(answer(number), prompt(number + 1))
    await one.context()
    assert one.view_tokens <= 8_500
    assert await compactions(store) == 1


async def test_what_another_writer_said_is_looked_at_behind_a_refused_append_too(store):
    one, other = session_on(store), session_on(store)
    await one.append(prompt(0))
    await one.context()
    await other.context()
    for number in range(20):
        await other.append(answer(number), prompt(number + 1))
    with pytest.raises(foldline.LeafMoved):
        await one.append(answer(99))
    await one.context()
    assert one.view_tokens <= 8_500


async def test_a_compaction_and_an_undo_are_of_the_path_as_it_is(store):
    one, other = session_on(store), session_on(store)
    await run_turns(one, 5, lines=10)
    await other.context()
    await run_turns(one, 5, 5, lines=10)
    receipt = await other.compact()
    assert receipt.messages_before == 20
    assert await one.undo() is not None, "the other's"
    assert len(await other.context()) == 20


async def test_a_window_that_another_writer_learnt_is_known(store):
    one, other = session_on(store), session_on(store)
    await run_turns(one, 3)
    await one.append(prompt(3))
    await other.context()
    sizes = Overflow(limit=5_000, asked=6_000)
    await one.overflowed(ProviderError("too long", kind="overflow", status=400, overflow=sizes))
    await other.context()
    assert other.setup.window.context == 5_000


# ---- reading without the lock


class Slow:
    """A store whose reading of what a view needs ends after what came meanwhile."""

    def __init__(self, store) -> None:
        self._store = store
        self.hold = asyncio.Event()
        self.holding = asyncio.Event()
        self.holds = True

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def active(self, session, leaf=None):
        found = await self._store.active(session, leaf)
        if self.holds:
            self.holds = False
            self.holding.set()
            await self.hold.wait()
        return found


@pytest.mark.parametrize("read", ["folded", "live", "standing", "links_of", "branches"])
async def test_what_is_read_first_does_not_forget_what_is_appended_meanwhile(store, read):
    before = session_on(store)
    await before.append(prompt(0))
    slow = Slow(store)
    session = session_on(slow)
    reads = {"links_of": lambda: session.recall("fox")}
    reading = asyncio.create_task((reads.get(read) or getattr(session, read))())
    await asyncio.wait_for(slow.holding.wait(), 60)
    appending = asyncio.create_task(session.append(answer(0)))
    await asyncio.sleep(0.01)
    slow.hold.set()
    await asyncio.wait_for(asyncio.gather(reading, appending), 60)
    await session.append(prompt(1))
    assert await session.context() == [prompt(0), answer(0), prompt(1)]


# ---- who writes


async def test_a_session_begun_from_another_has_its_summaries_by_the_model_it_goes_on_with():
    model = Scripted(lambda asked: "short")
    async with serve(model) as url:
        name = f"openai-compatible:{{}}@{url}/v1"
        async with foldline.open("memory://", "s", model=name.format("one"), window=WINDOW) as session:
            await session.append(prompt(0), answer(0), prompt(1))
            child = await session.subagent("Count")
            assert child.summarizer.name == session.summarizer.name
            assert child.summarizer.name.startswith("openai-compatible:one@")
            await child.use_model(name.format("two"), window=WINDOW)
            assert child.summarizer.name.startswith("openai-compatible:two@")
            assert session.summarizer.name.startswith("openai-compatible:one@")
            await session.use_model(name.format("two"), window=WINDOW)
            assert session.summarizer.name.startswith("openai-compatible:two@")
            await child.close()


async def test_a_summariser_of_ones_own_stays_when_the_model_changes():
    mine = Gate(opened=True)
    async with foldline.open("memory://", "s", summarizer=mine, window=WINDOW) as session:
        await session.use_model("any:other", window=WINDOW)
        assert session.summarizer is mine
    async with foldline.open("memory://", "s", window=WINDOW) as session:
        session.summarizer = mine
        await session.use_model("any:other", window=WINDOW)
        assert session.summarizer is mine


# ---- closing


async def test_a_callback_may_close_its_session(store):
    session = session_on(store)
    closed = asyncio.Event()

    async def close(event):
        await session.close()
        closed.set()

    session.on("message", close)
    await session.append(prompt(0))
    await asyncio.wait_for(closed.wait(), 60)


async def test_two_callbacks_may_close_their_session(store):
    session = session_on(store)
    for _ in range(2):
        session.on("message", lambda event: session.close())
    await session.append(prompt(0))
    await asyncio.wait_for(session.close(), 60)


async def test_an_append_that_is_under_way_at_the_close_leaves_nothing_running():
    begun, go = asyncio.Event(), asyncio.Event()

    class Slow(MemoryStore):
        async def append(self, *args, **more):
            begun.set()
            await go.wait()
            await super().append(*args, **more)

    session = session_on(Slow())
    heard = Events(session)
    appending = asyncio.create_task(session.append(prompt(0), answer(0)))
    await asyncio.wait_for(begun.wait(), 60)
    await session.close()
    go.set()
    await asyncio.wait_for(appending, 60)
    assert session._triggers.timer is None
    assert not session._triggers.checks.running
    await session._triggers.checks.finished()
    assert heard.names == ["message"]


async def test_a_hook_cannot_close_its_session_nor_a_part_of_it():
    session = foldline.open("memory://", "s", window=WINDOW)

    async def closes(planned):
        with pytest.raises(foldline.InputError, match="a hook cannot"):
            await session.close()

    session.before_compaction(closes)
    async with session:
        await run_turns(session, 6)
        assert not isinstance(await session.compact(target=2_000), Nothing)
        await session.append(prompt(6))


async def test_closing_ends_with_the_store_whatever_fails_before():
    session = foldline.open("memory://", "s", window=WINDOW)
    ended = []

    async def fails():
        raise RuntimeError("the connection is gone")

    async def ends():
        ended.append("other")

    session.at_close(ends)
    session.at_close(fails)
    with pytest.raises(RuntimeError):
        async with session:
            await session.append(prompt(0))
    assert ended == ["other"]
    with pytest.raises(foldline.FoldlineError, match="closed"):
        await session.append(prompt(1))


async def test_a_session_that_cannot_be_entered_is_closed(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("these are my notes" * 100)
    session = foldline.open(f"sqlite:///{file}", "s")
    with pytest.raises(foldline.FoldlineError, match="not a Foldline database"):
        async with session:
            pass
    with pytest.raises(foldline.FoldlineError, match="closed"):
        await session.store.sessions()


async def test_a_warning_of_many_compactions_comes_again_only_when_they_have_doubled(store):
    session = session_on(store, Gate(opened=True))
    heard = Events(session)
    number = 0
    for _ in range(13):
        number = await grow_to(session, 4_000, number)
        await session.compact()
    await settled(lambda: True)
    warned = [event.count for event in heard.named("warning") if event.kind == "repeated_compactions"]
    assert warned == [3, 6, 12]


async def test_sub_agents_begun_at_once_all_stand_in_the_live_state(store):
    session = session_on(store)
    await session.append(prompt(0))
    await asyncio.gather(*(session.subagent(f"Count {n}", to=f"child-{n}") for n in range(5)))
    await asyncio.gather(*(session.finished(f"child-{n}") for n in (1, 3)))
    running = (await session.live())["sub-agents"].splitlines()
    assert sorted(running) == [f"- child-{n}: Count {n}" for n in (0, 2, 4)]


async def test_a_compaction_that_the_model_asked_for_outlives_a_cancelled_context(store):
    gate = Gate()
    session = session_on(store, gate)
    await run_turns(session, 5)
    await session.append(prompt(6))
    await session.call_tool("compact_context", {})
    waiting = asyncio.create_task(session.context())
    await asyncio.wait_for(gate.begun.wait(), 60)
    waiting.cancel()
    await asyncio.wait({waiting})
    gate.go.set()
    await session.context()
    assert await compactions(store) == 1


async def test_what_another_has_written_is_in_every_answer(store):
    ours, theirs = session_on(store, window=WIDE), session_on(store, window=WIDE)
    await run_turns(ours, 1)
    await theirs.follow()
    await theirs.append(prompt(1), answer(1))
    (current,) = await ours.branches()
    assert (current.leaf, current.current) == (theirs.leaf, True)
    await theirs.append(prompt(2))
    assert (await ours.standing()) == (await theirs.standing())
    await theirs.append(answer(2))
    assert {one.how for one in await ours.entries()} == {"kept"}


async def test_a_closed_session_is_closed_though_its_store_is_not(store):
    session = session_on(store)
    await run_turns(session, 1)
    await session.close()
    await session.close()
    with pytest.raises(foldline.InputError, match="closed"):
        await session.append(prompt(1))
    with pytest.raises(foldline.InputError, match="closed"):
        await session.context()
    assert len(await session_on(store).context()) == 2
