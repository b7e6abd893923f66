"""smolagents: one call.

    use_foldline(agent, "sqlite:///sessions.db", session="my-session")

`agent.memory` stays whole; the model is sent the view at every step.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any, Unpack, cast

import msgspec
from smolagents import ChatMessage, MessageRole, MultiStepAgent, ToolCallingAgent
from smolagents.utils import encode_image_base64

from foldline.adapters.forms import FrameworkForm, read_chat
from foldline.adapters.histories import AdapterOptions, FrameworkHistories, RequestSetup
from foldline.core.log.messages import Message
from foldline.dialects import OPENAI_CHAT
from foldline.stores import Store

CALLING = "Calling tools:\n"  # how smolagents begins the messages of calls and of results
OBSERVED = "Observation:\n"


def _decoded(messages: Sequence[ChatMessage]) -> list[list[Message]]:
    """Read messages; what a model says beside its calls is one message with them.

    One observation answers all calls of a step; pictures that a tool showed stand before it, and belong
    to it. A response without a call is the program's.
    """
    payloads: list[list[dict[str, Any]]] = []
    told: set[int] = set()  # what a program says as the user
    waiting: list[str] = []
    for place, message in enumerate(messages):
        after = messages[place + 1].role if place + 1 < len(messages) else None
        text = text_of(message)
        read: list[dict[str, Any]] = []
        if message.role == MessageRole.ASSISTANT:
            read = [] if after == MessageRole.TOOL_CALL else [{"role": "assistant", "content": text}]
        elif message.role == MessageRole.TOOL_CALL:
            calls = calls_in(text)
            waiting = [call["id"] for call in calls]
            before = messages[place - 1] if place else message
            said = text_of(before) if before.role == MessageRole.ASSISTANT else ""
            asked = (
                {"content": said or None, "tool_calls": calls} if calls else {"content": f"{said}\n{text}"}
            )
            read = [{"role": "assistant", **asked}]
        elif message.role == MessageRole.TOOL_RESPONSE and waiting:
            shown = text.removeprefix(OBSERVED)
            read = [
                {"role": "tool", "tool_call_id": call, "content": "" if at else shown}
                for at, call in enumerate(waiting)
            ]
            waiting = []
        elif not (waiting and after == MessageRole.TOOL_RESPONSE):
            read = [{"role": "user", "content": _content(message)}]
            told |= {place} if message.role == MessageRole.TOOL_RESPONSE else set()
        payloads.append(read)
    return [
        [msgspec.structs.replace(one, injected=True) for one in each] if place in told else each
        for place, each in enumerate(read_chat(payloads))
    ]


def _encoded(payloads: Sequence[dict[str, Any]]) -> list[ChatMessage]:
    """Write Chat Completions messages as smolagents makes them."""
    made: list[ChatMessage] = []
    for payload in payloads:
        content = payload.get("content") or ""
        texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        text, role = "\n".join(texts), payload["role"]
        if role == "tool":
            made.append(_said(MessageRole.TOOL_RESPONSE, OBSERVED + text))
            continue
        if text:
            made.append(_said(MessageRole.ASSISTANT if role == "assistant" else MessageRole.USER, text))
        if calls := payload.get("tool_calls"):
            for call in calls:
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
            made.append(_said(MessageRole.TOOL_CALL, CALLING + str(calls)))
    return made


FORM = FrameworkForm(OPENAI_CHAT, _decoded, _encoded, leads=True)


def text_of(message: ChatMessage) -> str:
    """Return the text of a message."""
    content = message.content or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def calls_in(text: str) -> list[dict[str, Any]]:
    """Return the calls that a message names, their arguments as JSON; none where they cannot be read."""
    try:
        calls = cast("list[dict[str, Any]]", ast.literal_eval(text.removeprefix(CALLING)))
    except (ValueError, SyntaxError):
        return []
    for call in calls:
        call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    return calls


def _content(message: ChatMessage) -> Any:
    text, parts = text_of(message), message.content if isinstance(message.content, list) else []
    shown = [encode_image_base64(part["image"]) for part in parts if "image" in part]
    images = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}} for data in shown]
    return [*([{"type": "text", "text": text}] if text.strip() else []), *images] if images else text


def _said(role: MessageRole, text: str) -> ChatMessage:
    return ChatMessage(role=role, content=[{"type": "text", "text": text}])


def use_foldline(
    agent: MultiStepAgent,
    store: str | Store | None = None,
    *,
    session: str = "default",
    **options: Unpack[AdapterOptions],
) -> FrameworkHistories[ChatMessage]:
    """Send an agent's model the view of a session instead of its whole memory; returns what keeps it.

    `store` is where the session is kept (a URL or a Store; default: that of the settings); the options are
    those of `foldline.open`. Without `window` the window is that of the agent's model.
    """
    histories = FrameworkHistories(store, FORM, **options)
    written = agent.write_memory_to_messages

    def view(summary_mode: bool = False) -> list[ChatMessage]:
        messages = written(summary_mode)
        if summary_mode:  # for a plan, which has a part of the memory
            return messages
        system, said = messages[:1], messages[1:]
        return [*system, *histories.view(session, said, lambda: _setup(agent, text_of(system[0])))]

    agent.write_memory_to_messages = view
    return histories


def _setup(agent: MultiStepAgent, system: str) -> RequestSetup:
    """Return what is sent beside the messages, and the name of the model that they are sent to."""
    called = agent.tools.values() if isinstance(agent, ToolCallingAgent) else ()
    tools = [{"name": one.name, "description": one.description, "inputs": one.inputs} for one in called]
    return RequestSetup(system, tools or None, getattr(agent.model, "model_id", None))
