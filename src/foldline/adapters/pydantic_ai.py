"""pydantic-ai: one capability.

    Agent("openai:gpt-5.2", capabilities=[Foldline("sqlite:///sessions.db")])

The conversation's id names the session. The agent's history stays whole; the model is sent the view.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Unpack

import msgspec
from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import FunctionToolset

from foldline.adapters.forms import FrameworkForm, read_list
from foldline.adapters.histories import AdapterOptions, FrameworkHistories, RequestSetup
from foldline.core.log.messages import Message, Usage
from foldline.stores import Store


def _decode(messages: Sequence[ModelMessage]) -> list[list[Message]]:
    """Decode requests and responses, without the instructions of requests, which are sent separately."""
    bare = [
        dataclasses.replace(message, instructions=None) if isinstance(message, ModelRequest) else message
        for message in messages
    ]
    return [
        [_with_usage(decoded, message) for decoded in group]
        for message, group in zip(messages, read_list(bare), strict=True)
    ]


def _encode(payloads: Sequence[dict[str, Any]]) -> list[ModelMessage]:
    return [
        ModelResponse(_reply(payload))
        if payload["role"] == "assistant"
        else ModelRequest([_request(payload)])
        for payload in payloads
    ]


FORM = FrameworkForm("openai-chat", _decode, _encode)


def _with_usage(decoded: Message, message: ModelMessage) -> Message:
    if not isinstance(message, ModelResponse) or not message.usage.has_values():
        return decoded
    tokens = message.usage
    read, written = tokens.cache_read_tokens, tokens.cache_write_tokens
    usage = Usage(max(0, tokens.input_tokens - read - written), read, written, tokens.output_tokens)
    return msgspec.structs.replace(decoded, usage=usage)


def _reply(payload: dict[str, Any]) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = []
    if payload.get("reasoning_content"):
        parts.append(ThinkingPart(payload["reasoning_content"]))
    if payload.get("content"):
        parts.append(TextPart(payload["content"]))
    parts += [
        ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"])
        for call in payload.get("tool_calls") or ()
    ]
    return parts


def _request(payload: dict[str, Any]) -> ModelRequestPart:
    content = payload["content"]
    match payload["role"]:
        case "tool":
            return ToolReturnPart(payload["name"], content, payload["tool_call_id"])
        case "user":
            return UserPromptPart(
                content if isinstance(content, str) else [_content(part) for part in content]
            )
        case _:
            return SystemPromptPart(content)


def _content(part: dict[str, Any]) -> UserContent:
    return ImageUrl(part["image_url"]["url"]) if "image_url" in part else part.get("text", "")


class Foldline(AbstractCapability[Any]):
    """Sends the model the view of a session instead of the whole history, at every step of a run.

    `store` is a URL or a Store (default: that of the settings). `session` names the
    session where the conversation's id shall not. The options are those of `foldline.open`; without `window`
    the window is that of the agent's model. With `recall` the agent gets tools that search what was folded
    away.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        session: str | None = None,
        recall: bool = True,
        **options: Unpack[AdapterOptions],
    ) -> None:
        self.histories = FrameworkHistories(store, FORM, **options)
        self._session = session
        self._recall = recall

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Replace the history of each attempt by the view."""
        view = await self.histories.aview(
            self._name(ctx), request_context.messages, lambda: _setup(request_context)
        )
        return dataclasses.replace(request_context, messages=view)

    async def on_model_request_error(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        error: Exception,
    ) -> ModelResponse:
        """Fold after an overflow, and call the model again."""
        await self.histories.aoverflowed(
            self._name(ctx), ctx.messages, error, lambda: _setup(request_context)
        )
        raise RetryModelRequest

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Return the tools that search what was folded."""
        if not self._recall:
            return None
        return FunctionToolset([self._tool(tool) for tool in self.histories.tools()])

    def _name(self, ctx: RunContext[Any]) -> str:
        return self._session or ctx.conversation_id or "default"

    def _tool(self, tool: dict[str, Any]) -> Tool[Any]:
        def call(ctx: RunContext[Any], **arguments: Any) -> str:
            return self.histories.call_tool(self._name(ctx), tool["name"], arguments)

        return Tool.from_schema(call, tool["name"], tool["description"], tool["input_schema"], takes_ctx=True)


def _setup(context: ModelRequestContext) -> RequestSetup:
    """Return the system prompt, the tools and the model of a request."""
    request = context.model_request_parameters
    system = "\n\n".join(part.content for part in request.instruction_parts or ())
    tools = [
        {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
        for tool in (*request.function_tools, *request.output_tools)
    ]
    return RequestSetup(system or None, tools or None, context.model.model_name)
