"""The stories of coop's design: a turn begins with a summary and the recent messages, and the log stays whole."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from tests.agent.program import Rpc, run_foldline, serve_model, settings
from tests.agent.stories.scripts import (
    FILLER,
    headings,
    long_reply,
    receipts,
    reply_requests,
    script,
    summarize_by_model,
    summary_requests,
    text_of,
)
from tests.agent.working import host_on

from foldline.agent.commands.registry import run
from foldline.testing import Answer, Refusal, call

pytestmark = pytest.mark.slow

RESERVE, KEEP = 30_000, 20_000
WINDOW = 60_000  # compacts above 30,000 tokens
WIDE = 90_000  # compacts above 60,000 tokens, so that 20,000 and a summary have room
REPLY = long_reply(3_000)
BUILDS = script(REPLY, Goal="Build X.")
ACK = "Understood. I have the checkpoint and will go on from there."
WORKS = call("bash", command="seq -s ' ' 1 900").calls


def works(asked):
    """Call a tool with a long remark, then answer at length."""
    return REPLY(asked) if asked.messages[-1]["role"] == "tool" else Answer(text=REPLY(asked), calls=WORKS)


def sent(asked):
    """The messages of a request, but for the system prompt."""
    return asked.messages[1:]


def texts(asked):
    return [text_of(message) for message in sent(asked)]


def estimate(messages):
    """`estimate_message_tokens` of the design: characters of texts, calls and results by four."""
    calls = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    chars = sum(len(one["name"]) + len(one["arguments"]) for one in calls)
    return (chars + sum(len(text_of(message)) for message in messages)) // 4


def newest_prompt(asked):
    return next(message for message in reversed(asked.messages) if message["role"] == "user")


async def talk(host, first, last, about="u{}"):
    for number in range(first, last + 1):
        assert (await host.prompt(about.format(number))).how == "done"


async def until_compacted(host, times=1, about="u{}"):
    """Talk until the session was compacted so often; returns all messages before the turn, and what it sent."""
    number = 0
    while len(receipts(host)) < times:
        before = await host.session.history()
        number += 1
        await talk(host, number, number, about)
    return before, sent(reply_requests(host.scripted)[-1])


async def coop_file(host):
    """The session as coop's own file: one message a line."""
    return [json.loads(line) for line in (await host.session.export("coop")).splitlines()]


# ---- the twelve tests that the design lists


async def test_a_small_session_is_not_compacted(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="coop") as host:
        await talk(host, 1, 3)
        assert receipts(host) == []
        assert len(sent(host.scripted.requests[-1])) == 5


async def test_a_large_session_is_compacted_at_turn_start_by_the_last_replys_input(tmp_path):
    async with host_on(tmp_path, script(works), window=WINDOW, policy="coop") as host:
        due, number = False, 0
        while not receipts(host):
            assert not due
            number += 1
            last = host.heard.named("reply")[-1].usage if number > 1 else None
            due = last is not None and last.input + last.cache_read + last.cache_write > WINDOW - RESERVE
            await talk(host, number, number)
        assert due
        kinds = [e.name for e in host.heard if e.name in ("prompt", "reply", "compacted")]
        assert kinds[-4:] == ["prompt", "compacted", "reply", "reply"]
        assert receipts(host)[0].reason == "threshold"


async def test_without_a_compaction_all_messages_are_sent_unchanged(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="coop") as host:
        await talk(host, 1, 4)
        said = await host.session.history()
        assert sent(host.scripted.requests[-1]) == said[:-1]
        assert [text_of(message) for message in said[::2]] == ["u1", "u2", "u3", "u4"]


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """A session over HTTP to a turn beyond its compaction: the model, what `rpc` said, spans, what is stored."""
    folder = tmp_path_factory.mktemp("coop")
    trace = folder / "trace.jsonl"
    with serve_model(script(long_reply(4_000), Goal="Build X."), window=WINDOW) as (model, name):
        options = ("--model", name, "--window", str(WINDOW), "--policy", "coop")
        rpc = Rpc(folder, *options, FOLDLINE_TRACE_FILE=str(trace))
        while not any(event["type"] == "compaction" for event in rpc.seen):
            assert rpc.prompt(f"u{len(reply_requests(model)) + 1}")["how"] == "done"
        assert rpc.prompt("And then?")["how"] == "done"
        assert "Wrote" in rpc.ask(type="command", line="/export jsonl log.jsonl")["text"]
        assert rpc.close()[0] == 0
    return model, rpc.seen, [json.loads(line) for line in trace.read_text().splitlines()], folder


def test_a_compaction_puts_summary_and_acknowledgement_in_front_of_what_is_kept(traced):
    model, seen, _, _ = traced
    [compaction] = [event for event in seen if event["type"] == "compaction"]
    assert compaction["reason"] == "threshold"
    asked = reply_requests(model)[-2]
    assert [message["role"] for message in sent(asked)][:3] == ["user", "assistant", "user"]
    checkpoint, ack, *kept = texts(asked)
    assert "Build X." in checkpoint
    assert ack == ACK
    assert kept[-1] == f"u{len(reply_requests(model)) - 1}"


def test_what_follows_the_cut_is_sent_as_it_was_before_the_compaction(traced):
    model, *_ = traced
    before, after, later = (sent(asked) for asked in reply_requests(model)[-3:])
    kept = after[2:]
    whole = [*before, *after[-2:]]
    assert kept == whole[-len(kept) :]
    assert 3 <= len(kept) < len(whole)
    assert later[: len(after)] == after


async def test_the_cut_never_splits_a_call_from_its_result(tmp_path):
    async with host_on(tmp_path, script(works), window=WINDOW, policy="coop") as host:
        for _ in range(2):
            _, view = await until_compacted(host, times=len(receipts(host)) + 1)
            calls = [call["id"] for message in view for call in message.get("tool_calls") or ()]
            results = [message["tool_call_id"] for message in view if message["role"] == "tool"]
            assert calls
            assert results == calls
            start = next(number for number, one in enumerate(view[1:], 1) if text_of(one) != ACK)
            assert view[start]["role"] in ("user", "assistant")
            assert not view[start].get("tool_calls"), (
                "a valid place is a user message or a reply without calls"
            )


async def test_the_cut_keeps_twenty_thousand_recent_tokens_and_not_much_more(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WIDE, policy="coop") as host:
        _, view = await until_compacted(host)
        kept = view[1:]
        # counted before the turn's own request, by letters; the message that reaches the amount is the last
        assert KEEP <= estimate(kept) < KEEP + estimate(kept[:1])
        assert receipts(host)[0].tokens_before > WIDE - RESERVE


async def test_a_reply_that_stands_first_needs_no_acknowledgement(tmp_path):
    """Where coop would send two assistant messages in a row, Foldline leaves the acknowledgement out."""
    large = "u{} " + FILLER * 230
    async with host_on(tmp_path, BUILDS, window=WIDE, policy="coop") as host:
        _, view = await until_compacted(host)
        assert [message["role"] for message in view[:2]] == ["user", "assistant"]
        assert ACK not in str(view)
    other = tmp_path / "other"
    other.mkdir()
    async with host_on(other, script(lambda asked: "Yes."), window=WIDE, policy="coop") as host:
        _, view = await until_compacted(host, about=large)
        assert [message["role"] for message in view[:3]] == ["user", "assistant", "user"]
        assert text_of(view[1]) == ACK


async def test_the_summariser_reads_labelled_text(tmp_path):
    async with host_on(tmp_path, script(works, Goal="X."), window=WINDOW, policy="coop") as host:
        summarize_by_model(host)
        await until_compacted(host)
        [asked] = summary_requests(host.scripted)
        read = text_of(asked.messages[-1])
        assert "[User]: u1\n" in read
        assert "[Assistant]: Reply to “u1”." in read
        assert "[Tool call]: bash(" in read
        assert "seq -s ' ' 1 900" in read
        assert "[Tool result]" in read
        assert " 449 450 451 " in read, "coop's summariser reads whole results"
        assert [message["role"] for message in asked.messages] == ["system", "user"], "not as a conversation"


async def test_a_cleared_session_has_no_compaction_and_the_old_one_keeps_its_own(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="coop") as host:
        _, view = await until_compacted(host)
        old = host.session.id
        await run(host, "/clear")
        assert host.session.id != old
        await host.prompt("Hello.")
        assert texts(host.scripted.requests[-1]) == ["Hello."]
        assert (await host.session.stats()).summaries == 0
        await run(host, f"/resume {old}")
        await host.prompt("And then?")
        assert sent(host.scripted.requests[-1])[: len(view)] == view


def test_the_summary_is_written_by_the_fast_model_without_tools(tmp_path):
    with serve_model(BUILDS, window=WINDOW, models=["scripted", "fast"]) as (model, name):
        fast = name.replace(":scripted@", ":fast@")
        settings(tmp_path, f'[compaction]\nkeep = 4_000\nmodel = "{fast}"\n')
        rpc = Rpc(tmp_path, "--model", name, "--window", str(WINDOW), "--policy", "coop")
        for number in range(1, 4):
            rpc.prompt(f"u{number}")
        assert rpc.ask(type="compact")["folded"]
        [compaction] = [event for event in rpc.seen if event["type"] == "compaction"]
        assert rpc.close()[0] == 0
    [asked] = summary_requests(model)
    assert asked.model == "fast"
    assert asked.tools is None
    assert "Do not continue the conversation" in text_of(asked.messages[0])
    assert "Build X." in compaction["summary"]
    assert {one.model for one in reply_requests(model)} == {"scripted"}


async def test_the_next_compaction_updates_the_summary_before_it(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="coop") as host:
        summarize_by_model(host)
        await until_compacted(host, times=2)
        first, second = (text_of(asked.messages[-1]) for asked in summary_requests(host.scripted))
        assert "<previous-summary>" not in first
        assert "Build X." in second.split("<previous-summary>")[1].split("</previous-summary>")[0]
        assert "[User]: u1\n" in first
        # only what was said between the two cuts is new to the second
        assert "[User]: u1\n" not in second


async def test_a_failing_provider_fails_no_turn_and_the_summary_is_written_by_code(tmp_path):
    """Where coop goes on with the full context, Foldline's preset writes the summary from the ledger."""

    def says(asked):
        return Refusal(500, "overloaded") if headings(asked) else REPLY(asked)

    async with host_on(tmp_path, says, window=WINDOW, policy="coop") as host:
        summarize_by_model(host)
        await until_compacted(host)
        [receipt] = receipts(host)
        assert receipt.summarizer == "offline"
        assert any("overloaded" in note for note in receipt.notes)
        assert {event.how for event in host.heard.named("turn")} == {"done"}


async def test_a_compaction_that_fails_is_told_and_the_turn_has_the_full_history(tmp_path):
    def broken(_planned):
        raise OSError("no space left")

    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="coop") as host:
        host.session.before_compaction(broken)
        number = 0
        while not host.heard.named("warning"):
            before = await host.session.history()
            number += 1
            await talk(host, number, number)
        assert "no space left" in host.heard.named("warning")[0].text
        assert sent(host.scripted.requests[-1])[:-1] == before
        assert receipts(host) == []


# ---- tracing


def test_a_trace_shows_each_compaction_and_what_it_did(traced):
    _, seen, spans, _ = traced
    [compaction] = [event for event in seen if event["type"] == "compaction"]
    [span] = [span for span in spans if span["name"] == "compaction"]
    running, complete, done = span["events"]
    assert [running["name"], complete["name"], done["name"]] == [
        "running compaction",
        "compaction complete",
        "session compacted",
    ]
    assert running["attributes"]["messages_to_summarize"] == running["attributes"]["cut_index"] > 0
    assert running["attributes"]["has_previous"] is False
    assert running["attributes"]["tokens_before"] == compaction["tokensBefore"]
    assert complete["attributes"]["summary_len"] > complete["attributes"]["summary_tokens"] > 0
    assert done["attributes"]["tokens_before"] == compaction["tokensBefore"]
    assert done["attributes"]["first_kept"] == compaction["firstKeptEntryId"]


def test_a_trace_shows_that_requests_are_smaller_after_a_compaction(traced):
    model, _, spans, _ = traced
    place = next(number for number, span in enumerate(spans) if span["name"] == "compaction")
    before = spans[place - 2]["attributes"]  # between the two is the request for the summary
    after = spans[place + 1]["attributes"]
    assert before["foldline.message_count"] == len(sent(reply_requests(model)[-3]))
    assert after["foldline.message_count"] == len(sent(reply_requests(model)[-2]))
    assert after["foldline.message_count"] < before["foldline.message_count"]
    assert after["gen_ai.usage.input_tokens"] < before["gen_ai.usage.input_tokens"]


def test_a_trace_holds_no_word_of_the_session(traced):
    *_, spans, _ = traced
    assert "Build X." not in str(spans)
    assert "It goes the way" not in str(spans)


# ---- the rest of the design


def test_the_full_history_stays_on_disk(traced):
    model, _, _, folder = traced
    replies = len(reply_requests(model))
    log = (folder / "work/log.jsonl").read_text()
    assert all(f"Reply to “u{number}”" in log for number in range(1, replies))
    assert run_foldline(folder, "verify").returncode == 0


async def test_a_resumed_session_goes_on_behind_its_summary(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="coop") as host:
        summarize_by_model(host)
        _, view = await until_compacted(host)
        session = host.session.id
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="coop", session=session) as host:
        await host.prompt("And then?")
        assert sent(host.scripted.requests[0])[: len(view)] == view
        assert receipts(host) == [], "usage from before the compaction triggers nothing after it"


async def test_each_reply_is_stored_with_the_input_tokens_that_its_provider_counted(tmp_path):
    async with host_on(tmp_path, BUILDS, window=WINDOW, policy="coop") as host:
        await talk(host, 1, 3)
        counted = [m["metadata"]["input_tokens"] for m in await coop_file(host) if m["role"] == "assistant"]
        usages = [event.usage for event in host.heard.named("reply")]
        assert counted == [usage.input for usage in usages]
        assert [usage.input + usage.cache_read for usage in usages] == [
            asked.tokens for asked in host.scripted.requests
        ]


async def test_the_checkpoint_names_files_that_were_read_and_modified(tmp_path):
    steps = iter((call("read", path="main.rs"), call("write", path="lib.rs", content="// x\n")))

    def changes(asked):
        return next(steps, None) or REPLY(asked)

    async with host_on(tmp_path, script(changes, Goal="X."), window=WINDOW, policy="coop") as host:
        (tmp_path / "work/main.rs").write_text("fn main() {}\n")
        summarize_by_model(host)
        _, view = await until_compacted(host)
        checkpoint = text_of(view[0])
        assert "main.rs" in checkpoint.split("<read-files>")[1].split("</read-files>")[0]
        assert "lib.rs" in checkpoint.split("<modified-files>")[1].split("</modified-files>")[0]


async def test_the_baseline_of_a_long_session_stays_bounded(tmp_path):
    """The trace of the design: nine turns, the third of which reads much, with a request for each tool call."""

    def reads(asked):
        number = sum(message["role"] == "user" and text_of(message)[0] == "u" for message in asked.messages)
        steps = sum(message["role"] == "tool" for message in asked.messages)
        if text_of(newest_prompt(asked)) == "u3" and steps < 8:
            return Answer(text=long_reply(3_500)(asked), calls=WORKS)
        return long_reply(1_500 + number)(asked)

    baselines = {}
    for name, window in (("coop", WINDOW), ("full", 1_000_000)):
        folder = tmp_path / name
        folder.mkdir()
        async with host_on(folder, script(reads), window=window, policy="coop") as host:
            await talk(host, 1, 9)
            at_start = [asked for asked in host.scripted.requests if asked.messages[-1]["role"] == "user"]
            baselines[name] = [asked.tokens for asked in at_start]
    coop, full = baselines["coop"], baselines["full"]
    assert coop[:3] == full[:3], "no compaction needed"
    assert all(later > before for before, later in pairwise(full))
    assert all(small < large / 2 for small, large in zip(coop[3:], full[3:], strict=True))
    assert max(coop) < WINDOW - RESERVE + 2_000
