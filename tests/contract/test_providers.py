"""Every provider against the shipped fakes: as strict as the real APIs, and as unreliable as the real network."""

from __future__ import annotations

import msgspec
import pytest

from foldline import providers
from foldline.catalogue import Catalogue, learned
from foldline.core.log.messages import ToolCall
from foldline.dialects import get as dialect_of
from foldline.dialects.base import elements
from foldline.errors import ProviderError
from foldline.providers import Call, Patience, Reply, Retrying
from foldline.testing import FAULTS, Answer, Faulty, Scripted, call, serve

DIALECTS = ("openai-chat", "openai-responses", "anthropic")
PREFIX = {"anthropic": "anthropic-compatible"}
TOOLS = {
    "openai-chat": [
        {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    ],
    "openai-responses": [
        {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}
    ],
    "anthropic": [{"name": "read", "input_schema": {"type": "object", "properties": {}}}],
}
QUICK = Patience(attempts=8, first=0.001, longest=0.01, jitter=0.001)


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return request.param


def provider_of(dialect, url):
    name = f"{PREFIX.get(dialect, 'openai-compatible')}:scripted@{url}/v1"
    return providers.get(name, dialect=dialect, api_key="test")


async def asked(provider, one, *, stream):
    """Ask once, and close the provider."""
    try:
        if not stream:
            return await provider.complete(one)
        last = [piece async for piece in provider.stream(one)][-1]
    finally:
        await provider.close()
    assert isinstance(last, Reply)
    return last


def result_of(dialect, call_id, text):
    if dialect == "anthropic":
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}]}
    if dialect == "openai-chat":
        return {"role": "tool", "tool_call_id": call_id, "content": text}
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def sendable(dialect, reply):
    """The reply as the next request holds it."""
    message = dialect_of(dialect).decode_reply(reply.native)
    assert elements(message) >= 1
    return dialect_of(dialect).render([(message, ())]).messages


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_round_with_thinking_is_taken_by_a_strict_server(dialect, stream):
    thought = Answer(thinking="Which file?", calls=(ToolCall("", "read", {"path": "a.py"}),))
    model = Scripted([thought, "It prints hi."])
    async with serve(model) as url:
        provider = provider_of(dialect, url)
        messages = [{"role": "user", "content": "What does a.py do?"}]
        one = Call(messages=messages, tools=TOOLS[dialect], max_tokens=4_000, thinking=True)
        first = await asked(provider, one, stream=stream)
        assert first.stop == "tools"
        made = dialect_of(dialect).decode_reply(first.native).calls[0]
        assert (made.name, made.arguments) == ("read", {"path": "a.py"})
        messages = [*messages, *sendable(dialect, first), result_of(dialect, made.id, "print('hi')")]
        second = await asked(provider, msgspec.structs.replace(one, messages=messages), stream=stream)
    assert (second.text, second.stop) == ("It prints hi.", "end")
    assert [request.refused for request in model.requests] == [None, None]
    assert second.usage is not None
    assert first.usage is not None
    assert second.usage.total > first.usage.total > 0


@pytest.mark.parametrize("stream", [False, True])
async def test_an_overflow_in_the_words_of_the_real_apis(dialect, stream):
    model = Scripted(["never said"], window=2_000)
    async with serve(model) as url:
        provider = Retrying(provider_of(dialect, url), QUICK)
        with pytest.raises(ProviderError) as caught:
            await asked(
                provider,
                Call(messages=[{"role": "user", "content": "word " * 4_000}], max_tokens=100),
                stream=stream,
            )
    assert caught.value.kind == "overflow"
    assert len(model.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_that_the_api_refuses_is_a_bad_request(dialect, stream):
    orphan = [{"role": "user", "content": "Go on."}, result_of(dialect, "call_nowhere", "text")]
    model = Scripted(["never said"])
    async with serve(model) as url:
        provider = provider_of(dialect, url)
        with pytest.raises(ProviderError) as caught:
            await asked(provider, Call(messages=orphan, max_tokens=100), stream=stream)
    assert caught.value.kind == "bad_request"
    assert caught.value.text == model.requests[-1].refused


@pytest.mark.parametrize("overflow", ["starve", "truncate"])
async def test_silent_overflows(dialect, overflow):
    big = Call(messages=[{"role": "user", "content": "word " * 4_000}], max_tokens=100)
    async with serve(Scripted(["as if"], window=2_000, overflow=overflow)) as url:
        name = f"{PREFIX.get(dialect, 'openai-compatible')}:scripted@{url}/v1"
        info = learned(Catalogue().look_up(name), 2_000)
        provider = providers.get(name, dialect=dialect, info=info)
        if overflow == "truncate":  # nobody can tell
            assert (await asked(provider, big, stream=False)).text == "as if"
        else:
            with pytest.raises(ProviderError) as caught:
                await asked(provider, big, stream=False)
            assert (caught.value.kind, caught.value.overflow.limit) == ("overflow", 2_000)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in ("usage", "truncated")])
@pytest.mark.parametrize("stream", [False, True])
async def test_every_fault_is_overcome(dialect, stream, fault):
    model = Faulty(Scripted(lambda asked: call("read", path="a.py")), plan=[fault, fault], stall=600.0)
    async with serve(model) as url:
        # a busy machine may take longer than that patience for an answer without a fault
        provider = Retrying(provider_of(dialect, url), msgspec.structs.replace(QUICK, attempts=50))
        one = Call(messages=[{"role": "user", "content": "Read a.py"}], tools=TOOLS[dialect], max_tokens=500)
        patience = 0.4 if fault == "stall" else 120.0
        reply = await asked(provider, msgspec.structs.replace(one, timeout=patience), stream=stream)
    # a stream that stalls after its reply came whole needs no second request
    met = [one for _, one in model.met]
    assert met == [fault, fault] or (stream and fault == "stall" and met == [fault])
    made = dialect_of(dialect).decode_reply(reply.native).calls
    assert [(one.name, one.arguments) for one in made] == [("read", {"path": "a.py"})]


@pytest.mark.parametrize("fault", ["usage", "truncated"])
async def test_faults_that_look_like_replies_raise_nothing(dialect, fault):
    async with serve(Faulty(Scripted(["It prints hi, twice."]), plan=[fault])) as url:
        provider = provider_of(dialect, url)
        reply = await asked(
            provider,
            Call(messages=[{"role": "user", "content": "What does it do?"}], max_tokens=500),
            stream=False,
        )
    assert reply.text
    assert reply.stop == "end"
