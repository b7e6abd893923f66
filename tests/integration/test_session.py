"""A stored session, from outside: append, context, append; compaction, undo, pins, two writers, a restart."""

from __future__ import annotations

import asyncio
import json

import pytest

import foldline
from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Compacted
from foldline.dialects import get

WINDOW = foldline.Window(context=6_000, output=1_000)


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'sessions.db'}"


def turn(i: int, size: int = 120) -> list[dict]:
    call = {
        "id": f"call_{i}",
        "type": "function",
        "function": {"name": "read", "arguments": json.dumps({"path": f"src/m{i}.py"})},
    }
    return [
        {"role": "user", "content": f"Look at module {i}, please."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{i}", "content": f"def function_{i}(): pass\n" * size},
        {"role": "assistant", "content": f"Module {i} defines function_{i}. " + "It looks fine to me. " * 60},
    ]


async def fill(session, turns: int, start: int = 0) -> None:
    for i in range(start, start + turns):
        for message in turn(i):
            await session.append(message)


async def test_three_calls_keep_a_session_inside_its_window_and_lose_nothing(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        sent = []
        for i in range(12):
            for message in turn(i):
                if message["role"] == "assistant":
                    messages = await session.context()
                    assert get("openai-chat").validate(messages) == []
                    assert session.view_tokens <= 6_000
                sent.append(message)
                await session.append(message)
        assert await session.history() == sent
        stats = await session.stats()
        assert stats.total_messages == len(sent) == 48
        assert stats.summaries >= 1
        assert stats.active_messages < 48
        assert stats.compression_ratio < 1


async def test_a_short_session_comes_back_as_it_was(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        for message in turn(0, size=2):
            await session.append(message)
        assert await session.context() == turn(0, size=2)
        assert isinstance(await session.compact(target=100_000), Nothing)


async def test_context_with_open_calls_says_which(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await session.append(*turn(0)[:2])
        with pytest.raises(foldline.CallsOpen, match="call_0"):
            await session.context()


async def test_the_user_who_interrupts_a_call_gets_a_sendable_list(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await session.append(*turn(0)[:2])
        await session.append({"role": "user", "content": "stop, do something else"})
        messages = await session.context()
        assert get("openai-chat").validate(messages) == []
        assert "interrupted" in messages[2]["content"]
        await session.append({"role": "tool", "tool_call_id": "call_0", "content": "late answer"})
        late = await session.context()
        assert late[: len(messages)] == messages
        assert get("openai-chat").validate(late) == []
        assert "late answer" in late[-1]["content"]
        assert late[-1]["role"] == "user"


async def test_compaction_by_hand_undo_and_redo(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await fill(session, 3)
        before = await session.context()
        receipt = await session.compact()
        assert receipt.tokens_after < receipt.tokens_before
        folded = await session.context()
        assert folded != before
        await session.append({"role": "user", "content": "and now?"})
        undone = await session.undo()
        assert (await session.context())[: len(before)] == before
        assert (await session.context())[-1]["content"] == "and now?"
        assert await session.redo() == undone
        assert (await session.context())[: len(folded)] == folded


async def test_preview_shows_the_boundary_and_changes_nothing(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await fill(session, 3)
        before = await session.context()
        leaf = session.leaf
        preview = await session.preview("look at module 1")
        assert isinstance(preview.boundary, Compacted)
        assert preview.receipt.tokens_after < preview.receipt.tokens_before
        assert (await session.context(), session.leaf) == (before, leaf)


async def test_compacting_twice_is_a_no_op_but_a_new_focus_may_redraft(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await fill(session, 4)
        assert not isinstance(await session.compact(), Nothing)
        assert isinstance(await session.compact(), Nothing)


async def test_pins_survive_every_fold_word_for_word(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        [secret] = await session.append(
            {"role": "user", "content": "The badge number is 77-1234-B,\nkeep it."}
        )
        await session.append({"role": "assistant", "content": "Noted."})
        await session.pin(secret)
        for start in range(0, 9, 3):
            await fill(session, 3, start)
            await session.compact()
            assert "The badge number is 77-1234-B,\nkeep it." in _text(await session.context())
        await session.unpin(secret)
        await fill(session, 3, 20)
        await session.compact()


async def test_a_pin_on_a_folded_entry_is_quoted_once_at_the_tail(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        [first] = await session.append(
            {"role": "user", "content": "An odd detail: the clock is 7 minutes late."}
        )
        await session.append({"role": "assistant", "content": "I see."})
        await fill(session, 4)
        await session.compact()
        before = await session.context()
        await session.pin(first)
        after = await session.context()
        assert after[: len(before)] == before
        assert "the clock is 7 minutes late" in after[-1]["content"]
        assert len(after) == len(before) + 1


async def test_a_session_goes_on_after_a_restart(tmp_path):
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    async with foldline.open(url, "s", window=WINDOW) as session:
        await fill(session, 5)
        await session.compact()
        before = await session.context()
    async with foldline.open(url, "s", window=WINDOW) as session:
        assert await session.context() == before
        await session.append({"role": "user", "content": "still there?"})
        assert (await session.context())[:-1] == before
        assert await session.verify() == []
        assert len(await session.history()) == 21


async def test_two_writers_never_lose_or_double_a_message(tmp_path):
    url = f"sqlite:///{tmp_path / 'sessions.db'}"

    async def write(name: str, count: int) -> None:
        async with foldline.open(url, "s", window=WINDOW) as session:
            for i in range(count):
                while True:
                    try:
                        await session.append({"role": "user", "content": f"{name} {i}"})
                        break
                    except foldline.LeafMoved:
                        await asyncio.sleep(0)

    await asyncio.gather(write("left", 15), write("right", 15))
    async with foldline.open(url, "s", window=WINDOW) as session:
        said = [message["content"] for message in await session.history()]
        assert sorted(said) == sorted(f"{n} {i}" for n in ("left", "right") for i in range(15))
        assert [s for s in said if s.startswith("left")] == [f"left {i}" for i in range(15)]
        assert await session.verify() == []


async def test_what_is_said_while_a_summary_is_written_stays_in_order(tmp_path):
    url = f"sqlite:///{tmp_path / 'sessions.db'}"

    class Slow:
        name = "offline"

        async def summarize(self, request):
            from foldline.summarizers.offline import OfflineSummarizer

            async with foldline.open(url, "s", window=WINDOW) as other:
                await other.append({"role": "user", "content": "said meanwhile"})
            return OfflineSummarizer().write(request)

    async with foldline.open(url, "s", window=WINDOW, summarizer=Slow()) as session:
        await session.append(*(message for i in range(4) for message in turn(i)))
        receipt = await session.compact()
        assert not isinstance(receipt, Nothing)
        assert (await session.context())[-1]["content"] == "said meanwhile"
        assert (await session.history())[-1]["content"] == "said meanwhile"


async def test_a_cancelled_compaction_leaves_the_session_usable(url):
    class Hangs:
        name = "model:slow"

        async def summarize(self, request):
            await asyncio.sleep(60)

    async with foldline.open(url, "s", window=WINDOW, summarizer=Hangs()) as session:
        await fill(session, 4)
        leaf = session.leaf
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(session.compact(), 0.05)
        assert session.leaf == leaf
        await session.append({"role": "user", "content": "go on"})
        assert (await session.history())[-1]["content"] == "go on"


async def test_recall_finds_what_was_folded(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await session.append({"role": "user", "content": "The marmalade invoice is number 48151623."})
        await session.append({"role": "assistant", "content": "Thanks."})
        await fill(session, 4)
        await session.compact()
        hits = await session.recall("marmalade")
        assert [hit.role for hit in hits] == ["user"]
        assert "48151623" in hits[0].snippet


async def test_an_sdk_reply_is_read_with_its_usage(url):
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "Hello!"}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 5_700,
            "output_tokens": 10,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
        },
    }
    async with foldline.open(url, "s", window=WINDOW, dialect="anthropic") as session:
        for i in range(6):
            await session.append({"role": "user", "content": f"question {i} " + "word " * 300})
            await session.append({"role": "assistant", "content": f"answer {i} " + "word " * 300})
        await session.append({"role": "user", "content": "hi"})
        await session.append(reply)
        messages = await session.context()
        assert (await session.stats()).summaries == 1
        assert get("anthropic").validate(messages) == []


async def test_export_is_lossless_and_can_be_read_again(url):
    from io import BytesIO

    from foldline.transcripts import load

    async with foldline.open(url, "s", window=WINDOW) as session:
        await fill(session, 4)
        await session.compact()
        raw = await session.export()
        entries = list(load(BytesIO(raw)))
        assert [e.id for e in entries] == [e.id async for e in session.store.path("s")]
        lines = (await session.export("anthropic", view=True)).splitlines()
        assert get("anthropic").validate([json.loads(line) for line in lines]) == []


async def test_a_floor_above_the_window_is_one_clear_error(url):
    async with foldline.open(url, "s", window=WINDOW, system="be kind " * 5_000) as session:
        await session.append({"role": "user", "content": "hello"})
        for _ in range(2):
            with pytest.raises(foldline.FloorExceeded) as error:
                await session.context()
            assert error.value.breakdown["system"] > 5_000
        assert len(await session.history()) == 1


def _text(messages) -> str:
    return "\n".join(str(m.get("content")) for m in messages).replace("\\n", "\n")
