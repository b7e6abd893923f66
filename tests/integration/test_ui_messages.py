"""UI messages of the AI SDK in a stored session and in `foldline.compact`."""

from __future__ import annotations

import pytest
from tests.dialects.ui_samples import STEP, UI, answered, say, tool, ui

import foldline
from foldline.core.measure.window import Window
from foldline.dialects import get
from foldline.errors import CallsOpen

VERCEL = get("ui-message")
RULE = "Never touch anything under migrations/ without asking me first."


def turns(count: int) -> list[dict]:
    """Turns of two steps each, of about 100 tokens."""
    made = [ui("user", RULE, id="u")]
    for n in range(count):
        output = f"def f{n}():\n    return {n}\n" * 40
        read, ran = answered(f"c{n}", output), answered(f"d{n}", "1 passed")
        made += [
            ui("assistant", STEP, read, ran, STEP, f"Done with file {n}.", id=f"a{n}"),
            ui("user", f"Now fix file {n + 1}.", id=f"u{n}"),
        ]
    return made


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 's.db'}"


def test_a_list_is_fitted_and_stays_a_list_of_ui_messages():
    messages = turns(30)
    result = foldline.compact(messages, target=2_500)
    assert result.dialect == "ui-message"
    assert VERCEL.validate(result.messages) == []
    assert result.view_tokens <= 2_500
    first = result.cut["first_kept"]
    assert result.messages[-1] == messages[-1]
    assert messages[first]["id"] in {message["id"] for message in result.messages}
    assert RULE in result.messages[0]["parts"][0]["text"]
    assert result.warnings == ()


def test_a_list_that_fits_comes_back_unchanged():
    assert foldline.compact(UI, target=20_000).messages == UI


def test_a_folded_list_that_grew_is_folded_from_its_checkpoint():
    once = foldline.compact(turns(30), target=2_500)
    again = foldline.compact([*once.messages, *turns(20)[1:]], target=2_500)
    assert VERCEL.validate(again.messages) == []
    assert RULE in again.messages[0]["parts"][0]["text"]
    assert sum("foldline-checkpoint" in str(message) for message in again.messages) == 1


def test_one_turn_of_many_steps_is_shortened_part_by_part():
    steps = [part for n in range(40) for part in (STEP, answered(f"c{n}", f"line {n} of a long file\n" * 60))]
    messages = [ui("user", RULE), ui("assistant", *steps, STEP, "All done."), ui("user", "Thanks.")]
    result = foldline.compact(messages, target=2_000)
    assert VERCEL.validate(result.messages) == []
    assert result.view_tokens <= 2_000


def test_a_call_that_waits_for_the_application_waits_on():
    """A call at the end is neither folded nor answered for the application."""
    asks = tool("ask", state="approval-requested", approval={"id": "p"})
    messages = [*turns(20), ui("assistant", STEP, asks, id="last")]
    result = foldline.compact(messages, target=2_000)
    assert VERCEL.validate(result.messages) == []
    assert result.messages[-1] == messages[-1]


def test_plain_messages_among_ui_messages_are_given_their_form():
    plain = {"role": "user", "content": "hello"}
    result = foldline.compact([plain, plain, *turns(2)], target=50_000)
    assert VERCEL.validate(result.messages) == []
    assert [message["parts"] for message in result.messages[:2]] == [[say("hello")]] * 2
    assert len({message["id"] for message in result.messages}) == len(result.messages)


async def test_a_session_of_ui_messages(url):
    async with foldline.open(url, "s", window=Window(context=8_000, output=500)) as session:
        for message in turns(80):
            await session.append(message)
        await (
            session.settled()
        )  # a draft that becomes ready only later would be committed by the next context
        messages = await session.context()
        assert VERCEL.validate(messages) == []
        assert (await session.stats()).summaries >= 1
        assert messages[-1] == turns(80)[-1]
        assert await session.history() == turns(80)
        assert session.dialect == "ui-message"
    async with foldline.open(url, "s", window=Window(context=8_000, output=500)) as session:
        assert await session.context() == messages


async def test_plain_words_a_call_and_its_result_from_elsewhere(url):
    async with foldline.open(url, "s", dialect="ui-message") as session:
        await session.append({"role": "user", "content": "hi"}, {"role": "user", "content": "hi"})
        await session.append(ui("assistant", STEP, tool("c1"), id="a"))
        with pytest.raises(CallsOpen):
            await session.context()
        await session.append({"role": "tool", "tool_call_id": "c1", "content": "x = 1"})
        messages = await session.context()
        assert VERCEL.validate(messages) == []
        assert messages[2] == ui("assistant", STEP, answered("c1", "x = 1"), id="a")
        assert messages[0]["id"] != messages[1]["id"]


async def test_a_user_who_goes_on_leaves_the_call_answered_by_a_note(url):
    async with foldline.open(url, "s") as session:
        await session.append(ui("user", "hi"), ui("assistant", STEP, tool("c1"), id="a"))
        await session.append(ui("user", "never mind", id="u"))
        messages = await session.context()
        assert VERCEL.validate(messages) == []
        assert messages[1]["parts"][1]["state"] == "output-error"


async def test_the_usage_of_a_reply_counts(url):
    usage = {"inputTokens": 5_000, "cachedInputTokens": 1_000, "outputTokens": 50}
    async with foldline.open(url, "s", window=Window(context=8_000, output=500)) as session:
        await session.append(ui("user", "hi"))
        await session.append({"responseMessage": ui("assistant", STEP, "Hello.", id="a"), "usage": usage})
        assert session._shared.cursor.state.context_size() == 5_050
