"""Microsoft's Agent Framework: one middleware.

    Agent(client, middleware=[FoldlineChatMiddleware("sqlite:///sessions.db")])

The agent's session names the session. The history provider keeps every message; the model is sent the view.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Unpack

from agent_framework import ChatContext, ChatMiddleware, Content
from agent_framework import Message as AgentMessage

from foldline.adapters.forms import chat_form
from foldline.adapters.histories import AdapterOptions, FrameworkHistories, RequestSetup
from foldline.stores import Store


def chat_payloads(message: AgentMessage) -> list[dict[str, Any]]:
    """Convert a message to Chat Completions: its text and calls, and one message for each result."""
    parts: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for item in message.contents:
        match item.type:
            case "function_call":
                arguments = item.arguments or {}
                if not isinstance(arguments, str):
                    arguments = json.dumps(arguments)
                function = {"name": item.name, "arguments": arguments}
                calls.append({"id": item.call_id, "type": "function", "function": function})
            case "function_result":
                text = item.result if isinstance(item.result, str) else json.dumps(item.result, default=str)
                results.append({"role": "tool", "tool_call_id": item.call_id, "content": text})
            case "uri" | "data" if (item.media_type or "").startswith("image/"):
                parts.append({"type": "image_url", "image_url": {"url": item.uri}})
            case _ if item.text:
                parts.append({"type": "text", "text": item.text})
            case _:
                pass
    payload: dict[str, Any] = {"role": message.role}
    if all(part["type"] == "text" for part in parts):
        payload["content"] = "\n".join(part["text"] for part in parts)
    else:
        payload["content"] = parts
    if calls:
        payload["tool_calls"] = calls
    return [*([payload] if parts or calls else []), *results]


def _from_chat(payload: dict[str, Any]) -> AgentMessage:
    return AgentMessage(payload["role"], _contents(payload))


def _contents(payload: dict[str, Any]) -> list[Content]:
    content = payload.get("content") or ""
    if payload["role"] == "tool":
        return [Content.from_function_result(payload["tool_call_id"], result=content)]
    parts = [{"text": content}] if isinstance(content, str) else content
    contents = [Content.from_text(part["text"]) for part in parts if part.get("text")]
    for call in payload.get("tool_calls") or ():
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        contents.append(Content.from_function_call(call["id"], name, arguments=arguments))
    return contents


FORM = chat_form(chat_payloads, _from_chat)


class FoldlineChatMiddleware(ChatMiddleware):
    """Sends the model the view of a session instead of the whole history, before every call.

    `store` is a URL or a Store (default: that of the settings). `session` names the
    session of a run without one of the framework's. The options are those of `foldline.open`; without
    `window` the window is that of the agent's model.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        session: str = "default",
        **options: Unpack[AdapterOptions],
    ) -> None:
        self.histories = FrameworkHistories(store, FORM, **options)
        self._session = session

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Call the model with the view instead of the history."""
        session = context.session.session_id if context.session is not None else self._session
        context.messages = await self.histories.aview(session, context.messages, lambda: _setup(context))
        await call_next()


def _setup(context: ChatContext) -> RequestSetup:
    """Return the system prompt, the tools and the model of a request."""
    options = context.options or {}
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters()}
        for tool in options.get("tools") or ()
        if hasattr(tool, "parameters")
    ]
    name = options.get("model") or getattr(context.client, "model", None)
    return RequestSetup(options.get("instructions"), tools or None, name if isinstance(name, str) else None)
