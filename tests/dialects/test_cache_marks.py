"""Cache marks in a request: the newest four, with those of system prompt and tools."""

import json

import pytest

import foldline
from foldline.dialects import cache_marks, get
from foldline.dialects.cache_marks import MARKS, marks, within_marks

EPHEMERAL = {"type": "ephemeral"}


def marked(text):
    return {"type": "text", "text": text, "cache_control": EPHEMERAL}


def talk(turns):
    return [
        message
        for k in range(turns)
        for message in (
            {
                "role": "user",
                "content": [{"type": "text", "text": f"q{k} " + "dry quay " * 60}, marked(f"m{k}")],
            },
            {"role": "assistant", "content": [{"type": "text", "text": f"a{k}"}]},
        )
    ]


@pytest.mark.parametrize("beside", [0, 1, 4, 6])
def test_the_newest_marks_stay_as_far_as_system_and_tools_leave_room(beside):
    system = [marked(f"s{k}") for k in range(beside)]
    messages = talk(6)
    kept = within_marks(messages, system, None)
    left = max(0, MARKS - beside)
    assert [marks(m) for m in kept if m["role"] == "user"] == [0] * (6 - left) + [1] * left
    assert marks(messages) == 6  # what is given stays as it is


def test_marks_inside_results_and_on_tools_count_and_words_about_them_do_not():
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {"cache_control": EPHEMERAL}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [marked("a"), marked("b")]}
    messages = [
        {"role": "user", "content": '"cache_control": {}'},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result, marked("c")]},
    ]
    assert marks(messages) == 3
    kept = within_marks(messages, None, [{"name": "f", "cache_control": EPHEMERAL}] * 2)
    assert kept[:2] == messages[:2]
    assert kept[2]["content"] == [
        {**result, "content": [{"type": "text", "text": "a"}, marked("b")]},
        marked("c"),
    ]
    assert within_marks(messages) == messages


@pytest.mark.parametrize("target", [90_000, 700])
def test_a_folded_list_has_no_more_than_a_request_takes(target):
    done = foldline.compact(talk(8), target=target, tools=[{"name": "f", "cache_control": EPHEMERAL}])
    assert marks(done.messages) == (MARKS - 1 if target > 700 else 1)
    assert get("anthropic").validate(done.messages, done.system) == []


async def test_a_session_keeps_all_marks_and_sends_the_newest():
    async with foldline.open("memory://", "marks", window=90_000, system=[marked("s")]) as session:
        for message in talk(8):
            await session.append(message)
            assert marks(await session.context(), session.system) <= MARKS
        assert json.dumps(await session.history()).count("cache_control") == 8


async def test_a_turn_looks_for_marks_in_what_the_turn_added(monkeypatch):
    encoded, encode = [], cache_marks.encode
    monkeypatch.setattr(
        cache_marks, "encode", lambda messages: encoded.append(len(messages)) or encode(messages)
    )
    async with foldline.open("memory://", "no marks", window=10**9, dialect="openai-chat") as session:
        await session.append(*[{"role": "user", "content": f"message {n}"} for n in range(50)])
        await session.context()
        for turn in range(10):
            await session.append({"role": "user", "content": f"question {turn}"})
            await session.context()
    assert encoded[0] == 50
    assert max(encoded[1:]) <= 2, "the newest message before, which what follows may join, and what was added"


async def test_a_view_that_grows_keeps_the_newest_marks_of_those_that_came_late():
    async with foldline.open("memory://", "late marks", window=10**9) as session:
        await session.append(*[{"role": "user", "content": f"message {n}"} for n in range(5)])
        assert marks(await session.context()) == 0
        for turn in range(1, 8):
            await session.append({"role": "user", "content": [marked(f"m{turn}")]})
            assert marks(await session.context()) == min(turn, MARKS)
