"""Strands Agents: one call.

    use_foldline(agent, "sqlite:///sessions.db", session="my-session")

`agent.messages` stays whole; the model is sent the view at every call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Unpack, cast

from strands import Agent
from strands.middleware import InvokeModelStage
from strands.middleware.stages import InvokeModelContext
from strands.types.content import ContentBlock
from strands.types.content import Message as StrandsMessage

from foldline.adapters.history import AdapterOptions, FrameworkHistories, RequestSetup, read_list
from foldline.core.log.messages import Message
from foldline.stores import Store


class StrandsForm:
    """Messages of Bedrock's Converse API, which every model of Strands' is given."""

    dialect = "openai-chat"

    def decode(self, messages: Sequence[StrandsMessage]) -> list[list[Message]]:
        """Read messages; the results of a turn's calls are one each."""
        return read_list(messages)

    def encode(self, payloads: Sequence[dict[str, Any]]) -> list[StrandsMessage]:
        """Write Chat Completions messages as Converse's."""
        return [
            {"role": "assistant" if payload["role"] == "assistant" else "user", "content": _blocks(payload)}
            for payload in payloads
        ]


def _blocks(payload: dict[str, Any]) -> list[ContentBlock]:
    content = payload.get("content") or ""
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    said: list[ContentBlock] = [{"text": text} for text in texts if text]
    if payload["role"] == "tool":
        result = {"toolUseId": payload["tool_call_id"], "status": "success", "content": said}
        return [cast("ContentBlock", {"toolResult": result})]
    for call in payload.get("tool_calls") or ():
        asked = call["function"]
        use = {"toolUseId": call["id"], "name": asked["name"], "input": json.loads(asked["arguments"])}
        said.append(cast("ContentBlock", {"toolUse": use}))
    return said


def joined(messages: Sequence[StrandsMessage]) -> list[StrandsMessage]:
    """Join messages of one role in a row: Converse wants user and assistant in turn."""
    out: list[StrandsMessage] = []
    for message in messages:
        if out and out[-1]["role"] == message["role"]:
            out[-1] = {**out[-1], "content": [*out[-1]["content"], *message["content"]]}
        else:
            out.append(message)
    return out


def use_foldline(
    agent: Agent,
    store: str | Store | None = None,
    *,
    session: str = "default",
    **options: Unpack[AdapterOptions],
) -> FrameworkHistories[StrandsMessage]:
    """Send an agent's model the view of a session instead of the whole history; returns what keeps it.

    `store` is where the session is kept (a URL or a Store; default: that of the settings); the options are
    those of `foldline.open`. Without `window` and `model` the window is that of the agent's model. The agent
    must not have a context manager of its own.
    """
    histories = FrameworkHistories(store, StrandsForm(), **options)

    async def view(context: InvokeModelContext) -> InvokeModelContext:
        shown = await histories.aview(session, context.messages, lambda: _setup(context))
        return context.replace(messages=joined(shown))

    agent.add_middleware(InvokeModelStage.Input, view)
    return histories


def _setup(context: InvokeModelContext) -> RequestSetup:
    """Return what is sent beside the messages, and the name of the model that they are sent to."""
    name = cast("dict[str, Any]", context.model.get_config() or {}).get("model_id")
    system = context.system_prompt
    text = system if isinstance(system, str) else "\n".join(block.get("text", "") for block in system or ())
    return RequestSetup(text or None, [dict(spec) for spec in context.tool_specs] or None, name)
