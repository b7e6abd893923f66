"""Whole replies and streams of the three APIs, over real HTTP by the real SDKs."""

from __future__ import annotations

import copy
import json

import pytest
from tests.providers.conftest import CALL, KEY, collect
from tests.support.rawhttp import RESET, STALL, json_answer, sse_answer
from tests.support.replies import ARGUMENTS, EVENTS, PATHS, TOOLS, WHOLE

import foldline
from foldline.core.log.messages import ToolCall, Usage
from foldline.dialects import get as dialect_of
from foldline.errors import ProviderError
from foldline.providers import Call, sdk


async def test_a_whole_reply_is_read(dialect, serve):
    provider, server = await serve(dialect, json_answer(WHOLE[dialect]))
    reply = await provider.complete(CALL)
    assert reply.text == "I read it."
    assert reply.usage == Usage(input=20, cache_read=100, output=30)
    assert reply.stop == "tools"
    assert reply.model == WHOLE[dialect]["model"]
    assert reply.tokens_asked == 500
    assert server.requests[0].path == PATHS[dialect]
    assert reply.native == WHOLE[dialect]


async def test_a_stream_gives_its_pieces_and_then_the_same_reply(dialect, serve):
    provider, server = await serve(dialect, sse_answer(EVENTS[dialect]))
    deltas, reply = await collect(provider.stream(CALL))
    said = {kind: "".join(d.text for d in deltas if d.kind == kind) for kind in ("text", "thinking")}
    assert said == {"text": "I read it.", "thinking": "Which file?"}
    calls = [d for d in deltas if d.kind == "call"]
    assert [(d.index, d.id, d.name) for d in calls if d.id] == [(0, "call_1", "read"), (1, "call_2", "read")]
    assert "".join(d.text for d in calls if d.index == 0) == ARGUMENTS
    assert reply.native == WHOLE[dialect]
    assert reply.stop == "tools"
    assert server.body["stream"] is True


@pytest.mark.parametrize("tail", [STALL, RESET])
async def test_a_reply_that_came_whole_is_kept_although_its_connection_does_not_end(dialect, serve, tail):
    events = [event for event in EVENTS[dialect] if event != "[DONE]"]
    provider, _ = await serve(dialect, json_answer(WHOLE[dialect]), sse_answer(events, tail))
    await provider.complete(CALL)  # the SDK is read by now: that is no part of what is waited for
    _, reply = await collect(provider.stream(CALL))
    assert reply.native == WHOLE[dialect]


async def test_usage_that_does_not_come_is_not_waited_for_as_long_as_a_reply(serve, monkeypatch):
    monkeypatch.setattr(sdk, "LAST", 0.1)
    events = [event for event in EVENTS["openai-chat"] if event != "[DONE]" and not event.get("usage")]
    provider, _ = await serve("openai-chat", sse_answer(events, STALL))
    _, reply = await collect(provider.stream(CALL))
    assert (reply.text, reply.usage) == ("I read it.", None)


async def test_a_server_that_does_not_stream_is_understood(dialect, serve):
    provider, server = await serve(dialect, json_answer(WHOLE[dialect]))
    deltas, reply = await collect(provider.stream(CALL))
    assert server.body["stream"] is True
    assert [(delta.kind, delta.text) for delta in deltas] == [("text", "I read it.")]
    assert (reply.native, reply.stop) == (WHOLE[dialect], "tools")


async def test_an_error_instead_of_a_stream_is_told_as_it_is(dialect, serve):
    provider, _ = await serve(dialect, json_answer({"error": {"message": "no tide", "type": "server_error"}}))
    with pytest.raises(ProviderError, match="no tide"):
        await collect(provider.stream(CALL))


async def test_what_is_streamed_decodes_as_what_comes_whole(dialect, serve):
    provider, _ = await serve(dialect, sse_answer(EVENTS[dialect]))
    _, reply = await collect(provider.stream(CALL))
    message = dialect_of(dialect).decode_reply(reply.native)
    whole = dialect_of(dialect).decode_reply(WHOLE[dialect])
    assert (message.parts, message.usage, message.stop) == (whole.parts, whole.usage, whole.stop)
    assert message.calls == (ToolCall("call_1", "read", {"path": "src/a.py"}), ToolCall("call_2", "read", {}))


async def test_a_session_takes_the_reply_with_its_usage(dialect, serve, tmp_path):
    provider, _ = await serve(dialect, json_answer(WHOLE[dialect]))
    reply = await provider.complete(CALL)
    async with foldline.open(f"sqlite:///{tmp_path}/s.db", "one", dialect=dialect) as session:
        await session.append({"role": "user", "content": "Read src/a.py"})
        await session.append(reply.native)
        said = [entry.message async for entry in session.store.path("one")]
    assert said[-1].usage == Usage(input=20, cache_read=100, output=30)
    assert [call.name for call in said[-1].calls] == ["read", "read"]


async def test_the_request_holds_what_the_call_says(dialect, serve):
    provider, server = await serve(dialect, json_answer(WHOLE[dialect]))
    call = Call(messages=CALL.messages, system="Be brief.", tools=TOOLS[dialect], max_tokens=64)
    await provider.complete(call)
    body = server.body
    assert body["tools"] == TOOLS[dialect]
    if dialect == "openai-chat":
        assert body["messages"] == [{"role": "system", "content": "Be brief."}, *CALL.messages]
        assert body["max_tokens"] == 64
    elif dialect == "openai-responses":
        assert (body["instructions"], body["input"]) == ("Be brief.", CALL.messages)
        assert (body["max_output_tokens"], body["store"]) == (64, False)
        assert body["include"] == ["reasoning.encrypted_content"]
    else:
        assert (body["system"], body["messages"], body["max_tokens"]) == ("Be brief.", CALL.messages, 64)


async def test_the_key_goes_where_the_api_wants_it(dialect, serve):
    provider, server = await serve(dialect, json_answer(WHOLE[dialect]))
    await provider.complete(CALL)
    headers = server.requests[0].headers
    # the Anthropic SDK has used either header
    assert KEY in (headers.get("authorization", "").removeprefix("Bearer "), headers.get("x-api-key"))


async def test_anthropic_gets_a_limit_although_none_was_given(serve):
    provider, server = await serve("anthropic", json_answer(WHOLE["anthropic"]))
    reply = await provider.complete(Call(messages=CALL.messages))
    assert server.body["max_tokens"] == reply.tokens_asked == 16_384


CHAT_STOPS = [
    ("stop", {}, "end"),
    ("length", {}, "length"),
    ("content_filter", {}, "refused"),
    ("stop", {"refusal": "I cannot."}, "refused"),
    ("stop", {"tool_calls": WHOLE["openai-chat"]["choices"][0]["message"]["tool_calls"]}, "tools"),
    ("eos", {}, "end"),
    ("error", {}, "error"),
    (None, {}, "end"),
]


@pytest.mark.parametrize(("reason", "more", "stop"), CHAT_STOPS)
async def test_chat_stop_reasons(serve, reason, more, stop):
    body = copy.deepcopy(WHOLE["openai-chat"])
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": "So.", **more}}
    provider, _ = await serve("openai-chat", json_answer({**body, "choices": [choice]}))
    assert (await provider.complete(CALL)).stop == stop


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "length"),
        ("refusal", "refused"),
        ("pause_turn", "tools"),
        ("model_context_window_exceeded", "length"),
    ],
)
async def test_anthropic_stop_reasons(serve, reason, stop):
    body = {**WHOLE["anthropic"], "stop_reason": reason}
    provider, _ = await serve("anthropic", json_answer(body))
    assert (await provider.complete(CALL)).stop == stop


@pytest.mark.parametrize(
    ("more", "stop"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refused"),
        (
            {
                "output": [
                    {
                        **WHOLE["openai-responses"]["output"][1],
                        "content": [{"type": "refusal", "refusal": "No."}],
                    }
                ]
            },
            "refused",
        ),
        ({"output": [WHOLE["openai-responses"]["output"][1]]}, "end"),
    ],
)
async def test_responses_stop_reasons(serve, more, stop):
    provider, _ = await serve("openai-responses", json_answer({**WHOLE["openai-responses"], **more}))
    assert (await provider.complete(CALL)).stop == stop


async def test_calls_of_servers_that_number_none_of_them_stay_apart(serve):
    def chunk(*calls, reason=None):
        delta = {"tool_calls": list(calls)} if calls else {}
        return {"id": "1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    events = [
        chunk({"index": 0, "id": "a", "function": {"name": "read", "arguments": '{"n":'}}),
        chunk({"index": 0, "id": "a", "function": {"arguments": "1}"}}),
        chunk({"index": 0, "id": "b", "function": {"name": "read", "arguments": '{"n":2}'}}),
        chunk(reason="tool_calls"),
    ]
    provider, _ = await serve("openai-chat", sse_answer(events))
    deltas, reply = await collect(provider.stream(CALL))
    message = dialect_of("openai-chat").decode_reply(reply.native)
    assert [(c.id, c.arguments) for c in message.calls] == [("a", {"n": 1}), ("b", {"n": 2})]
    assert [d.index for d in deltas] == [0, 0, 1]


async def test_a_call_that_the_limit_cut_off_stays_sendable(serve):
    events = copy.deepcopy(EVENTS["anthropic"])
    events = [
        e for e in events if e.get("index") != 3 and e.get("delta", {}).get("partial_json") != ARGUMENTS[9:]
    ]
    events[-2]["delta"]["stop_reason"] = "max_tokens"
    provider, _ = await serve("anthropic", sse_answer(events))
    _, reply = await collect(provider.stream(CALL))
    assert reply.stop == "length"
    assert reply.native["content"][-1]["input"] == {"input": ARGUMENTS[:9]}


async def test_items_of_a_response_whose_last_event_holds_none_are_gathered(serve):
    items = WHOLE["openai-responses"]["output"]
    done = [
        {"type": "response.output_item.done", "output_index": n, "item": item} for n, item in enumerate(items)
    ]
    last = {"type": "response.completed", "response": {**WHOLE["openai-responses"], "output": []}}
    provider, _ = await serve("openai-responses", sse_answer([*done, last]))
    _, reply = await collect(provider.stream(CALL))
    assert reply.native["output"] == items


async def test_a_provider_closed_can_be_asked_again(dialect, serve):
    provider, server = await serve(dialect, json_answer(WHOLE[dialect]))
    await provider.complete(CALL)
    await provider.close()
    assert (await provider.complete(CALL)).text == "I read it."
    assert len(server.requests) == 2
    assert json.dumps(server.body)
