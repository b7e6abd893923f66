"""A turn ends by why the model's reply did: a refusal, a filter, an empty or a cut-off reply is no answer."""

from __future__ import annotations

import json

import pytest
from tests.agent.program import run_foldline, serve_model
from tests.agent.working import host_on

from foldline.testing import Answer, call

pytestmark = pytest.mark.slow

DIALECTS = ("openai-chat", "openai-responses", "anthropic")
SHORT = {
    "refused": Answer(text="", stop="refused"),
    "empty": Answer(text=""),
    "length": Answer(text="The first half of", stop="length"),
}


def shorts(how):
    """The answers that end a turn so: an empty one is asked for again once."""
    return [SHORT[how]] * (2 if how == "empty" else 1)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("how", SHORT)
async def test_no_answer_is_not_done_and_the_next_prompt_is_answered(tmp_path, dialect, how):
    async with host_on(tmp_path, [*shorts(how), "Here it is."], dialect=dialect) as host:
        ended = await host.prompt("Name the tide.")
        assert (ended.how, ended.fell_short) == (how, True)
        assert ended.detail
        again = await host.prompt("Name the harbour then.")
        assert (again.how, again.text) == ("done", "Here it is.")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_empty_reply_is_asked_for_again_and_not_stored(tmp_path, dialect):
    thought = Answer(text="", thinking="Which tide?")
    async with host_on(tmp_path, [thought, "Low water."], dialect=dialect) as host:
        ended = await host.prompt("Name the tide.")
        assert (ended.how, ended.text) == ("done", "Low water.")
        [again] = host.heard.named("retrying")
        assert "empty" in again.why
        first, second = host.scripted.requests
        assert second.messages == first.messages
        assert len(host.heard.named("reply")) == 1
        assert len(await host.session.history()) == 2


async def test_a_paused_reply_is_sent_back_as_it_is_and_goes_on(tmp_path):
    paused = [Answer(text=text, stop="paused") for text in ("I search the tables.", "One more table.")]
    async with host_on(tmp_path, [*paused, "Low water at six."], dialect="anthropic") as host:
        ended = await host.prompt("Name the tide.")
        assert (ended.how, ended.text) == ("done", "Low water at six.")
        *_, last = host.scripted.requests
        assert [message["role"] for message in last.messages] == ["user", "assistant", "assistant"]
        assert "I search the tables." in str(last.messages[1])
        assert len(await host.session.history()) == 4


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
    with serve_model(shorts(how) * 2) as (_, name):
        words = run_foldline(tmp_path, "run", "-p", "Do it.", "--model", name)
        events = run_foldline(tmp_path, "run", "-p", "Do it.", "--json", "--model", name)
    assert words.returncode == events.returncode == 1
    assert words.stderr.count("error:") == 1
    assert words.stdout.strip() == SHORT[how].text
    found = [json.loads(line) for line in events.stdout.splitlines()]
    assert [one["how"] for one in found if one["type"] == "turn"] == [how]
    assert found[-1]["type"] == "error"
