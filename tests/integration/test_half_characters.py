"""Half of a surrogate pair, which JSON can hold and UTF-8 cannot: in the log as received, never sent or shown."""

from __future__ import annotations

import json

import pytest

import foldline
from foldline.core.log import codec
from foldline.core.log.messages import Message, Text
from foldline.dialects import get
from foldline.exports import OWN, formats
from foldline.terminal import clean

HALF = "half \ud83d of it"
RULE = f"Never push to main, {HALF}."
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"\\ud83d": "\\ud83d"}'}}
TALK = [
    {"role": "user", "content": RULE},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": HALF},
    {"role": "assistant", "content": HALF + " word" * 400},
    {"role": "user", "content": "Go on."},
]


def whole(value: object) -> bool:
    """Whether UTF-8 can carry a value."""
    return codec.in_utf8(value) is value


def test_what_is_made_of_a_list_can_be_sent_and_the_list_itself_is_found_out():
    assert [problem.rule for problem in get("openai-chat").validate(TALK)] == ["text-surrogate"] * 3
    for target in (20_000, 600):
        done = foldline.compact(TALK, target=target, system=HALF)
        assert whole([done.messages, done.system, done.summary, codec.decode(codec.encode(done.receipt))])
        assert "half \ufffd of it" in json.dumps(done.messages, ensure_ascii=False)
    assert TALK[0]["content"] == RULE


async def test_a_session_keeps_it_and_sends_none_of_it():
    store = foldline.stores.open_store("memory://")
    async with foldline.open(store, "half", window=2_000) as session:
        ids = await session.append(*TALK[:3], Message("user", (Text(HALF),)))
        first = await store.entry("half", ids[0])
        assert codec.decode(first.message.native.raw) == TALK[0]
        await session.pin(first.id)
        await session.note("title", title=HALF)
        assert whole(await session.context())
        await session.append(TALK[3], TALK[4])
        await session.compact(instructions=HALF)
        assert whole([await session.context(), await session.history()])
        assert await session.recall("half")
        assert await session.verify() == []
        for form in [name for name in formats() if name != OWN]:
            assert b"half \\ud83d" not in await session.export(form)
            (await session.export(form)).decode()


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        (rb'"\ud83d"', rb'"\ufffd"'),
        (rb'"\ud83d\ude00 \ude00\ud83d"', rb'"\ud83d\ude00 \ufffd\ufffd"'),
        (rb'"\\ud83d \\\ud83d"', rb'"\\ud83d \\\ufffd"'),  # an escaped backslash is no escape of a character
        ('"ä😀"'.encode(), '"ä😀"'.encode()),
    ],
)
def test_requests_with_a_half_are_read(raw, sent):
    assert codec.whole_escapes(raw) == sent


def test_halves_that_belong_together_become_their_character_and_others_are_replaced():
    assert codec.text_in_utf8("\ud83d\ude00 \ude00") == "😀 \ufffd"
    assert codec.in_utf8({"\ud83d": ["\ud83d", 1.5, None]}) == {"\ufffd": ["\ufffd", 1.5, None]}
    assert clean("\ud83d") == "\ufffd"
    assert codec.decode(codec.encode_utf8({"a": "\ud83d", "b": float("inf")})) == {
        "a": "\ufffd",
        "b": None,
    }
