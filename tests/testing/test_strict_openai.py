"""One bad request a rule, sent by OpenAI's own SDK to both of its APIs: refused with the API's status and words."""

import openai
import pytest
from tests.dialects.items import call as item_call
from tests.dialects.samples import assistant, call, calling, tool_answer, user
from tests.testing.clients import MODEL, openai_client

from foldline.core.measure.overflow import Overflow, overflow
from foldline.core.measure.window import Window
from foldline.testing import Answer, Scripted, serve
from foldline.testing import call as tool_call

HI = user("Hello")
EMPTY = "empty array. Expected an array with minimum length 1, but got an empty array instead."

CHAT = {
    "orphaned result": (
        [HI, tool_answer("c9")],
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        "messages.[1].role",
        None,
    ),
    "calls without results": (
        [HI, calling(call("c1"), call("c2")), HI],
        (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
            "The following tool_call_ids did not have response messages: c1, c2"
        ),
        "messages.[2].role",
        None,
    ),
    "two results of one call": (
        [HI, calling(call("c1")), tool_answer("c1"), tool_answer("c1")],
        "Duplicate value for 'tool_call_id' of 'c1' in message[3].",
        "messages",
        None,
    ),
    "a result without an id": (
        [HI, calling(call("c1")), {"role": "tool", "content": "ok"}],
        "Missing required parameter: 'messages[2].tool_call_id'.",
        "messages[2].tool_call_id",
        "missing_required_parameter",
    ),
    "nothing said": (
        [HI, {"role": "assistant", "content": None}, HI],
        "Invalid value for 'content': expected a string, got null.",
        "messages.[1].content",
        None,
    ),
    "no messages": ([], f"Invalid 'messages': {EMPTY}", "messages", "empty_array"),
    "no parts": (
        [{"role": "user", "content": []}],
        f"Invalid 'messages[0].content': {EMPTY}",
        "messages[0].content",
        "empty_array",
    ),
    "no calls in a list of calls": (
        [HI, {**assistant("a"), "tool_calls": []}],
        f"Invalid 'messages[1].tool_calls': {EMPTY}",
        "messages[1].tool_calls",
        "empty_array",
    ),
    "an unknown role": (
        [{"role": "robot", "content": "a"}],
        (
            "Invalid value: 'robot'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', "
            "and 'developer'."
        ),
        "messages[0].role",
        "invalid_value",
    ),
    "an unknown part": (
        [{"role": "user", "content": [{"type": "smell", "smell": "x"}]}],
        (
            "Invalid value: 'smell'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', "
            "and 'file'."
        ),
        "messages[0].content[0].type",
        "invalid_value",
    ),
}


@pytest.mark.parametrize("name", CHAT)
async def test_a_bad_list_of_messages_is_refused_in_the_words_of_the_api(name):
    messages, words, param, code = CHAT[name]
    model = Scripted(["never"])
    async with serve(model) as url, openai_client(url) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model=MODEL, messages=messages)
    error = caught.value
    assert (error.status_code, error.type) == (400, "invalid_request_error")
    assert (error.body["message"], error.param, error.code) == (words, param, code)
    assert error.request_id.startswith("req_")
    assert model.left == 1


ITEM = item_call("c1")
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}

ITEMS = {
    "orphaned output": ([HI, OUTPUT], "No tool call found for function call output with call_id c1."),
    "a call without output": ([HI, ITEM, HI], "No tool output found for function call c1."),
    "reasoning that led to nothing": (
        [HI, REASONING, HI],
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    "an item twice": (
        [HI, REASONING, {**assistant("a"), "id": "msg_1"}, {**assistant("b"), "id": "msg_1"}],
        "Duplicate item found with id msg_1. Remove duplicate items from your input and try again.",
    ),
    "reasoning of somebody else's": (
        [HI, {**REASONING, "encrypted_content": "gAAA"}, assistant("a")],
        (
            "The encrypted content for item rs_1 could not be verified. "
            "Reason: Encrypted content could not be decrypted or parsed."
        ),
    ),
}


@pytest.mark.parametrize("name", ITEMS)
async def test_a_bad_list_of_items_is_refused_in_the_words_of_the_api(name):
    items, words = ITEMS[name]
    async with serve(Scripted(["never"])) as url, openai_client(url) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model=MODEL, input=items)
    assert caught.value.body["message"] == words
    assert caught.value.type == "invalid_request_error"


async def test_an_item_made_with_reasoning_needs_it():
    model = Scripted([Answer("Look.", thinking="hm"), "Done."])
    async with serve(model) as url, openai_client(url) as client:
        first = await client.responses.create(
            model=MODEL, input=[HI], store=False, include=["reasoning.encrypted_content"]
        )
        reasoning, message = (item.to_dict() for item in first.output)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model=MODEL, input=[HI, message, HI])
        assert caught.value.body["message"] == (
            f"Item '{message['id']}' of type 'message' was provided without its required 'reasoning' item: "
            f"'{reasoning['id']}'."
        )
        broken = reasoning | {"encrypted_content": reasoning["encrypted_content"][:-4] + "AAAA"}
        with pytest.raises(openai.BadRequestError, match="could not be verified"):
            await client.responses.create(model=MODEL, input=[HI, broken, message, HI])
        second = await client.responses.create(model=MODEL, input=[HI, reasoning, message, HI])
    assert second.output_text == "Done."


async def test_nothing_is_stored_between_requests():
    async with serve(Scripted(["never"])) as url, openai_client(url) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model=MODEL, input="Hi", previous_response_id="resp_1")
        assert caught.value.code == "previous_response_not_found"
        with pytest.raises(openai.NotFoundError, match="Items are not persisted"):
            await client.responses.create(model=MODEL, input=[HI, {"type": "item_reference", "id": "msg_1"}])


async def test_parameters_that_a_request_needs():
    async with serve(Scripted(["never"])) as url, openai_client(url) as client:
        for path, body, words in (
            ("/chat/completions", {"model": MODEL}, "Missing required parameter: 'messages'."),
            ("/chat/completions", {"messages": [HI]}, "you must provide a model parameter"),
            ("/responses", {"model": MODEL}, "Missing required parameter: 'input'."),
            (
                "/responses",
                {"model": MODEL, "input": 7},
                "Invalid type for 'input': expected an array of objects.",
            ),
        ):
            with pytest.raises(openai.BadRequestError) as caught:
                await client.post(path, body=body, cast_to=object)
            assert caught.value.body["message"] == words


async def test_an_unknown_model_is_not_found():
    async with serve(Scripted(["never"], models=["gpt-a"])) as url, openai_client(url) as client:
        with pytest.raises(openai.NotFoundError) as caught:
            await client.chat.completions.create(model="gpt-b", messages=[HI])
    assert caught.value.code == "model_not_found"
    assert caught.value.body["message"] == "The model `gpt-b` does not exist or you do not have access to it."


async def test_a_wrong_key_and_bad_json_are_refused():
    async with serve(Scripted(["never"]), api_key="right") as url, openai_client(url) as client:
        with pytest.raises(openai.AuthenticationError) as caught:
            await client.chat.completions.create(model=MODEL, messages=[HI])
        assert caught.value.code == "invalid_api_key"
    async with serve(Scripted(["never"])) as url, openai_client(url) as client:
        for content in (b"{", b"[]", b"", b"[" * 5_000):
            with pytest.raises(openai.BadRequestError, match="could not parse the JSON body"):
                await client.post("/chat/completions", content=content, cast_to=object)


async def test_too_large_a_cap_is_refused():
    model = Scripted(["never"], window=Window(context=100_000, output=4_000))
    async with serve(model) as url, openai_client(url) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model=MODEL, messages=[HI], max_tokens=5_000)
    assert caught.value.body["message"] == (
        "max_tokens is too large: 5000. This model supports at most 4000 completion tokens, "
        "whereas you provided 5000."
    )
    assert caught.value.param == "max_tokens"


async def test_messages_that_are_too_long_name_both_sizes():
    model = Scripted(["never"], window=Window(context=1_000, output=500))
    async with serve(model) as url, openai_client(url) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model=MODEL, messages=[user("word " * 2_000)])
        used = model.requests[0].tokens
        assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "messages")
        assert overflow(str(caught.value), 400) == Overflow(limit=1_000, asked=used)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model=MODEL, messages=[user("word " * 700)], max_tokens=400)
        used = model.requests[1].tokens
        assert overflow(str(caught.value), 400) == Overflow(limit=1_000, asked=used, max_tokens=400)


async def test_items_that_are_too_long_are_refused_and_a_stream_says_so_by_events():
    model = Scripted(["never"], window=1_000)
    words = "Your input exceeds the context window of this model. Please adjust your input and try again."
    async with serve(model) as url, openai_client(url) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model=MODEL, input="word " * 2_000)
        assert (caught.value.body["message"], caught.value.code) == (words, "context_length_exceeded")
        events = []
        stream = await client.responses.create(model=MODEL, input="word " * 2_000, stream=True)
        with pytest.raises(openai.APIError) as late:
            await drain(stream, events)
    assert events == ["response.created", "response.in_progress"]
    assert late.value.body["code"] == "context_length_exceeded"
    assert overflow(str(late.value)) == Overflow()


async def drain(stream, events):
    async for event in stream:
        events.append(event.type)


@pytest.mark.parametrize("form", ["truncate", "accept", "starve"])
async def test_the_silent_forms_of_an_overflow(form):
    model = Scripted(["Fine."], window=1_000, overflow=form)
    async with serve(model) as url, openai_client(url) as client:
        reply = await client.chat.completions.create(model=MODEL, messages=[user("word " * 2_000)])
    choice, usage = reply.choices[0], reply.usage
    if form == "truncate":
        assert (choice.message.content, usage.prompt_tokens) == ("Fine.", 1_000)
    elif form == "accept":
        assert (choice.message.content, usage.prompt_tokens > 1_900) == ("Fine.", True)
    else:
        assert (choice.finish_reason, usage.prompt_tokens, usage.completion_tokens) == ("length", 1_000, 0)


async def test_alternation_where_a_template_asks_for_it():
    async with serve(Scripted(["a"], alternation=True)) as url, openai_client(url) as client:
        with pytest.raises(openai.BadRequestError, match="roles must alternate"):
            await client.chat.completions.create(model=MODEL, messages=[HI, HI])


async def test_a_call_of_a_tool_in_a_namespace_names_both():
    inner = {"type": "function", "name": "recall", "parameters": {"type": "object", "properties": {}}}
    space = {"type": "namespace", "name": "notes", "description": "Notes.", "tools": [inner]}
    model = Scripted([tool_call("notes__recall"), tool_call("other__recall")])
    async with serve(model) as url, openai_client(url) as client:
        asked = {"model": MODEL, "input": "Hello", "tools": [space]}
        first = (await client.responses.create(**asked)).output[0].model_dump()
        second = (await client.responses.create(**asked)).output[0].model_dump()
    assert (first["name"], first["namespace"]) == ("recall", "notes")
    assert (second["name"], second["namespace"]) == ("other__recall", None)
