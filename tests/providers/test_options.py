"""Fields that some servers refuse: another form is sent, and the server is remembered."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.providers.conftest import CALL, collect
from tests.support.rawhttp import json_answer, sse_answer
from tests.support.replies import EVENTS, WHOLE

from foldline.errors import ProviderError


def refusal(text: str):
    return json_answer({"type": "error", "error": {"type": "invalid_request_error", "message": text}}, 400)


OFF = msgspec.structs.replace(CALL, thinking=False)
ON = msgspec.structs.replace(CALL, thinking=True)


async def test_thinking_is_switched_off_and_on(dialect, serve):
    provider, server = await serve(dialect, json_answer(WHOLE[dialect]))
    await provider.complete(OFF)
    off = server.body
    await provider.complete(ON)
    on = server.body
    await provider.complete(CALL)
    if dialect == "anthropic":
        assert (off["thinking"], on["thinking"]["type"]) == ({"type": "disabled"}, "adaptive")
        assert "thinking" not in server.body
    elif dialect == "openai-responses":
        assert (off["reasoning"], on["reasoning"]["effort"]) == ({"effort": "none"}, "medium")
        assert "reasoning" not in server.body
    else:  # another server than OpenAI's: the switch of chat templates
        assert off["chat_template_kwargs"] == {"enable_thinking": False}
        assert on["chat_template_kwargs"] == {"enable_thinking": True}
        assert "chat_template_kwargs" not in server.body


async def test_openai_itself_gets_its_own_names(serve, monkeypatch):
    from tests.support.rawhttp import raw_server

    from foldline import providers

    async with raw_server(json_answer(WHOLE["openai-chat"])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        provider = providers.get("openai:gpt-5.2")
        await provider.complete(OFF)
        await provider.close()
    assert server.body["max_completion_tokens"] == 500
    assert server.body["reasoning_effort"] == "none"
    assert "max_tokens" not in server.body


async def test_a_model_that_cannot_stop_thinking_is_asked_as_it_can(serve):
    texts = [
        "Unsupported value: 'reasoning.effort' does not support 'none' with this model.",
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
    ]
    provider, server = await serve(
        "openai-responses", *map(refusal, texts), json_answer(WHOLE["openai-responses"])
    )
    assert (await provider.complete(OFF)).text == "I read it."
    assert [r.body.get("reasoning") for r in server.requests] == [
        {"effort": "none"},
        {"effort": "minimal"},
        None,
    ]
    await provider.complete(OFF)
    assert len(server.requests) == 4  # it is remembered


async def test_anthropic_models_are_asked_to_think_in_the_way_they_know(serve):
    texts = ["adaptive thinking is not supported on this model"]
    provider, server = await serve("anthropic", *map(refusal, texts), json_answer(WHOLE["anthropic"]))
    await provider.complete(msgspec.structs.replace(ON, max_tokens=8_000))
    assert server.body["thinking"] == {"type": "enabled", "budget_tokens": 4_000}


async def test_a_server_without_usage_in_streams_still_streams(serve):
    refused = refusal("Unrecognized request argument supplied: stream_options")
    provider, server = await serve("openai-chat", refused, sse_answer(EVENTS["openai-chat"]))
    _, reply = await collect(provider.stream(CALL))
    assert reply.text == "I read it."
    assert ["stream_options" in r.body for r in server.requests] == [True, False]


async def test_a_model_that_wants_the_new_name_of_the_limit_gets_it(serve):
    text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    provider, server = await serve("openai-chat", refusal(text), json_answer(WHOLE["openai-chat"]))
    await provider.complete(CALL)
    assert server.body["max_completion_tokens"] == 500
    assert "max_tokens" not in server.body


async def test_another_bad_request_is_told_at_once(dialect, serve):
    provider, server = await serve(dialect, refusal("messages.0: content must be a string"))
    with pytest.raises(ProviderError) as caught:
        await provider.complete(OFF)
    assert caught.value.kind == "bad_request"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "text",
    [
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
        "Unknown parameter: 'input[1].summary'.",
        "Invalid value: 'reasoning'. Supported values are: 'text' (messages[3].content[0].type)",
        "tools.2.thinking: Extra inputs are not permitted",
    ],
)
async def test_a_refusal_of_what_messages_hold_changes_no_option(dialect, serve, text):
    provider, server = await serve(dialect, refusal(text), json_answer(WHOLE[dialect]))
    with pytest.raises(ProviderError):
        await provider.complete(ON)
    refused = server.body
    await provider.complete(ON)
    assert server.body == refused
    assert len(server.requests) == 2


async def test_a_server_that_refuses_everything_is_not_asked_for_ever(dialect, serve):
    words = "Unsupported: max_tokens, thinking, reasoning, include, stream_options, chat_template_kwargs"
    provider, server = await serve(dialect, refusal(words))
    with pytest.raises(ProviderError):
        await collect(provider.stream(OFF))
    assert len(server.requests) <= 4


async def test_of_two_calls_that_are_refused_at_once_neither_fails(serve):
    text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    refused = refusal(text)
    provider, server = await serve("openai-chat", refused, refused, json_answer(WHOLE["openai-chat"]))
    create, sent, both = provider._create, [], asyncio.Barrier(2)

    async def create_at_once(client, fields):
        sent.append(fields)
        together = len(sent) <= 2
        try:
            return await create(client, fields)
        finally:
            if together:
                await both.wait()

    provider._create = create_at_once
    replies = await asyncio.gather(provider.complete(CALL), provider.complete(CALL))
    assert [reply.text for reply in replies] == ["I read it."] * 2
    assert ["max_completion_tokens" in one.body for one in server.requests] == [False, False, True, True]
