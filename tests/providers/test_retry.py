"""Asking again: what passes, what does not, how long to wait, and streams that break."""

from __future__ import annotations

import asyncio
import socket
import sys

import msgspec
import pytest
from tests.providers.conftest import CALL, MODELS, collect
from tests.support.rawhttp import RESET, STALL, json_answer, sse_answer, text_answer
from tests.support.replies import EVENTS, WHOLE

from foldline import providers
from foldline.core.measure.overflow import Overflow
from foldline.errors import InputError, ProviderError
from foldline.providers import Patience, Retrying
from foldline.providers.failures import refused

QUICK = Patience(first=0.001, longest=0.002, jitter=0.001)


def refusal(status: int, text: str = "It did not work.", headers: dict | None = None):
    return json_answer({"type": "error", "error": {"type": "error", "message": text}}, status, headers)


async def test_what_passes_is_asked_again_until_it_works(dialect, serve):
    failures = [refusal(500), refusal(529), refusal(429), text_answer("{", 200), [RESET]]
    provider, server = await serve(dialect, *failures, json_answer(WHOLE[dialect]))
    reply = await Retrying(provider, QUICK).complete(CALL)
    assert reply.text == "I read it."
    assert len(server.requests) == 6


async def test_it_ends(dialect, serve):
    provider, server = await serve(dialect, refusal(503))
    patient = Retrying(provider, msgspec.structs.replace(QUICK, attempts=3))
    for asked in (patient.complete(CALL), collect(patient.stream(CALL))):
        server.requests.clear()
        with pytest.raises(ProviderError) as caught:
            await asked
        assert caught.value.kind == "overloaded"
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "overflow"),
        (413, "", "overflow"),
        (400, "messages.0: content must be a string", "bad_request"),
        (401, "no such key", "auth"),
        (404, "no such model", "bad_request"),
    ],
)
async def test_what_never_passes_is_asked_once(dialect, serve, status, text, kind):
    answer = refusal(status, text) if text else text_answer("", status)
    provider, server = await serve(dialect, answer)
    patient = Retrying(provider, QUICK)
    for asked in (patient.complete(CALL), collect(patient.stream(CALL))):
        server.requests.clear()
        with pytest.raises(ProviderError) as caught:
            await asked
        assert caught.value.kind == kind
        assert len(server.requests) == 1


async def test_the_wait_is_the_one_that_the_server_asks_for(serve, monkeypatch):
    slept = []
    sleep = asyncio.sleep

    async def noted(seconds: float, result=None):
        slept.append(seconds)
        return await sleep(0, result)

    provider, _ = await serve(
        "anthropic", refusal(429, headers={"retry-after": "20"}), json_answer(WHOLE["anthropic"])
    )
    monkeypatch.setattr(asyncio, "sleep", noted)
    await Retrying(provider, Patience()).complete(CALL)
    assert [20 <= seconds <= 21 for seconds in slept if seconds > 1] == [True]


@pytest.mark.parametrize(
    ("asked", "patience", "limit"),
    [(3_600, QUICK, 120), (20, msgspec.structs.replace(QUICK, timeout=10), 120), (20, QUICK, 10)],
)
async def test_a_wait_that_is_too_long_ends_the_asking(dialect, serve, asked, patience, limit):
    provider, server = await serve(dialect, refusal(429, headers={"retry-after": str(asked)}))
    patient, call = Retrying(provider, patience), msgspec.structs.replace(CALL, timeout=limit)
    for ask in (patient.complete, lambda call: collect(patient.stream(call))):
        server.requests.clear()
        with pytest.raises(ProviderError, match=f"try again in {asked:,} s") as caught:
            await ask(call)
        assert caught.value.retry_after == asked
        assert len(server.requests) == 1


async def test_a_stream_that_breaks_begins_anew_and_says_so(dialect, serve):
    broken = sse_answer(EVENTS[dialect][:5], RESET)
    provider, _ = await serve(dialect, refusal(500), broken, sse_answer(EVENTS[dialect]))
    deltas, reply = await collect(Retrying(provider, QUICK).stream(CALL))
    kinds = [delta.kind for delta in deltas]
    assert kinds.count("restart") == 1
    first = deltas[0]
    assert (first.kind, first.index, first.seconds) == ("wait", 1, QUICK.first)
    assert "500" in first.text
    assert kinds.count("wait") == 2
    after = deltas[kinds.index("restart") :]
    assert "".join(d.text for d in after if d.kind == "text") == "I read it." == reply.text
    assert kinds[0] != "restart"


async def test_the_last_failure_is_raised_and_not_waited_out(dialect, serve):
    provider, _ = await serve(dialect, refusal(503))
    stream = Retrying(provider, msgspec.structs.replace(QUICK, attempts=3)).stream(CALL)
    assert [(await anext(stream)).kind, (await anext(stream)).kind] == ["wait", "wait"]
    with pytest.raises(ProviderError):
        await anext(stream)


async def test_leaving_a_stream_early_closes_the_connection_and_asks_no_more(dialect, serve):
    provider, server = await serve(dialect, sse_answer(EVENTS[dialect][:5], STALL))
    stream = Retrying(provider, QUICK).stream(CALL)
    await anext(stream)
    await stream.aclose()
    await asyncio.wait_for(server.left.wait(), 60)
    assert len(server.requests) == 1


@pytest.fixture
def silent_port():
    """A port of this machine that is bound, but has no listener."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


HOSTS = [("127.0.0.1", "no server answers there"), ("localhost", "no server answers there")]
HOSTS += [("mistyped.example", "the host name cannot be resolved")]


@pytest.mark.parametrize(("host", "error"), HOSTS)
async def test_an_address_without_a_server_is_tried_a_few_times_only(
    dialect, host, error, silent_port, monkeypatch
):
    resolve = socket.getaddrinfo

    def getaddrinfo(name, *arguments, **options):
        if "mistyped" in str(name):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(name, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    provider = providers.get(MODELS[dialect], base_url=f"http://{host}:{silent_port}/v1", dialect=dialect)
    stream = Retrying(provider, QUICK).stream(CALL)
    waits = [await anext(stream), await anext(stream)]
    assert [(delta.kind, delta.index) for delta in waits] == [("wait", 1), ("wait", 2)]
    assert all(delta.text.startswith(f"connection: {error}") for delta in waits)
    with pytest.raises(ProviderError, match=error):
        await anext(stream)
    once = msgspec.structs.replace(QUICK, refused=1, first=60, longest=60)
    with pytest.raises(ProviderError, match=error):
        await asyncio.wait_for(Retrying(provider, once).complete(CALL), 30)
    await provider.close()


def test_an_address_refuses_where_each_of_its_forms_does():
    no, slow = ConnectionRefusedError(), TimeoutError()
    failed = OSError("All connection attempts failed")
    failed.__cause__ = ExceptionGroup("", [no, no])
    assert refused(failed)
    failed.__cause__ = ExceptionGroup("", [no, slow])
    assert not refused(failed)
    assert not refused(slow)


async def test_cancelling_a_wait_ends_it(serve):
    provider, server = await serve("openai-chat", refusal(500))
    patient = Retrying(provider, Patience(first=60, longest=60))
    task = asyncio.create_task(patient.complete(CALL))
    await server.came.wait()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(server.requests) == 1


async def test_it_stands_for_the_provider_that_it_asks(dialect, serve):
    provider, _ = await serve(dialect, json_answer(WHOLE[dialect]))
    patient = Retrying(provider)
    assert (patient.name, patient.dialect) == (provider.name, dialect)
    await patient.close()


def test_only_an_overflow_holds_sizes_and_it_is_never_transient():
    error = ProviderError("too long", kind="overflow", status=400, overflow=Overflow(limit=8_192))
    assert not error.transient
    assert str(error) == "overflow (400): too long"


async def test_without_stamina_the_error_says_what_to_install(serve, monkeypatch):
    provider, _ = await serve("openai-chat", json_answer(WHOLE["openai-chat"]))
    monkeypatch.setitem(sys.modules, "stamina", None)
    with pytest.raises(InputError, match="pip install"):
        await Retrying(provider).complete(CALL)
