"""Bugs of other systems around overflows, switches of models and failing summarisers, tried on a live session."""

from __future__ import annotations

import json
import threading

import foldline
from foldline.dialects import get

WINDOW = foldline.Window(context=20_000, output=4_000)
LARGER = foldline.Window(context=60_000, output=4_000)
TOO_LONG = "400 prompt is too long: 24000 tokens > 20000 maximum"


async def chat(session, turns: int, start: int = 0) -> None:
    for i in range(start, start + turns):
        await session.append({"role": "user", "content": f"Question {i}. " + "And another word. " * 80})
        await session.append({"role": "assistant", "content": f"Answer {i}. " + "It is as it was. " * 80})


def opened(**more):
    return foldline.open("memory://", "s", **{"window": WINDOW, "dialect": "openai-chat"} | more)


async def test_what_the_old_model_refused_says_nothing_of_the_new_one():
    """pi #535: the old model's overflow folded the session of the new one, whose window was larger."""
    async with opened(model="any:small") as session:
        await chat(session, 12)
        await session.overflowed(RuntimeError(TOO_LONG))
        assert (await session.stats()).summaries == 1
        await session.use_model("any:large", window=LARGER)
        await chat(session, 25, start=20)
        assert await session.context()
        assert session.setup.window.context == LARGER.context
        assert session.view_tokens > WINDOW.context
        assert (await session.stats()).summaries == 1


async def test_a_complete_answer_whose_input_did_not_fit_is_kept():
    """pi #5720: an answer that had come whole was asked for again, because its usage was above the window."""
    said = {"role": "assistant", "content": "It is 42."}
    usage = {"prompt_tokens": 21_000, "completion_tokens": 5, "total_tokens": 21_005}
    reply = {
        "object": "chat.completion",
        "choices": [{"message": said, "finish_reason": "stop"}],
        "usage": usage,
    }
    async with opened() as session:
        await chat(session, 12)
        await session.append({"role": "user", "content": "What is it?"})
        await session.append(reply)
        await session.append({"role": "user", "content": "Thanks."})
        messages = await session.context()
        assert [message["content"] for message in messages[-2:]] == ["It is 42.", "Thanks."]
        assert (await session.stats()).summaries == 1


async def test_a_reply_without_a_token_is_an_overflow():
    """pi #3612: the reply stopped for length before it said anything, and the session stood still."""
    said = {"role": "assistant", "content": ""}
    usage = {"prompt_tokens": 19_990, "completion_tokens": 0, "total_tokens": 19_990}
    reply = {
        "object": "chat.completion",
        "choices": [{"message": said, "finish_reason": "length"}],
        "usage": usage,
    }
    async with opened() as session:
        await chat(session, 12)
        await session.append({"role": "user", "content": "What is it?"})
        before = session.view_tokens
        messages = await session.overflowed(reply)
        assert session.view_tokens < before
        assert messages[-1] == {"role": "user", "content": "What is it?"}


async def test_a_reply_that_the_window_cut_short_is_folded_behind_and_goes_on():
    """pi #3612, #7020: a reply stopped for length because the window was full, and the session stood still."""
    said = {"role": "assistant", "content": "First I look at the list, then at the"}
    usage = {"prompt_tokens": 19_000, "completion_tokens": 1_000, "total_tokens": 20_000}
    reply = {
        "object": "chat.completion",
        "choices": [{"message": said, "finish_reason": "length"}],
        "usage": usage,
    }
    async with opened() as session:
        await chat(session, 17)
        await session.append({"role": "user", "content": "What is it?"})
        await session.append(reply)
        standing = await session.standing()
        assert (standing.state, standing.because) == ("mid_tool", "cut_off")
        messages = await session.context()
        assert (await session.stats()).summaries == 1
        assert messages[-1]["content"] == said["content"]


async def test_a_call_that_the_window_cut_off_is_answered_and_asked_for_again_behind_a_fold():
    """coop: a call came with half its arguments because the window was full, again and again."""
    function = {"name": "write", "arguments": '{"path": "a.py", "content": "def f'}
    said = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    usage = {"prompt_tokens": 19_000, "completion_tokens": 1_000, "total_tokens": 20_000}
    reply = {
        "object": "chat.completion",
        "choices": [{"message": said, "finish_reason": "length"}],
        "usage": usage,
    }
    async with opened() as session:
        await chat(session, 17)
        await session.append({"role": "user", "content": "Write it."})
        await session.append(reply)
        await session.append(
            {"role": "tool", "tool_call_id": "c1", "content": "error: the arguments are not JSON"}
        )
        messages = await session.context()
        assert (await session.stats()).summaries == 1
        assert get("openai-chat").validate(messages) == []
        assert [message["role"] for message in messages[-3:]] == ["user", "assistant", "tool"]
        assert session.view_tokens < 10_000  # room for the whole of it


async def test_an_overflow_whose_tail_alone_is_too_large_is_met():
    """klaude: retries after an overflow never shrank the tail, and all of them failed alike."""
    function = {"name": "read", "arguments": json.dumps({"path": "log.txt"})}
    call = {"id": "call_1", "type": "function", "function": function}
    async with opened(window=LARGER) as session:
        await session.append({"role": "user", "content": "Read the log. Never delete it."})
        await session.append({"role": "assistant", "content": None, "tool_calls": [call]})
        lines = "\n".join(f"line {n}: parcel {n * 7} went out" for n in range(2_500))
        await session.append({"role": "tool", "tool_call_id": "call_1", "content": lines})
        messages = await session.overflowed(
            RuntimeError("400 prompt is too long: 30000 tokens > 12000 maximum")
        )
        assert session.view_tokens <= 12_000
        assert get("openai-chat").validate(messages) == []
        assert "Never delete it." in json.dumps(messages)
        assert messages[-1]["tool_call_id"] == "call_1"


def test_a_session_without_async_stays_inside_and_leaves_no_thread(tmp_path):
    """The same session from code that is not async: one thread, and none when it is closed."""
    before = set(threading.enumerate())
    with foldline.open_sync(f"sqlite:///{tmp_path / 's.db'}", "s", window=WINDOW) as session:
        for i in range(30):
            session.append({"role": "user", "content": f"Question {i}. " + "And another word. " * 80})
            assert session.context()[-1]["content"].startswith(f"Question {i}.")
            assert session.view_tokens < WINDOW.context
            session.append({"role": "assistant", "content": f"Answer {i}. " + "It is as it was. " * 80})
        assert len(session.history()) == 60
    assert set(threading.enumerate()) <= before
