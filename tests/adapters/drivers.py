"""Agents of each framework, whose model is a script: it calls a tool as often as it is told, then answers.

A driver shows what the model was sent as plain pairs: ("user", text), ("text", text), ("call", id), ("result", id).
With `own` the agent has the compaction of its framework in place of Foldline: tools/adapter_table.py compares them.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

Shown = tuple[str, str]
REPLY = 25  # tokens of a reply, which models report
Step = Callable[[Sequence[Any]], "tuple[str, str, dict[str, str]] | str"]

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # LiteLLM would fetch it while it is imported


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

    histories: Any  # of the adapter
    session: str

    def __init__(
        self, store: str, own: Callable[[Any], dict[str, Any]] | None = None, **options: Any
    ) -> None:
        self.store, self.own, self.options = store, own, options
        self.seen: list[list[Any]] = []
        self.asked: Callable[[list[Any]], None] = self.seen.append  # takes each request
        self.used = 0  # tokens of the request, which the model reports; 0: it reports none
        self.calls = 0
        self.looked: list[str] = []  # the files whose content a tool returned
        self.left = 0  # calls until the model answers
        self.break_at = 0  # the call whose tool fails
        self.errors: list[Exception] = []  # raised by the next calls of the model
        self.make()

    def make(self) -> None:
        """Make the agent, with Foldline or what `own` returns."""
        raise NotImplementedError

    def fold(self) -> dict[str, Any]:
        """Return Foldline as arguments of the framework's, in the place where `own` has its own."""
        raise NotImplementedError

    def beside(self) -> dict[str, Any]:
        return self.own(self) if self.own else self.fold()

    def model(self, step: Step) -> Any:
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

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        raise NotImplementedError

    def native(self, view: Sequence[Any]) -> list[Any]:
        """Return a request as the framework writes it in the dialect."""
        return list(view)

    def look(self, path: str) -> str:
        """Look at a file."""
        if self.break_at and self.calls == self.break_at:
            self.break_at = 0
            raise Boom
        self.looked.append(path)
        return f"content of {path}: " + "value = compute(42)  # a line of code\n" * 40 + f"end of {path}"

    def step(self, view: Sequence[Any]) -> tuple[str, str, dict[str, str]] | str:
        """Take a request; return the call that the model makes (text, id, arguments), or its answer."""
        self.asked(list(view))
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
        from langgraph.checkpoint.memory import InMemorySaver

        self.saver = getattr(self, "saver", None) or InMemorySaver()
        self.agent = create_agent(
            self.model(self.step),
            [self.look],
            checkpointer=self.saver,
            system_prompt="Be brief.",
            **self.beside(),
        )

    def fold(self) -> dict[str, Any]:
        from foldline.adapters.langchain import FoldlineMiddleware

        middleware = FoldlineMiddleware(self.store, **self.options)
        self.histories = middleware.histories
        return {"middleware": [middleware]}

    def model(self, step: Step) -> Any:
        from langchain_core.language_models import BaseChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.messages.ai import UsageMetadata
        from langchain_core.outputs import ChatGeneration, ChatResult

        driver = self

        class Model(BaseChatModel):
            @property
            def _llm_type(self) -> str:
                return "scripted"

            def bind_tools(self, tools: Any, **_: Any) -> Any:
                return self

            def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
                made = step(messages)
                if isinstance(made, str):
                    reply = AIMessage(made)
                else:
                    text, call, arguments = made
                    reply = AIMessage(text, tool_calls=[{"name": "look", "args": arguments, "id": call}])
                if used := driver.used:
                    reply.usage_metadata = UsageMetadata(
                        input_tokens=used, output_tokens=REPLY, total_tokens=used + REPLY
                    )
                return ChatResult(generations=[ChatGeneration(message=reply)])

        return Model(profile={"max_input_tokens": self.options["window"]})

    config = {"configurable": {"thread_id": "thread"}, "recursion_limit": 1_000_000}

    async def say(self, text: str) -> None:
        await self.agent.ainvoke({"messages": [{"role": "user", "content": text}]}, self.config)

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

    def native(self, view: Sequence[Any]) -> list[Any]:
        from langchain_core.messages import convert_to_openai_messages

        return list(convert_to_openai_messages(view))


class PydanticAI(Driver):
    package = "pydantic_ai"
    mends = True

    def make(self) -> None:
        from pydantic_ai import Agent

        self.messages: list[Any] = getattr(self, "messages", [])
        self.agent: Any = Agent(
            self.model(self.step), instructions="Be brief.", tools=[self.look], **self.beside()
        )

    def fold(self) -> dict[str, Any]:
        from foldline.adapters.pydantic_ai import Foldline

        capability = Foldline(self.store, **self.options)
        self.histories = capability.histories
        return {"capabilities": [capability]}

    def model(self, step: Step) -> Any:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel
        from pydantic_ai.usage import RequestUsage

        def answer(messages: Any, _: Any) -> ModelResponse:
            made = step(messages)
            parts: list[Any] = [TextPart(made if isinstance(made, str) else made[0])]
            if not isinstance(made, str):
                parts.append(ToolCallPart("look", made[2], made[1]))
            usage = RequestUsage(input_tokens=self.used, output_tokens=REPLY if self.used else 0)
            return ModelResponse(parts, usage=usage)

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

        set_tracing_disabled(True)
        self.running = self.beside()
        look = function_tool(self.look, failure_error_function=None)
        self.agent = Agent("coder", instructions="Be brief.", model=self.model(self.step), tools=[look])

    def fold(self) -> dict[str, Any]:
        from foldline.adapters.openai_agents import FoldlineSession

        session = FoldlineSession("talk", self.store, **self.options)
        self.histories = session.histories
        return {"session": session, "run_config": session.run_config()}

    def model(self, step: Step) -> Any:
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
                made = step(asked["input"])
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
                return ModelResponse(output=output, usage=Usage(), response_id=f"resp_{driver.calls}")

            def stream_response(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

        return Scripted()

    async def say(self, text: str) -> None:
        from agents import Runner, UserError

        try:
            await Runner.run(self.agent, text, max_turns=1_000_000, **self.running)
        except UserError as error:  # what a tool raises comes so
            raise (error.__cause__ or error) from None

    session = "talk"

    async def history(self) -> Sequence[Any]:
        return await self.running["session"].get_items()

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
    dialect = "bedrock-converse"
    copies = True

    def make(self) -> None:
        from strands import Agent, tool

        from foldline.adapters.strands import use_foldline

        messages = self.agent.messages if hasattr(self, "agent") else []
        self.agent: Any = Agent(
            self.model(self.step),
            messages=messages,
            tools=[tool(self.look)],
            system_prompt="Be brief.",
            callback_handler=None,
            **self.beside(),
        )
        if not self.own:
            self.histories = use_foldline(self.agent, self.store, session="talk", **self.options)

    def fold(self) -> dict[str, Any]:
        from strands.agent.conversation_manager import NullConversationManager

        return {"conversation_manager": NullConversationManager()}

    def model(self, step: Step) -> Any:
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
                made = step(messages)
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
                if used := driver.used:
                    usage = {"inputTokens": used, "outputTokens": REPLY, "totalTokens": used + REPLY}
                    yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 0}}}

        return Scripted()

    async def say(self, text: str) -> None:
        await self.agent.invoke_async(text)

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
        from agent_framework import Agent

        self.agent: Any = Agent(self.model(self.step), "Be brief.", tools=[self.look], **self.beside())
        self.talk = getattr(self, "talk", None) or self.agent.create_session(session_id="talk")

    def fold(self) -> dict[str, Any]:
        from foldline.adapters.agent_framework import FoldlineChatMiddleware

        middleware = FoldlineChatMiddleware(self.store, **self.options)
        self.histories = middleware.histories
        return {"middleware": [middleware]}

    def model(self, step: Step) -> Any:
        from agent_framework import (
            BaseChatClient,
            ChatMiddlewareLayer,
            ChatResponse,
            Content,
            FunctionInvocationLayer,
            Message,
        )

        class Client(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
            def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
                async def answer() -> ChatResponse:
                    made = step(messages)
                    contents = [Content.from_text(made if isinstance(made, str) else made[0])]
                    if not isinstance(made, str):
                        contents.append(Content.from_function_call(made[1], "look", arguments=made[2]))
                    return ChatResponse(messages=[Message("assistant", contents)])

                return answer()

        return Client(function_invocation_configuration={"max_iterations": 1_000_000})

    async def say(self, text: str) -> None:
        await self.agent.run(text, session=self.talk)

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

        agent = Agent(name="coder", model=self.model(self.step), instruction="Be brief.", tools=[self.look])
        self.service = getattr(self, "service", None) or InMemorySessionService()
        app = App(name="app", root_agent=agent, **self.beside())
        self.runner = Runner(app=app, session_service=self.service, auto_create_session=True)

    def fold(self) -> dict[str, Any]:
        from foldline.adapters.adk import FoldlinePlugin

        plugin = FoldlinePlugin(self.store, **self.options)
        self.histories = plugin.histories
        return {"plugins": [plugin]}

    def model(self, step: Step) -> Any:
        from google.adk.models import BaseLlm, LlmResponse
        from google.genai import types

        driver = self

        class Scripted(BaseLlm):
            async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
                made = step(llm_request.contents)
                parts = [types.Part(text=made if isinstance(made, str) else made[0])]
                if not isinstance(made, str):
                    parts.append(types.Part.from_function_call(name="look", args=made[2]))
                usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=driver.used or None)
                yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)

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

    def native(self, view: Sequence[Any]) -> list[Any]:
        return [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in view]


class LiteLLM(Driver):
    """LiteLLM has no agent: a loop of its caller's, with the messages as replies come."""

    package = "litellm"
    copies = True

    def make(self) -> None:
        import litellm

        self.messages: list[Any] = getattr(self, "messages", [])
        litellm.callbacks = []
        self.trim = self.beside().get("trim", list)
        litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": self.model(self.step)}]

    def fold(self) -> dict[str, Any]:
        import litellm

        from foldline.adapters.litellm import FoldlineLogger

        logger = FoldlineLogger(self.store, **self.options)
        self.histories = logger.histories
        litellm.callbacks = [logger]
        return {}

    def model(self, step: Step) -> Any:
        import litellm

        class Scripted(litellm.CustomLLM):
            async def acompletion(self, *_: Any, **given: Any) -> Any:
                made = step(given["messages"])
                text, *call = (made,) if isinstance(made, str) else made
                calls = [called(*call)] if call else None
                given["model_response"].choices[0].message = litellm.Message(content=text, tool_calls=calls)
                return given["model_response"]

        def called(call_id: str, arguments: dict[str, str]) -> dict[str, Any]:
            function = {"name": "look", "arguments": json.dumps(arguments)}
            return {"id": call_id, "type": "function", "function": function}

        return Scripted()

    async def say(self, text: str) -> None:
        import litellm

        self.messages.append({"role": "user", "content": text})
        while True:
            reply = await litellm.acompletion(
                model="scripted/m", messages=self.trim(self.messages), litellm_session_id="talk"
            )
            said = reply.choices[0].message
            self.messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                return
            for call in said.tool_calls:
                content = self.look(**json.loads(call.function.arguments))
                self.messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

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
            self.model(self.step),
            max_steps=1_000_000,
            verbosity_level=LogLevel.OFF,
            max_tool_threads=1,
        )
        if memory is not None:
            self.agent.memory = memory
        if not self.own:
            self.histories = use_foldline(self.agent, self.store, session="talk", **self.options)

    def model(self, step: Step) -> Any:
        from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, Model

        driver = self

        class Scripted(Model):
            def generate(self, messages: Any, **_: Any) -> Any:
                made = step(messages[1:])
                last = (made, f"answer_{driver.calls}", {"answer": made}) if isinstance(made, str) else made
                name = "final_answer" if isinstance(made, str) else "look"
                call = ChatMessageToolCall(ChatMessageToolCallFunction(last[2], name), last[1], "function")
                return ChatMessage("assistant", last[0], [call])  # pyright: ignore[reportArgumentType]

        return Scripted()

    async def say(self, text: str) -> None:
        await asyncio.to_thread(self.agent.run, text, reset=False)

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

    def native(self, view: Sequence[Any]) -> list[Any]:
        from smolagents.models import MessageRole, get_clean_message_list, tool_role_conversions

        sent = get_clean_message_list(list(view), tool_role_conversions)  # pyright: ignore
        return [{**one, "role": MessageRole(one["role"]).value} for one in sent]


class LlamaIndex(Driver):
    package = "llama_index.core"
    copies = True

    def make(self) -> None:
        from llama_index.core.agent.workflow import FunctionAgent

        from foldline.adapters.llama_index import use_foldline

        self.memory: Any = getattr(self, "memory", None) or self.beside()["memory"]
        self.agent: Any = FunctionAgent(
            tools=[self.look],
            llm=self.model(self.step),
            system_prompt="Be brief.",
            streaming=False,
            timeout=None,
        )
        if not self.own:
            self.histories = use_foldline(self.agent, self.store, session="talk", **self.options)

    def fold(self) -> dict[str, Any]:
        from foldline.adapters.llama_index import WholeMemory

        return {"memory": WholeMemory()}

    def model(self, step: Step) -> Any:
        from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
        from llama_index.core.llms.mock import MockFunctionCallingLLM

        def answer(messages: Any, **_: Any) -> Any:
            made = step([one for one in messages if one.role != "system"])
            if isinstance(made, str):
                return ChatMessage(made, role="assistant")
            text, call, arguments = made
            asked = ToolCallBlock(tool_call_id=call, tool_name="look", tool_kwargs=arguments)
            return ChatMessage(role="assistant", blocks=[TextBlock(text=text), asked])

        return MockFunctionCallingLLM(response_generator=answer, is_chat_model=True)

    async def say(self, text: str) -> None:
        await self.agent.run(text, memory=self.memory, max_iterations=1_000_000)

    session = "talk"

    async def history(self) -> Sequence[Any]:
        return await self.memory.aget_all()

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        out: list[Shown] = []
        for one in view:
            if one.role == "tool":
                out.append(("result", one.additional_kwargs["tool_call_id"]))
                continue
            out.append(("text" if one.role == "assistant" else "user", one.content or ""))
            out += [("call", block.tool_call_id) for block in one.blocks if block.block_type == "tool_call"]
        return out

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
            model=self.model(self.step),
            tools=[self.look],
            instructions="Be brief.",
            db=self.db,
            session_id="talk",
            add_history_to_context=True,
            num_history_runs=1_000_000,
            telemetry=False,
            **(self.beside() if self.own else {}),
        )
        if not self.own:
            self.histories = use_foldline(self.agent, self.store, **self.options)

    def model(self, step: Step) -> Any:
        from agno.models.base import Model
        from agno.models.response import ModelResponse

        def answer(messages: Sequence[Any]) -> ModelResponse:
            made = step([one for one in messages if one.role != "system"])
            if isinstance(made, str):
                return ModelResponse(role="assistant", content=made)
            text, call, arguments = made
            function = {"name": "look", "arguments": json.dumps(arguments)}
            asked = [{"id": call, "type": "function", "function": function}]
            return ModelResponse(role="assistant", content=text, tool_calls=asked)

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

    session = "talk"

    async def history(self) -> Sequence[Any]:
        return self.agent.get_session_messages(session_id="talk")

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        out: list[Shown] = []
        for one in view:
            if one.role == "tool":
                out.append(("result", one.tool_call_id))
                continue
            out.append(("text" if one.role == "assistant" else "user", one.content or ""))
            out += [("call", call["id"]) for call in one.tool_calls or ()]
        return out

    def native(self, view: Sequence[Any]) -> list[Any]:
        from foldline.adapters.agno import chat_payload

        return [chat_payload(one) for one in view]


class AutoGen(Driver):
    package = "autogen_agentchat"

    def make(self) -> None:
        from autogen_agentchat.agents import AssistantAgent
        from autogen_core.tools import FunctionTool

        kept = self.agent.model_context._messages if hasattr(self, "agent") else []
        given = self.beside()
        self.agent: Any = AssistantAgent(
            "coder",
            self.model(self.step),
            tools=[FunctionTool(self.look, "Look at a file.")],
            system_message="Be brief.",
            max_tool_iterations=1_000_000,
            **given,
        )
        self.agent.model_context._messages = kept

    def fold(self) -> dict[str, Any]:
        from foldline.adapters.autogen import FoldlineContext

        context = FoldlineContext(self.store, session="talk", **self.options)
        self.histories = context.histories
        return {"model_context": context}

    def model(self, step: Step) -> Any:
        from autogen_core import FunctionCall
        from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

        able = {"vision": False, "json_output": False, "structured_output": False}
        info = ModelInfo(function_calling=True, family="unknown", **able)  # pyright: ignore

        def unused(*_: Any, **__: Any) -> Any:
            raise NotImplementedError

        class Scripted(ChatCompletionClient):
            model_info = capabilities = info  # pyright: ignore
            create_stream = actual_usage = total_usage = count_tokens = remaining_tokens = close = unused

            async def create(self, messages: Any, **_: Any) -> CreateResult:  # pyright: ignore
                made = step([one for one in messages if one.type != "SystemMessage"])
                usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
                if isinstance(made, str):
                    return CreateResult(finish_reason="stop", content=made, usage=usage, cached=False)
                text, call, arguments = made
                asked = [FunctionCall(id=call, name="look", arguments=json.dumps(arguments))]
                return CreateResult(
                    finish_reason="function_calls", content=asked, usage=usage, cached=False, thought=text
                )

        return Scripted()

    async def say(self, text: str) -> None:
        await self.agent.run(task=text)

    session = "talk"

    async def history(self) -> Sequence[Any]:
        return self.agent.model_context._messages

    def shown(self, view: Sequence[Any]) -> list[Shown]:
        out: list[Shown] = []
        for one in self.native(view):
            if one["role"] == "tool":
                out.append(("result", one["tool_call_id"]))
                continue
            out.append(("text" if one["role"] == "assistant" else "user", one["content"] or ""))
            out += [("call", call["id"]) for call in one.get("tool_calls", ())]
        return out

    def native(self, view: Sequence[Any]) -> list[Any]:
        from foldline.adapters.autogen import chat_payloads

        return [payload for one in view for payload in chat_payloads(one)]


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
)


def installed(package: str) -> bool:
    """Return whether a framework is installed."""
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True
