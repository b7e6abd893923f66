"""Inspect: one line.

    react(tools=[bash()], compaction=FoldlineCompaction("sqlite:///sessions.db"))

Inspect compacts above its threshold and keeps all messages; a sample's store lists its sessions (`foldline`).
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any, Unpack
from uuid import uuid4
from weakref import WeakKeyDictionary

from anyio import to_thread
from inspect_ai.log import Transcript, transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    CompactionStrategy,
    CompactionTrim,
    ContentImage,
    ContentText,
    Model,
    get_model_info,
)
from inspect_ai.tool import ToolCall, ToolInfo
from inspect_ai.util import store as sample_store

from foldline.adapters.forms import chat_form
from foldline.adapters.histories import AdapterOptions, FrameworkHistories, RequestSetup
from foldline.stores import Store

log = logging.getLogger("foldline")


def chat_payload(message: ChatMessage) -> dict[str, Any]:
    """Convert a message to Chat Completions, without reasoning."""
    parts = message.content if isinstance(message.content, list) else [ContentText(text=message.content)]
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, ContentImage):
            content.append({"type": "image_url", "image_url": {"url": part.image}})
        elif part.type != "reasoning":
            text = part.text if isinstance(part, ContentText) else part.model_dump_json(exclude_none=True)
            content.append({"type": "text", "text": text})
    payload: dict[str, Any] = {"role": message.role, "content": content}
    if all(part["type"] == "text" for part in content):
        payload["content"] = "\n".join(part["text"] for part in content)
    if isinstance(message, ChatMessageAssistant) and message.tool_calls:
        functions = [
            (call.id, {"name": call.function, "arguments": json.dumps(call.arguments)})
            for call in message.tool_calls
        ]
        payload["tool_calls"] = [{"id": i, "type": "function", "function": call} for i, call in functions]
    if isinstance(message, ChatMessageTool):
        payload["tool_call_id"] = message.tool_call_id
        if message.error is not None:
            payload["content"] = f"{message.error.type}: {message.error.message}"
    return payload


def _from_chat(body: dict[str, Any]) -> ChatMessage:
    content = body.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    match body["role"]:
        case "tool":
            return ChatMessageTool(content=text, tool_call_id=body["tool_call_id"], function=body["name"])
        case "assistant":
            calls = [(call["id"], call["function"]) for call in body.get("tool_calls", ())]
            tool_calls = [ToolCall(i, f["name"], json.loads(f["arguments"] or "{}")) for i, f in calls]
            return ChatMessageAssistant(content=text, tool_calls=tool_calls or None)
        case _:
            return ChatMessageUser(content=text)


FORM = chat_form(lambda message: [chat_payload(message)], _from_chat)


class InspectTalk:
    """One conversation of a sample: all messages at the last fold, and the view that replaced them."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.said: list[ChatMessage] = []
        self._shown: set[str | None] = set()
        self._ids: set[str | None] = set()

    def is_of(self, messages: Sequence[ChatMessage]) -> bool:
        """Whether messages start with the view of this conversation, or with all of it if none was folded.

        An agent to which this one handed over starts with the same messages, but has its own conversation.
        """
        if any(self._was_made(message) for message in messages[: self._old(messages)]):
            return True
        start = [message.id for message in messages[: len(self.said)]]
        unfolded = self._shown <= self._ids and start == [message.id for message in self.said]
        return unfolded and any(message.source != "input" for message in self.said)  # samples share the input

    def whole(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return all messages of the conversation, for messages that start with its view."""
        old = self._old(messages)
        folded = any(self._was_made(message) for message in messages[:old])
        return [*self.said, *messages[old:]] if folded else list(messages)

    def show(self, said: Sequence[ChatMessage], shown: Sequence[ChatMessage]) -> None:
        """Remember all messages and the view that replaces them."""
        self.said, self._ids = list(said), {message.id for message in said}
        self._shown = {message.id for message in shown}

    def _old(self, messages: Sequence[ChatMessage]) -> int:
        """Count the messages at the start that are of the last view."""
        return next((i for i, message in enumerate(messages) if not self._was_shown(message)), len(messages))

    def _was_shown(self, message: ChatMessage) -> bool:
        """Whether a message is of the last view, or several of them that Inspect combined for the API."""
        combined = (message.metadata or {}).get("combined_from", ())
        return message.id in self._shown or any(part in self._shown for part in combined)

    def _was_made(self, message: ChatMessage) -> bool:
        return message.id not in self._ids and self._was_shown(message)


class FoldlineCompaction(CompactionStrategy):
    """Compacts the messages of an agent by folding a session.

    `store` is a URL or a Store (default: that of the settings). `session` names the
    session of an agent that runs once; without it each conversation has a new one. `threshold` and `memory`
    are Inspect's. The other options are those of `foldline.open`; without `window` the window is
    that of the agent's model. Where folding fails Inspect trims the messages instead.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        session: str | None = None,
        threshold: float = 0.9,
        memory: bool = True,
        **options: Unpack[AdapterOptions],
    ) -> None:
        super().__init__(type="summary", threshold=threshold, memory=memory)
        self.histories = FrameworkHistories(store, FORM, **options)
        self._session = session
        self._talks: WeakKeyDictionary[Transcript, list[InspectTalk]] = WeakKeyDictionary()

    @property
    def preserve_prefix(self) -> bool:
        """False: the user's first message is in the view, or in its checkpoint."""
        return False

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Fold the messages, and return what to send instead."""
        count = next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))
        system, said = messages[:count], messages[count:]
        talk = self._talk(said)
        whole = talk.whole(said)
        again = len(whole) == len(talk.said)  # the last view was still too large

        def fold() -> list[ChatMessage]:
            return self.histories.run(
                talk.session,
                lambda history: history.compacted(whole, lambda: _setup(model, system, tools), harder=again),
            )

        try:
            shown = await to_thread.run_sync(fold)  # Inspect may run on trio
        except Exception:
            log.warning("session %s: folding failed, so Inspect trims it", talk.session, exc_info=True)
            trim = CompactionTrim(threshold=self.threshold, memory=self.memory)
            return await trim.compact(model, messages, tools)
        talk.show(whole, shown)
        return [*system, *shown], None

    def _talk(self, messages: Sequence[ChatMessage]) -> InspectTalk:
        """Return the conversation that messages belong to, or a new one."""
        talks = self._talks.setdefault(transcript(), [])
        for talk in reversed(talks):
            if talk.is_of(messages):
                return talk
        talk = InspectTalk(self._session or uuid4().hex)
        talks.append(talk)
        sample_store().set("foldline", [entry.session for entry in talks])
        return talk


def _setup(model: Model, system: Sequence[ChatMessage], tools: Sequence[ToolInfo]) -> RequestSetup:
    """Return the system prompt, the tools, the model and its window."""
    functions = [{"type": "function", "function": tool.model_dump(exclude_none=True)} for tool in tools]
    text = "\n\n".join(message.text for message in system)
    info = get_model_info(model)
    return RequestSetup(text or None, functions or None, model.name, info.context_length if info else None)
