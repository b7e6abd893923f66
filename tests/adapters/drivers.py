"""Agents of each framework, whose model is a script: it calls a tool as often as it is told, then answers.

A driver shows what the model was sent as plain pairs: ("user", text), ("text", text), ("call", id), ("result", id).
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

Shown = tuple[str, str]

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # LiteLLM would fetch it while it is imported


class Boom(Exception):
    """Raised by the tool of a run that is to be interrupted."""


class Driver:
    """One agent with a conversation; `again` makes an agent of a new process that goes on with it."""

    package = ""
    keeps_answers = False  # a reply is stored when it comes, not with the request that follows
    pairs = False  # an answer is a call too, with its result
    mends = False  # a request that did not fit is folded and sent again
    copies = False  # each request has copies of the messages

    def __init__(self, store: str, **options: Any) -> None:
        self.store, self.options = store, options
        self.seen: list[list[Any]] = []
        self.calls = 0
        self.left = 0  # calls until the model answers
        self.break_at = 0  # the call whose tool fails
        self.errors: list[Exception] = []  # raised by the next calls of the model
        self.make()

    def make(self) -> None:
        raise NotImplementedError

    async def run(self, text: str, steps: int) -> None:
        """Say something; the model calls its tool `steps` times."""
        self.left = steps
        await self.say(text)

    async def say(self, text: str) -> None:
        raise NotImplementedError

    @property
    def histories(self) -> Any:
        raise NotImplementedError

    @property
    def session(self) -> str:
        raise NotImplementedError

    async def history(self) -> Sequence[Any]:
        """Return what the framework keeps."""
        raise NotImplementedError

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        raise NotImplementedError

    def look(self, path: str) -> str:
        """Look at a file."""
        if self.break_at and self.calls == self.break_at:
            self.break_at = 0
            raise Boom
        return f"content of {path}: " + "value = compute(42)  # a line of code\n" * 40

    def step(self, view: Sequence[Any]) -> tuple[str, str, dict[str, str]] | str:
        """Take a request; return the call that the model makes (text, id, arguments), or its answer."""
        self.seen.append(list(view))
        if self.errors:
            raise self.errors.pop(0)
        self.calls += 1
        if not self.left:
            return f"Done after {self.calls}."
        self.left -= 1
        return f"Step {self.calls}.", f"call_{self.calls}", {"path": f"src/file_{self.calls}.py"}


class LangChain(Driver):
    package = "langchain"
    mends = True

    def make(self) -> None:
        from langchain.agents import create_agent
        from langchain_core.language_models import BaseChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.outputs import ChatGeneration, ChatResult
        from langgraph.checkpoint.memory import InMemorySaver

        from foldline.adapters.langchain import FoldlineMiddleware

        driver = self

        class Model(BaseChatModel):
            @property
            def _llm_type(self) -> str:
                return "scripted"

            def bind_tools(self, tools: Any, **_: Any) -> Any:
                return self

            def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
                made = driver.step(messages)
                if isinstance(made, str):
                    reply = AIMessage(made)
                else:
                    text, call, arguments = made
                    reply = AIMessage(text, tool_calls=[{"name": "look", "args": arguments, "id": call}])
                return ChatResult(generations=[ChatGeneration(message=reply)])

        self.saver = getattr(self, "saver", None) or InMemorySaver()
        self.middleware = FoldlineMiddleware(self.store, **self.options)
        self.agent = create_agent(
            Model(),
            [self.look],
            middleware=[self.middleware],
            checkpointer=self.saver,
            system_prompt="Be brief.",
        )

    config = {"configurable": {"thread_id": "thread"}, "recursion_limit": 1_000_000}

    async def say(self, text: str) -> None:
        await self.agent.ainvoke({"messages": [{"role": "user", "content": text}]}, self.config)

    @property
    def histories(self) -> Any:
        return self.middleware.histories

    session = "thread"

    async def history(self) -> Sequence[Any]:
        return (await self.agent.aget_state(self.config)).values["messages"]

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        out: list[Shown] = []
        for one in view:
            if one.type == "tool":
                out.append(("result", one.tool_call_id))
            elif one.type == "ai":
                out += [("text", one.text), *(("call", call["id"]) for call in one.tool_calls)]
            elif one.type == "human":
                out.append(("user", one.text))
        return out


class PydanticAI(Driver):
    package = "pydantic_ai"
    mends = True

    def make(self) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel

        from foldline.adapters.pydantic_ai import Foldline

        def answer(messages: Any, _: Any) -> ModelResponse:
            made = self.step(messages)
            if isinstance(made, str):
                return ModelResponse([TextPart(made)])
            text, call, arguments = made
            return ModelResponse([TextPart(text), ToolCallPart("look", arguments, call)])

        self.messages: list[Any] = getattr(self, "messages", [])
        self.capability = Foldline(self.store, **self.options)
        self.agent: Any = Agent(
            FunctionModel(answer), instructions="Be brief.", tools=[self.look], capabilities=[self.capability]
        )

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

    @property
    def histories(self) -> Any:
        return self.capability.histories

    session = "talk"

    async def history(self) -> Sequence[Any]:
        return self.messages

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        kinds = {"tool-return": "result", "retry-prompt": "result", "tool-call": "call", "text": "text"}
        return [
            (kinds.get(part.part_kind, "user"), getattr(part, "tool_call_id", None) or str(part.content))
            for one in view
            for part in one.parts
        ]


class OpenAIAgents(Driver):
    package = "agents"
    copies = True
    keeps_answers = True

    def make(self) -> None:
        from agents import Agent, ModelResponse, Usage, function_tool, set_tracing_disabled
        from agents.models.interface import Model
        from openai.types.responses import (
            ResponseFunctionToolCall,
            ResponseOutputMessage,
            ResponseOutputText,
        )

        from foldline.adapters.openai_agents import FoldlineSession

        set_tracing_disabled(True)
        driver = self

        class Scripted(Model):
            async def get_response(self, *_: Any, **asked: Any) -> Any:
                made = driver.step(asked["input"])
                text = made if isinstance(made, str) else made[0]
                said = ResponseOutputText(text=text, type="output_text", annotations=[])
                output: list[Any] = [
                    ResponseOutputMessage(
                        id=f"msg_{driver.calls}",
                        content=[said],
                        role="assistant",
                        status="completed",
                        type="message",
                    )
                ]
                if not isinstance(made, str):
                    output.append(
                        ResponseFunctionToolCall(
                            arguments=json.dumps(made[2]),
                            call_id=made[1],
                            name="look",
                            type="function_call",
                            status="completed",
                        )
                    )
                return ModelResponse(output=output, usage=Usage(), response_id=None)

            def stream_response(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

        self.sessions = FoldlineSession("talk", self.store, **self.options)
        look = function_tool(self.look, failure_error_function=None)
        self.agent = Agent("coder", instructions="Be brief.", model=Scripted(), tools=[look])

    async def say(self, text: str) -> None:
        from agents import Runner, UserError

        try:
            await Runner.run(
                self.agent,
                text,
                session=self.sessions,
                run_config=self.sessions.run_config(),
                max_turns=1_000_000,
            )
        except UserError as error:  # what a tool raises comes so
            raise (error.__cause__ or error) from None

    @property
    def histories(self) -> Any:
        return self.sessions.histories

    session = "talk"

    async def history(self) -> Sequence[Any]:
        return await self.sessions.get_items()

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        out: list[Shown] = []
        for one in view:
            kind = one.get("type", "message")
            if kind == "message":
                role = "text" if one["role"] == "assistant" else "user"
                content = one["content"]
                text = content if isinstance(content, str) else "".join(part["text"] for part in content)
                out.append((role, text))
            elif kind.startswith("function_call"):
                out.append(("result" if kind.endswith("output") else "call", one["call_id"]))
        return out


class Strands(Driver):
    package = "strands"
    copies = True

    def make(self) -> None:
        from strands import Agent, tool
        from strands.agent.conversation_manager import NullConversationManager
        from strands.models.model import Model

        from foldline.adapters.strands import use_foldline

        driver = self

        class Scripted(Model):
            def update_config(self, **_: Any) -> None: ...

            def get_config(self) -> Any:
                return {}

            async def structured_output(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError
                yield

            async def stream(self, messages: Any, *_: Any, **__: Any) -> Any:
                made = driver.step(messages)
                yield {"messageStart": {"role": "assistant"}}
                text = made if isinstance(made, str) else made[0]
                yield {"contentBlockStart": {"start": {}}}
                yield {"contentBlockDelta": {"delta": {"text": text}}}
                yield {"contentBlockStop": {}}
                if not isinstance(made, str):
                    yield {
                        "contentBlockStart": {"start": {"toolUse": {"toolUseId": made[1], "name": "look"}}}
                    }
                    arguments = json.dumps(made[2])
                    yield {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}}
                    yield {"contentBlockStop": {}}
                yield {"messageStop": {"stopReason": "end_turn" if isinstance(made, str) else "tool_use"}}

        messages = self.agent.messages if hasattr(self, "agent") else []
        self.agent: Any = Agent(
            Scripted(),
            messages=messages,
            tools=[tool(self.look)],
            system_prompt="Be brief.",
            callback_handler=None,
            conversation_manager=NullConversationManager(),
        )
        self._histories = use_foldline(self.agent, self.store, session="talk", **self.options)

    async def say(self, text: str) -> None:
        await self.agent.invoke_async(text)

    @property
    def histories(self) -> Any:
        return self._histories

    session = "talk"

    async def history(self) -> Sequence[Any]:
        return self.agent.messages

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        out: list[Shown] = []
        roles = [one["role"] for one in view]
        assert all(one != two for one, two in pairwise(roles)), "roles in turn"
        for one in view:
            for block in one["content"]:
                if "text" in block:
                    out.append(("text" if one["role"] == "assistant" else "user", block["text"]))
                elif "toolUse" in block:
                    out.append(("call", block["toolUse"]["toolUseId"]))
                elif "toolResult" in block:
                    out.append(("result", block["toolResult"]["toolUseId"]))
        return out


class AgentFramework(Driver):
    package = "agent_framework"

    def make(self) -> None:
        from agent_framework import (
            Agent,
            BaseChatClient,
            ChatMiddlewareLayer,
            ChatResponse,
            Content,
            FunctionInvocationLayer,
            Message,
        )

        from foldline.adapters.agent_framework import FoldlineChatMiddleware

        driver = self

        class Client(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
            def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
                async def answer() -> ChatResponse:
                    made = driver.step(messages)
                    contents = [Content.from_text(made if isinstance(made, str) else made[0])]
                    if not isinstance(made, str):
                        contents.append(Content.from_function_call(made[1], "look", arguments=made[2]))
                    return ChatResponse(messages=[Message("assistant", contents)])

                return answer()

        self.middleware = FoldlineChatMiddleware(self.store, **self.options)
        client = Client(function_invocation_configuration={"max_iterations": 1_000_000})
        self.agent: Any = Agent(client, "Be brief.", tools=[self.look], middleware=[self.middleware])
        self.talk = getattr(self, "talk", None) or self.agent.create_session(session_id="talk")

    async def say(self, text: str) -> None:
        await self.agent.run(text, session=self.talk)

    @property
    def histories(self) -> Any:
        return self.middleware.histories

    session = "talk"

    async def history(self) -> Sequence[Any]:
        states = self.talk.state.values()
        return next(state["messages"] for state in states if "messages" in state)

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        out: list[Shown] = []
        for one in view:
            for content in one.contents:
                if content.type == "function_call":
                    out.append(("call", content.call_id))
                elif content.type == "function_result":
                    out.append(("result", content.call_id))
                elif content.text and one.role != "system":
                    out.append(("text" if one.role == "assistant" else "user", content.text))
        return out


class ADK(Driver):
    package = "google.adk"
    copies = True

    def make(self) -> None:
        from google.adk.agents import Agent
        from google.adk.apps import App
        from google.adk.models import BaseLlm, LlmResponse
        from google.adk.runners import Runner
        from google.adk.sessions import InMemorySessionService
        from google.genai import types

        from foldline.adapters.adk import FoldlinePlugin

        driver = self

        class Scripted(BaseLlm):
            async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
                made = driver.step(llm_request.contents)
                parts = [types.Part(text=made if isinstance(made, str) else made[0])]
                if not isinstance(made, str):
                    parts.append(types.Part.from_function_call(name="look", args=made[2]))
                yield LlmResponse(content=types.Content(role="model", parts=parts))

        self.plugin = FoldlinePlugin(self.store, **self.options)
        agent = Agent(
            name="coder", model=Scripted(model="scripted"), instruction="Be brief.", tools=[self.look]
        )
        self.service = getattr(self, "service", None) or InMemorySessionService()
        app = App(name="app", root_agent=agent, plugins=[self.plugin])
        self.runner = Runner(app=app, session_service=self.service, auto_create_session=True)

    async def say(self, text: str) -> None:
        from google.adk.agents.run_config import RunConfig
        from google.genai import types

        said = types.Content(role="user", parts=[types.Part(text=text)])
        config = RunConfig(max_llm_calls=1_000_000)
        async for _ in self.runner.run_async(
            user_id="user", session_id="talk", new_message=said, run_config=config
        ):
            pass

    @property
    def histories(self) -> Any:
        return self.plugin.histories

    session = "talk-coder"

    async def history(self) -> Sequence[Any]:
        talk = await self.service.get_session(app_name="app", user_id="user", session_id="talk")
        return [event for event in talk.events if event.content]

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        out: list[Shown] = []
        calls = 0
        waiting: list[str] = []
        for one in view:
            for part in one.parts:
                if part.function_call:
                    calls += 1
                    waiting.append(f"call {calls}")
                    out.append(("call", waiting[-1]))
                elif part.function_response:
                    out.append(("result", waiting.pop(0) if waiting else "none"))
                elif part.text:
                    out.append(("text" if one.role == "model" else "user", part.text))
        return out


class LiteLLM(Driver):
    """LiteLLM has no agent: a loop of its caller's, with the messages as replies come."""

    package = "litellm"
    copies = True

    def make(self) -> None:
        import litellm

        from foldline.adapters.litellm import FoldlineLogger

        driver = self

        class Scripted(litellm.CustomLLM):
            async def acompletion(self, *_: Any, **given: Any) -> Any:
                made = driver.step(given["messages"])
                text, *call = (made,) if isinstance(made, str) else made
                calls = [called(*call)] if call else None
                given["model_response"].choices[0].message = litellm.Message(content=text, tool_calls=calls)
                return given["model_response"]

        def called(call_id: str, arguments: dict[str, str]) -> dict[str, Any]:
            function = {"name": "look", "arguments": json.dumps(arguments)}
            return {"id": call_id, "type": "function", "function": function}

        self.messages: list[Any] = getattr(self, "messages", [])
        self.logger = FoldlineLogger(self.store, **self.options)
        litellm.callbacks = [self.logger]
        litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": Scripted()}]

    async def say(self, text: str) -> None:
        import litellm

        self.messages.append({"role": "user", "content": text})
        while True:
            reply = await litellm.acompletion(
                model="scripted/m", messages=self.messages, litellm_session_id="talk"
            )
            said = reply.choices[0].message
            self.messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                return
            for call in said.tool_calls:
                content = self.look(**json.loads(call.function.arguments))
                self.messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    @property
    def histories(self) -> Any:
        return self.logger.histories

    session = "talk"

    async def history(self) -> Sequence[Any]:
        return self.messages

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        out: list[Shown] = []
        for one in view:
            if one["role"] == "tool":
                out.append(("result", one["tool_call_id"]))
            elif one["role"] == "assistant":
                out += [
                    ("text", one["content"]),
                    *(("call", call["id"]) for call in one.get("tool_calls", ())),
                ]
            elif one["role"] == "user":
                out.append(("user", one["content"]))
        return out


class Smolagents(Driver):
    package = "smolagents"
    copies = True
    pairs = True

    def make(self) -> None:
        from smolagents import Tool, ToolCallingAgent
        from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, Model
        from smolagents.monitoring import LogLevel

        from foldline.adapters.smolagents import use_foldline

        driver = self

        class Scripted(Model):
            def generate(self, messages: Any, **_: Any) -> Any:
                made = driver.step(messages[1:])
                last = (made, f"answer_{driver.calls}", {"answer": made}) if isinstance(made, str) else made
                name = "final_answer" if isinstance(made, str) else "look"
                call = ChatMessageToolCall(ChatMessageToolCallFunction(last[2], name), last[1], "function")
                return ChatMessage("assistant", last[0], [call])  # pyright: ignore[reportArgumentType]

        class Look(Tool):
            name = "look"
            description = "Look at a file."
            inputs = {"path": {"type": "string", "description": "Its path."}}
            output_type = "string"

            def forward(self, path: str) -> str:
                return driver.look(path)

        memory = self.agent.memory if hasattr(self, "agent") else None
        self.agent: Any = ToolCallingAgent(
            [Look()], Scripted(), max_steps=1_000_000, verbosity_level=LogLevel.OFF, max_tool_threads=1
        )
        if memory is not None:
            self.agent.memory = memory
        self._histories = use_foldline(self.agent, self.store, session="talk", **self.options)

    async def say(self, text: str) -> None:
        await asyncio.to_thread(self.agent.run, text, reset=False)

    @property
    def histories(self) -> Any:
        return self._histories

    session = "talk"

    async def history(self) -> Sequence[Any]:
        return [message for step in self.agent.memory.steps for message in step.to_messages()]

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        from foldline.adapters.smolagents import calls_in, text_of

        out: list[Shown] = []
        waiting: list[str] = []
        for one in view:
            if one.role == "tool-call":
                waiting += [call["id"] for call in calls_in(text_of(one))]
                out += [("call", call) for call in waiting]
            elif one.role == "tool-response" and (waiting or "Error:" not in text_of(one)):
                out.append(("result", waiting.pop(0) if waiting else "none"))
            else:
                out.append(("text" if one.role == "assistant" else "user", text_of(one)))
        return out


class LlamaIndex(Driver):
    package = "llama_index.core"
    copies = True

    def make(self) -> None:
        from llama_index.core.agent.workflow import FunctionAgent
        from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
        from llama_index.core.llms.mock import MockFunctionCallingLLM

        from foldline.adapters.llama_index import WholeMemory, use_foldline

        def answer(messages: Any, **_: Any) -> Any:
            made = self.step([one for one in messages if one.role != "system"])
            if isinstance(made, str):
                return ChatMessage(made, role="assistant")
            text, call, arguments = made
            asked = ToolCallBlock(tool_call_id=call, tool_name="look", tool_kwargs=arguments)
            return ChatMessage(role="assistant", blocks=[TextBlock(text=text), asked])

        self.memory: Any = getattr(self, "memory", None) or WholeMemory()
        self.agent: Any = FunctionAgent(
            tools=[self.look],
            llm=MockFunctionCallingLLM(response_generator=answer, is_chat_model=True),
            system_prompt="Be brief.",
            streaming=False,
            timeout=None,
        )
        self._histories = use_foldline(self.agent, self.store, session="talk", **self.options)

    async def say(self, text: str) -> None:
        await self.agent.run(text, memory=self.memory, max_iterations=1_000_000)

    @property
    def histories(self) -> Any:
        return self._histories

    session = "talk"

    async def history(self) -> Sequence[Any]:
        return self.memory.get_all()

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        out: list[Shown] = []
        for one in view:
            if one.role == "tool":
                out.append(("result", one.additional_kwargs["tool_call_id"]))
                continue
            out.append(("text" if one.role == "assistant" else "user", one.content or ""))
            out += [("call", block.tool_call_id) for block in one.blocks if block.block_type == "tool_call"]
        return out


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
)


def installed(package: str) -> bool:
    """Return whether a framework is installed."""
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True
