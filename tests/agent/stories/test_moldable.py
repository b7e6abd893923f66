"""The stories of Moldable's design: the display keeps everything, the model gets a summary and what follows it."""

from __future__ import annotations

import asyncio

import pytest
from tests.agent.program import Rpc, run_foldline, serve_model
from tests.agent.stories.scripts import (
    export_json,
    headings,
    long_reply,
    reply_requests,
    script,
    summarize_by_model,
    summary,
    summary_requests,
    talk,
    text_of,
    token_limit,
)
from tests.agent.working import host_on
from tests.support.waiting import until

from foldline.agent.commands.registry import run
from foldline.testing import Answer, Gate, Refusal, call

pytestmark = pytest.mark.slow

WINDOW = 20_000  # compacts above 15,000 tokens of Moldable's estimate
REPLY = long_reply(2_000)
BUILDS = script(REPLY, Task="Build X.")


class Held:
    """A summariser that asks the model only when `go` is set."""

    def __init__(self, inner):
        self.inner = inner
        self.name = inner.name
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def summarize(self, request):
        self.begun.set()
        await self.go.wait()
        return await self.inner.summarize(request)


def display(conversation):
    """The texts that the user sees."""
    return ["".join(part.get("text", "") for part in one["parts"]) for one in conversation["messages"]]


def api(conversation):
    """The texts that Moldable would send: `buildApiMessages` of its design, on what we export for it."""
    state, shown = conversation["compaction"], display(conversation)
    if state is None:
        return shown
    return [state["summaryMessage"]["parts"][0]["text"], *shown[state["apiStartIndex"] :]]


def sent(asked):
    """The texts of a request, but for the system prompt."""
    return [text_of(message) for message in asked.messages[1:]]


async def state(host):
    return (await export_json(host, "moldable"))["compaction"]


# ---- the five scenarios


async def test_a_fresh_conversation_sends_all_that_is_shown(tmp_path):
    async with host_on(tmp_path, ["a1", "a2"], window=WINDOW, policy="moldable") as host:
        await host.prompt("Hello")
        await host.prompt("Help me build X")
        conversation = await export_json(host, "moldable")
        assert conversation["compaction"] is None
        assert display(conversation) == ["Hello", "a1", "Help me build X", "a2"]
        assert [sent(asked) for asked in host.scripted.requests] == [
            ["Hello"],
            ["Hello", "a1", "Help me build X"],
        ]


async def test_a_compaction_forks_the_view_and_leaves_the_display(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 6)
        assert await state(host) is None
        before = display(await export_json(host, "moldable"))
        await talk(host, 7, 7)
        conversation = await export_json(host, "moldable")
        fork = conversation["compaction"]
        assert display(conversation)[:12] == before
        # of thirteen messages at the turn's start three in ten stay: u6, a6, u7
        assert (fork["version"], fork["apiStartIndex"]) == (1, 10)
        assert fork["summarizedRange"] == {"fromIndex": 0, "toIndex": 9, "messageCount": 10}
        assert fork["compactedAt"]
        assert fork["summaryMessage"]["role"] == "user"
        assert sent(reply_requests(host.scripted)[-1]) == api(conversation)[:-1]
        assert len(api(conversation)) == 5
        assert "Build X." in api(conversation)[0]


async def test_later_turns_are_appended_to_both_and_the_fork_stays_where_it_is(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 7)
        fork = await state(host)
        for number in range(8, 11):
            await talk(host, number, number)
            conversation = await export_json(host, "moldable")
            assert conversation["compaction"] == fork
            assert len(display(conversation)) == 2 * number
            assert sent(reply_requests(host.scripted)[-1]) == api(conversation)[:-1]


async def test_a_second_compaction_stacks_on_the_first(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 12)
        conversation = await export_json(host, "moldable")
        fork = conversation["compaction"]
        assert (fork["version"], fork["apiStartIndex"]) == (2, 20)
        assert fork["summarizedRange"] == {"fromIndex": 0, "toIndex": 19, "messageCount": 20}
        assert display(conversation)[::2] == [f"u{number}" for number in range(1, 13)]
        assert sent(reply_requests(host.scripted)[-1]) == api(conversation)[:-1]
        first, second = (text_of(asked.messages[-1]) for asked in summary_requests(host.scripted))
        assert "[User]: u1\n" in first
        # the summary before it is carried over: what it stands for is not read a second time
        assert "Build X." in second.split("<previous-summary>")[1].split("</previous-summary>")[0]
        assert "[User]: u1\n" not in second
        assert "[User]: u6\n" in second


async def test_a_session_is_resumed_where_the_fork_begins(tmp_path):
    store = f"sqlite:///{tmp_path / 'sessions.db'}"
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="moldable", store=store) as host:
        summarize_by_model(host)
        await talk(host, 1, 12)
        session, today = host.session.id, await export_json(host, "moldable")
    with serve_model(["a13"], window=WINDOW) as (model, name):
        model_of = ("--model", name, "--window", str(WINDOW), "--policy", "moldable", "--store", store)
        done = await asyncio.to_thread(
            run_foldline, tmp_path, "run", "-p", "u13", "--resume", session, *model_of
        )
    assert (done.stdout, done.returncode) == ("a13\n", 0)
    assert today["compaction"]["version"] == 2
    summary, first, *others = api(today)
    assert sent(model.requests[0]) == [f"{summary}\n\n{first}", *others, "u13"]  # such a model wants turns
    async with host_on(tmp_path, store=store, session=session) as host:
        tomorrow = await export_json(host, "moldable")
    assert tomorrow["compaction"] == today["compaction"]
    assert display(tomorrow) == [*display(today), "u13", "a13"]


# ---- the six edge cases


async def test_nothing_is_compacted_in_the_middle_of_a_response(tmp_path):
    def works(asked):
        """In turn 7, which crosses the threshold, call twice with long remarks before the answer."""
        steps = len([one for one in asked.messages if one["role"] == "tool"])
        if text_of(asked.messages[-1]) == "u7" or 0 < steps < 2:
            return Answer(text=REPLY(asked), calls=call("find").calls)
        return REPLY(asked)

    async with host_on(tmp_path, script(works, Task="Build X."), window=26_000, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 8)
        kinds = [e.name for e in host.heard if e.name in ("prompt", "reply", "compacted")]
        place = kinds.index("compacted")
        assert kinds[place - 1] == "prompt"
        assert kinds[place + 1] == "reply"
        # the turn before had crossed the threshold with its second reply, and went on to its end
        assert kinds[place - 4 : place] == ["reply", "reply", "reply", "prompt"]
        assert len(summary_requests(host.scripted)) == 1


async def test_fewer_than_ten_messages_are_never_compacted_by_the_threshold(tmp_path):
    def says(asked):
        return long_reply(3_100)(asked)

    async with host_on(tmp_path, script(says), window=WINDOW, policy="moldable") as host:
        await talk(host, 1, 5)
        assert host.session.view_tokens > 0.75 * WINDOW
        assert host.heard.named("compacted") == []
        await talk(host, 6, 6)
        assert len(host.heard.named("compacted")) == 1


async def test_a_user_who_interrupts_saves_no_partial_compaction(tmp_path):
    wait = [Gate()]

    def says(asked):
        if not headings(asked):
            return REPLY(asked)
        return Answer(text=summary(asked, Task="Build X."), wait=wait[0])

    async with host_on(tmp_path, says, window=WINDOW, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 6)
        work = asyncio.ensure_future(host.prompt("u7"))
        await until(lambda: summary_requests(host.scripted))
        host.agent.interrupt()
        assert (await work).how == "interrupted"
        assert await state(host) is None
        assert await host.session.verify() == []
        wait[0] = 0.0
        await talk(host, 8, 8)
        assert (await state(host))["version"] == 1


async def test_a_summary_that_fails_is_written_by_code_and_the_model_is_asked_the_next_time(tmp_path):
    """Where Moldable goes on without a compaction, Foldline's preset makes one from the ledger."""
    failing = [True]

    def says(asked):
        if not headings(asked):
            return REPLY(asked)
        return Refusal(500, "overloaded") if failing[0] else summary(asked, Task="Build X.")

    async with host_on(tmp_path, says, window=WINDOW, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 7)
        failing[0] = False
        await talk(host, 8, 12)
        first, second = (event.receipt for event in host.heard.named("compacted"))
        assert first.summarizer == "offline"
        assert any("overloaded" in note for note in first.notes)
        assert second.summarizer == "scripted:scripted"


async def test_a_compaction_that_fails_is_told_and_the_turn_goes_on_with_everything(tmp_path):
    def broken(_planned):
        raise OSError("no space left")

    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 6)
        mended = host.session.before_compaction(broken)
        await talk(host, 7, 7)
        assert "no space left" in host.heard.named("warning")[0].text
        assert len(reply_requests(host.scripted)[-1].messages) == 1 + 13
        assert await state(host) is None
        # after an error it waits a minute before it tries again by itself; by hand it is tried at once
        assert host.heard.named("cooldown")
        mended()
        assert "Folded" in (await run(host, "/compact")).text
        assert (await state(host))["version"] == 1


async def test_messages_added_while_compacting_are_in_the_view_behind_the_fork(tmp_path):
    async with host_on(
        tmp_path, script(long_reply(200), Task="Build X."), window=WINDOW, policy="moldable"
    ) as host:
        summarize_by_model(host)
        held = host.session.summarizer = Held(host.session.summarizer)
        await talk(host, 1, 7)
        folding = asyncio.ensure_future(run(host, "/compact"))
        await asyncio.wait_for(held.begun.wait(), 60)
        await talk(host, 8, 8)
        assert await state(host) is None
        held.go.set()
        assert "Folded" in (await folding).text
        conversation = await export_json(host, "moldable")
        fork = conversation["compaction"]
        # planned with fourteen messages, of which four stay; the two that came meanwhile moved nothing
        assert (fork["apiStartIndex"], len(display(conversation))) == (10, 16)
        await talk(host, 9, 9)
        assert sent(reply_requests(host.scripted)[-1]) == [*api(conversation), "u9"]


async def test_tool_calls_are_summed_up_by_name_and_outcome_without_their_whole_output(tmp_path):
    def works(asked):
        if asked.messages[-1]["role"] == "tool":
            return REPLY(asked)
        return call("bash", command="seq -s ' ' 1000 1900; exit 3")

    async with host_on(tmp_path, script(works, Task="Build X."), window=30_000, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 6)
        await run(host, "/compact")
        read = text_of(summary_requests(host.scripted)[0].messages[-1])
        assert "bash" in read
        assert "seq -s ' ' 1000 1900" in read
        assert "1000 1001" in read
        assert "exit code 3" in read
        assert "1450" not in read


# ---- what its list calls future


async def test_the_tokens_in_use_are_shown(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="moldable") as host:
        await talk(host, 1, 3)
        stats = await host.session.stats()
        assert (
            f"{stats.context_tokens:,} of {stats.usable:,} usable tokens"
            in (await run(host, "/context")).text
        )
        usage = host.heard.named("reply")[-1].usage
        assert stats.context_tokens == usage.total


def test_a_compaction_is_previewed_edited_and_then_confirmed(tmp_path):
    with serve_model(BUILDS, window=WINDOW) as (_, name):
        rpc = Rpc(tmp_path, "--model", name, "--window", str(WINDOW), "--policy", "moldable")
        for number in range(1, 4):
            rpc.prompt(f"u{number}")
        shown = rpc.ask(type="preview")
        assert "Build X." in shown["summary"]
        assert rpc.ask(type="stats")["summaryCount"] == 0
        edited = shown["summary"].replace("Build X.", "Build X, in blue.")
        assert (
            rpc.ask(type="commit", summary=edited)["receipt"]["messages_after"]
            == (shown["receipt"]["messages_after"])
        )
        boundary = next(one for one in rpc.seen if one["type"] == "compaction")
        assert "Build X, in blue." in boundary["summary"]
        assert rpc.close()[0] == 0


async def test_messages_that_the_user_chooses_stay_word_for_word(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="moldable") as host:
        summarize_by_model(host)
        assert (await host.prompt("The colour shall be teal, as on the old sign.")).how == "done"
        told = (await host.session.entries())[0].entry
        assert "Pinned" in (await run(host, f"/pin {told}")).text
        await talk(host, 2, 7)
        assert len(host.heard.named("compacted")) == 1
        assert "The colour shall be teal, as on the old sign." in sent(reply_requests(host.scripted)[-1])[0]


async def test_a_compaction_is_undone_by_going_on_from_before_it(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 7)
        assert await state(host) is not None
        outcome = await run(host, "/branch 3")
        assert outcome.editor == "u3"
        assert "leaves 1 compaction behind" in outcome.text
        await host.prompt("Another u3")
        assert [text[:10] for text in sent(reply_requests(host.scripted)[-1])][::2] == [
            "u1",
            "u2",
            "Another u3",
        ]
        assert await state(host) is None


@pytest.mark.parametrize("form", ["markdown", "jsonl"])
async def test_the_full_history_is_exported(tmp_path, form):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 7)
        told = (await run(host, f"/export {form} talk.txt")).text
        assert "talk.txt" in told
        written = (tmp_path / "work/talk.txt").read_text()
        assert all(f"Reply to “u{number}”" in written for number in range(1, 8))


# ---- the rest of the design


async def test_it_compacts_above_three_quarters_of_the_window_by_its_own_estimate(tmp_path):
    def estimate(texts):
        """`estimateMessageTokens` of the design."""
        return sum(-(-len(text) // 3.5) + 10 for text in texts)

    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="moldable") as host:
        for number in range(1, 8):
            before = display(await export_json(host, "moldable"))
            await talk(host, number, number)
            due = estimate([*before, f"u{number}"]) > 0.75 * WINDOW
            assert bool(host.heard.named("compacted")) == due, number
        assert due


async def test_the_summary_stands_between_the_words_that_frame_it(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 7)
        asked = summary_requests(host.scripted)[0]
        assert 1_950 < token_limit(asked) < 2_000
        assert asked.tools is None
        text = sent(reply_requests(host.scripted)[-1])[0]
        before, after = text.split("Build X.")
        assert "The following is a summary of the earlier conversation:" in before
        assert "The conversation continues below:" in after


async def test_the_model_reads_its_figures_and_compacts_by_a_tool(tmp_path):
    def says(asked):
        newest = asked.messages[-1]
        if text_of(newest) == "Tidy up.":
            return call("context_stats")
        if newest["role"] == "tool" and not summary_requests(host.scripted):
            return call("compact_context", focus="the colours")
        return long_reply(300)(asked)

    async with host_on(tmp_path, script(says, Task="Build X."), window=WINDOW, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 6)
        assert (await host.prompt("Tidy up.")).how == "done"
        figures = host.heard.named("result")[0].text
        assert "20,000" in figures or "20000" in figures
        assert host.heard.named("compacted")[0].receipt.reason == "agent"
        assert "the colours" in text_of(summary_requests(host.scripted)[0].messages[-1])


async def test_a_conversation_goes_on_for_as_long_as_the_user_likes(tmp_path):
    async with host_on(tmp_path, BUILDS, window=12_000, policy="moldable") as host:
        summarize_by_model(host)
        await talk(host, 1, 40)
        assert (await state(host))["version"] >= 5
        assert [asked.refused for asked in host.scripted.requests if asked.refused] == []
        assert len(display(await export_json(host, "moldable"))) == 80
        assert "Build X." in str(sent(reply_requests(host.scripted)[-1]))
