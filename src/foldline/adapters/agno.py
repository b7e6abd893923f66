"""Agno: one call.

    use_foldline(agent, "sqlite:///sessions.db")

The agent's session names the session; members of a team, which share one, have their name behind it. The
stored runs stay whole; the model is sent the view at every call.
Agno's `Compaction` is asked once a run, so that a long loop of tools overflows.
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
    """Write a message as one of Chat Completions."""
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


def _written(payload: dict[str, Any]) -> AgnoMessage:
    content = payload.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(one.get("text", "") for one in content)
    beside = {key: payload[key] for key in ("tool_calls", "tool_call_id") if payload.get(key)}
    if payload["role"] == "tool":
        beside["tool_name"] = payload["name"]
    return AgnoMessage(role=payload["role"], content=text, **beside)


FORM = chat_form(lambda one: [chat_payload(one)], _written)


def use_foldline(
    agent: Agent,
    store: str | Store | None = None,
    *,
    session: str | None = None,
    **options: Unpack[AdapterOptions],
) -> FrameworkHistories[AgnoMessage]:
    """Send an agent's model the view of a session instead of the whole history; returns what keeps it.

    `store` is where sessions are kept (a URL or a Store; default: that of the settings). `session` names the
    session of calls that are of no run, such as those that write memories: without it they are left as they
    are. The options are those of `foldline.open`; without `window` the window is that of the agent's model.
    The agent gets a copy of its model, which others may share.
    """
    histories = FrameworkHistories(store, FORM, **options)
    found = get_model(agent.model)
    if found is None:
        raise ValueError("an agent without a model cannot be given a view: pass one to Agent(model=...)")
    model = agent.model = copy(found)
    plain: Any = found  # its methods have no types

    def name(asked: dict[str, Any]) -> str | None:
        of = getattr(asked.get("run_response"), "session_id", None) or session
        return f"{of}-{agent.name or agent.id}" if of and agent.team_id else of  # a team has one session

    def parts(asked: dict[str, Any]) -> tuple[list[AgnoMessage], list[AgnoMessage]]:
        messages = cast("list[AgnoMessage]", asked["messages"])
        count = next((at for at, one in enumerate(messages) if one.role not in SYSTEM), len(messages))
        return messages[:count], messages[count:]

    def view(asked: dict[str, Any]) -> dict[str, Any]:
        system, said = parts(asked)
        if (of := name(asked)) is None:
            return asked
        shown = histories.view(of, said, lambda: _setup(model, system, asked))
        return {**asked, "messages": [*system, *shown]}

    def viewed(**asked: Any) -> Any:
        return plain.invoke(**view(asked))

    async def aviewed(**asked: Any) -> Any:
        return await plain.ainvoke(**await asyncio.to_thread(view, asked))

    def streamed(**asked: Any) -> Iterator[Any]:
        yield from plain.invoke_stream(**view(asked))

    async def astreamed(**asked: Any) -> AsyncIterator[Any]:
        async for part in plain.ainvoke_stream(**await asyncio.to_thread(view, asked)):
            yield part

    beside: dict[str, Any] = {
        "invoke": viewed,
        "ainvoke": aviewed,
        "invoke_stream": streamed,
        "ainvoke_stream": astreamed,
    }
    vars(model).update(beside)
    return histories


SYSTEM = ("system", "developer")


def _setup(model: Model, system: Sequence[AgnoMessage], asked: dict[str, Any]) -> RequestSetup:
    """Return what is sent beside the messages, and the name of the model that they are sent to."""
    text = "\n\n".join(one.get_content_string() for one in system)
    return RequestSetup(text or None, asked.get("tools") or None, model.id)
