"""Agno: one call.

    use_foldline(agent, "sqlite:///sessions.db")

The agent's session names the session; members of a team share one, so their names are appended. The stored
runs stay whole; the model is sent the view at every call. Agno's own `Compaction` runs once per run, so a
long loop of tools can overflow.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from copy import copy
from typing import Any, Unpack, cast

from agno.agent import Agent
from agno.models.base import Model
from agno.models.message import Message as AgnoMessage
from agno.models.utils import get_model
from agno.utils.openai import images_to_message

from foldline.adapters.forms import chat_form
from foldline.adapters.histories import AdapterOptions, FrameworkHistories, RequestSetup
from foldline.stores import Store


def chat_payload(message: AgnoMessage) -> dict[str, Any]:
    """Convert a message to Chat Completions."""
    text = message.get_content_string()
    images = images_to_message(message.images) if message.images else []
    content = [{"type": "text", "text": text}, *images] if images else text
    payload: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "assistant" and message.tool_calls:
        payload["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": call["function"]}
            for call in message.tool_calls
        ]
    if message.role == "tool":
        payload["tool_call_id"] = message.tool_call_id
    return payload


def _from_chat(payload: dict[str, Any]) -> AgnoMessage:
    content = payload.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    fields = {key: payload[key] for key in ("tool_calls", "tool_call_id") if payload.get(key)}
    if payload["role"] == "tool":
        fields["tool_name"] = payload["name"]
    return AgnoMessage(role=payload["role"], content=text, **fields)


FORM = chat_form(lambda message: [chat_payload(message)], _from_chat)
SYSTEM = ("system", "developer")


def use_foldline(
    agent: Agent,
    store: str | Store | None = None,
    *,
    session: str | None = None,
    **options: Unpack[AdapterOptions],
) -> FrameworkHistories[AgnoMessage]:
    """Send an agent's model the view of a session instead of the whole history; return the sessions.

    `store` is a URL or a Store (default: that of the settings). `session` names the session of calls outside
    runs, such as those that write memories: without it they are not changed. The options are those of
    `foldline.open`; without `window` the window is that of the agent's model.
    The agent gets a copy of its model, which others may share.
    """
    histories = FrameworkHistories(store, FORM, **options)
    original = get_model(agent.model)
    if original is None:
        raise ValueError("the agent has no model: pass one to Agent(model=...)")
    model = agent.model = copy(original)
    untyped: Any = original  # its methods have no types

    def name(request: dict[str, Any]) -> str | None:
        run_session = getattr(request.get("run_response"), "session_id", None) or session
        return f"{run_session}-{agent.name or agent.id}" if run_session and agent.team_id else run_session

    def view(request: dict[str, Any]) -> dict[str, Any]:
        messages = cast("list[AgnoMessage]", request["messages"])
        count = next((i for i, message in enumerate(messages) if message.role not in SYSTEM), len(messages))
        system, history = messages[:count], messages[count:]
        if (name_of_session := name(request)) is None:
            return request
        shown = histories.view(name_of_session, history, lambda: _setup(model, system, request))
        return {**request, "messages": [*system, *shown]}

    def invoke(**request: Any) -> Any:
        return untyped.invoke(**view(request))

    async def ainvoke(**request: Any) -> Any:
        return await untyped.ainvoke(**await asyncio.to_thread(view, request))

    def invoke_stream(**request: Any) -> Iterator[Any]:
        yield from untyped.invoke_stream(**view(request))

    async def ainvoke_stream(**request: Any) -> AsyncIterator[Any]:
        async for part in untyped.ainvoke_stream(**await asyncio.to_thread(view, request)):
            yield part

    for method in (invoke, ainvoke, invoke_stream, ainvoke_stream):
        vars(model)[method.__name__] = method
    return histories


def _setup(model: Model, system: Sequence[AgnoMessage], request: dict[str, Any]) -> RequestSetup:
    """Return the system prompt, the tools and the model of a request."""
    text = "\n\n".join(message.get_content_string() for message in system)
    return RequestSetup(text or None, request.get("tools") or None, model.id)
