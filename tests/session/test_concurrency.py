"""Several tasks and processes on one session: nothing lost or doubled, one compaction at a time, any await cancelled."""

import asyncio
import json
import subprocess
import sys

import pytest
from tests.support.live import (
    WINDOW,
    Failing,
    Gate,
    answer,
    context_at,
    policy_with,
    prompt,
    run_turns,
    session_on,
)
from tests.support.talk import user
from tests.support.waiting import until as settled

import foldline
from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Compacted, Noted, Pruned, Receipt
from foldline.dialects import get
from foldline.errors import InputError, SessionNotFound


async def boundaries(store):
    return [e async for e in store.path("s") if isinstance(e, Compacted | Pruned)]


async def test_two_tasks_that_need_a_compaction_make_one(store):
    gate = Gate()
    session = session_on(store, gate)
    await session.append(*(said for number in range(20) for said in (prompt(number), answer(number))))
    await session.append(prompt(20))
    both = [asyncio.create_task(session.context()) for _ in range(3)]
    await asyncio.wait_for(gate.begun.wait(), 60)
    gate.go.set()
    views = await asyncio.wait_for(asyncio.gather(*both), 60)
    assert gate.asked == 1
    assert len(await boundaries(store)) == 1
    assert views[0] == views[1] == views[2]


async def test_appends_go_on_while_somebody_waits_for_a_summary(store):
    gate = Gate()
    session = session_on(store, gate)
    await run_turns(session, 6)
    doing = asyncio.create_task(session.compact())
    await asyncio.wait_for(gate.begun.wait(), 60)
    for number in range(6, 9):
        await asyncio.wait_for(session.append(prompt(number)), 60)
        assert (await asyncio.wait_for(session.context(), 60))[-1] == prompt(number)
        await asyncio.wait_for(session.append(answer(number)), 60)
    gate.go.set()
    receipt = await asyncio.wait_for(doing, 60)
    assert not isinstance(receipt, Nothing)
    said = [message["content"] for message in await session.context()]
    assert said[-6:] == [m["content"] for n in range(6, 9) for m in (prompt(n), answer(n))]
    assert len(await session.history()) == 18
    assert receipt.tokens_after == session.view_tokens
    assert await session.verify() == []


async def test_two_sessions_that_say_the_same_are_each_acknowledged_once(store):
    await session_on(store).append({"role": "user", "content": "Shall we?"})
    one, two = session_on(store), session_on(store)
    await one.context()
    await two.context()
    yes = {"role": "assistant", "content": "Yes."}
    said = await asyncio.gather(one.append(yes), two.append(yes), return_exceptions=True)
    assert sum(isinstance(answer, foldline.LeafMoved) for answer in said) == 1
    assert [m["content"] for m in await session_on(store).context()] == ["Shall we?", "Yes."]
    late = one if isinstance(said[0], foldline.LeafMoved) else two
    await late.append(yes)
    assert [m["content"] for m in await session_on(store).context()] == ["Shall we?", "Yes.", "Yes."]


async def test_two_sessions_on_one_path_commit_one_draft(store):
    """As two processes would: each has drafted, one is first."""
    gates = Gate(), Gate()
    first, second = session_on(store, gates[0]), session_on(store, gates[1])
    number = await context_at(first, 5_950)
    await second.context()
    await asyncio.wait_for(asyncio.gather(*(gate.begun.wait() for gate in gates)), 60)
    for gate in gates:
        gate.go.set()
    await settled(lambda: first._compactor.drafts.ready and second._compactor.drafts.ready)
    await first.append(answer(number))
    number = await context_at(first, 7_650, number + 1)
    with pytest.raises(foldline.LeafMoved):
        await second.append({"role": "user", "content": "from behind"})
    await second.append({"role": "user", "content": "from behind"})
    await second.context()
    assert len(await boundaries(store)) == 1
    assert [gate.asked for gate in gates] == [1, 1]
    assert (await second.context())[-1]["content"] == "from behind"


async def test_a_boundary_of_another_writer_makes_a_finished_compaction_void(store):
    gate = Gate()
    session = session_on(store, gate)
    await run_turns(session, 6)
    doing = asyncio.create_task(session.compact())
    await asyncio.wait_for(gate.begun.wait(), 60)
    other = session_on(store)
    assert not isinstance(await other.compact(target=2_000), Nothing)
    gate.go.set()
    assert (await asyncio.wait_for(doing, 60)).why == "nothing_new"
    assert len(await boundaries(store)) == 1
    assert await session.context() == await other.context()


@pytest.mark.parametrize("delay", [0, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016])
async def test_cancelled_at_any_await_the_session_goes_on(store, delay):
    gate = Gate(opened=True)
    session = session_on(store, gate, policy=policy_with(background=False))
    said = []
    for number in range(20):
        await session.append(prompt(number), answer(number))
        said += [prompt(number), answer(number)]
    works = (session.context, session.compact, lambda: session.append(prompt(99)), session.undo)
    for work in works:
        task = asyncio.create_task(work())
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.wait({task})
        await session.append(prompt(50))
        said.append(prompt(50))
        messages = await asyncio.wait_for(session.context(), 60)
        assert get("openai-chat").validate(messages) == []
        await session.append(answer(50))
        said.append(answer(50))
    kept = [m for m in await session.history() if m != prompt(99)]
    assert kept == said, "what was acknowledged is there, once and in order"
    again = session_on(store)
    assert await again.context() == await session.context()
    assert await session.verify() == []


async def test_an_undo_that_is_cancelled_behind_its_append_is_seen_at_once(store, monkeypatch):
    session = session_on(store, policy=policy_with(background=False))
    await run_turns(session, 6)
    await session.compact(target=2_000)
    reading, never = asyncio.Event(), asyncio.Event()

    async def active(*_):
        reading.set()
        await never.wait()

    with monkeypatch.context() as slow:
        slow.setattr(store, "active", active)
        doing = asyncio.create_task(session.undo())
        await asyncio.wait_for(reading.wait(), 60)
        doing.cancel()
        await asyncio.wait({doing})
    assert await session.context() == await session_on(store).context()
    assert len(await session.context()) == 12


async def test_a_waiter_that_is_cancelled_does_not_cancel_the_draft(store):
    gate = Gate()
    session = session_on(store, gate)
    number = await context_at(session, 5_950)
    await asyncio.wait_for(gate.begun.wait(), 60)
    while session.view_tokens <= 8_500:
        number += 1
        await session.append(answer(number), prompt(number))
    waiting = asyncio.create_task(session.context())
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.wait({waiting})
    gate.go.set()
    await asyncio.wait_for(session.context(), 60)
    assert gate.asked == 1
    assert session.view_tokens <= 8_500


async def test_many_tasks_talk_to_one_session(store):
    session = session_on(store, Gate(opened=True))

    async def talk(name):
        for number in range(12):
            await session.append({"role": "user", "content": f"{name} {number} " + "words " * 60})
            assert get("openai-chat").validate(await session.context()) == []
            assert session.view_tokens <= 8_500

    await asyncio.gather(*(talk(name) for name in "abcd"))
    said = [message["content"].split(" words")[0] for message in await session.history()]
    assert sorted(said) == sorted(f"{name} {number}" for name in "abcd" for number in range(12))
    for name in "abcd":
        assert [s for s in said if s.startswith(name)] == [f"{name} {number}" for number in range(12)]
    assert await session.verify() == []


WRITER = """
import asyncio, sys, foldline
async def main(url, name, count):
    window = foldline.Window(context=6_000, output=500)
    async with foldline.open(url, "s", window=window) as session:
        for number in range(count):
            while True:
                try:
                    await session.append({"role": "user", "content": f"{name} {number} " + "words " * 60})
                    break
                except foldline.LeafMoved:
                    pass
            await session.context()
asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def test_processes_share_a_session(tmp_path):
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, url, name, "25"], stderr=subprocess.PIPE, text=True)
        for name in ("left", "right")
    ]
    for process in running:
        _, wrong = process.communicate(timeout=120)
        assert process.returncode == 0, wrong

    async def look():
        async with foldline.open(url, "s", window=WINDOW) as session:
            assert await session.verify() == []
            assert get("openai-chat").validate(await session.context()) == []
            return [message["content"].split(" words")[0] for message in await session.history()]

    said = asyncio.run(look())
    assert sorted(said) == sorted(f"{name} {number}" for name in ("left", "right") for number in range(25))
    for name in ("left", "right"):
        assert [s for s in said if s.startswith(name)] == [f"{name} {number}" for number in range(25)]


async def test_the_prefix_is_the_sessions_own_next_request(store):
    tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    session = session_on(store, Failing(), system="Be kind.", tools=tools)
    await run_turns(session, 2)
    await session.append(prompt(2))
    call = session.prefix()
    assert call.messages == await session.context()
    assert (call.system, call.tools) == ("Be kind.", tools)
    call.messages.append({"role": "user", "content": "sum it up"})
    assert json.dumps(session.prefix().messages) == json.dumps(call.messages[:-1])


async def test_a_late_write_brings_nothing_of_a_purged_session_back(store):
    session = session_on(store)
    await session.append(user("Word for word."))
    async with session._shared.locked() as cursor:  # where the purge comes between a look and a write
        await store.purge(session.id)
        with pytest.raises(SessionNotFound):
            await cursor.write(Noted("", None, "title", {"title": "Word for word."}))
    assert await store.count() == 0


async def test_a_hook_that_would_wait_for_its_own_compaction_is_refused_at_once(store):
    session = session_on(store)
    await run_turns(session, 12)
    told = set()

    async def hook(_planned):
        await session.note("title", title="what a hook may do")
        for never in (session.compact, session.preview, session.settled, session.context, session.close):
            with pytest.raises(InputError, match="a hook cannot"):
                await never()
            told.add(never.__name__)
        return "the stalls"

    session.before_compaction(hook)
    assert isinstance(await asyncio.wait_for(session.compact(), 60), Receipt)
    assert len(told) == 5
    await session.settled()
    assert await session.context()


async def test_live_state_that_asks_its_own_session_is_refused_at_once(store, caplog):
    session = session_on(store)
    await run_turns(session, 12)
    later = []

    async def tokens():
        later.append(asyncio.create_task(stats_later()))
        return str((await session.stats()).view_tokens)

    done = asyncio.Event()

    async def stats_later():
        await done.wait()
        return await session.stats()

    session.attach("tokens", tokens)
    assert isinstance(await asyncio.wait_for(session.compact(), 60), Receipt)
    assert "cannot use its own session" in caplog.text
    assert "TimeoutError" not in caplog.text
    done.set()
    assert all(await asyncio.gather(*later)), "what outlives the call is free again"
