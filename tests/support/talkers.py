"""A model asked by its own SDK, whole or as a stream, and tool rounds in its dialect: for agent loops in tests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.testing.clients import anthropic_client, openai_client

DIALECTS = ("openai-chat", "openai-responses", "anthropic")
SEALED = ["reasoning.encrypted_content"]
THOUGHT = 1_024  # tokens for thinking, the least that Anthropic takes


class Unfinished(Exception):
    """A stream ended before the reply did, and the SDK did not say so."""


class SdkClient:
    """Asks one model over one API; what it sends is what `Session.context` returned."""

    def __init__(
        self,
        client: Any,
        dialect: str,
        model: str,
        *,
        system: str | None = None,
        stream: bool = False,
        thinking: bool = False,
    ) -> None:
        self.client = client
        self.dialect = dialect
        self.model = model
        self.system = system
        self.stream = stream
        self.thinking = thinking

    async def ask(self, messages: Sequence[Any], max_tokens: int) -> Any:
        """Return the SDK's reply; raises what the SDK raises, or Unfinished."""
        ways = {"openai-chat": self._chat, "openai-responses": self._responses, "anthropic": self._anthropic}
        return await ways[self.dialect](list(messages), max_tokens)

    async def _chat(self, messages: list[Any], max_tokens: int) -> Any:
        system = [{"role": "system", "content": self.system}] if self.system else []
        fields = {"model": self.model, "messages": [*system, *messages], "max_tokens": max_tokens}
        if not self.stream:
            return await self.client.chat.completions.create(**fields)
        async with self.client.chat.completions.stream(
            **fields, stream_options={"include_usage": True}
        ) as events:
            reply = await events.get_final_completion()
        return _ended(reply, reply.choices and reply.choices[0].finish_reason)

    async def _responses(self, items: list[Any], max_tokens: int) -> Any:
        fields = {"model": self.model, "input": items, "max_output_tokens": max_tokens, "store": False}
        if self.system:
            fields["instructions"] = self.system
        if self.thinking:
            fields["include"] = SEALED
        if not self.stream:
            return await self.client.responses.create(**fields)
        async with self.client.responses.stream(**fields) as events:
            async for event in events:
                if event.type in ("response.completed", "response.incomplete"):
                    return event.response
        raise Unfinished

    async def _anthropic(self, messages: list[Any], max_tokens: int) -> Any:
        fields: dict[str, Any] = {"model": self.model, "messages": messages, "max_tokens": max_tokens}
        if self.system:
            fields["system"] = self.system
        if self.thinking and max_tokens > THOUGHT:
            fields["thinking"] = {"type": "enabled", "budget_tokens": THOUGHT}
        if not self.stream:
            return await self.client.messages.create(**fields)
        async with self.client.messages.stream(**fields) as events:
            reply = await events.get_final_message()
        return _ended(reply, reply.stop_reason)


def _ended(reply: Any, why: Any) -> Any:
    if not why:
        raise Unfinished
    return reply


@asynccontextmanager
async def sdk_client(
    url: str, dialect: str, model: str, *, patience: float = 60.0, **more: Any
) -> AsyncIterator[SdkClient]:
    """Open a client of the dialect's SDK; the SDK's own retries are off."""
    # the SDKs take the path differently: llama-server has only /v1
    opened = (
        anthropic_client(url, timeout=patience)
        if dialect == "anthropic"
        else openai_client(f"{url}/v1", timeout=patience)
    )
    async with opened as client:
        yield SdkClient(client, dialect, model, **more)


def user_message(text: str) -> dict[str, Any]:
    """Return a message of the user's; one shape for all three dialects."""
    return {"role": "user", "content": text}


def call_message(dialect: str, call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what a model says that calls one tool."""
    if dialect == "anthropic":
        return {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}],
        }
    words = json.dumps(
        arguments, separators=(",", ":")
    )  # as llama-server writes those of Anthropic: read once
    if dialect == "openai-responses":
        return {"type": "function_call", "call_id": call_id, "name": name, "arguments": words}
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": words}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def result_messages(dialect: str, done: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the results of calls, by id and text, in as many messages as the dialect wants."""
    if dialect == "anthropic":
        blocks = [{"type": "tool_result", "tool_use_id": call, "content": text} for call, text in done]
        return [{"role": "user", "content": blocks}]
    if dialect == "openai-responses":
        return [{"type": "function_call_output", "call_id": call, "output": text} for call, text in done]
    return [{"role": "tool", "tool_call_id": call, "content": text} for call, text in done]
