"""Builders of conversations: messages, entries with a size, and logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from tests.support.log import Log
from tests.support.logs import chain

from foldline.core.log.entries import Said
from foldline.core.log.log import said
from foldline.core.log.messages import Media, Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.view_items import Item, MessageItem, item_parts


class Letters:
    """A token counter for simple sums: one token per character."""

    name = "letters"

    def count(self, text: str) -> int:
        return len(text)


def user(text: str = "hello", **more: Any) -> Message:
    return Message("user", (Text(text),), **more)


def assistant(text: str = "", *calls: ToolCall, **more: Any) -> Message:
    parts: tuple[Part, ...] = (Text(text),) if text else ()
    return Message("assistant", (*parts, *calls), **more)


def signed(text: str = "", *calls: ToolCall, thought: str = "Let me think.") -> Message:
    """An assistant message with signed thinking."""
    message = assistant(text, *calls)
    return msgspec.structs.replace(message, parts=(Thinking(thought, "c2ln"), *message.parts))


def system(text: str = "Be brief.") -> Message:
    return Message("system", (Text(text),))


def developer(text: str = "Use the tools.") -> Message:
    return Message("developer", (Text(text),))


def reminder(text: str = "<system-reminder>Be quick.</system-reminder>") -> Message:
    return user(text, injected=True)


def call(call_id: str, name: str = "read", given: Any = None, **arguments: Any) -> ToolCall:
    return ToolCall(call_id, name, arguments if given is None else given)


def calls(*ids: str, text: str = "") -> Message:
    """An assistant message with a call for each id."""
    return assistant(text, *(call(i, path=f"{i}.py") for i in ids))


def result(call_id: str, text: str = "done", *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id, (Text(text),), is_error=is_error)


def tool(call_id: str, text: str = "done", *, is_error: bool = False) -> Message:
    """A message with one result, as OpenAI writes it."""
    return Message("tool", (result(call_id, text, is_error=is_error),))


def results(*answers: str | tuple[str, str], text: str = "") -> Message:
    """A user message with several results and a text, as Anthropic writes it; an answer is an id or (id, text)."""
    parts = (result(answer) if isinstance(answer, str) else result(*answer) for answer in answers)
    return Message("user", (*parts, *((Text(text),) if text else ())))


def image(text: str = "") -> Message:
    words = (Text(text),) if text else ()
    return Message("user", (*words, Media("image", "image/png", data="iVBORw0KGgo=")))


def entries(*messages: Message, tokens: int | Sequence[int] = 10) -> list[Said]:
    """Chain messages into entries; `tokens` is the size of each, or of all."""
    sizes = [tokens] * len(messages) if isinstance(tokens, int) else tokens
    chain: list[Said] = []
    for message, size in zip(messages, sizes, strict=True):
        before = chain[-1] if chain else None
        parent, key = (before.id, before.said_key) if before else (None, "")
        chain.append(said(message, parent=parent, said_key=key, tokens=size))
    return chain


def log_of(*messages: Message) -> Log:
    return chain(messages)


def repeat(text: str, times: int = 100) -> str:
    return " ".join([text] * times)


def as_sent(item: Item) -> Message:
    """The message of a view's item with its edits applied, as a dialect sends it."""
    return msgspec.structs.replace(item.message, parts=tuple(item_parts(item)))


def outline(items: Iterable[Item]) -> list[str]:
    """One word for each item of a view: the role of a kept message, or the kind of an added one."""
    return [item.entry.message.role if isinstance(item, MessageItem) else item.kind for item in items]


def text_of(items: Iterable[Item]) -> str:
    """Every text that the model reads in a view."""
    return "\n".join(getattr(part, "text", "") for item in items for part in as_sent(item).parts)
