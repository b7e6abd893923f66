"""AutoGen: one model context.

    context = FoldlineContext("sqlite:///sessions.db", session="my-session", window=128_000)
    AssistantAgent("coder", client, model_context=context)

The context keeps every message, and saves them in its state; the model is sent the view at every call.
"""

from __future__ import annotations

from typing import Any, NoReturn, Unpack

from autogen_core import FunctionCall
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from foldline.adapters.forms import chat_form
from foldline.adapters.histories import AdapterOptions, FrameworkHistories
from foldline.stores import Store

SOURCE = "foldline"  # AutoGen's source of the messages that Foldline writes


def chat_payloads(message: LLMMessage) -> list[dict[str, Any]]:
    """Convert a message to Chat Completions: to one message, or one for each result."""
    match message:
        case FunctionExecutionResultMessage(content=results):
            return [{"role": "tool", "tool_call_id": r.call_id, "content": r.content} for r in results]
        case AssistantMessage(content=str(text)):
            return [{"role": "assistant", "content": text}]
        case AssistantMessage(content=calls, thought=thought):
            tool_calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
                if isinstance(call, FunctionCall)
            ]
            return [{"role": "assistant", "content": thought, "tool_calls": tool_calls}]
        case UserMessage(content=list(parts)):
            content = [
                {"type": "text", "text": part}
                if isinstance(part, str)
                else {"type": "image_url", "image_url": {"url": part.data_uri}}
                for part in parts
            ]
            return [{"role": "user", "content": content}]
        case _:
            role = "system" if isinstance(message, SystemMessage) else "user"
            return [{"role": role, "content": message.content}]


def _from_chat(payload: dict[str, Any]) -> LLMMessage:
    content = payload.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    match payload["role"]:
        case "tool":
            result = FunctionExecutionResult(
                content=text, name=payload["name"], call_id=payload["tool_call_id"], is_error=False
            )
            return FunctionExecutionResultMessage(content=[result])
        case "assistant" if payload.get("tool_calls"):
            calls = [FunctionCall(id=call["id"], **call["function"]) for call in payload["tool_calls"]]
            return AssistantMessage(content=calls, thought=text or None, source=SOURCE)
        case "assistant":
            return AssistantMessage(content=text, source=SOURCE)
        case "system":
            return SystemMessage(content=text)
        case _:
            return UserMessage(content=text, source=SOURCE)


FORM = chat_form(chat_payloads, _from_chat)


class FoldlineContext(UnboundedChatCompletionContext):
    """Keeps every message, and sends an agent's model the view of a session.

    `store` is a URL or a Store (default: that of the settings), `session` names
    the one of this context. The options are those of `foldline.open`. A context does not know the model of
    its agent: give `window`, or `model`.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        session: str = "default",
        initial_messages: list[LLMMessage] | None = None,
        **options: Unpack[AdapterOptions],
    ) -> None:
        super().__init__(initial_messages)
        self.histories = FrameworkHistories(store, FORM, **options)
        self._session = session

    def _to_config(self) -> NoReturn:
        """Refuse to be dumped: the loaded component would be a plain context, which does not fold."""
        raise NotImplementedError("a FoldlineContext cannot be dumped as a component: create it in code")

    async def get_messages(self) -> list[LLMMessage]:
        """Return the messages to send to the model."""
        return await self.histories.aview(self._session, self._messages)
