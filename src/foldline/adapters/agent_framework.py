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
    """Write a message as Chat Completions: what it says and calls, and one more for each result."""
    said: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for one in message.contents:
        match one.type:
            case "function_call":
                arguments = (
                    one.arguments if isinstance(one.arguments, str) else json.dumps(one.arguments or {})
                )
                function = {"name": one.name, "arguments": arguments}
                calls.append({"id": one.call_id, "type": "function", "function": function})
            case "function_result":
                text = one.result if isinstance(one.result, str) else json.dumps(one.result, default=str)
                results.append({"role": "tool", "tool_call_id": one.call_id, "content": text})
            case "uri" | "data" if (one.media_type or "").startswith("image/"):
                said.append({"type": "image_url", "image_url": {"url": one.uri}})
            case _ if one.text:
                said.append({"type": "text", "text": one.text})
            case _:
                pass
    own: dict[str, Any] = {"role": message.role}
    if all(part["type"] == "text" for part in said):
        own["content"] = "\n".join(part["text"] for part in said)
    else:
        own["content"] = said
    if calls:
        own["tool_calls"] = calls
    return [*([own] if said or calls else []), *results]


def _written(payload: dict[str, Any]) -> AgentMessage:
    return AgentMessage(payload["role"], _contents(payload))


def _contents(payload: dict[str, Any]) -> list[Content]:
    content = payload.get("content") or ""
    if payload["role"] == "tool":
        return [Content.from_function_result(payload["tool_call_id"], result=content)]
    parts = [{"text": content}] if isinstance(content, str) else content
    made = [Content.from_text(part["text"]) for part in parts if part.get("text")]
    for call in payload.get("tool_calls") or ():
        asked = call["function"]
        made.append(Content.from_function_call(call["id"], asked["name"], arguments=asked["arguments"]))
    return made


FORM = chat_form(chat_payloads, _written)


class FoldlineChatMiddleware(ChatMiddleware):
    """Sends the model the view of a session instead of the whole history, before every call.

    `store` is where sessions are kept (a URL or a Store; default: that of the settings). `session` names the
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
        """Call the model with the view in place of the history."""
        session = context.session.session_id if context.session is not None else self._session
        context.messages = await self.histories.aview(session, context.messages, lambda: _setup(context))
        await call_next()


def _setup(context: ChatContext) -> RequestSetup:
    """Return what is sent beside the messages, and the name of the model that they are sent to."""
    options = context.options or {}
    tools = [
        {"name": one.name, "description": one.description, "parameters": one.parameters()}
        for one in options.get("tools") or ()
        if hasattr(one, "parameters")
    ]
    name = options.get("model") or getattr(context.client, "model", None)
    return RequestSetup(options.get("instructions"), tools or None, name if isinstance(name, str) else None)
