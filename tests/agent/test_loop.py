"""The loop: prompts, replies, tool batches, overflow, interrupts, queues and resumes, against a strict scripted model."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest
from tests.agent.program import settings
from tests.agent.working import host_on
from tests.support.waiting import until

import foldline
from foldline.dialects import get
from foldline.errors import InputError, SessionNotFound
from foldline.testing import Answer, Gate, Refusal, call, calls

DIALECTS = ("openai-chat", "openai-responses", "anthropic")


async def said(host):
    return [(m.role, m.text) for m in await messages(host)]


async def messages(host):
    return [entry.message async for entry in host.store.path(host.session.id) if hasattr(entry, "message")]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_prompt_is_worked_on_until_the_model_is_done(tmp_path, dialect):
    answers = [
        calls(
            call("write", path="a.txt", content="one\ntwo\n"),
            call("todo", items=[{"task": "x", "status": "done"}]),
        ),
        calls(call("read", path="a.txt"), call("grep", pattern="tw.")),
        call("edit", path="a.txt", old="two", new=""),
        "All done.",
    ]
    async with host_on(tmp_path, answers, dialect=dialect) as host:
        ended = await host.prompt("Make a.txt.")
        assert (ended.how, ended.text) == ("done", "All done.")
        assert (tmp_path / "work/a.txt").read_text() == "one\n\n"
        results = [event.text for event in host.heard.named("result")]
        assert any("     2\ttwo" in text for text in results)
        assert any("a.txt:2:two" in text for text in results)
        assert get(dialect).validate(await host.session.history()) == []
        assert host.session.setup.dialect == dialect
        assert await host.session.verify() == []


async def test_tools_that_only_read_run_beside_each_other_and_others_in_order(tmp_path):
    answers = [calls(call("bash", command="sleep 0.2; echo first > f"), call("bash", command="cat f")), "ok"]
    async with host_on(tmp_path, answers) as host:
        await host.prompt("Go.")
        assert [e.text for e in host.heard.named("result")][-1] == "first"


async def test_an_overflow_is_folded_away_and_the_same_turn_goes_on(tmp_path):
    def grow(asked):
        return "word " * 700 if asked.index < 8 else "The end."

    never = msgspec.structs.replace(foldline.preset("foldline"), soft=None, hard=None)
    async with host_on(tmp_path, grow, window=8_000, policy=never) as host:
        for turn in range(9):
            ended = await host.prompt(f"Turn {turn}.")
        assert ended.detail == ""
        assert ended.how == "done"
        assert host.heard.named("retry")
        assert next(e.receipt.reason for e in host.heard.named("compacted")) == "overflow"
        assert host.scripted.requests[-1].refused is None


async def test_it_goes_on_in_the_same_run_after_a_compaction_in_the_middle_of_a_turn(tmp_path):
    def work(asked):
        return call("bash", command="seq 1 600") if asked.index < 12 else "Counted twelve times."

    async with host_on(tmp_path, work, window=9_000) as host:
        ended = await host.prompt("Count twelve times.")
        assert ended.text == "Counted twelve times."
        assert host.heard.named("compacted", "pruned")


async def test_an_interrupt_keeps_what_is_whole_and_the_queue_goes_on(tmp_path):
    answers = [
        calls(call("bash", command="echo kept"), call("bash", command="sleep 1000")),
        "On to the next.",
    ]
    async with host_on(tmp_path, answers) as host:
        work = asyncio.ensure_future(host.prompt("Do both."))
        await until(lambda: len(host.heard.named("call")) == 2)
        host.agent.queue.append(("Then this.",))
        assert host.agent.interrupt()
        assert (await work).text == "On to the next."
        assert [e.how for e in host.heard.named("turn")] == ["interrupted", "done"]
        results = [r.text for m in await messages(host) for r in m.results]
        assert results[0] == "kept"
        assert "Stopped by the user" in results[1]
        assert (await said(host))[-2:] == [("user", "Then this."), ("assistant", "On to the next.")]


async def test_a_stream_that_is_interrupted_leaves_no_half_reply(tmp_path):
    async with host_on(tmp_path, [Answer(text="slow", wait=Gate())]) as host:
        work = asyncio.ensure_future(host.prompt("Hello."))
        await until(lambda: host.scripted.requests)
        host.agent.interrupt()
        assert (await work).how == "interrupted"
        assert await said(host) == [("user", "Hello.")]
        assert not host.agent.interrupt()


async def test_a_failing_provider_fails_the_turn_and_nothing_is_lost(tmp_path):
    async with host_on(tmp_path, [Refusal(401, "bad key", kind="authentication_error"), "Back."]) as host:
        ended = await host.prompt("Hello.")
        assert ended.how == "failed"
        assert "bad key" in ended.detail
        assert (await host.agent.run()).text == "Back."


async def test_a_second_run_at_the_same_time_is_refused(tmp_path):
    async with host_on(tmp_path, [Answer(text="slow", wait=Gate())]) as host:
        work = asyncio.ensure_future(host.prompt("Hello."))
        await until(lambda: host.scripted.requests)
        with pytest.raises(InputError, match="is busy"):
            await host.prompt("Again.")
        host.agent.interrupt()
        await work


async def test_what_a_crash_left_open_is_answered_before_the_next_prompt(tmp_path):
    async with host_on(tmp_path) as host:
        session = host.session.id
        await host.session.append({"role": "user", "content": "Run it."})
        asked = {
            "id": "c1",
            "type": "function",
            "function": {"name": "bash", "arguments": '{"command": "x"}'},
        }
        await host.session.append({"role": "assistant", "content": None, "tool_calls": [asked]})
    async with host_on(tmp_path, ["I see."], session=session) as host:
        assert (await host.session.standing()).state == "mid_tool"
        assert not host.scripted.requests, "it does not go on unasked"
        assert (await host.agent.run()).text == "I see."
        assert "unknown whether" in next(m.results[0].text for m in await messages(host) if m.results)


async def test_the_steps_to_one_prompt_are_limited(tmp_path):
    settings(tmp_path, "[agent]\nsteps = 3\n")
    async with host_on(tmp_path, lambda asked: call("find")) as host:
        assert (await host.prompt("Go.")).how == "steps"
        assert len(host.scripted.requests) == 3


async def test_a_sub_agent_works_in_a_session_of_its_own_and_reports(tmp_path):
    def says(asked):
        words = str(asked.messages)
        if "Find the limit." in words and "look" not in words:
            return "The limit is 7."
        return "It is 7." if "The limit is 7." in words else call("task", goal="Find the limit.")

    async with host_on(tmp_path, says) as host:
        assert (await host.prompt("Have someone look.")).text == "It is 7."
        links = await host.session.links()
        assert [link.how for link in links] == ["subagent"]
        assert await host.session.live() == {}


async def test_the_model_can_go_back_from_an_attempt_with_a_note(tmp_path):
    answers = [call("bash", command="echo noise"), call("rewind", note="Echo is of no use."), "Another way."]
    async with host_on(tmp_path, answers) as host:
        assert (await host.prompt("Try.")).text == "Another way."
        words = str(host.scripted.requests[-1].messages)
        assert "Echo is of no use." in words
        assert "noise" not in words
        assert len(await host.session.branches()) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_calls_of_one_reply_with_one_id_are_each_run_and_answered(tmp_path, dialect):
    first, second = call("write", path="a.txt", content="one"), call("write", path="b.txt", content="two")
    same = Answer(calls=tuple(msgspec.structs.replace(each.calls[0], id="same") for each in (first, second)))
    async with host_on(tmp_path, [same, "Done."], dialect=dialect) as host:
        assert (await host.prompt("Go.")).how == "done"
        assert [(tmp_path / "work" / name).read_text() for name in ("a.txt", "b.txt")] == ["one", "two"]
        answered = [result.call_id for message in await messages(host) for result in message.results]
        assert answered == ["same", "same_2"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_model_that_says_half_a_character_is_answered(tmp_path, dialect):
    said_so = Answer(text="half \ud83d", calls=call("write", path="a\ud83d.txt", content="half \ud83d").calls)
    async with host_on(tmp_path, [said_so, "half \ud83d"], dialect=dialect) as host:
        ended = await host.prompt("Go \udcff.")
        assert (ended.how, ended.text) == ("done", "half \ufffd")
        assert (tmp_path / "work/a\ufffd.txt").read_text() == "half \ufffd"
        assert get(dialect).validate(await host.session.context()) == []


@asynccontextmanager
async def two_chats(folder, answers, others):
    """Two hosts on one session, in which something was said; the second has read it."""
    async with host_on(folder, ["Hello.", *answers]) as one:
        await one.prompt("Hello?")
        async with host_on(folder, others, session=one.session.id) as other:
            yield one, other


async def test_a_prompt_goes_behind_what_another_chat_said(tmp_path):
    async with two_chats(tmp_path, ["Mine."], ["Theirs."]) as (one, other):
        await other.prompt("From the other.")
        assert (await one.prompt("From me.")).text == "Mine."
        assert [text for _, text in await said(one)][2:] == [
            "From the other.",
            "Theirs.",
            "From me.",
            "Mine.",
        ]


async def test_the_result_of_a_tool_is_quoted_where_another_chat_spoke_meanwhile(tmp_path):
    work = call("bash", command="until [ -e go ]; do sleep 0.05; done; echo forty-two")
    async with two_chats(tmp_path, [work, "Gone on."], ["Theirs.", "So it is."]) as (one, other):
        turn = asyncio.ensure_future(one.prompt("Work."))
        await until(lambda: one.heard.named("call"))
        await other.prompt("From the other.")
        (tmp_path / "work/go").touch()
        ended = await turn
        assert ended.how == "failed"
        assert "second chat" in ended.detail
        await other.prompt("And?")
        seen = str(other.scripted.requests[-1].messages)
        assert "Late result of tool call" in seen
        assert "forty-two" in seen
        assert (await one.prompt("Go on.")).text == "Gone on."
        assert await one.session.verify() == []


async def test_a_reply_is_quoted_where_another_chat_spoke_meanwhile(tmp_path):
    gate = Gate()
    async with two_chats(tmp_path, [Answer(text="It is 7.", wait=gate)], ["Theirs.", "Yes."]) as (one, other):
        turn = asyncio.ensure_future(one.prompt("How many?"))
        await until(lambda: len(one.scripted.requests) == 2)
        await other.prompt("From the other.")
        gate.open()
        assert "second chat" in (await turn).detail
        assert one.heard.named("reply")[-1].text == "It is 7.", "what it cost is counted"
        await other.prompt("And?")
        seen = str(other.scripted.requests[-1].messages)
        assert "quoted as data" in seen
        assert "It is 7." in seen


def todos(**tasks):
    """A call that writes the list anew."""
    return call("todo", items=[{"task": task, "status": status} for task, status in tasks.items()])


async def test_todos_are_carried_on_as_they_were_written_last(tmp_path):
    talk = ["word " * 3_000] * 2
    async with host_on(tmp_path, [todos(A="pending", B="pending"), *talk]) as host:
        for turn in range(2):
            await host.prompt(f"Turn {turn}.")
        await host.session.compact()
        assert await host.session.live() == {"todos": "- [ ] A\n- [ ] B"}
    async with host_on(tmp_path, [todos(A="done", C="in_progress"), *talk], newest=True) as host:
        await host.prompt("Do A.")
    async with host_on(tmp_path, talk, newest=True) as host:
        assert await host.session.live() == {"todos": "- [x] A\n- [~] C"}
        await host.prompt("Go on.")
        await host.session.compact()
        seen = str(await host.session.context())
        assert "- [x] A" in seen
        assert "- [ ] A" not in seen


async def test_a_sub_agent_that_was_killed_is_not_gone_on_with_and_does_not_run_for_ever(tmp_path):
    def says(asked):
        alone = asked.messages[-1].get("content") == "Look into it."
        return Answer(text="slow", wait=Gate()) if alone else call("task", goal="Look into it.")

    async with host_on(tmp_path, says) as host:
        turn = asyncio.ensure_future(host.prompt("The job."))
        await until(lambda: len(host.scripted.requests) == 2)
        async with host_on(tmp_path, newest=True) as later:
            assert later.session.id == host.session.id
            assert [info.id for info in await later.sessions()] == [host.session.id]
            assert [info.id for info in await later.sessions(everywhere=True)] == [host.session.id]
            assert await later.session.live() == {}
        host.interrupt()
        await turn


async def test_going_back_to_no_entry_is_refused_and_the_turn_goes_on(tmp_path):
    async with host_on(tmp_path, [call("rewind", note="No.", entry="deadbeef"), "Well."]) as host:
        assert (await host.prompt("Try.")).text == "Well."
        [result] = host.heard.named("result")
        assert result.failed
        assert "deadbeef" in result.text


async def test_the_model_can_go_back_to_a_reply_with_calls(tmp_path):
    place = []

    def says(asked):
        if asked.index == 2:
            return call("rewind", note="No.", entry=place[0])
        return call("find") if not asked.index else "Well."

    async with host_on(tmp_path, says) as host:
        await host.prompt("Find.")
        place.append(host.heard.named("reply")[0].entry)
        assert (await host.prompt("Try.")).text == "Well."
        assert "Try." not in str(host.scripted.requests[-1].messages)


async def test_a_sub_agent_keeps_to_the_limits_of_the_settings(tmp_path):
    settings(tmp_path, "[agent]\nsteps = 3\nmax_tokens = 777\n")

    def says(asked):
        return "Enough." if asked.index == 4 else call("find") if asked.index else call("task", goal="Look.")

    async with host_on(tmp_path, says) as host:
        assert (await host.prompt("Go.")).text == "Enough."
        assert {request.body["max_completion_tokens"] for request in host.scripted.requests} == {777}


async def test_nothing_comes_back_of_a_session_that_was_deleted(tmp_path):
    gate = Gate()
    async with host_on(tmp_path, ["Hello.", Answer(text="It is 7.", wait=gate)]) as host:
        await host.prompt("Hello?")
        turn = asyncio.ensure_future(host.prompt("How many?"))
        await until(lambda: len(host.scripted.requests) == 2)
        await host.store.purge(host.session.id)
        gate.open()
        assert "deleted" in (await turn).detail
        assert await host.store.sessions() == []


async def test_no_prompt_begins_a_session_that_was_deleted_again(tmp_path):
    async with host_on(tmp_path, ["Hello.", "No."]) as host:
        await host.prompt("Hello?")
        await host.store.purge(host.session.id)
        with pytest.raises(SessionNotFound, match="deleted"):
            await host.prompt("Still there?")
        assert await host.store.sessions() == []
