"""The stories of GenCode's design: pruning is free and goes first, then a prompt to continue by; ten messages stay."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from tests.agent.program import Rpc, run_foldline, serve_model, settings
from tests.agent.stories.scripts import (
    headings,
    last_request,
    long_reply,
    reply_requests,
    script,
    summarize_by_model,
    summary_requests,
    talk,
    text_of,
)
from tests.agent.working import host_on

from foldline.agent.commands.registry import run
from foldline.core.measure.window import Window
from foldline.testing import Answer, Scripted, call

pytestmark = pytest.mark.slow

DECISION = "Decided to use JWT with refresh tokens."
TALKS = script(
    long_reply(2_000), Accomplished="JWT is in place.", Important=DECISION, Context=DECISION, Key=DECISION
)
BIG = "seq -s ' ' 1 2500"  # some 6,000 tokens of a tool's output
SMALL = "[compaction]\nprune_minimum = 4_000\nprune_protect = 7_000\nreserved_output = 8_000\n"


def model_of(says, context=60_000):
    return Scripted(says, window=Window(context=context, output=8_000))


def works(asked):
    """Run a command that says much, then answer."""
    if headings(asked):
        return TALKS(asked)
    return (
        "Done."
        if asked.messages[-1]["role"] == "tool"
        else Answer(text="", calls=call("bash", command=BIG).calls)
    )


async def until(host, name, most=30):
    number = 0
    while not host.heard.named(name):
        number += 1
        assert number <= most
        await talk(host, number, number)
    return number


# ---- the three layers


async def test_old_tool_results_are_cleared_before_anything_is_summarised(tmp_path):
    settings(tmp_path, SMALL)
    async with host_on(tmp_path, model_of(works), policy="gencode") as host:
        await until(host, "pruned")
        assert not summary_requests(host.scripted)
        await talk(host, 50, 50)
        results = [text_of(m) for m in reply_requests(host.scripted)[-1].messages if m["role"] == "tool"]
        assert results[0].startswith("[")
        assert len(results[0]) < 500
        assert all(len(text) > 5_000 for text in results[-1:])
        assert len(str((await host.session.history())[2])) > 5_000  # the log keeps it whole


async def test_where_nothing_is_left_to_prune_the_old_messages_become_a_prompt_to_continue_by(tmp_path):
    async with host_on(tmp_path, model_of(TALKS, 40_000), policy="gencode") as host:
        summarize_by_model(host)
        number = await until(host, "compacted")
        await talk(host, number + 1, number + 1)
        asked = summary_requests(host.scripted)[-1]
        text = "\n".join(text_of(message) for message in asked.messages)
        assert "continu" in text
        first = reply_requests(host.scripted)[-1].messages[1]
        assert first["role"] == "system"
        assert DECISION in text_of(first)


async def test_the_last_ten_messages_stay_as_they_are(tmp_path):
    async with host_on(tmp_path, model_of(TALKS, 40_000), policy="gencode") as host:
        summarize_by_model(host)
        await until(host, "compacted")
        kept = host.heard.named("compacted")[0].receipt.messages_after
        assert 10 <= kept <= 12  # the checkpoint stands before them
        said = await host.session.history()
        assert reply_requests(host.scripted)[-1].messages[-9:] != []
        assert text_of(said[-2]) in last_request(host)


async def test_the_summary_names_files_and_tools_by_code(tmp_path):
    (tmp_path / "work").mkdir()
    moves = [call("write", path="src/auth.py", content="jwt = True\n"), "The tokens are in place."]

    def says(asked):
        if headings(asked):
            return script(str)(asked)
        return moves.pop(0) if moves else long_reply(2_000)(asked)

    async with host_on(tmp_path, model_of(says, 40_000), policy="gencode") as host:
        await host.prompt("Implement a user authentication system using JWT.")
        await talk(host, 2, 8)
        await run(host, "/compact")
        ledger = json.loads(await host.session.export("gencode", view=True))["summaries"][0]
        assert ledger["filesModified"] == ["src/auth.py"]
        assert [one["tool"] for one in ledger["toolsUsed"]] == ["write"]
        assert ledger["type"] == "compaction"


# ---- its unit tests, by what they are about


async def test_under_the_limit_nothing_is_done(tmp_path):
    async with host_on(tmp_path, model_of(works), policy="gencode") as host:
        await talk(host, 1, 3)
        assert not host.heard.named("pruned", "compacted")


async def test_less_than_the_minimum_is_not_pruned(tmp_path):
    settings(
        tmp_path, "[compaction]\nprune_minimum = 50_000\nprune_protect = 1_000\nreserved_output = 8_000\n"
    )
    async with host_on(tmp_path, model_of(works), policy="gencode") as host:
        summarize_by_model(host)
        await until(host, "compacted")
        assert not host.heard.named("pruned")


async def test_the_setting_that_disables_it_is_respected(tmp_path):
    settings(tmp_path, "[compaction]\nenabled = false\n")
    async with host_on(tmp_path, model_of(TALKS, 20_000), policy="gencode") as host:
        hows = [(await host.prompt(f"u{number}")).how for number in range(1, 14)]
        assert not host.heard.named("pruned", "compacted")
        assert hows[0] == "done"
        assert hows[-1] == "failed"  # and nothing was done about it unasked


async def test_pruning_and_compaction_are_switched_apart(tmp_path):
    settings(tmp_path, f"{SMALL}pruning = false\n")
    async with host_on(tmp_path, model_of(works), policy="gencode") as host:
        summarize_by_model(host)
        await until(host, "compacted")
        assert not host.heard.named("pruned")


async def test_a_second_model_writes_the_summaries(tmp_path):
    settings(tmp_path, '[compaction]\nmodel = "offline"\n')
    async with host_on(tmp_path, model_of(TALKS, 40_000), policy="gencode") as host:
        await until(host, "compacted")
        assert host.heard.named("compacted")[0].receipt.summarizer == "offline"
        assert not summary_requests(host.scripted)


# ---- its three manual tests


async def test_a_long_conversation_shows_its_four_figures(tmp_path):
    async with host_on(tmp_path, model_of(TALKS, 40_000), policy="gencode") as host:
        summarize_by_model(host)
        await until(host, "compacted")
        text = (await run(host, "/stats")).text
        figures = dict(re.findall(r"^\| (\w+) \| ([\d.]+) \|$", text, re.MULTILINE))
        assert list(figures) == ["totalMessages", "activeMessages", "summaryCount", "compressionRatio"]
        stats = await host.session.stats()
        assert stats.total_messages > stats.active_messages
        assert stats.summaries > 0
        assert 0 < float(figures["compressionRatio"]) == stats.compression_ratio < 1


async def test_tool_output_pruning_marks_what_it_cleared(tmp_path):
    begun = datetime.now(UTC)
    settings(tmp_path, SMALL)
    async with host_on(tmp_path, model_of(works), policy="gencode") as host:
        await until(host, "pruned")
        saved = json.loads(await host.session.export("gencode", view=True))
        parts = [p for m in saved["messages"] if isinstance(m["content"], list) for p in m["content"]]
        results = [str(part["content"]) for part in parts if part["type"] == "tool_result"]
        pruned = [text for text in results if text.startswith("[Old tool result cleared ")]
        days = [f"{one:%Y-%m-%d}" for one in (begun, datetime.now(UTC))]
        assert all(days[0] <= text.split()[4][:10] <= days[1] for text in pruned)
        assert 0 < len(pruned) < len(results)


def test_a_session_is_resumed_and_recalls_the_decision(tmp_path):
    def says(asked):
        if headings(asked):
            return TALKS(asked)
        text = text_of(asked.messages[-1])
        if "Which authentication scheme" in text:
            said = "\n".join(text_of(message) for message in asked.messages[:-1])
            return "JWT with refresh tokens." if "JWT" in said else "I do not know."
        return long_reply(2_500)(asked)

    with serve_model(model_of(says, 30_000)) as (_, name):
        options = ("--model", name, "--window", "30000", "--policy", "gencode")
        rpc = Rpc(tmp_path, *options)
        rpc.prompt(f"Implement a user authentication system using JWT. {DECISION}")
        for number in range(2, 14):
            rpc.prompt(f"u{number}")
        rpc.send(type="command", line="/save")
        assert "saved" in rpc.wait("response", command="command")["data"]["text"].lower()
        assert rpc.ask(type="stats")["summaryCount"] > 0
        session = rpc.session
        assert rpc.close() == (0, "")
        question = "Which authentication scheme did we choose?"
        done = run_foldline(tmp_path, "run", "-p", question, "--resume", session, *options)
        assert done.returncode == 0, done.stderr
        assert "JWT" in done.stdout
