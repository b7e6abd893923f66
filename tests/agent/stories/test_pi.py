"""The stories of pi's design: compaction behind a reply, cut before a user message, and branches over it."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib

import pytest
from tests.agent.program import Rpc, run_foldline, serve_model, settings
from tests.agent.stories.scripts import (
    FILLER,
    headings,
    long_reply,
    outline,
    reply_requests,
    script,
    scripted_moves,
    step,
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
from foldline.core.log.entries import Compacted
from foldline.core.log.messages import Usage
from foldline.dialects import get
from foldline.testing import Answer, Gate, Refusal, call

pytestmark = pytest.mark.slow

TASK = "Build X."


def talk_of(count, tokens=2_000):
    """Prompts u1, u2 ... and long replies to them, summaries included."""
    return script(
        scripted_moves({f"u{n}": [f"a{n} {FILLER * (tokens // 14)}"] for n in range(1, count + 1)}), Task=TASK
    )


async def view(host, prompt):
    """The outline of the request that a prompt makes."""
    await host.prompt(prompt)
    return outline(reply_requests(host.scripted)[-1])[:-1]


def boundaries(raw):
    """The compaction entries of a session file of pi's."""
    entries = [json.loads(line) for line in raw.splitlines()]
    return [one for one in entries if one["type"] == "compaction"], entries


# ---- the two examples of compaction

LONG = "echo t3; seq 1 700"
WORK = {
    "u1": [step("a1", "echo t1; seq 1 500", "echo t1; seq 1 500"), "a1"],
    "u2": ["a2 " + FILLER * 60],
    "u3": [step("a3", LONG), step("a3", LONG), "a3"],
    "u4": [step("a4", "echo t4; seq 1 400"), "a4 " + FILLER * 8],
    "u5": ["a5 " + FILLER * 350],
    "u6": [step("a6", "echo t6; seq 1 200"), "a6"],
    "u7": ["a7 " + FILLER * 35],
    "u8": ["a8"],
}
SMALL = "[compaction]\nreserve = 11_500\nkeep = 1_000\n"  # of 20,000: compacts above 8,500


async def test_a_single_compaction_keeps_the_newest_turn_and_new_messages_follow_it(tmp_path):
    settings(tmp_path, SMALL)
    async with host_on(tmp_path, script(scripted_moves(WORK), Task=TASK), window=20_000, policy="pi") as host:
        summarize_by_model(host)
        await talk(host, 1, 3)
        assert host.heard.named("compacted") == []
        await talk(host, 4, 4)
        whole = "u1 a1 t1 t1 a1 u2 a2 u3 a3 t3 a3 t3 a3 u4 a4 t4".split()
        assert outline(reply_requests(host.scripted)[-1]) == whole
        assert len(host.heard.named("compacted")) == 1
        assert await view(host, "u5") == ["summary", "u4", "a4", "t4", "a4"]
        assert outline(reply_requests(host.scripted)[-1])[-1] == "u5"


async def test_a_second_compaction_takes_up_the_first_summary_and_keeps_what_came_after(tmp_path):
    settings(tmp_path, SMALL)
    async with host_on(tmp_path, script(scripted_moves(WORK), Task=TASK), window=20_000, policy="pi") as host:
        summarize_by_model(host)
        await talk(host, 1, 7)
        assert len(host.heard.named("compacted")) == 2
        assert await view(host, "u8") == ["summary", "u6", "a6", "t6", "a6", "u7", "a7"]
        first, second = (text_of(asked.messages[-1]) for asked in summary_requests(host.scripted))
        assert "[User]: u1" in first
        assert TASK in second.split("<previous-summary>")[1]
        assert "[User]: u1" not in second
        assert "[User]: u4" in second


async def test_what_is_kept_never_crosses_the_boundary_before(tmp_path):
    settings(tmp_path, "[compaction]\nkeep = 3_000\n")
    async with host_on(tmp_path, talk_of(6, 1_000), window=60_000, policy="pi") as host:
        summarize_by_model(host)
        await talk(host, 1, 4)
        await run(host, "/compact")
        assert await view(host, "u5") == ["summary", "u3", "a3", "u4", "a4"]
        await run(host, "/compact")
        assert await view(host, "u6") == ["summary", "u5", "a5"]


async def test_compactions_are_appended_to_the_session_file_and_nothing_is_rewritten(tmp_path):
    settings(tmp_path, SMALL)
    async with host_on(tmp_path, script(scripted_moves(WORK), Task=TASK), window=20_000, policy="pi") as host:
        summarize_by_model(host)
        await talk(host, 1, 4)
        [fold], before = boundaries(await host.session.export("pi"))
        assert TASK in fold["summary"]
        assert fold["tokensBefore"] > 8_500
        kept = next(one for one in before if one["id"] == fold["firstKeptEntryId"])
        assert kept["message"]["content"] == "u4"
        await talk(host, 5, 7)
        folds, after = boundaries(await host.session.export("pi"))
        assert len(folds) == 2
        assert after[1 : len(before)] == before[1:]  # all but the header, whose id is made anew


# ---- when, and what is asked for


@pytest.mark.parametrize("part", ["input", "cache_read", "cache_write", "output"])
async def test_the_four_parts_of_the_last_usage_make_the_size(tmp_path, part):
    usage = {"input": 10, "output": 10, part: 44_000}
    answers = ["a1", "a2", Answer(text="a3", usage=Usage(**usage)), "a4"]
    async with host_on(
        tmp_path, script(lambda _: answers.pop(0), Task=TASK), window=60_000, policy="pi"
    ) as host:
        await talk(host, 1, 2)
        assert host.heard.named("compaction_started") == []
        await talk(host, 3, 3)
        assert host.heard.named("compaction_started")[0].reason == "threshold"


async def test_the_summary_is_a_user_message_behind_a_prefix(tmp_path):
    async with host_on(tmp_path, talk_of(8, 6_000), window=60_000, policy="pi") as host:
        summarize_by_model(host)
        await talk(host, 1, 8)
        message = reply_requests(host.scripted)[-1].messages[1]
        assert message["role"] == "user"
        assert "Another language model worked on this task and produced a summary." in text_of(message)
        assert TASK in text_of(message)


async def test_the_summariser_has_no_tools_no_reasoning_and_four_fifths_of_the_reserve(tmp_path):
    async with host_on(tmp_path, talk_of(60, 6_000), window=200_000, policy="pi") as host:
        summarize_by_model(host)
        await talk(host, 1, 30)
        await run(host, "/compact the parser")
        asked = summary_requests(host.scripted)[0]
        assert asked.tools is None
        assert asked.body["reasoning_effort"] == "none"
        assert 13_000 < token_limit(asked) < 13_107


async def test_manual_compaction_takes_a_focus(tmp_path):
    async with host_on(tmp_path, talk_of(3), window=60_000, policy="pi") as host:
        summarize_by_model(host)
        await talk(host, 1, 3)
        assert "Folded" in (await run(host, "/compact the database schema")).text
        assert "<focus>\nthe database schema\n</focus>" in text_of(
            summary_requests(host.scripted)[0].messages[-1]
        )
        assert host.heard.named("compacted")[0].receipt.reason == "manual"


async def test_autocompact_is_toggled_shown_and_saved(tmp_path):
    async with host_on(tmp_path, talk_of(10, 6_000), window=60_000, policy="pi") as host:
        shown = (await run(host, "/autocompact")).text
        assert "**on**" in shown
        assert "Reserve 16,384 tokens, keep 20,000 tokens" in shown
        await run(host, "/autocompact off")
        await talk(host, 1, 8)
        assert host.heard.named("compaction_started") == []
        await run(host, "/autocompact on")
        await talk(host, 9, 9)
        assert len(host.heard.named("compacted")) == 1
    assert "enabled = true" in (tmp_path / "home/.foldline/settings.toml").read_text()


async def test_a_compaction_in_the_middle_of_a_turn_waits_for_results_and_the_run_goes_on(tmp_path):
    """Where pi aborts the run, the calls are answered, and the same run goes on behind the boundary."""
    moves = {
        "u1": ["a1 " + FILLER * 300],
        "u2": [step("a2 " + FILLER * 100, "echo kept-result"), "a2 done"],
    }
    settings(tmp_path, "[compaction]\nreserve = 13_000\nkeep = 2_500\n")
    async with host_on(
        tmp_path, script(scripted_moves(moves), Task=TASK), window=20_000, policy="pi"
    ) as host:
        summarize_by_model(host)
        await host.prompt("u1")
        ended = await host.prompt("u2")
        assert (ended.how, ended.text) == ("done", "a2 done")
        kinds = [e.name for e in host.heard if e.name in ("call", "result", "compacted", "reply")]
        assert kinds == ["reply", "reply", "call", "result", "compacted", "reply"]
        assert outline(reply_requests(host.scripted)[-1]) == ["summary", "u2", "a2", "kept-result"]


async def test_never_is_a_turn_cut_between_a_call_and_its_result(tmp_path):
    moves = {f"u{n}": [step(f"a{n}", *[f"echo t{n}; seq 1 150"] * 3), f"a{n}"] for n in range(1, 25)}
    settings(tmp_path, "[compaction]\nreserve = 8_000\nkeep = 1_600\n")
    async with host_on(
        tmp_path, script(scripted_moves(moves), Task=TASK), window=14_000, policy="pi"
    ) as host:
        summarize_by_model(host)
        await talk(host, 1, 24)
        entries = [entry async for entry in host.store.path(host.session.id)]
        folds = [entry for entry in entries if isinstance(entry, Compacted)]
        roles = {entry.id: entry.message.role for entry in entries if hasattr(entry, "message")}
        assert len(folds) > 3
        assert {roles[fold.first_kept] for fold in folds} == {"user"}
        assert get("openai-chat").validate(await host.session.context()) == []


# ---- branching


async def folded(host):
    """u1 a1 u2 a2, a compaction that keeps u2 and a2, u3 a3 u4 a4: the session of both examples."""
    summarize_by_model(host)
    await talk(host, 1, 2)
    await run(host, "/compact")
    await talk(host, 3, 4)


async def test_branching_after_a_compaction_keeps_it(tmp_path):
    settings(tmp_path, "[compaction]\nkeep = 2_500\n")
    async with host_on(tmp_path, talk_of(4), window=60_000, policy="pi") as host:
        await folded(host)
        listed = (await run(host, "/branch")).text
        assert [row.split(". ")[1] for row in listed.splitlines()[:4]] == ["(folded) u1", "u2", "u3", "u4"]
        outcome = await run(host, "/branch 3")
        assert outcome.editor == "u3"
        assert "behind" not in outcome.text
        assert await view(host, "u3") == ["summary", "u2", "a2"]


async def test_branching_before_a_compaction_undoes_it(tmp_path):
    settings(tmp_path, "[compaction]\nkeep = 2_500\n")
    async with host_on(tmp_path, talk_of(4), window=60_000, policy="pi") as host:
        await folded(host)
        outcome = await run(host, "/branch 2")
        assert outcome.editor == "u2"
        assert "leaves 1 compaction behind" in outcome.text
        assert await view(host, "u2") == ["u1", "a1"]
        # nothing of what was left is lost
        assert len(await host.session.branches()) == 2


async def test_a_branch_in_a_session_of_its_own_has_the_entries_as_they_are_up_to_the_message(tmp_path):
    settings(tmp_path, "[compaction]\nkeep = 2_500\n")
    async with host_on(tmp_path, talk_of(4), window=60_000, policy="pi") as host:
        await folded(host)
        first = host.session.id
        before = [entry.id async for entry in host.store.path(first)]
        outcome = await run(host, "/fork 3")
        assert outcome.editor == "u3"
        assert host.session.id != first
        copied = [entry async for entry in host.store.path(host.session.id)]
        ids = [entry.id for entry in copied[:-1]]
        assert ids == before[: len(ids)]
        assert any(isinstance(entry, Compacted) for entry in copied)
        assert copied[-1].data["how"] == "fork"
        assert await view(host, "u3") == ["summary", "u2", "a2"]
        assert [entry.id async for entry in host.store.path(first) if entry.id in before] == before


async def test_a_branch_from_before_the_first_message_is_an_empty_session(tmp_path):
    async with host_on(tmp_path, talk_of(2), window=60_000, policy="pi") as host:
        await talk(host, 1, 1)
        outcome = await run(host, "/fork 1")
        assert (outcome.editor, await host.session.history()) == ("u1", [])


# ---- pictures


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0\1\2\3"))
        + chunk(b"IEND", b"")
    )


async def test_a_picture_that_was_read_by_its_path_is_known_by_it_after_a_compaction(tmp_path):
    moves = {
        "Look at shots/error.png.": [call("read", path="shots/error.png"), "The dialog says E42."],
        **{f"u{n}": [f"a{n} {FILLER * 140}"] for n in (1, 2)},
    }
    settings(tmp_path, "[compaction]\nkeep = 2_500\n")
    (tmp_path / "work/shots").mkdir(parents=True)
    (tmp_path / "work/shots/error.png").write_bytes(png())
    at_work = {"window": 60_000, "policy": "pi", "dialect": "anthropic"}
    async with host_on(tmp_path, script(scripted_moves(moves), Task=TASK), **at_work) as host:
        summarize_by_model(host)
        await host.prompt("Look at shots/error.png.")
        assert "'type': 'image'" in str(reply_requests(host.scripted)[-1].messages)
        await talk(host, 1, 2)
        await run(host, "/compact")
        await host.prompt("u2")
        sent = reply_requests(host.scripted)[-1]
        assert "'type': 'image'" not in str(sent.messages)
        assert "shots/error.png" in text_of(sent.messages[0])


async def test_a_picture_attached_to_a_message_that_is_folded_is_gone_from_the_view_and_kept(tmp_path):
    """The known limitation of pi's design, with the way out that a log allows."""
    said = "What is wrong here? @error.png"
    moves = {said: ["The dialog says E42."], **{f"u{n}": [f"a{n} {FILLER * 140}"] for n in (1, 2)}}
    (tmp_path / "work").mkdir()
    (tmp_path / "work/error.png").write_bytes(png())
    settings(tmp_path, "[compaction]\nkeep = 2_500\n")
    async with host_on(
        tmp_path, script(scripted_moves(moves), Task=TASK), window=60_000, policy="pi"
    ) as host:
        summarize_by_model(host)
        await host.prompt(said)
        assert "image_url" in str(reply_requests(host.scripted)[-1].messages)
        await talk(host, 1, 2)
        await run(host, "/compact")
        await host.prompt("u2")
        assert "image_url" not in str(reply_requests(host.scripted)[-1].messages)
        read = text_of(summary_requests(host.scripted)[0].messages[-1])
        assert "error.png" in read
        assert "image" in read
        assert "image_url" in str(await host.session.history())
        await run(host, "/undo")
        assert "image_url" in str(await host.session.context())


# ---- modes, failures, aborts; over HTTP

CHATTY = script(long_reply(2_500), Task=TASK)
EARLY = "[compaction]\nreserve = 14_000\nkeep = 2_800\n"  # of 20,000: compacts above 6,000


async def begun(folder):
    """Options that go on with a session whose next reply brings it above the threshold."""
    settings(folder, EARLY)
    store = f"sqlite:///{folder / 'sessions.db'}"
    async with host_on(folder, CHATTY, window=20_000, policy="pi", store=store) as host:
        await talk(host, 1, 1)
        assert host.heard.named("compaction_started") == []
        return "--resume", host.session.id, "--store", store, "--window", "20000", "--policy", "pi"


async def test_in_print_mode_the_answer_is_printed_and_the_compaction_told_on_the_side(tmp_path):
    options = await begun(tmp_path)
    with serve_model(CHATTY, window=20_000) as (_, name):
        done = await asyncio.to_thread(run_foldline, tmp_path, "run", "-p", "u2", "--model", name, *options)
    assert done.returncode == 0
    assert done.stdout.startswith("Reply to “u2”.")
    assert "folded, threshold:" in done.stderr


async def test_in_json_mode_a_compaction_is_an_event(tmp_path):
    options = await begun(tmp_path)
    with serve_model(CHATTY, window=20_000) as (_, name):
        done = await asyncio.to_thread(
            run_foldline, tmp_path, "run", "--json", "-p", "u2", "--model", name, *options
        )
    [found] = [one for one in map(json.loads, done.stdout.splitlines()) if one["type"] == "compaction"]
    assert TASK in found["summary"]
    assert found["tokensBefore"] > 6_000
    assert found["timestamp"].endswith("Z")
    assert found["firstKeptEntryId"]


async def test_the_signal_that_stops_a_turn_stops_a_compaction_behind_a_reply(tmp_path):
    wait = [Gate()]

    def says(asked):
        return Answer(text=summary(asked, Task=TASK), wait=wait[0]) if headings(asked) else CHATTY(asked)

    settings(tmp_path, EARLY)
    async with host_on(tmp_path, says, window=20_000, policy="pi") as host:
        summarize_by_model(host)
        await host.prompt("u1")
        await host.prompt("u2")
        await until(lambda: summary_requests(host.scripted))
        assert host.interrupt()
        await host.session.settled()
        assert host.heard.named("compacted", "strike", "warning") == []
        assert not host.interrupt()
        assert await host.session.verify() == []
        wait[0] = 0.0
        await talk(host, 3, 3)
        assert host.heard.named("compacted")


def test_over_rpc_compactions_are_sent_to_the_client_and_can_be_aborted(tmp_path):
    wait = [Gate()]

    def says(asked):
        if not headings(asked):
            return long_reply(1_000)(asked)
        return Answer(text=summary(asked, Task=TASK), wait=wait[0])

    settings(tmp_path, EARLY)
    with serve_model(says, window=20_000) as (_, name):
        rpc = Rpc(tmp_path, "--model", name, "--window", "20000", "--policy", "pi")
        for number in range(1, 4):
            rpc.prompt(f"u{number}")
        rpc.send(type="compact", instructions="the schema")
        rpc.wait("compaction_started")
        assert rpc.ask(type="abort") == {"stopped": True}
        assert rpc.wait("error") == {"type": "error", "error": "aborted; the session is unchanged"}
        assert rpc.ask(type="stats")["summaryCount"] == 0
        wait[0] = 0.0
        assert rpc.ask(type="compact")["folded"]
        assert TASK in next(one for one in rpc.seen if one["type"] == "compaction")["summary"]
        assert rpc.close()[0] == 0


async def test_a_compaction_that_fails_says_so_and_leaves_the_decision_to_the_user(tmp_path):
    def says(asked):
        return Refusal(401, "bad key") if headings(asked) else long_reply(2_000)(asked)

    async with host_on(tmp_path, says, window=60_000, policy="pi") as host:
        summarize_by_model(host)
        await talk(host, 1, 3)
        told = (await run(host, "/compact")).text
        # a summary there is, by code; the receipt says why the model wrote none, and the user may undo it
        assert "by code alone" in told
        assert any("bad key" in note for note in host.heard.named("compacted")[0].receipt.notes)
        assert "undone" in (await run(host, "/undo")).text
