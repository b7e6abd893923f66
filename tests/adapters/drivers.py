"""Agents of each framework, whose model is a script: it calls a tool as often as it is told, then answers.

A driver keeps each request that the model was sent, and writes it as the provider would get it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # LiteLLM would fetch it while it is imported
os.environ.setdefault("INSPECT_DISPLAY", "none")


class Reply(NamedTuple):
    """What the model says, and the call that it makes, if it makes one."""

    text: str
    call: str = ""
    arguments: dict[str, str] = {}


class Boom(Exception):
    """Raised by the tool of a run that is to be interrupted."""


class Driver:
    """One agent with a conversation; `again` makes an agent of a new process that goes on with it."""

    package = ""
    dialect = "openai-chat"  # of what goes to the model
    keeps_answers = False  # a reply is stored when it comes, not with the request that follows
    pairs = False  # an answer is a call too, with its result
    mends = False  # a request that did not fit is folded and sent again
    copies = False  # each request has copies of the messages
    at_folds = False  # is asked only where the framework wants a fold, and stores nothing in between

    histories: Any  # of the adapter
    session = "talk"

    def __init__(self, store: str, **options: Any) -> None:
        self.store, self.options = store, options
        self.seen: list[list[Any]] = []  # each request
        self.calls = 0
        self.left = 0  # calls until the model answers
        self.break_at = 0  # the call whose tool fails
        self.errors: list[Exception] = []  # raised by the next calls of the model
        self.make()

    def make(self) -> None:
        """Make the agent, with Foldline."""
        raise NotImplementedError

    def model(self) -> Any:
        """Return a model of the framework's whose replies are those of `step`."""
        raise NotImplementedError

    async def run(self, text: str, steps: int) -> None:
        """Say something; the model calls its tool `steps` times."""
        self.left = steps
        await self.say(text)

    async def say(self, text: str) -> None:
        raise NotImplementedError

    async def history(self) -> Sequence[Any]:
        """Return what the framework keeps."""
        raise NotImplementedError

    def native(self, view: Sequence[Any]) -> list[Any]:
        """Return a request as the framework writes it in the dialect."""
        return list(view)

    def look(self, path: str) -> str:
        """Look at a file."""
        if self.break_at and self.calls == self.break_at:
            self.break_at = 0
            raise Boom
        return f"content of {path}: " + "value = compute(42)  # a line of code\n" * 40 + f"end of {path}"

    def step(self, view: Sequence[Any]) -> Reply:
        """Take a request; return the model's reply."""
        self.seen.append(list(view))
        if self.errors:
            raise self.errors.pop(0)
        self.calls += 1
        if not self.left:
            return Reply(f"Done after {self.calls}.")
        self.left -= 1
        return Reply(f"Step {self.calls}.", f"call_{self.calls}", {"path": f"src/file_{self.calls}.py"})


class LangChain(Driver):
    package = "langchain"
    mends = True

    def make(self) -> None:
        from langchain.agents import create_agent
        from langgraph.checkpoint.memory import InMemorySaver

        from foldline.adapters.langchain import FoldlineMiddleware

        middleware = FoldlineMiddleware(self.store, **self.options)
        self.saver = getattr(self, "saver", None) or InMemorySaver()
        self.agent = create_agent(
            self.model(),
            [self.look],
            checkpointer=self.saver,
            system_prompt="Be brief.",
            middleware=[middleware],
        )
        self.histories = middleware.histories

    def model(self) -> Any:
        from langchain_core.language_models import BaseChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.outputs import ChatGeneration, ChatResult

        driver = self

        class Model(BaseChatModel):
            @property
            def _llm_type(self) -> str:
                return "scripted"

            def bind_tools(self, tools: Any, **_: Any) -> Any:
                return self

            def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
                made = driver.step(messages)
                asked = [{"name": "look", "args": made.arguments, "id": made.call}] if made.call else []
                reply = AIMessage(made.text, tool_calls=asked)
                return ChatResult(generations=[ChatGeneration(message=reply)])

        return Model(profile={"max_input_tokens": self.options["window"]})

    config = {"configurable": {"thread_id": "thread"}, "recursion_limit": 1_000_000}

    async def say(self, text: str) -> None:
        await self.agent.ainvoke({"messages": [{"role": "user", "content": text}]}, self.config)

    session = "thread"

    async def history(self) -> Sequence[Any]:
        return (await self.agent.aget_state(self.config)).values["messages"]

    def native(self, view: Sequence[Any]) -> list[Any]:
        from langchain_core.messages import convert_to_openai_messages

        return list(convert_to_openai_messages(view))


class PydanticAI(Driver):
    package = "pydantic_ai"
    mends = True

    def make(self) -> None:
        from pydantic_ai import Agent

        from foldline.adapters.pydantic_ai import Foldline

        capability = Foldline(self.store, **self.options)
        self.messages: list[Any] = getattr(self, "messages", [])
        self.agent: Any = Agent(
            self.model(), instructions="Be brief.", tools=[self.look], capabilities=[capability]
        )
        self.histories = capability.histories

    def model(self) -> Any:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel

        def answer(messages: Any, _: Any) -> ModelResponse:
            made = self.step(messages)
            asked = [ToolCallPart("look", made.arguments, made.call)] if made.call else []
            return ModelResponse([TextPart(made.text), *asked])

        return FunctionModel(answer)

    async def say(self, text: str) -> None:
        from pydantic_ai import capture_run_messages
        from pydantic_ai.usage import UsageLimits

        with capture_run_messages() as messages:
            try:
                result = await self.agent.run(
                    text,
                    message_history=self.messages,
                    conversation_id="talk",
                    usage_limits=UsageLimits(request_limit=None),
                )
                self.messages = result.all_messages()
            except Boom:
                self.messages = list(messages)
                raise

    async def history(self) -> Sequence[Any]:
        return self.messages

    @cached_property
    def chat(self) -> Any:
        """A model of OpenAI's, which writes requests."""
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIChatModel("gpt-5.2", provider=OpenAIProvider(api_key="none"))

    def native(self, view: Sequence[Any]) -> list[Any]:
        from pydantic_ai.models import ModelRequestParameters

        mapped = self.chat._map_messages(view, ModelRequestParameters())
        try:
            mapped.send(None)  # texts are mapped without waiting for anything
        except StopIteration as done:
            return done.value
        raise AssertionError("mapping waits")


class OpenAIAgents(Driver):
    package = "agents"
    dialect = "openai-responses"
    copies = True
    keeps_answers = True

    def make(self) -> None:
        from agents import Agent, function_tool, set_tracing_disabled

        from foldline.adapters.openai_agents import FoldlineSession

        set_tracing_disabled(True)
        self.kept = FoldlineSession("talk", self.store, **self.options)
        self.histories = self.kept.histories
        look = function_tool(self.look, failure_error_function=None)
        self.agent = Agent("coder", instructions="Be brief.", model=self.model(), tools=[look])

    def model(self) -> Any:
        from agents import ModelResponse, Usage
        from agents.models.interface import Model
        from openai.types.responses import (
            ResponseFunctionToolCall,
            ResponseOutputMessage,
            ResponseOutputText,
        )

        driver = self

        class Scripted(Model):
            async def get_response(self, *_: Any, **asked: Any) -> Any:
                made = driver.step(asked["input"])
                said = ResponseOutputText(text=made.text, type="output_text", annotations=[])
                output: list[Any] = [
                    ResponseOutputMessage(
                        id=f"msg_{driver.calls}",
                        content=[said],
                        role="assistant",
                        status="completed",
                        type="message",
                    )
                ]
                if made.call:
                    output.append(
                        ResponseFunctionToolCall(
                            arguments=json.dumps(made.arguments),
                            call_id=made.call,
                            name="look",
                            type="function_call",
                            status="completed",
                        )
                    )
                return ModelResponse(output=output, usage=Usage(), response_id=f"resp_{driver.calls}")

            def stream_response(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

        return Scripted()

    async def say(self, text: str) -> None:
        from agents import Runner, UserError

        try:
            await Runner.run(
                self.agent, text, max_turns=1_000_000, session=self.kept, run_config=self.kept.run_config()
            )
        except UserError as error:  # what a tool raises comes so
            raise (error.__cause__ or error) from None

    async def history(self) -> Sequence[Any]:
        return await self.kept.get_items()


class Strands(Driver):
    package = "strands"
    dialect = "bedrock-converse"
    copies = True

    def make(self) -> None:
        from strands import Agent, tool
        from strands.agent.conversation_manager import NullConversationManager

        from foldline.adapters.strands import use_foldline

        messages = self.agent.messages if hasattr(self, "agent") else []
        self.agent: Any = Agent(
            self.model(),
            messages=messages,
            tools=[tool(self.look)],
            system_prompt="Be brief.",
            callback_handler=None,
            conversation_manager=NullConversationManager(),
        )
        self.histories = use_foldline(self.agent, self.store, session="talk", **self.options)

    def model(self) -> Any:
        from strands.models.model import Model

        driver = self

        class Scripted(Model):
            def update_config(self, **_: Any) -> None: ...

            def get_config(self) -> Any:
                return {"context_window_limit": driver.options["window"]}

            async def structured_output(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError
                yield

            async def stream(self, messages: Any, *_: Any, **__: Any) -> Any:
                made = driver.step(messages)
                yield {"messageStart": {"role": "assistant"}}
                yield {"contentBlockStart": {"start": {}}}
                yield {"contentBlockDelta": {"delta": {"text": made.text}}}
                yield {"contentBlockStop": {}}
                if made.call:
                    yield {
                        "contentBlockStart": {"start": {"toolUse": {"toolUseId": made.call, "name": "look"}}}
                    }
                    arguments = json.dumps(made.arguments)
                    yield {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}}
                    yield {"contentBlockStop": {}}
                yield {"messageStop": {"stopReason": "tool_use" if made.call else "end_turn"}}

        return Scripted()

    async def say(self, text: str) -> None:
        await self.agent.invoke_async(text)

    async def history(self) -> Sequence[Any]:
        return self.agent.messages


class AgentFramework(Driver):
    package = "agent_framework"

    def make(self) -> None:
        from agent_framework import Agent

        from foldline.adapters.agent_framework import FoldlineChatMiddleware

        middleware = FoldlineChatMiddleware(self.store, **self.options)
        self.histories = middleware.histories
        self.agent: Any = Agent(self.model(), "Be brief.", tools=[self.look], middleware=[middleware])
        self.talk = getattr(self, "talk", None) or self.agent.create_session(session_id="talk")

    def model(self) -> Any:
        from agent_framework import (
            BaseChatClient,
            ChatMiddlewareLayer,
            ChatResponse,
            Content,
            FunctionInvocationLayer,
            Message,
        )

        driver = self

        class Client(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
            def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
                async def answer() -> ChatResponse:
                    made = driver.step(messages)
                    contents = [Content.from_text(made.text)]
                    if made.call:
                        contents.append(
                            Content.from_function_call(made.call, "look", arguments=made.arguments)
                        )
                    return ChatResponse(messages=[Message("assistant", contents)])

                return answer()

        return Client(function_invocation_configuration={"max_iterations": 1_000_000})

    async def say(self, text: str) -> None:
        await self.agent.run(text, session=self.talk)

    async def history(self) -> Sequence[Any]:
        states = self.talk.state.values()
        return next(state["messages"] for state in states if "messages" in state)

    def native(self, view: Sequence[Any]) -> list[Any]:
        from foldline.adapters.agent_framework import chat_payloads

        return [payload for one in view for payload in chat_payloads(one)]


class ADK(Driver):
    package = "google.adk"
    dialect = "gemini"
    copies = True

    def make(self) -> None:
        from google.adk.agents import Agent
        from google.adk.apps import App
        from google.adk.runners import Runner
        from google.adk.sessions import InMemorySessionService

        from foldline.adapters.adk import FoldlinePlugin

        agent = Agent(name="coder", model=self.model(), instruction="Be brief.", tools=[self.look])
        self.service = getattr(self, "service", None) or InMemorySessionService()
        plugin = FoldlinePlugin(self.store, **self.options)
        self.histories = plugin.histories
        app = App(name="app", root_agent=agent, plugins=[plugin])
        self.runner = Runner(app=app, session_service=self.service, auto_create_session=True)

    def model(self) -> Any:
        from google.adk.models import BaseLlm, LlmResponse
        from google.genai import types

        driver = self

        class Scripted(BaseLlm):
            async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
                made = driver.step(llm_request.contents)
                parts = [types.Part(text=made.text)]
                if made.call:
                    parts.append(types.Part.from_function_call(name="look", args=made.arguments))
                yield LlmResponse(content=types.Content(role="model", parts=parts))

        return Scripted(model="scripted")

    async def say(self, text: str) -> None:
        from google.adk.agents.run_config import RunConfig
        from google.genai import types

        said = types.Content(role="user", parts=[types.Part(text=text)])
        config = RunConfig(max_llm_calls=1_000_000)
        async for _ in self.runner.run_async(
            user_id="user", session_id="talk", new_message=said, run_config=config
        ):
            pass

    session = "app-user-talk-coder"

    async def history(self) -> Sequence[Any]:
        talk = await self.service.get_session(app_name="app", user_id="user", session_id="talk")
        return [event for event in talk.events if event.content]

    def native(self, view: Sequence[Any]) -> list[Any]:
        return [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in view]


class LiteLLM(Driver):
    """LiteLLM has no agent: a loop of its caller's, with the messages as replies come."""

    package = "litellm"
    copies = True

    def make(self) -> None:
        import litellm

        from foldline.adapters.litellm import FoldlineLogger

        self.messages: list[Any] = getattr(self, "messages", [])
        logger = FoldlineLogger(self.store, **self.options)
        self.histories = logger.histories
        litellm.callbacks = [logger]
        litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": self.model()}]

    def model(self) -> Any:
        import litellm

        driver = self

        class Scripted(litellm.CustomLLM):
            async def acompletion(self, *_: Any, **given: Any) -> Any:
                made = driver.step(given["messages"])
                function = {"name": "look", "arguments": json.dumps(made.arguments)}
                calls = [{"id": made.call, "type": "function", "function": function}] if made.call else None
                message = litellm.Message(content=made.text, tool_calls=calls)
                given["model_response"].choices[0].message = message
                return given["model_response"]

        return Scripted()

    async def say(self, text: str) -> None:
        import litellm

        self.messages.append({"role": "user", "content": text})
        while True:
            reply = await litellm.acompletion(
                model="scripted/m", messages=list(self.messages), litellm_session_id="talk"
            )
            said = reply.choices[0].message
            self.messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                return
            for call in said.tool_calls:
                content = self.look(**json.loads(call.function.arguments))
                self.messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    async def history(self) -> Sequence[Any]:
        return self.messages


class Smolagents(Driver):
    package = "smolagents"
    copies = True
    pairs = True

    def make(self) -> None:
        from smolagents import Tool, ToolCallingAgent
        from smolagents.monitoring import LogLevel

        from foldline.adapters.smolagents import use_foldline

        driver = self

        class Look(Tool):
            name = "look"
            description = "Look at a file."
            inputs = {"path": {"type": "string", "description": "Its path."}}
            output_type = "string"

            def forward(self, path: str) -> str:
                return driver.look(path)

        memory = self.agent.memory if hasattr(self, "agent") else None
        self.agent: Any = ToolCallingAgent(
            [Look()],
            self.model(),
            max_steps=1_000_000,
            verbosity_level=LogLevel.OFF,
            max_tool_threads=1,
        )
        if memory is not None:
            self.agent.memory = memory
        self.histories = use_foldline(self.agent, self.store, session="talk", **self.options)

    def model(self) -> Any:
        from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, Model

        driver = self

        class Scripted(Model):
            def generate(self, messages: Any, **_: Any) -> Any:
                made = driver.step(messages[1:])
                name, call_id, arguments = "look", made.call, made.arguments
                if not made.call:
                    name, call_id, arguments = "final_answer", f"answer_{driver.calls}", {"answer": made.text}
                function = ChatMessageToolCallFunction(arguments, name)
                call = ChatMessageToolCall(function, call_id, "function")
                return ChatMessage("assistant", made.text, [call])  # pyright: ignore[reportArgumentType]

        return Scripted()

    async def say(self, text: str) -> None:
        await asyncio.to_thread(self.agent.run, text, reset=False)

    async def history(self) -> Sequence[Any]:
        return [message for step in self.agent.memory.steps for message in step.to_messages()]

    def native(self, view: Sequence[Any]) -> list[Any]:
        """Return messages with the calls and results that smolagents writes into their texts."""
        from foldline.adapters.smolagents import calls_in, text_of

        out: list[Any] = []
        waiting: list[str] = []
        for one in view:
            text = text_of(one)
            if one.role == "tool-call":
                calls = [
                    {**call, "function": {**call["function"], "arguments": "{}"}} for call in calls_in(text)
                ]
                waiting += [call["id"] for call in calls]
                out.append({"role": "assistant", "content": None, "tool_calls": calls})
            elif one.role == "tool-response" and (waiting or "Error:" not in text):
                call = waiting.pop(0) if waiting else "none"
                out.append({"role": "tool", "tool_call_id": call, "content": text})
            else:
                role = "assistant" if one.role == "assistant" else "user"
                out.append({"role": role, "content": text})
        return out


class LlamaIndex(Driver):
    package = "llama_index.core"
    copies = True

    def make(self) -> None:
        from llama_index.core.agent.workflow import FunctionAgent

        from foldline.adapters.llama_index import WholeMemory, use_foldline

        self.memory: Any = getattr(self, "memory", None) or WholeMemory()
        self.agent: Any = FunctionAgent(
            tools=[self.look],
            llm=self.model(),
            system_prompt="Be brief.",
            streaming=False,
            timeout=None,
        )
        self.histories = use_foldline(self.agent, self.store, session="talk", **self.options)

    def model(self) -> Any:
        from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
        from llama_index.core.llms.mock import MockFunctionCallingLLM

        def answer(messages: Any, **_: Any) -> Any:
            made = self.step([one for one in messages if one.role != "system"])
            blocks: list[Any] = [TextBlock(text=made.text)]
            if made.call:
                asked = {"tool_call_id": made.call, "tool_name": "look", "tool_kwargs": made.arguments}
                blocks.append(ToolCallBlock(**asked))
            return ChatMessage(role="assistant", blocks=blocks)

        return MockFunctionCallingLLM(response_generator=answer, is_chat_model=True)

    async def say(self, text: str) -> None:
        await self.agent.run(text, memory=self.memory, max_iterations=1_000_000)

    async def history(self) -> Sequence[Any]:
        return await self.memory.aget_all()

    def native(self, view: Sequence[Any]) -> list[Any]:
        from foldline.adapters.llama_index import chat_payload

        return [chat_payload(one) for one in view]


class Agno(Driver):
    package = "agno"
    copies = True

    def make(self) -> None:
        from agno.agent import Agent
        from agno.db.in_memory import InMemoryDb

        from foldline.adapters.agno import use_foldline

        self.db = getattr(self, "db", None) or InMemoryDb()
        self.agent: Any = Agent(
            model=self.model(),
            tools=[self.look],
            instructions="Be brief.",
            db=self.db,
            session_id="talk",
            add_history_to_context=True,
            num_history_runs=1_000_000,
            telemetry=False,
        )
        self.histories = use_foldline(self.agent, self.store, **self.options)

    def model(self) -> Any:
        from agno.models.base import Model
        from agno.models.response import ModelResponse

        def answer(messages: Sequence[Any]) -> ModelResponse:
            made = self.step([one for one in messages if one.role != "system"])
            function = {"name": "look", "arguments": json.dumps(made.arguments)}
            asked = [{"id": made.call, "type": "function", "function": function}] if made.call else []
            return ModelResponse(role="assistant", content=made.text, tool_calls=asked)

        class Scripted(Model):
            def invoke(self, messages: Any, **_: Any) -> ModelResponse:
                return answer(messages)

            async def ainvoke(self, messages: Any, **_: Any) -> ModelResponse:
                return answer(messages)

            def invoke_stream(self, messages: Any, **_: Any) -> Any:
                yield answer(messages)

            async def ainvoke_stream(self, messages: Any, **_: Any) -> Any:
                yield answer(messages)

            def _parse_provider_response(self, response: Any, **_: Any) -> Any:
                return response

            def _parse_provider_response_delta(self, response: Any) -> Any:
                return response

        return Scripted(id="scripted")

    async def say(self, text: str) -> None:
        await self.agent.arun(text)

    async def history(self) -> Sequence[Any]:
        return self.agent.get_session_messages(session_id="talk")

    def native(self, view: Sequence[Any]) -> list[Any]:
        from foldline.adapters.agno import chat_payload

        return [chat_payload(one) for one in view]


class AutoGen(Driver):
    package = "autogen_agentchat"

    def make(self) -> None:
        from autogen_agentchat.agents import AssistantAgent
        from autogen_core.tools import FunctionTool

        from foldline.adapters.autogen import FoldlineContext

        kept = self.agent.model_context._messages if hasattr(self, "agent") else []
        context = FoldlineContext(self.store, session="talk", **self.options)
        self.histories = context.histories
        self.agent: Any = AssistantAgent(
            "coder",
            self.model(),
            tools=[FunctionTool(self.look, "Look at a file.")],
            system_message="Be brief.",
            max_tool_iterations=1_000_000,
            model_context=context,
        )
        self.agent.model_context._messages = kept

    def model(self) -> Any:
        from autogen_core import FunctionCall
        from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

        able = {"vision": False, "json_output": False, "structured_output": False}
        info = ModelInfo(function_calling=True, family="unknown", **able)  # pyright: ignore

        driver = self

        def unused(*_: Any, **__: Any) -> Any:
            raise NotImplementedError

        class Scripted(ChatCompletionClient):
            model_info = capabilities = info  # pyright: ignore
            create_stream = actual_usage = total_usage = count_tokens = remaining_tokens = close = unused

            async def create(self, messages: Any, **_: Any) -> CreateResult:  # pyright: ignore
                made = driver.step([one for one in messages if one.type != "SystemMessage"])
                usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
                if not made.call:
                    return CreateResult(finish_reason="stop", content=made.text, usage=usage, cached=False)
                asked = [FunctionCall(id=made.call, name="look", arguments=json.dumps(made.arguments))]
                return CreateResult(
                    finish_reason="function_calls",
                    content=asked,
                    usage=usage,
                    cached=False,
                    thought=made.text,
                )

        return Scripted()

    async def say(self, text: str) -> None:
        await self.agent.run(task=text)

    async def history(self) -> Sequence[Any]:
        return self.agent.model_context._messages

    def native(self, view: Sequence[Any]) -> list[Any]:
        from foldline.adapters.autogen import chat_payloads

        return [payload for one in view for payload in chat_payloads(one)]


class Inspect(Driver):
    package = "inspect_ai"
    at_folds = True

    def make(self) -> None:
        from inspect_ai.agent import react
        from inspect_ai.tool import tool

        from foldline.adapters.inspect import FoldlineCompaction

        self.messages: list[Any] = getattr(self, "messages", [])
        threshold = int(0.9 * self.options["window"])
        compaction = FoldlineCompaction(self.store, session="talk", threshold=threshold, **self.options)
        self.histories = compaction.histories
        driver = self

        @tool
        def look() -> Any:
            async def execute(path: str) -> str:
                """Look at a file.

                Args:
                    path: Its path.
                """
                return driver.look(path)

            return execute

        self.agent: Any = react(
            prompt="Be brief.", tools=[look()], model=self.model(), submit=False, compaction=compaction
        )

    def model(self) -> Any:
        from inspect_ai.model import (
            ChatCompletionChoice,
            ChatMessageAssistant,
            GenerateConfig,
            Model,
            ModelAPI,
            ModelOutput,
            modelapi,
        )
        from inspect_ai.tool import ToolCall

        driver = self

        @modelapi("scripted")
        class Scripted(ModelAPI):
            async def generate(self, *asked: Any, **given: Any) -> ModelOutput:
                messages = given["input"] if "input" in given else asked[0]
                made = driver.step([one for one in messages if one.role != "system"])
                calls = [ToolCall(made.call, "look", dict(made.arguments))] if made.call else None
                said = ChatMessageAssistant(content=made.text, tool_calls=calls, source="generate")
                return ModelOutput(choices=[ChatCompletionChoice(message=said)])

            async def count_text_tokens(self, text: str) -> int:  # Inspect would fetch a vocabulary
                return len(text) // 3

        return Model(Scripted("scripted"), GenerateConfig())

    async def say(self, text: str) -> None:
        from inspect_ai import Task, eval_async
        from inspect_ai.agent import AgentState
        from inspect_ai.dataset import Sample
        from inspect_ai.model import ChatMessageUser
        from inspect_ai.solver import solver

        talk = AgentState(messages=[*self.messages, ChatMessageUser(content=text)])

        @solver
        def said() -> Any:
            async def solve(state: Any, _: Any) -> Any:
                await self.agent(talk)
                return state

            return solve

        task = Task(dataset=[Sample(input=text)], solver=said())
        with TemporaryDirectory() as logs:
            [found] = await eval_async(task, model=None, log_dir=logs, log_level="error")
        if found.error is not None:  # a sample that failed is begun anew
            raise Boom(found.error.message)
        self.messages = [one for one in talk.messages if one.role != "system"]

    async def history(self) -> Sequence[Any]:
        return self.messages

    def native(self, view: Sequence[Any]) -> list[Any]:
        from foldline.adapters.inspect import chat_payload

        return [chat_payload(one) for one in view]


DRIVERS: tuple[Callable[..., Driver], ...] = (
    LangChain,
    PydanticAI,
    OpenAIAgents,
    ADK,
    AgentFramework,
    Strands,
    LiteLLM,
    Smolagents,
    LlamaIndex,
    Agno,
    AutoGen,
    Inspect,
)


def installed(package: str) -> bool:
    """Return whether a framework is installed."""
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True
