"""Google's Agent Development Kit: one plugin.

    App(name="app", root_agent=agent, plugins=[FoldlinePlugin("sqlite:///sessions.db")])

Each agent sees a history of its own, so the session is named ID-AGENT. ADK keeps every event; the model is
sent the view.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Unpack

import msgspec
from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from foldline.adapters.history import AdapterOptions, FrameworkHistories, RequestSetup, read_list
from foldline.core.log.messages import Message
from foldline.stores import Store


class NumberedContent(msgspec.Struct):
    """A content, and the ids of its calls and responses: ADK sends most of them without."""

    content: types.Content
    ids: tuple[str, ...]


def numbered(contents: Sequence[types.Content]) -> list[NumberedContent]:
    """Give each call an id where it has none, and each response that of the oldest open call of its tool."""
    waiting: dict[str, list[str]] = {}
    count = 0
    made: list[NumberedContent] = []
    for content in contents:
        ids: list[str] = []
        for part in content.parts or ():
            if part.function_call is not None:
                count += 1
                own = part.function_call.id or f"call_{count}"
                waiting.setdefault(part.function_call.name or "", []).append(own)
                ids.append(own)
            elif part.function_response is not None:
                asked = waiting.get(part.function_response.name or "", [])
                own = part.function_response.id or (asked[0] if asked else "")
                if own in asked:
                    asked.remove(own)
                ids.append(own)
        made.append(NumberedContent(content, tuple(ids)))
    return made


class ContentsForm:
    """Gemini's contents, with ids."""

    dialect = "openai-chat"

    def decode(self, messages: Sequence[NumberedContent]) -> list[list[Message]]:
        """Read contents; the responses of a turn's calls are one each."""
        return read_list([_with_ids(one) for one in messages])

    def encode(self, payloads: Sequence[dict[str, Any]]) -> list[NumberedContent]:
        """Write Chat Completions messages as contents."""
        return [
            NumberedContent(
                types.Content(
                    role="model" if payload["role"] == "assistant" else "user", parts=_parts(payload)
                ),
                (),
            )
            for payload in payloads
        ]


def _with_ids(one: NumberedContent) -> dict[str, Any]:
    body = one.content.model_dump(exclude_none=True, mode="json")
    ids = list(one.ids)
    for part in body.get("parts", ()):
        for kind in ("function_call", "function_response"):
            if kind in part:
                part[kind]["id"] = ids.pop(0)
    return body


def _parts(payload: dict[str, Any]) -> list[types.Part]:
    content = payload.get("content") or ""
    if payload["role"] == "tool":
        return [types.Part.from_function_response(name=payload["name"], response={"result": content})]
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    parts = [types.Part(text=text) for text in texts if text]
    for call in payload.get("tool_calls") or ():
        asked = call["function"]
        parts.append(types.Part.from_function_call(name=asked["name"], args=json.loads(asked["arguments"])))
    return parts


class FoldlinePlugin(BasePlugin):
    """Sends the model the view of a session instead of the whole history, before every call.

    `store` is where sessions are kept (a URL or a Store; default: that of the settings); the options are
    those of `foldline.open`. Without `window` and `model` the window is that of the agent's model.
    """

    def __init__(self, store: str | Store | None = None, **options: Unpack[AdapterOptions]) -> None:
        super().__init__(name="foldline")
        self.histories = FrameworkHistories(store, ContentsForm(), **options)

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Give a request the view in place of the history."""
        session = f"{callback_context.session.id}-{callback_context.agent_name}"
        view = await self.histories.aview(
            session, numbered(llm_request.contents), lambda: _setup(llm_request)
        )
        llm_request.contents = [one.content for one in view]
        return None


def _setup(request: LlmRequest) -> RequestSetup:
    """Return what is sent beside the contents, and the name of the model that they are sent to."""
    config = request.config.model_dump(
        mode="json", exclude_none=True, include={"system_instruction", "tools"}
    )
    system = config.get("system_instruction")
    text = system if isinstance(system, str) or system is None else json.dumps(system)
    return RequestSetup(text, config.get("tools"), request.model)
