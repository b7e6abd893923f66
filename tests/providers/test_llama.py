"""A real server of open models: its OpenAI endpoints and its Anthropic one, by the real SDKs."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from tests.providers.conftest import collect
from tests.support.llama import WINDOW

from foldline import providers
from foldline.catalogue import DEFAULT_WINDOW, Catalogue, learn
from foldline.dialects import get as dialect_of
from foldline.errors import ProviderError
from foldline.providers import Call

pytestmark = pytest.mark.slow
SMOL = {
    "openai-chat": "openai-compatible:smollm2@{}/v1",
    "openai-responses": "openai-compatible:smollm2@{}/v1",
    "anthropic": "anthropic-compatible:smollm2@{}/v1",
}
HELLO = Call(messages=[{"role": "user", "content": "Say hello to the world."}], max_tokens=12)
LONG = Call(messages=[{"role": "user", "content": "word " * 12_000}], max_tokens=12)
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
ROUNDS = {
    "openai-chat": [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "print('hi') " * 60},
    ],
    "openai-responses": [
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path": "a.py"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "print('hi') " * 60},
    ],
    "anthropic": [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a.py"}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "print('hi') " * 60}],
        },
    ],
}


@pytest.fixture
async def smol(llama, dialect):
    provider = providers.get(SMOL[dialect].format(llama), dialect=dialect)
    yield provider
    await provider.close()


async def test_a_reply_comes_whole_and_in_pieces_with_its_usage(smol):
    whole = await smol.complete(HELLO)
    deltas, streamed = await collect(smol.stream(HELLO))
    for reply in (whole, streamed):
        assert reply.text
        assert reply.usage is not None
        assert reply.usage.input + reply.usage.cache_read > 5
        assert 0 < reply.usage.output <= 12
        assert reply.model == "smollm2"
        assert dialect_of(smol.dialect).decode_reply(reply.native).text == reply.text
    assert len([d for d in deltas if d.kind == "text"]) > 1
    assert "".join(d.text for d in deltas) == streamed.text
    assert (whole.usage.total, whole.text) == (streamed.usage.total, streamed.text)


async def test_a_prompt_that_is_too_long_is_an_overflow_that_teaches_the_window(smol):
    for asked in (smol.complete(LONG), collect(smol.stream(LONG))):
        with pytest.raises(ProviderError) as caught:
            await asked
        error = caught.value
        assert (error.kind, error.status, error.transient) == ("overflow", 400, False)
        assert error.overflow.limit == WINDOW
        assert error.overflow.asked > 12_000
    assert Catalogue().look_up(smol.name).warning
    learnt = learn(DEFAULT_WINDOW, error.overflow, known=False)
    assert learnt is not None
    assert (learnt.context, learnt.output) == (WINDOW, WINDOW // 2)


async def test_tool_rounds_reach_the_model(smol):
    messages = [*HELLO.messages, *ROUNDS[smol.dialect], {"role": "user", "content": "What did it print?"}]
    bare = await smol.complete(HELLO)
    reply = await smol.complete(Call(messages=messages, max_tokens=8))
    assert reply.usage.total > bare.usage.total + 200  # the result was rendered
    assert reply.text


async def test_a_system_prompt_counts(smol):
    with_system = await smol.complete(Call(messages=HELLO.messages, system="Be kind. " * 50, max_tokens=12))
    without = await smol.complete(HELLO)
    assert with_system.usage.total > without.usage.total + 100


async def test_leaving_or_cancelling_frees_the_server(smol):
    endless = Call(
        messages=[{"role": "user", "content": "Say hello."}], max_tokens=4_000, timeout=60
    )  # it repeats itself
    async with aclosing(smol.stream(endless)) as pieces:
        await anext(pieces)
    task = asyncio.create_task(smol.complete(endless))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # there is one slot: it answers only because the two before have been given up
    reply = await asyncio.wait_for(smol.complete(HELLO), 60)
    assert reply.text


async def test_thinking_switched_off_is_taken(smol):
    reply = await smol.complete(Call(messages=HELLO.messages, max_tokens=8, thinking=False))
    assert reply.text
