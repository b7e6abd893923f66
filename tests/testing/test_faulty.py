"""Every fault as a client of the official SDKs meets it, in all three APIs, whole and streamed."""

import anthropic
import httpx2
import openai
import pytest
from tests.testing.clients import MODEL, anthropic_client, ask, openai_client

from foldline.testing import FAULTS, Asked, Faulty, Scripted, serve

DIALECTS = ("openai-chat", "openai-responses", "anthropic")
HELLO = [{"role": "user", "content": "Hello"}]
TEXT = "Twelve files were read, and nothing was changed. " * 5
WAYS = pytest.mark.parametrize(
    ("dialect", "stream"), [(dialect, stream) for dialect in DIALECTS for stream in (False, True)]
)
# What the SDKs and their HTTP client raise for a connection that broke: not every one of these is wrapped.
BROKEN = (openai.APIConnectionError, anthropic.APIConnectionError, httpx2.TransportError)
UNREADABLE = (ValueError, openai.APIError, anthropic.APIError)  # a body that is no JSON
STATUS = (openai.APIStatusError, anthropic.APIStatusError)
SEEDS = range(6)


def hit(fault, *, seed=0, times=1, stall=30.0):
    return Faulty(Scripted([TEXT, "Again."]), seed, plan=[fault] * times, stall=stall)


@WAYS
async def test_a_rate_limit_says_when_to_come_back(dialect, stream):
    model = hit("rate")
    async with serve(model) as url:
        with pytest.raises((openai.RateLimitError, anthropic.RateLimitError)) as caught:
            await ask(url, dialect, stream=stream)
        assert 0 <= float(caught.value.response.headers["retry-after"]) <= 0.02
        assert await ask(url, dialect, stream=stream) == TEXT
    assert model.met == [(0, "rate")]
    assert [asked.refused is None for asked in model.inner.requests] == [False, True]


@WAYS
async def test_a_server_error_is_one_of_the_sdk(dialect, stream):
    async with serve(hit("server")) as url:
        with pytest.raises((openai.InternalServerError, anthropic.InternalServerError)) as caught:
            await ask(url, dialect, stream=stream)
        assert caught.value.status_code == 500
        assert await ask(url, dialect, stream=stream) == TEXT


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_overloaded_server_refuses(dialect):
    async with serve(hit("overloaded")) as url:
        with pytest.raises(STATUS) as caught:
            await ask(url, dialect)
    assert caught.value.status_code == (529 if dialect == "anthropic" else 503)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_overloaded_server_may_break_a_stream_off(dialect):
    statuses = set()
    for seed in SEEDS:
        async with serve(hit("overloaded", seed=seed)) as url:
            with pytest.raises((openai.APIError, anthropic.APIStatusError)) as caught:
                await ask(url, dialect, stream=True)
            assert "verloaded" in str(caught.value)
            statuses.add(getattr(caught.value, "status_code", 200))
            assert await ask(url, dialect, stream=True) == TEXT
    assert len(statuses) == 2  # some before the first event, some after it


@WAYS
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("fault", "raised"), [("reset", BROKEN), ("half", BROKEN), ("malformed", UNREADABLE)]
)
async def test_what_breaks_a_reply_is_an_error_of_the_client(dialect, stream, seed, fault, raised):
    async with serve(hit(fault, seed=seed)) as url:
        with pytest.raises(raised):
            await ask(url, dialect, stream=stream)
        assert await ask(url, dialect, stream=stream) == TEXT


@WAYS
async def test_silence_runs_into_the_time_limit_of_the_client(dialect, stream):
    model = hit("stall", stall=600.0)
    async with serve(model) as url:
        while not model.met:  # a busy machine may need the time to send the request
            with pytest.raises((openai.APITimeoutError, anthropic.APITimeoutError, httpx2.TimeoutException)):
                await ask(url, dialect, stream=stream, patience=0.2)
        assert await ask(url, dialect, stream=stream) == TEXT


@WAYS
async def test_a_short_silence_is_only_slow(dialect, stream):
    async with serve(hit("stall", stall=0.05)) as url:
        assert await ask(url, dialect, stream=stream) == TEXT


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_unfinished_stream_ends_without_the_event_that_ends_a_reply(seed):
    last = {"anthropic": "message_stop", "openai-responses": "response.completed"}
    for dialect, end in last.items():
        async with serve(hit("unfinished", seed=seed)) as url:
            kinds = [event.type async for event in _events(url, dialect)]
        assert kinds
        assert end not in kinds
    async with serve(hit("unfinished", seed=seed)) as url:
        ends = [chunk.choices[0].finish_reason async for chunk in _events(url, "openai-chat")]
    assert ends
    assert set(ends) == {None}


async def _events(url, dialect):
    if dialect == "anthropic":
        async with anthropic_client(url) as client:
            fields = {"model": MODEL, "max_tokens": 1000, "messages": HELLO}
            async for event in await client.messages.create(**fields, stream=True):
                yield event
        return
    async with openai_client(url) as client:
        asked = (
            client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
            if dialect == "openai-chat"
            else client.responses.create(model=MODEL, input=HELLO, stream=True)
        )
        async for event in await asked:
            yield event


async def test_wrong_usage_is_none_or_far_too_large():
    seen = set()
    for seed in SEEDS:
        async with serve(hit("usage", seed=seed)) as url, anthropic_client(url) as client:
            reply = await client.messages.create(model=MODEL, max_tokens=1000, messages=HELLO)
        assert reply.content[0].text == TEXT
        seen.add(reply.usage.input_tokens)
    assert len(seen) == 2
    assert min(seen) == 0
    assert max(seen) > 500


@WAYS
async def test_a_truncated_reply_says_that_it_ended(dialect, stream):
    async with serve(hit("truncated")) as url:
        text = await ask(url, dialect, stream=stream)
        assert text == TEXT[: len(TEXT) // 2]
        assert await ask(url, dialect, stream=stream) == "Again."


def _pattern(seed, rates, requests=200):
    model = Faulty(Scripted(lambda asked: "ok"), seed, rates)
    return [model.due(number) for number in range(requests)]


def test_which_request_meets_which_fault_follows_from_the_seed():
    assert _pattern(7, 0.5) == _pattern(7, 0.5)
    assert _pattern(7, 0.5) != _pattern(8, 0.5)
    assert {fault for fault in _pattern(7, 0.9) if fault} == set(FAULTS)
    assert set(_pattern(7, {"rate": 1.0})) == {"rate"}
    assert set(_pattern(7, 0.0)) == {None}


def test_a_rate_that_is_none_is_refused():
    with pytest.raises(ValueError, match="invalid rates"):
        Faulty(Scripted(), 0, {"rate": 0.7, "server": 0.7})
    with pytest.raises(ValueError, match="unknown fault 'rain'"):
        Faulty(Scripted(), 0, {"rain": 0.5})
    with pytest.raises(ValueError, match="unknown fault 'snow'"):
        Faulty(Scripted(), plan=["snow"])


async def test_the_same_seed_gives_the_same_bytes():
    async def run(seed):
        model = Faulty(Scripted(lambda asked: TEXT), seed, 0.8)
        body = {"model": MODEL, "max_tokens": 1000, "messages": HELLO, "stream": True}
        return [await model.answer(Asked("anthropic", body)) for _ in range(60)]

    assert await run(3) == await run(3)
    assert await run(3) != await run(4)


async def test_a_refusal_of_the_model_stands_above_faults_within_the_body():
    async with serve(hit("half")) as url, anthropic_client(url) as client:
        with pytest.raises(anthropic.BadRequestError, match="at least one message"):
            await client.messages.create(model=MODEL, max_tokens=10, messages=[])
