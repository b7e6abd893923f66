"""The official SDKs against the server: replies whole and streamed, tools, usage, models."""

import anthropic
import openai
import pytest
from tests.testing.clients import MODEL, anthropic_client, ask, openai_client

from foldline.testing import Answer, Scripted, call, calls, serve, serve_in_thread

DIALECTS = ("openai-chat", "openai-responses", "anthropic")
HELLO = [{"role": "user", "content": "Hello"}]
TEXT = "Twelve files were read, and nothing was changed. " * 5


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_text_arrives_whole_and_in_pieces(dialect, stream):
    model = Scripted([TEXT])
    async with serve(model) as url:
        assert await ask(url, dialect, stream=stream) == TEXT
    assert [asked.dialect for asked in model.requests] == [dialect]
    assert model.requests[0].stream is stream
    assert model.requests[0].messages == HELLO


@pytest.mark.parametrize("stream", [False, True])
async def test_anthropic_calls_tools_in_parallel_and_takes_their_results(stream):
    model = Scripted([calls(call("read", path="a.py"), call("read", path="b.py")), "Both are empty."])
    async with serve(model) as url, anthropic_client(url) as client:
        fields = {"model": MODEL, "max_tokens": 500}
        if stream:
            async with client.messages.stream(messages=HELLO, **fields) as events:
                first = await events.get_final_message()
        else:
            first = await client.messages.create(messages=HELLO, **fields)
        assert first.stop_reason == "tool_use"
        uses = [block for block in first.content if block.type == "tool_use"]
        assert [(use.name, use.input) for use in uses] == [
            ("read", {"path": "a.py"}),
            ("read", {"path": "b.py"}),
        ]
        assert len({use.id for use in uses}) == 2
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": "(empty)"} for use in uses]
        said = {"role": "assistant", "content": [block.to_dict() for block in first.content]}
        second = await client.messages.create(
            messages=[*HELLO, said, {"role": "user", "content": results}], **fields
        )
    assert second.content[0].text == "Both are empty."
    assert second.stop_reason == "end_turn"


@pytest.mark.parametrize("stream", [False, True])
async def test_chat_calls_tools_in_parallel_and_takes_their_results(stream):
    model = Scripted([calls(call("read", path="a.py"), call("read", path="b.py")), "Both are empty."])
    async with serve(model) as url, openai_client(url) as client:
        if stream:
            async with client.chat.completions.stream(model=MODEL, messages=HELLO) as events:
                first = (await events.get_final_completion()).choices[0]
        else:
            first = (await client.chat.completions.create(model=MODEL, messages=HELLO)).choices[0]
        assert first.finish_reason == "tool_calls"
        asked = first.message.tool_calls
        assert [one.function.arguments for one in asked] == ['{"path":"a.py"}', '{"path":"b.py"}']
        results = [{"role": "tool", "tool_call_id": one.id, "content": "(empty)"} for one in asked]
        said = {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": one.id,
                    "type": "function",
                    "function": {"name": "read", "arguments": one.function.arguments},
                }
                for one in asked
            ],
        }
        second = await client.chat.completions.create(model=MODEL, messages=[*HELLO, said, *results])
    assert second.choices[0].message.content == "Both are empty."


@pytest.mark.parametrize("stream", [False, True])
async def test_responses_call_tools_with_reasoning_and_take_their_outputs(stream):
    one = call("read", path="a.py")
    model = Scripted([Answer(calls=one.calls, thinking="I should look first."), "It is empty."])
    fields = {"model": MODEL, "include": ["reasoning.encrypted_content"], "store": False}
    async with serve(model) as url, openai_client(url) as client:
        if stream:
            async with client.responses.stream(input=HELLO, **fields) as events:
                first = await events.get_final_response()
        else:
            first = await client.responses.create(input=HELLO, **fields)
        assert [item.type for item in first.output] == ["reasoning", "function_call"]
        assert first.output[0].summary[0].text == "I should look first."
        asked = first.output[1]
        assert (asked.name, asked.arguments) == ("read", '{"path":"a.py"}')
        items = [item.to_dict() for item in first.output]
        output = {"type": "function_call_output", "call_id": asked.call_id, "output": "(empty)"}
        second = await client.responses.create(input=[*HELLO, *items, output], **fields)
    assert second.output_text == "It is empty."
    assert second.status == "completed"


@pytest.mark.parametrize("stream", [False, True])
async def test_thinking_is_signed_and_comes_back_with_its_signature(stream):
    model = Scripted([Answer("Four.", thinking="Two and two."), "Yes."])
    fields = {
        "model": MODEL,
        "max_tokens": 3000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    }
    async with serve(model) as url, anthropic_client(url) as client:
        if stream:
            async with client.messages.stream(messages=HELLO, **fields) as events:
                first = await events.get_final_message()
        else:
            first = await client.messages.create(messages=HELLO, **fields)
        assert [block.type for block in first.content] == ["thinking", "text"]
        said = {"role": "assistant", "content": [block.to_dict() for block in first.content]}
        second = await client.messages.create(
            messages=[*HELLO, said, {"role": "user", "content": "Sure?"}], **fields
        )
    assert second.content[0].text == "Yes."


async def test_thinking_is_left_out_where_it_was_not_asked_for():
    async with (
        serve(Scripted([Answer("Four.", thinking="Two and two.")])) as url,
        anthropic_client(url) as client,
    ):
        reply = await client.messages.create(model=MODEL, max_tokens=100, messages=HELLO)
    assert [block.type for block in reply.content] == ["text"]


async def test_a_reply_longer_than_its_cap_is_cut_and_says_so():
    long = "word " * 500
    async with serve(Scripted([long, long, long])) as url:
        async with anthropic_client(url) as client:
            message = await client.messages.create(model=MODEL, max_tokens=20, messages=HELLO)
        async with openai_client(url) as client:
            chat = await client.chat.completions.create(model=MODEL, max_completion_tokens=20, messages=HELLO)
            response = await client.responses.create(model=MODEL, max_output_tokens=20, input="Hello")
    assert (message.stop_reason, message.usage.output_tokens) == ("max_tokens", 20)
    assert long.startswith(message.content[0].text)
    assert (chat.choices[0].finish_reason, chat.usage.completion_tokens) == ("length", 20)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")


async def test_a_call_cut_by_the_cap_has_broken_arguments_as_from_openai():
    async with serve(Scripted([call("write", text="word " * 100)])) as url, openai_client(url) as client:
        chat = await client.chat.completions.create(model=MODEL, max_tokens=20, messages=HELLO)
    assert chat.choices[0].finish_reason == "length"
    assert chat.choices[0].message.tool_calls[0].function.arguments.startswith('{"text":"word')
    assert not chat.choices[0].message.tool_calls[0].function.arguments.endswith("}")


async def test_stream_usage_comes_where_the_request_asks_for_it():
    async with serve(Scripted(["a", "b"])) as url, openai_client(url) as client:
        plain = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        assert all(chunk.usage is None for chunk in [chunk async for chunk in plain])
        with_usage = await client.chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in with_usage]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens == 5


async def test_models_and_token_counts():
    async with serve(Scripted(model="m1", models=["m1", "m2"])) as url:
        async with anthropic_client(url) as client:
            assert [model.id async for model in client.models.list()] == ["m1", "m2"]
            count = await client.messages.count_tokens(model="m1", messages=HELLO)
            assert count.input_tokens == 5
        async with openai_client(url) as client:
            assert [model.id async for model in client.models.list()] == ["m1", "m2"]


def test_the_thread_form_serves_clients_that_are_not_async():
    model = Scripted(["one", "two", "three"])
    with serve_in_thread(model) as url:
        with anthropic.Anthropic(base_url=url, api_key="test", max_retries=0, timeout=60) as client:
            assert client.messages.create(model=MODEL, max_tokens=10, messages=HELLO).content[0].text == "one"
        with openai.OpenAI(base_url=f"{url}/v1", api_key="test", max_retries=0, timeout=60) as client:
            chat = client.chat.completions.create(model=MODEL, messages=HELLO)
            assert chat.choices[0].message.content == "two"
            assert client.responses.create(model=MODEL, input="Hello").output_text == "three"
    with (
        pytest.raises(openai.APIConnectionError),
        openai.OpenAI(base_url=url, api_key="t", max_retries=0, timeout=60) as client,
    ):
        client.models.list()


async def test_what_came_in_is_all_recorded():
    model = Scripted(["one"])
    tools = [{"name": "read", "description": "Read a file.", "input_schema": {"type": "object"}}]
    async with serve(model) as url:
        await ask(url, "anthropic", system="Be brief.", tools=tools)
    asked = model.requests[0]
    assert (asked.index, asked.model, asked.system, asked.tools) == (0, MODEL, "Be brief.", tools)
    assert asked.max_tokens == 1000
    assert asked.headers["authorization"] == "Bearer test"
    assert asked.tokens > 20
    assert asked.refused is None
