"""What goes wrong between here and a model: every kind of error, once, and never with the key in it."""

from __future__ import annotations

import asyncio
import copy
import logging
import sys
import traceback
from email.utils import formatdate
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from time import time

import msgspec
import pytest
from tests.providers.conftest import CALL, KEY, MODELS, collect
from tests.support.rawhttp import RESET, STALL, json_answer, sse_answer, text_answer
from tests.support.replies import EVENTS, WHOLE

from foldline import providers
from foldline.catalogue.info import ModelInfo
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.window import Window
from foldline.errors import FoldlineError, InputError, ProviderError
from foldline.providers.access import load, unusable_proxy
from foldline.providers.failures import retry_after

TRANSIENT = {"rate", "overloaded", "server", "timeout", "connection", "malformed"}


def said(message: str, kind: str = "invalid_request_error") -> dict:
    return {"type": "error", "error": {"type": kind, "message": message}}


async def failure(asked) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await asked
    assert isinstance(caught.value, FoldlineError)
    assert caught.value.transient == (caught.value.kind in TRANSIENT)
    return caught.value


STATUSES = {
    400: "bad_request", 401: "auth", 402: "auth", 403: "auth", 404: "bad_request", 408: "timeout", 422: "bad_request",
    429: "rate", 500: "server", 502: "server", 503: "overloaded", 504: "timeout", 529: "overloaded",
}  # fmt: skip


async def test_a_status_says_the_kind_and_the_sdk_does_not_try_again(dialect, serve):
    answers = [json_answer(said("It did not work."), status) for status in STATUSES for _ in range(2)]
    provider, server = await serve(dialect, *answers)
    name = MODELS[dialect]
    for status, kind in STATUSES.items():
        error = await failure(provider.complete(CALL))
        assert (error.kind, error.status, error.text, error.provider) == (
            kind,
            status,
            "It did not work.",
            name,
        )
        assert str(error) == f"{name}: {kind} ({status}): It did not work."
        error = await failure(collect(provider.stream(CALL)))
        assert (error.kind, error.status) == (kind, status)
    assert len(server.requests) == 2 * len(STATUSES)


@pytest.mark.parametrize(
    ("text", "status", "overflow"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 400, Overflow(limit=200_000, asked=210_000)),
        (
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
            400,
            Overflow(limit=200_000, asked=188_240, max_tokens=21_333),
        ),
        ("This model's maximum context length is 128000 tokens.", 400, Overflow(limit=128_000)),
        ("Request exceeds the maximum size: request_too_large", 413, Overflow()),
    ],
)
async def test_an_overflow_is_known_with_its_sizes(dialect, serve, text, status, overflow):
    provider, _ = await serve(dialect, json_answer(said(text), status))
    for asked in (provider.complete(CALL), collect(provider.stream(CALL))):
        error = await failure(asked)
        assert (error.kind, error.overflow, error.transient) == ("overflow", overflow, False)


async def test_a_bare_400_is_an_overflow(dialect, serve):
    provider, _ = await serve(dialect, text_answer("", 400))
    assert (await failure(provider.complete(CALL))).kind == "overflow"


async def test_an_account_that_is_spent_is_not_asked_again(dialect, serve):
    spent = {"error": {"type": "insufficient_quota", "message": "You exceeded your current quota."}}
    provider, _ = await serve(dialect, json_answer(spent, 429))
    error = await failure(provider.complete(CALL))
    assert (error.kind, error.transient) == ("auth", False)


async def test_an_account_without_credit_at_anthropic_is_not_asked_again(serve):
    text = "Your credit balance is too low to access the Anthropic API."
    provider, _ = await serve("anthropic", json_answer(said(text), 400))
    assert (await failure(provider.complete(CALL))).kind == "auth"


async def test_what_an_error_repeats_of_the_request_decides_nothing(serve):
    echo = {"msg": "Field required", "loc": ["body"], "input": {"content": "context length exceeded?"}}
    failed = {**WHOLE["openai-responses"], "status": "failed", "output": []}
    failed |= {"instructions": "When the prompt is too long, fold.", "error": {"code": "server_error"}}
    provider, _ = await serve("openai-responses", json_answer({"detail": [echo]}, 422), json_answer(failed))
    assert (await failure(provider.complete(CALL))).kind == "bad_request"
    assert (await failure(provider.complete(CALL))).kind == "server"


async def test_an_error_in_a_list_is_read(serve):
    text = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    provider, _ = await serve("openai-chat", json_answer([{"error": {"code": 400, "message": text}}], 400))
    error = await failure(provider.complete(CALL))
    assert (error.overflow, error.text) == (Overflow(limit=1_048_576, asked=1_200_000), text)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry-after": "7"}, 7.0), ({"retry-after-ms": "250", "retry-after": "1"}, 0.25), ({}, None)],
)
async def test_retry_after_is_read(dialect, serve, headers, seconds):
    provider, _ = await serve(dialect, json_answer(said("Slow down.", "rate_limit_error"), 429, headers))
    assert (await failure(provider.complete(CALL))).retry_after == seconds


def test_retry_after_may_be_a_date_and_is_never_nonsense():
    assert 3_590 < (retry_after({"retry-after": formatdate(time() + 3_600, usegmt=True)}) or 0) <= 3_600
    assert retry_after({"retry-after": formatdate(time() - 60, usegmt=True)}) == 0
    assert retry_after({"retry-after": "-3"}) == 0
    for nonsense in ("soon", "nan", "inf", ""):
        assert retry_after({"retry-after": nonsense}) is None


BODIES = ('{"id": "x", "choices": [', "no answer", "[1, 2]", "", "null")


async def test_a_reply_that_is_none_is_malformed(dialect, serve):
    types = ("application/json", "text/html")
    answers = [text_answer(body, 200, {"content-type": kind}) for body in BODIES for kind in types]
    provider, server = await serve(dialect, *answers)
    for _ in answers:
        assert (await failure(provider.complete(CALL))).kind == "malformed"
    assert len(server.requests) == len(answers)


PAGE = "\n<!doctype html><title>Welcome</title>"


@pytest.mark.parametrize("status", [200, 404])
async def test_a_web_page_in_place_of_a_reply_is_told_with_a_remedy(dialect, serve, status):
    provider, _ = await serve(
        dialect, text_answer(PAGE, status, {"content-type": "text/html; charset=utf-8"})
    )
    for ask in (provider.complete, lambda asked: collect(provider.stream(asked))):
        error = await failure(ask(CALL))
        assert error.kind == "bad_request"  # another try gets the same page
        assert error.text == "this address answers with a web page: does the base URL end in /v1?"


async def test_a_404_that_says_nothing_names_the_base_url(dialect, serve):
    provider, _ = await serve(dialect, text_answer("", 404))
    error = await failure(provider.complete(CALL))
    assert (error.kind, error.status) == ("bad_request", 404)
    assert error.text == "nothing is at this address: does the base URL end in /v1?"


async def test_a_reply_without_what_it_must_hold_is_malformed(dialect, serve):
    provider, _ = await serve(
        dialect, json_answer({"type": "message", "object": "chat.completion", "choices": [], "content": 5})
    )
    assert (await failure(provider.complete(CALL))).kind == "malformed"


async def test_an_error_with_status_200_is_an_error(serve):
    provider, _ = await serve(
        "openai-chat", json_answer({"error": {"code": 502, "message": "Upstream died."}})
    )
    error = await failure(provider.complete(CALL))
    assert (error.kind, error.text) == ("server", "Upstream died.")


async def test_a_failed_response_is_an_error(serve):
    failed = {**WHOLE["openai-responses"], "status": "failed", "output": []}
    failed["error"] = {"code": "rate_limit_exceeded", "message": "Slow down."}
    provider, _ = await serve(
        "openai-responses", json_answer(failed), sse_answer([{"type": "response.failed", "response": failed}])
    )
    for asked in (provider.complete(CALL), collect(provider.stream(CALL))):
        error = await failure(asked)
        assert (error.kind, error.text) == ("rate", "Slow down.")


async def test_a_cancelled_response_is_no_transient_error(serve):
    provider, _ = await serve(
        "openai-responses", json_answer({**WHOLE["openai-responses"], "status": "cancelled"})
    )
    assert (await failure(provider.complete(CALL))).kind == "cancelled"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overloaded_error", "overloaded"),
        ("rate_limit_error", "rate"),
        ("api_error", "server"),
        ("timeout_error", "timeout"),
    ],
)
async def test_an_error_in_the_middle_of_a_stream(dialect, serve, kind, expected):
    events = [*EVENTS[dialect][:3], said("Not now.", kind)]
    provider, _ = await serve(dialect, sse_answer(events))
    error = await failure(collect(provider.stream(CALL)))
    assert (error.kind, error.text) == (expected, "Not now.")


async def test_an_overflow_in_the_middle_of_a_stream(dialect, serve):
    provider, _ = await serve(
        dialect, sse_answer([EVENTS[dialect][0], said("prompt is too long: 9000 tokens > 8192")])
    )
    error = await failure(collect(provider.stream(CALL)))
    assert (error.kind, error.overflow) == ("overflow", Overflow(limit=8_192, asked=9_000))


async def test_half_a_stream_is_no_reply(dialect, serve):
    for tail in ((), (RESET,)):
        provider, _ = await serve(dialect, sse_answer(EVENTS[dialect][:4], *tail))
        assert (await failure(collect(provider.stream(CALL)))).kind == "connection"


async def test_an_event_that_is_no_json_is_malformed(dialect, serve):
    broken = b'event: content_block_delta\ndata: {"type": "content_\n\n'
    answer = [*sse_answer(EVENTS[dialect][:2]), broken]
    provider, _ = await serve(dialect, answer)
    assert (await failure(collect(provider.stream(CALL)))).kind == "malformed"


async def test_an_event_without_what_it_should_hold_is_malformed(serve):
    events = [EVENTS["anthropic"][0], {"type": "content_block_start", "index": 0}]
    provider, _ = await serve("anthropic", sse_answer(events))
    assert (await failure(collect(provider.stream(CALL)))).kind == "malformed"


@pytest.mark.parametrize("piece", [None, "[" * 100_000])
async def test_events_that_fit_no_reply_are_malformed(serve, piece):
    events = copy.deepcopy(EVENTS["anthropic"])
    for event in events:
        if event.get("delta", {}).get("type") == "input_json_delta":
            event["delta"]["partial_json"] = piece
    provider, _ = await serve("anthropic", sse_answer(events))
    assert (await failure(collect(provider.stream(CALL)))).kind == "malformed"


async def test_a_call_whose_arguments_do_not_parse_is_malformed(serve):
    events = [
        e
        for e in EVENTS["anthropic"]
        if e.get("delta", {}).get("partial_json") != EVENTS["anthropic"][13]["delta"]["partial_json"]
    ]
    provider, _ = await serve("anthropic", sse_answer(events))
    assert (await failure(collect(provider.stream(CALL)))).kind == "malformed"


async def test_a_reset_connection(dialect, serve):
    provider, server = await serve(dialect, [RESET])
    assert (await failure(provider.complete(CALL))).kind == "connection"
    assert (await failure(collect(provider.stream(CALL)))).kind == "connection"
    assert len(server.requests) == 2


async def test_nobody_listens(dialect, serve):
    provider = providers.get(MODELS[dialect], base_url="http://127.0.0.1:9/v1", dialect=dialect)
    assert (await failure(provider.complete(CALL))).kind == "connection"
    await provider.close()


async def test_a_stall_ends_in_a_time_out_and_closes_the_connection(dialect, serve):
    soon = msgspec.structs.replace(CALL, timeout=0.2)
    provider, server = await serve(
        dialect, json_answer(WHOLE[dialect]), [STALL], sse_answer(EVENTS[dialect][:3], STALL)
    )
    await provider.complete(CALL)  # the SDK is read by now: that is no part of what is waited for
    for ask in (provider.complete, lambda asked: collect(provider.stream(asked))):
        server.came.clear()
        server.left.clear()
        while not server.came.is_set():  # a busy machine may need the time to send the request
            assert (await failure(ask(soon))).kind == "timeout"
        await asyncio.wait_for(server.left.wait(), 60)


async def test_cancelling_closes_the_connection(dialect, serve):
    provider, server = await serve(dialect, [STALL], sse_answer(EVENTS[dialect][:5], STALL))
    for asked in (provider.complete(CALL), collect(provider.stream(CALL))):
        server.left.clear()
        server.came.clear()
        task = asyncio.create_task(asked)
        await server.came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.left.wait(), 60)


async def test_leaving_a_stream_early_closes_the_connection(dialect, serve):
    provider, server = await serve(dialect, sse_answer(EVENTS[dialect][:5], STALL))
    stream = provider.stream(CALL)
    assert (await anext(stream)).text
    await stream.aclose()
    await asyncio.wait_for(server.left.wait(), 60)


async def test_no_room_for_a_reply_is_an_overflow(serve):
    usage = {"prompt_tokens": 8_190, "completion_tokens": 0, "total_tokens": 8_190}
    starved = {**WHOLE["openai-chat"], "usage": usage}
    starved["choices"] = [
        {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": ""}}
    ]
    provider, _ = await serve("openai-chat", json_answer(starved), info=ModelInfo("m", Window(context=8_192)))
    error = await failure(provider.complete(CALL))
    assert (error.kind, error.overflow) == ("overflow", Overflow(limit=8_192, asked=8_190))


async def test_a_reason_that_names_an_overflow_is_one_where_nothing_was_said(serve):
    bare = {**WHOLE["anthropic"], "content": [], "stop_reason": "model_context_window_exceeded"}
    provider, _ = await serve("anthropic", json_answer(bare))
    assert (await failure(provider.complete(CALL))).kind == "overflow"


async def test_a_reply_above_a_known_window_is_kept_and_marked(dialect, serve):
    provider, _ = await serve(dialect, json_answer(WHOLE[dialect]), info=ModelInfo("m", Window(context=100)))
    reply = await provider.complete(CALL)
    assert (reply.text, reply.overflow) == ("I read it.", Overflow(limit=100, asked=120))


async def test_a_window_that_is_only_assumed_marks_nothing(serve):
    big = {**WHOLE["openai-chat"], "usage": {"prompt_tokens": 900_000, "completion_tokens": 5}}
    provider, _ = await serve("openai-chat", json_answer(big), name="openai:unheard-of-model")
    assert (await provider.complete(CALL)).overflow is None


async def test_the_key_is_in_no_error_no_log_and_no_repr(dialect, serve, caplog):
    caplog.set_level(logging.DEBUG)
    echo = said(
        f"Incorrect API key provided: {KEY}. And AKIAIOSFODNN7EXAMPLQ is no better.", "authentication_error"
    )
    provider, server = await serve(
        dialect, json_answer(echo, 401), text_answer(f"not JSON: {KEY}"), sse_answer([echo])
    )
    shown = [repr(provider), str(vars(provider))]
    for asked in (provider.complete, provider.complete, lambda call: collect(provider.stream(call))):
        error = await failure(asked(CALL))
        shown += [*traceback.format_exception(error), repr(error), repr(vars(error))]
    shown += [repr(provider), repr(providers.Retrying(provider)), caplog.text, *map(repr, caplog.records)]
    assert any(KEY in str(request.headers) for request in server.requests)
    assert not [text for text in shown if KEY in text]
    assert not [text for text in shown if "AKIAIOSFODNN7EXAMPLQ" in text]
    assert "httpx2" in caplog.text


async def test_a_key_given_by_hand_is_as_secret(serve):
    hand = "hand-written-key-0123456789"
    provider, server = await serve("anthropic", json_answer(said(f"no such key {hand}"), 401), api_key=hand)
    error = await failure(provider.complete(CALL))
    assert hand in str(server.requests[0].headers)
    assert KEY not in str(server.requests[0].headers)
    assert hand not in f"{error!r} {error.text} {vars(provider)}"


async def test_a_key_that_was_changed_meanwhile_is_as_secret(serve, monkeypatch):
    provider, _ = await serve(
        "openai-chat", json_answer(WHOLE["openai-chat"]), json_answer(said(f"no such key {KEY}"), 401)
    )
    await provider.complete(CALL)
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    assert KEY not in (await failure(provider.complete(CALL))).text


async def test_without_a_key_the_error_says_which_variable(monkeypatch):
    for name, variable in (
        ("openai:gpt-5.2", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-6", "ANTHROPIC_API_KEY"),
    ):
        monkeypatch.delenv(variable)
        error = await failure(providers.get(name).complete(CALL))
        assert error.kind == "auth"
        assert variable in error.text


@pytest.mark.parametrize(
    "url", ["socks5://127.0.0.1:9", "socks://h:1", "foo://h", "http://u:hidden@[::1", "h:port"]
)
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
async def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(dialect, monkeypatch, variable, url):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv(variable, url)
    provider = providers.get(MODELS[dialect], base_url="http://127.0.0.1:9/v1", dialect=dialect)
    for asked in (provider.complete(CALL), collect(provider.stream(CALL))):
        error = await failure(asked)
        assert error.kind == "bad_request"
        assert variable in error.text
        assert "http://host:port" in error.text
        assert "hidden" not in error.text


@pytest.mark.parametrize("url", ["127.0.0.1:9", "http://u:p@127.0.0.1:9", "socks5h://127.0.0.1:9", ""])
def test_a_proxy_that_can_be_used_is_not_complained_of(monkeypatch, url):
    socksio = module_from_spec(ModuleSpec("socksio", None))
    monkeypatch.setitem(sys.modules, "socksio", socksio)
    monkeypatch.setenv("ALL_PROXY", url)
    assert unusable_proxy() is None
    monkeypatch.setenv("ALL_PROXY", "foo://h")
    monkeypatch.setenv("NO_PROXY", "localhost, *")
    assert unusable_proxy() is None


@pytest.mark.parametrize("kind", ["missing", "not PEM"])
async def test_certificates_that_cannot_be_used_are_named(dialect, monkeypatch, tmp_path, kind):
    file = tmp_path / "certificates.pem"
    if kind == "not PEM":
        file.write_text("nothing")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    provider = providers.get(MODELS[dialect], base_url="https://127.0.0.1:9/v1", dialect=dialect)
    error = await failure(provider.complete(CALL))
    assert error.kind == "bad_request"
    assert error.text.startswith(f"SSL_CERT_FILE={file} cannot be used: ")
    assert error.text.endswith("; correct or unset it")


def test_an_sdk_that_is_not_installed_is_named_with_the_extra():
    with pytest.raises(InputError, match=r"pip install 'foldline\[no_such_sdk\]'"):
        load("no_such_sdk")


async def test_half_a_character_is_sent_as_the_replacement_character(dialect, serve):
    provider, server = await serve(dialect, json_answer(WHOLE[dialect]))
    call = msgspec.structs.replace(
        CALL, messages=[{"role": "user", "content": "half \ud83d, whole \ud83d\ude00"}]
    )
    await provider.complete(call)
    (sent,) = server.requests
    assert "half \ufffd, whole \U0001f600" in str(sent)
