"""Words that a user marks stay word for word: in a session and without one, over folds, as far as there is room."""

from __future__ import annotations

import json

import pytest

import foldline
from foldline.core.log.entries import Compacted

MARKED = "The crane is B-48151 and its load 7,340 kg."
WINDOW = foldline.Window(context=8_000, output=1_000)


def talk(turns: int, start: int = 0) -> list[dict]:
    return [
        {"role": role, "content": f"{text} {turn}. " + "The harbour is busy and the tide is late. " * 30}
        for turn in range(start, start + turns)
        for role, text in (("user", "Load ship"), ("assistant", "Loaded ship"))
    ]


def asked(words: str = MARKED, around: str = "Note this. ") -> dict:
    return {"role": "user", "content": f"{around}<keep>{words}</keep>"}


async def fold(session) -> str:
    await session.compact()
    return json.dumps(await session.context(), ensure_ascii=False)


@pytest.mark.parametrize("policy", ["foldline", "pi", "codex", "claude-code"])
async def test_what_was_marked_stands_in_every_later_view_until_it_is_unpinned(policy):
    async with foldline.open("memory://", "s", window=WINDOW, policy=policy) as session:
        first, *_ = await session.append(
            asked(around="More. " * 50), {"role": "assistant", "content": "Noted."}
        )
        assert [(pin.entry, pin.text) for pin in session.pins] == [(first, MARKED)]
        for number in range(3):
            await session.append(*talk(8, number * 10), {"role": "user", "content": "Next?"})
            assert MARKED in await fold(session)
            await session.append({"role": "assistant", "content": "So it is."})
        (info,) = [one for one in await session.entries() if one.pinned]
        assert info.entry == first
        await session.unpin(first)
        assert session.pins == ()
        await session.append(*talk(8, 90), {"role": "user", "content": "Next?"})
        await session.compact()
        points = [e.checkpoint async for e in session.store.path("s") if isinstance(e, Compacted)]
        assert [len(point.marks) for point in points] == [1, 1, 1, 0]
        assert "<kept-words" not in points[-1].text


async def test_an_undo_and_a_reopened_session_know_the_marks(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    async with foldline.open(url, "s", window=WINDOW) as session:
        await session.append(asked(), {"role": "assistant", "content": "Noted."}, *talk(8))
        await session.append({"role": "user", "content": "Next?"})
        await session.compact()
        await session.undo()
        assert [pin.text for pin in session.pins] == [MARKED]
        await session.redo()
    async with foldline.open(url, "s", window=WINDOW) as session:
        assert await session.context()
        assert [pin.text for pin in session.pins] == [MARKED]
        await session.append({"role": "assistant", "content": "Yes."}, *talk(8, 20))
        other = await session.handoff("the export")
        assert [pin.text for pin in session.pins] == [MARKED]
    async with foldline.open(url, other.id, window=WINDOW) as session:
        assert MARKED in json.dumps(await session.context())


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
def test_a_list_that_is_folded_again_and_again_keeps_them(dialect):
    messages = [asked(), {"role": "assistant", "content": "Noted."}]
    for number in range(4):
        messages += [*talk(8, number * 10), {"role": "user", "content": "Next?"}]
        result = foldline.compact(messages, 3_000, dialect=dialect)
        (block,) = result.boundary.checkpoint.marks
        assert block.text == MARKED
        sent = json.dumps(result.messages)
        assert sent.count("<kept-words") == 1
        assert "Pinned by the user" not in sent
        messages = [*result.messages, {"role": "assistant", "content": "So it is."}]


def test_what_has_no_room_is_named_and_the_newest_goes_first():
    long = [f"Mark {n}: " + f"pallet {n} is heavy. " * 60 for n in range(4)]
    messages = [one for words in long for one in (asked(words), {"role": "assistant", "content": "Noted."})]
    messages += [*talk(20), {"role": "user", "content": "Next?"}]
    result = foldline.compact(messages, 5_000)
    held = [mark.text for mark in result.boundary.checkpoint.marks]
    assert held == [words.strip() for words in long[-len(held) :]]
    assert 0 < len(held) < 4
    assert [name.split(":")[0] for name in result.receipt.dropped["marks"]] == [
        f"Mark {n}" for n in range(4 - len(held))
    ]
    assert result.view_tokens <= 5_000


def test_marks_never_make_a_budget_fail_that_could_be_met():
    messages = [asked("pallet " * 400), {"role": "assistant", "content": "Noted."}, *talk(10)]
    plain = [{**messages[0], "content": "pallet " * 400}, *messages[1:]]
    for target in (600, 800, 1_200):
        try:
            foldline.compact(plain, target)
        except foldline.FloorExceeded:
            continue
        assert foldline.compact(messages, target).view_tokens <= target


async def test_a_session_meets_a_target_without_the_marks_that_have_no_room():
    met = []
    for target in (500, 600, 700, 800, 1_000):
        async with foldline.open("memory://", "s", window=WINDOW) as session:
            await session.append(asked("pallet " * 80), {"role": "assistant", "content": "Noted."})
            await session.append(*talk(10), {"role": "user", "content": "Next?"})
            try:
                receipt = await session.compact(target=target)
            except foldline.FloorExceeded:
                continue
            assert session.view_tokens <= target
            met.append("marks" in receipt.dropped)
    assert set(met) == {True, False}


def test_a_mark_in_a_message_that_loses_its_middle_is_quoted():
    paste = "The tide table of the harbour, line by line. " * 1_500
    messages = [{"role": "user", "content": f"{paste}\n\n<keep>{MARKED}</keep>\n\n{paste}"}]
    result = foldline.compact(messages, 5_000)
    assert MARKED in json.dumps(result.messages)
    assert result.receipt.dropped["edits"] == {"elided": 1}
