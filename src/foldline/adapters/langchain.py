"""LangChain, LangGraph and deepagents: one middleware instead of their summarisation.

    create_agent(model, tools, middleware=[FoldlineMiddleware("sqlite:///sessions.db")])

The thread's id names the session. The state of the graph keeps every message; the model is sent the view.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Unpack, cast

import msgspec
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, convert_to_messages
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from foldline.adapters.forms import FrameworkForm, read_list
from foldline.adapters.histories import AdapterOptions, FrameworkHistories, RequestSetup
from foldline.core.log.messages import Message, Usage
from foldline.stores import Store


def _decode(messages: Sequence[AnyMessage]) -> list[list[Message]]:
    """Decode messages, with the usage of replies."""
    return [
        [_with_usage(decoded, message) for decoded in group]
        for message, group in zip(messages, read_list(messages), strict=True)
    ]


def _encode(payloads: Sequence[dict[str, Any]]) -> list[AnyMessage]:
    return cast("list[AnyMessage]", convert_to_messages(payloads))


FORM = FrameworkForm("openai-chat", _decode, _encode)


def _with_usage(decoded: Message, message: AnyMessage) -> Message:
    metadata = message.usage_metadata if isinstance(message, AIMessage) else None
    if metadata is None:
        return decoded
    cached = metadata.get("input_token_details") or {}
    hit, written = cached.get("cache_read") or 0, cached.get("cache_creation") or 0
    usage = Usage(metadata["input_tokens"] - hit - written, hit, written, metadata["output_tokens"])
    return msgspec.structs.replace(decoded, usage=usage)


class FoldlineMiddleware(AgentMiddleware):
    """Sends the model the view of a session instead of the whole history, before every call.

    `store` is a URL or a Store (default: that of the settings). `session` names the
    session of a run without a thread. `policy`, `window` and `model` are as for `foldline.open`; without
    `window` the window is that of the agent's model. With `recall` the agent gets tools that search what was
    folded away.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        session: str | None = None,
        recall: bool = True,
        **options: Unpack[AdapterOptions],
    ) -> None:
        super().__init__()
        self.histories = FrameworkHistories(store, FORM, **options)
        self._session = session
        self.tools = [self._tool(tool) for tool in self.histories.tools()] if recall else []

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        """Call the model with the view; after an overflow fold and call it again."""
        session = self._name(request.messages)
        view = self.histories.view(session, request.messages, lambda: _setup(request))
        try:
            return handler(request.override(messages=view))
        except Exception as error:
            again = self.histories.overflowed(session, request.messages, error, lambda: _setup(request))
            return handler(request.override(messages=again))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Do the same for an asynchronous agent."""
        session = self._name(request.messages)
        view = await self.histories.aview(session, request.messages, lambda: _setup(request))
        try:
            return await handler(request.override(messages=view))
        except Exception as error:
            again = await self.histories.aoverflowed(
                session, request.messages, error, lambda: _setup(request)
            )
            return await handler(request.override(messages=again))

    def _name(self, messages: Sequence[AnyMessage]) -> str:
        """Return the name of a call's session: its thread, the one of the options, or its first message.

        An agent inside a tool or a graph has the thread of the outer agent, but its own history.
        """
        configured = get_config().get("configurable", {})
        first = messages[0].id if messages else None
        name = str(configured.get("thread_id") or self._session or first or "default")
        outer = str(configured.get("checkpoint_ns") or "").rpartition("|")[0]
        nodes = "|".join(part.partition(":")[0] for part in outer.split("|"))  # tasks get new ids each turn
        return f"{name}-{nodes}" if nodes else name

    def _tool(self, tool: dict[str, Any]) -> StructuredTool:
        def call(runtime: ToolRuntime[Any, dict[str, Any]], **arguments: Any) -> str:
            name = self._name(runtime.state["messages"])
            return self.histories.call_tool(name, tool["name"], arguments)

        return StructuredTool.from_function(
            call, name=tool["name"], description=tool["description"], args_schema=tool["input_schema"]
        )


def _setup(request: ModelRequest) -> RequestSetup:
    """Return the system prompt, the tools, the model and its window."""
    tools = [convert_to_openai_tool(tool) for tool in request.tools]
    name = getattr(request.model, "model_name", None) or getattr(request.model, "model", None)
    window = (request.model.profile or {}).get("max_input_tokens")
    return RequestSetup(request.system_prompt, tools, name if isinstance(name, str) else None, window)
