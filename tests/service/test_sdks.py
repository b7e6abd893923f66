"""The official SDKs as clients of the gateway: each way to ask, kept going past the window with tool calls."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest
from tests.service.served import run_gateway

from foldline.testing import Answer, Refusal, call

WINDOW = 12_000
ROUNDS = 14
RULE = "Never push to main."
FILLER = "It is as it was asked for, and every word of it is needed. " * 30
CALLED = {"name", "arguments"}
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
NAMED = {"name": "read", "description": "Read a file."}


def answers(asked):
    """Call a tool at every second request, answer in words at the others; a checkpoint is code's own here."""
    if asked.index % 2 == 0:
        return call("read", path=f"src/{asked.index}.py")
    return Answer(text=f"Answer {asked.index}. {FILLER}")


class Chat:
    """Chat Completions: a history, and one way to ask."""

    tools = ({"type": "function", "function": {**NAMED, "parameters": PARAMETERS}},)

    def __init__(self, client):
        self.client = client
        self.messages = [{"role": "system", "content": "You help."}]

    def say(self, text):
        self.messages.append({"role": "user", "content": text})

    def ask(self):
        """Ask for a reply, keep it, answer its calls; returns its words."""
        reply = self.reply(model="scripted", messages=self.messages, tools=self.tools)
        calls = reply.tool_calls or []
        kept = {"role": "assistant", "content": reply.content}
        if calls:
            kept["tool_calls"] = [
                {"id": one.id, "type": "function", "function": one.function.model_dump(include=CALLED)}
                for one in calls
            ]
        self.messages.append(kept)
        for one in calls:
            result = f"{json.loads(one.function.arguments)['path']}: {FILLER}"
            self.messages.append({"role": "tool", "tool_call_id": one.id, "content": result})
        return reply.content

    def reply(self, **asked):
        return self.client.chat.completions.create(**asked).choices[0].message


class ChatHelper(Chat):
    def reply(self, **asked):
        with self.client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            kinds = {event.type for event in stream}
            done = stream.get_final_completion()
        assert kinds & {"content.done", "tool_calls.function.arguments.done"}
        assert done.usage.prompt_tokens > 0
        return done.choices[0].message


class Responses:
    """Responses: what came is sent again as it came."""

    tools = ({"type": "function", "strict": False, **NAMED, "parameters": PARAMETERS},)

    def __init__(self, client):
        self.client = client
        self.messages = []

    def say(self, text):
        self.messages.append({"role": "user", "content": text})

    def ask(self):
        reply = self.reply(
            model="scripted", instructions="You help.", input=self.messages, tools=self.tools, store=False
        )
        for item in reply.output:
            self.messages.append(item.model_dump(exclude_none=True, exclude={"parsed", "parsed_arguments"}))
            if item.type == "function_call":
                result = f"{json.loads(item.arguments)['path']}: {FILLER}"
                self.messages.append(
                    {"type": "function_call_output", "call_id": item.call_id, "output": result}
                )
        return reply.output_text

    def reply(self, **asked):
        return self.client.responses.create(**asked)


class ResponsesHelper(Responses):
    def reply(self, **asked):
        with self.client.responses.stream(**asked) as stream:
            kinds = [event.type for event in stream]
            done = stream.get_final_response()
        assert kinds[-1] == "response.completed"
        assert done.usage.input_tokens > 0
        return done


class Messages:
    """Anthropic's Messages."""

    tools = ({**NAMED, "input_schema": PARAMETERS},)

    def __init__(self, client):
        self.client = client
        self.messages = []

    def say(self, text):
        if self.messages and self.messages[-1]["role"] == "user":
            self.messages[-1]["content"].append({"type": "text", "text": text})
        else:
            self.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def ask(self):
        reply = self.reply(
            model="scripted", max_tokens=1_000, system="You help.", messages=self.messages, tools=self.tools
        )
        self.messages.append({"role": "assistant", "content": [one.to_dict() for one in reply.content]})
        results = [
            {"type": "tool_result", "tool_use_id": one.id, "content": f"{one.input['path']}: {FILLER}"}
            for one in reply.content
            if one.type == "tool_use"
        ]
        if results:
            self.messages.append({"role": "user", "content": results})
        return "".join(one.text for one in reply.content if one.type == "text")

    def reply(self, **asked):
        return self.client.messages.create(**asked)


class MessagesHelper(Messages):
    def reply(self, **asked):
        with self.client.messages.stream(**asked) as stream:
            kinds = [event.type for event in stream]
            done = stream.get_final_message()
        assert kinds[-1] == "message_stop"
        assert done.usage.input_tokens > 0
        return done


@pytest.fixture
def client():
    """Make a client of either SDK that keeps the headers of what it got; each is closed at the end."""
    made = []

    def make(api, url, **options):
        heads = []
        of_ours = issubclass(api, Messages)
        library = anthropic if of_ours else openai
        http = library.DefaultHttpxClient(event_hooks={"response": [lambda one: heads.append(one.headers)]})
        kind = anthropic.Anthropic if of_ours else openai.OpenAI
        base = url if of_ours else f"{url}/v1"
        made.append(kind(base_url=base, api_key="test", max_retries=0, http_client=http, **options))
        return made[-1], heads

    yield make
    for one in made:
        one.close()


@pytest.mark.slow
@pytest.mark.parametrize("api", [Chat, ChatHelper, Responses, ResponsesHelper, Messages, MessagesHelper])
def test_a_session_with_tool_calls_goes_on_past_its_window(api, client):
    with run_gateway(answers, window=WINDOW) as (url, model):
        made, heads = client(api, url)
        talk = api(made)
        talk.say(RULE)
        for number in range(ROUNDS):
            talk.ask()  # calls a tool
            said = talk.ask()
            assert said == f"Answer {2 * number + 1}. {FILLER}"
            talk.say(f"Question {number}. {FILLER}")
        talk.ask()
    whole = model.count(replaced(model.requests[-1], talk.messages))
    assert whole > 1.6 * WINDOW
    assert [one.refused for one in model.requests if one.refused] == []
    assert max(one.tokens for one in model.requests) < WINDOW
    assert RULE in str(model.requests[-1].messages)
    assert "foldline-session" not in heads[0]
    folds = [one for one in heads if "reason=threshold" in one.get("foldline-view", "")]
    assert len(folds) > 1
    assert len({one["foldline-session"] for one in heads if "foldline-session" in one}) == 1


def replaced(asked, messages):
    """The last request as it would have been without a gateway."""
    key = "input" if "input" in asked.body else "messages"
    return type(asked)(asked.dialect, {**asked.body, key: messages})


async def test_the_async_clients_stream_side_by_side():
    with run_gateway(lambda asked: f"Answer to {asked.dialect}. {FILLER}") as (url, model):
        async with (
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="test", max_retries=0, timeout=60) as one,
            anthropic.AsyncAnthropic(base_url=url, api_key="test", max_retries=0, timeout=60) as other,
        ):
            asked = {"model": "scripted", "messages": [{"role": "user", "content": "Begin."}]}
            chat = await one.chat.completions.create(**asked, stream=True)
            pieces = [piece async for piece in chat]
            async with other.messages.stream(**asked, max_tokens=1_000) as stream:
                said = await stream.get_final_text()
            async with one.responses.stream(model="scripted", input="Begin.") as stream:
                done = await stream.get_final_response()
    assert "".join(one.choices[0].delta.content or "" for one in pieces if one.choices) == (
        f"Answer to openai-chat. {FILLER}"
    )
    assert said == f"Answer to anthropic. {FILLER}"
    assert done.output_text == f"Answer to openai-responses. {FILLER}"
    assert [one.refused for one in model.requests] == [None] * 3


def test_models_and_counts_are_the_models_own(client):
    with run_gateway(answers) as (url, model):
        chat, _ = client(Chat, url)
        messages, heads = client(Messages, url)
        asked = {"model": "scripted", "messages": [{"role": "user", "content": "Hello there."}]}
        assert [one.id for one in chat.models.list()] == ["scripted"]
        assert [one.id for one in messages.models.list()] == ["scripted"]
        counted = messages.messages.count_tokens(**asked)
        used = messages.messages.create(**asked, max_tokens=1_000).usage
    assert counted.input_tokens == used.input_tokens
    assert not [name for head in heads for name in head if name.startswith("foldline")]
    assert len(model.requests) == 1


@pytest.mark.parametrize("api", [Chat, Responses, Messages])
def test_the_models_own_errors_reach_the_sdk_as_its_own_exceptions(api, client):
    with run_gateway(lambda _: Refusal(429, retry_after=7)) as (url, _):
        talk = api(client(api, url)[0])
        talk.say("Begin.")
        library = anthropic if api is Messages else openai
        with pytest.raises(library.RateLimitError) as caught:
            talk.ask()
    assert caught.value.response.headers["retry-after"] == "7"
