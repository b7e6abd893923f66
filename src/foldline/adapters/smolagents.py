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

CALLING = "Calling tools:\n"  # smolagents's prefixes of calls and of results
OBSERVED = "Observation:\n"


def _decode(messages: Sequence[ChatMessage]) -> list[list[Message]]:
    """Decode messages; the text of a reply and its calls are two messages of smolagents, and one of ours.

    One observation answers all calls of a step; images of a tool come before it, and belong to it. A response
    without a call is the program's.
    """
    payloads: list[list[dict[str, Any]]] = []
    injected: set[int] = set()  # user messages of the program
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        after = messages[place + 1].role if place + 1 < len(messages) else None
        text = text_of(message)
        group: list[dict[str, Any]] = []
        if message.role == MessageRole.ASSISTANT:
            group = [] if after == MessageRole.TOOL_CALL else [{"role": "assistant", "content": text}]
        elif message.role == MessageRole.TOOL_CALL:
            calls = calls_in(text)
            open_calls = [call["id"] for call in calls]
            before = messages[place - 1] if place else message
            reply = text_of(before) if before.role == MessageRole.ASSISTANT else ""
            fields = (
                {"content": reply or None, "tool_calls": calls} if calls else {"content": f"{reply}\n{text}"}
            )
            group = [{"role": "assistant", **fields}]
        elif message.role == MessageRole.TOOL_RESPONSE and open_calls:
            observation = text.removeprefix(OBSERVED)
            group = [
                {"role": "tool", "tool_call_id": call, "content": "" if index else observation}
                for index, call in enumerate(open_calls)
            ]
            open_calls = []
        elif not (open_calls and after == MessageRole.TOOL_RESPONSE):
            group = [{"role": "user", "content": _content(message)}]
            if message.role == MessageRole.TOOL_RESPONSE:
                injected.add(place)
        payloads.append(group)
    return [
        [msgspec.structs.replace(message, injected=True) for message in group] if place in injected else group
        for place, group in enumerate(read_chat(payloads))
    ]


def _encode(payloads: Sequence[dict[str, Any]]) -> list[ChatMessage]:
    """Convert Chat Completions messages to smolagents's."""
    messages: list[ChatMessage] = []
    for payload in payloads:
        content = payload.get("content") or ""
        texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        text, role = "\n".join(texts), payload["role"]
        if role == "tool":
            messages.append(_message(MessageRole.TOOL_RESPONSE, OBSERVED + text))
            continue
        if text:
            kind = MessageRole.ASSISTANT if role == "assistant" else MessageRole.USER
            messages.append(_message(kind, text))
        if calls := payload.get("tool_calls"):
            for call in calls:
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
            messages.append(_message(MessageRole.TOOL_CALL, CALLING + str(calls)))
    return messages


FORM = FrameworkForm(OPENAI_CHAT, _decode, _encode, leads=True)


def text_of(message: ChatMessage) -> str:
    """Return the text of a message."""
    content = message.content or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def calls_in(text: str) -> list[dict[str, Any]]:
    """Return the calls in a text, with their arguments as JSON; none if it cannot be parsed."""
    try:
        calls = cast("list[dict[str, Any]]", ast.literal_eval(text.removeprefix(CALLING)))
    except (ValueError, SyntaxError):
        return []
    for call in calls:
        call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    return calls


def _content(message: ChatMessage) -> Any:
    text, parts = text_of(message), message.content if isinstance(message.content, list) else []
    data = [encode_image_base64(part["image"]) for part in parts if "image" in part]
    images = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}} for png in data]
    return [*([{"type": "text", "text": text}] if text.strip() else []), *images] if images else text


def _message(role: MessageRole, text: str) -> ChatMessage:
    return ChatMessage(role=role, content=[{"type": "text", "text": text}])


def use_foldline(
    agent: MultiStepAgent,
    store: str | Store | None = None,
    *,
    session: str = "default",
    **options: Unpack[AdapterOptions],
) -> FrameworkHistories[ChatMessage]:
    """Send an agent's model the view of a session instead of its whole memory; return the sessions.

    `store` is a URL or a Store (default: that of the settings); the options are
    those of `foldline.open`. Without `window` the window is that of the agent's model.
    """
    histories = FrameworkHistories(store, FORM, **options)
    write_messages = agent.write_memory_to_messages

    def view(summary_mode: bool = False) -> list[ChatMessage]:
        messages = write_messages(summary_mode)
        if summary_mode:  # for a plan, which needs a part of the memory
            return messages
        system, history = messages[:1], messages[1:]
        return [*system, *histories.view(session, history, lambda: _setup(agent, text_of(system[0])))]

    agent.write_memory_to_messages = view
    return histories


def _setup(agent: MultiStepAgent, system: str) -> RequestSetup:
    """Return the system prompt, the tools and the model of a request."""
    called = agent.tools.values() if isinstance(agent, ToolCallingAgent) else ()
    tools = [{"name": tool.name, "description": tool.description, "inputs": tool.inputs} for tool in called]
    return RequestSetup(system, tools or None, getattr(agent.model, "model_id", None))
