"""What pi's research found in Claude Code, Codex, OpenCode and Amp, each as a preset of the same loop."""

from __future__ import annotations

import pytest
from tests.agent.program import run_foldline, serve_model, settings
from tests.agent.stories.scripts import (
    FILLER,
    headings,
    last_request,
    long_reply,
    receipts,
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
from foldline.testing import Answer, Refusal, Scripted, call

pytestmark = pytest.mark.slow

WINDOW = 20_000
REPLY = long_reply(2_000)
TALKS = script(REPLY, Task="Build X.", Current="Build X.", Goal="Build X.")


async def until_compacted(host, most=20):
    """Talk until something was folded; returns the number of turns."""
    for number in range(1, most + 1):
        await talk(host, number, number)
        if host.heard.named("compacted"):
            return number
    raise AssertionError("nothing was folded")


# ---- Claude Code


async def test_claude_code_compacts_at_95_percent_of_the_window(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="claude-code") as host:
        summarize_by_model(host)
        await until_compacted(host)
        (receipt,) = receipts(host)
        used = [event.usage.total for event in host.heard.named("reply")]
        assert receipt.reason == "threshold"
        assert max(used[:-2], default=0) <= WINDOW * 0.95


async def test_claude_code_takes_a_focus_and_sums_up_only_that(tmp_path):
    focus = "only the TODOs"
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="claude-code") as host:
        summarize_by_model(host)
        await talk(host, 1, 4)
        await run(host, f"/compact {focus}")
        asked = summary_requests(host.scripted)
        assert focus in text_of(asked[-1].messages[-1])
        await talk(host, 5, 5)
        assert "Build X." in last_request(host)[0]
        assert not any(text.startswith("u2") for text in last_request(host))


async def test_clear_begins_anew_and_compact_does_not(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="claude-code") as host:
        await talk(host, 1, 3)
        before = host.session.id
        await run(host, "/compact")
        assert host.session.id == before
        await run(host, "/clear")
        assert host.session.id != before
        await talk(host, 9, 9)
        assert last_request(host) == ["u9"]
        assert before in [one.id for one in await host.store.sessions()]


# ---- Codex


async def test_codex_keeps_the_users_messages_and_the_summary_behind_a_prefix(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="codex") as host:
        summarize_by_model(host)
        count = await until_compacted(host)
        await talk(host, count + 1, count + 1)
        texts = last_request(host)
        kept = [text for text in texts if text in {f"u{number}" for number in range(1, count + 2)}]
        assert kept == [f"u{number}" for number in range(1, count + 2)]
        (summary,) = [text for text in texts if "Build X." in text]
        assert summary.index("Another model began this task") < summary.index("Build X.")


async def test_codex_warns_with_every_compaction_that_accuracy_suffers(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="codex") as host:
        summarize_by_model(host)
        for number in range(1, 4):
            await talk(host, number * 3, number * 3 + 2)
            await run(host, "/compact")
        warnings = [event for event in host.heard.named("warning") if event.kind == "repeated_compactions"]
        assert len(warnings) == len(receipts(host)) > 1


async def test_codex_asks_for_the_summary_again_after_a_failure(tmp_path):
    failed = []

    def says(asked):
        if headings(asked) and not failed:
            failed.append(asked)
            return Refusal(503, "overloaded")
        return TALKS(asked)

    async with host_on(tmp_path, says, window=WINDOW, policy="codex") as host:
        summarize_by_model(host)
        await talk(host, 1, 3)
        await run(host, "/compact")
        assert len(failed) == 1
        assert receipts(host)[0].summarizer.endswith("scripted")


async def test_codex_sends_the_history_to_the_summariser_with_a_prompt_of_its_own(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="codex") as host:
        summarize_by_model(host)
        await talk(host, 1, 3)
        await run(host, "/compact")
        asked = summary_requests(host.scripted)[-1]
        said = "\n".join(text_of(message) for message in asked.messages)
        assert all(f"u{number}" in said for number in range(1, 4))
        assert "checkpoint" in said


# ---- OpenCode


BIG = "seq -s ' ' 1 2500"  # some 6,000 tokens of a tool's output


def works(asked):
    """Run a command that says much, then answer."""
    newest = asked.messages[-1]
    if headings(asked):
        return TALKS(asked)
    return "Done." if newest["role"] == "tool" else Answer(text="", calls=call("bash", command=BIG).calls)


async def test_opencode_prunes_old_tool_output_outside_what_is_protected(tmp_path):
    own = "[compaction]\nprune_minimum = 4_000\nprune_protect = 7_000\n"
    settings(tmp_path, own)
    model = Scripted(works, window=Window(context=60_000, output=8_000))
    async with host_on(tmp_path, model, policy="opencode") as host:
        await talk(host, 1, 10)
        pruned = host.heard.named("pruned")
        assert pruned
        assert not host.heard.named("compacted")
        texts = [text_of(m) for m in reply_requests(host.scripted)[-1].messages if m["role"] == "tool"]
        assert len(texts[0]) < 500 < len(texts[-1])


@pytest.mark.slow
def test_opencode_is_switched_off_by_the_environment(tmp_path):
    with serve_model(TALKS, window=WINDOW) as (model, name):
        options = ("--model", name, "--window", str(WINDOW), "--policy", "opencode")
        for number in range(1, 5):
            go_on = ("--continue",) if number > 1 else ()
            text = f"u{number} {FILLER * 60}"
            done = run_foldline(
                tmp_path, "run", "-p", text, *options, *go_on, FOLDLINE_DISABLE_AUTOCOMPACT="1"
            )
            assert done.returncode == 0, done.stderr
            assert "folded" not in done.stderr
        assert not summary_requests(model)


async def test_opencode_goes_on_with_the_turn_behind_its_own_compaction(tmp_path):
    moves = [Answer(text="", calls=call("bash", command=BIG).calls)] * 2 + ["It is done."] * 4

    def says(asked):
        return TALKS(asked) if headings(asked) else moves.pop(0)

    async with host_on(tmp_path, says, window=16_000, policy="opencode") as host:
        summarize_by_model(host)
        ended = await host.prompt("Count, and count again.")
        assert ended.how == "done"
        assert host.heard.named("compacted")
        checkpoint, *_, newest = last_request(host)
        assert "Count, and count again." in checkpoint
        assert newest.endswith("2500")  # the result that waits for an answer says what to do


async def test_opencode_shows_two_sentences_apart_from_the_checkpoint(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="opencode") as host:
        await talk(host, 1, 2)
        await run(host, "/compact")
        shown = await host.session.display_summary()
        assert 0 < shown.count(". ") + shown.endswith(".") <= 2
        assert "#" not in shown


# ---- Amp


async def test_amp_never_compacts_by_itself(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="amp") as host:
        hows = [(await host.prompt(f"u{number} {FILLER * 60}")).how for number in range(1, 9)]
        assert receipts(host) == []
        assert hows[-1] == "failed"  # the user decides what to do


async def test_amp_hands_off_what_serves_a_goal_to_a_new_session(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="amp") as host:
        summarize_by_model(host)
        await host.prompt("Never push to main. Build X.")
        before = host.session.id
        outcome = await run(host, "/handoff write the release notes")
        assert host.session.id != before
        asked = summary_requests(host.scripted)
        assert "write the release notes" in str([text_of(message) for message in asked[-1].messages])
        assert outcome.text
        await talk(host, 9, 9)
        assert "Never push to main." in last_request(host)[0]
        assert not any("Reply to" in text for text in last_request(host)[1:])


async def test_amp_forks_at_a_message_and_the_original_stays(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="amp") as host:
        await talk(host, 1, 3)
        before = host.session.id
        outcome = await run(host, "/fork 2")
        assert (host.session.id != before, outcome.editor) == (True, "u2")
        await talk(host, 8, 8)
        assert [text for text in last_request(host) if text.startswith("u")] == ["u1", "u8"]
        stored = {one.id: one.messages for one in await host.store.sessions()}
        assert stored[before] == 6


async def test_amp_restores_an_earlier_message_for_editing(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="amp") as host:
        await talk(host, 1, 3)
        outcome = await run(host, "/rewind 2")
        assert outcome.editor == "u2"
        await host.prompt("u2, but shorter")
        assert [text for text in last_request(host) if text.startswith("u")] == ["u1", "u2, but shorter"]


async def test_amp_refers_to_another_thread_and_takes_what_is_relevant(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="amp") as host:
        await host.prompt("The port of the staging server is 8471.")
        await host.prompt("The colour of the logo is teal.")
        before = host.session.id
        await run(host, "/clear")
        await host.prompt(f"Which port has the staging server? @{before[:8]}")
        said = "\n".join(last_request(host))
        assert "8471" in said
        assert len(last_request(host)) <= 3


# ---- what pi made of it


@pytest.mark.parametrize("preset", ["claude-code", "codex", "opencode", "amp"])
async def test_nothing_is_lost_under_any_of_them(tmp_path, preset):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy=preset) as host:
        await talk(host, 1, 3)
        await run(host, "/compact")
        assert len(await host.session.history()) == 6
        assert await host.session.verify() == []
        for _ in receipts(host):
            await run(host, "/undo")
        await run(host, "/autocompact off")
        await talk(host, 4, 4)
        assert [text for text in last_request(host) if text.startswith("u")] == ["u1", "u2", "u3", "u4"]
