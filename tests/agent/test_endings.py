"""A turn ends by why the model's reply did: a refusal, a filter, an empty or a cut-off reply is no answer."""

from __future__ import annotations

import json

import pytest
from tests.agent.program import foldline, served
from tests.agent.working import host_on

from foldline.testing import Answer, call

DIALECTS = ("openai-chat", "openai-responses", "anthropic")
SHORT = {
    "refused": Answer(text="", stop="refused"),
    "empty": Answer(text=""),
    "length": Answer(text="The first half of", stop="length"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("how", SHORT)
async def test_no_answer_is_not_done_and_the_next_prompt_is_answered(tmp_path, dialect, how):
    async with host_on(tmp_path, [SHORT[how], "Here it is."], dialect=dialect) as host:
        ended = await host.prompt("Name the tide.")
        assert (ended.how, ended.fell_short) == (how, True)
        assert ended.detail
        again = await host.prompt("Name the harbour then.")
        assert (again.how, again.text) == ("done", "Here it is.")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_call_in_a_refused_reply_is_not_run(tmp_path, dialect):
    refused = Answer(text="I will not", calls=call("write", path="a.txt", content="x").calls, stop="refused")
    async with host_on(tmp_path, [refused, "As you like."], dialect=dialect) as host:
        assert (await host.prompt("Write it.")).how == "refused"
        assert not (tmp_path / "work/a.txt").exists()
        assert (await host.prompt("Leave it.")).how == "done"


async def test_a_sub_agent_that_refuses_has_failed(tmp_path):
    answers = [call("task", goal="Look it up."), Answer(text="", stop="refused"), "It refused."]
    async with host_on(tmp_path, answers) as host:
        await host.prompt("Have it looked up.")
        [told] = [event for event in host.heard.named("result") if event.tool == "task"]
        assert told.failed
        assert "refused" in told.text


@pytest.mark.parametrize("how", SHORT)
def test_run_says_so_and_exits_with_1(tmp_path, how):
    with served([SHORT[how], SHORT[how]]) as (_, name):
        words = foldline(tmp_path, "run", "-p", "Do it.", "--model", name)
        events = foldline(tmp_path, "run", "-p", "Do it.", "--json", "--model", name)
    assert words.returncode == events.returncode == 1
    assert words.stderr.count("error:") == 1
    assert words.stdout.strip() == SHORT[how].text
    found = [json.loads(line) for line in events.stdout.splitlines()]
    assert [one["how"] for one in found if one["type"] == "turn"] == [how]
    assert found[-1]["type"] == "error"
