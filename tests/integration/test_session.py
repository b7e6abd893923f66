"""A stored session, from outside: append, context, append; compaction, undo, pins, two writers, a restart."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import foldline
from foldline.core.decide.ask import Nothing
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


def _text(messages) -> str:
    return "\n".join(str(m.get("content")) for m in messages).replace("\\n", "\n")


def test_what_a_first_call_does_not_need_is_not_loaded():
    code = (
        "import sys, foldline; foldline.compact; foldline.open; "
        "print([name for name in ('foldline.exports', 'email.utils', 'importlib.resources') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
