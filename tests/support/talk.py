"""Conversations in plain words: messages, entries with a size, and logs made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from tests.support.log import Log
from tests.support.logs import add

from foldline.core.log.entries import Said
from foldline.core.log.log import said
from foldline.core.log.messages import Media, Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.view import Item, MessageItem


class Letters:
    """A counter that is easy to reckon with: a token a letter."""

    name = "letters"

    def count(self, text: str) -> int:
        return len(text)


def user(text: str = "hello", **more: Any) -> Message:
    return Message("user", (Text(text),), **more)


def assistant(text: str = "", *calls: ToolCall, **more: Any) -> Message:
    parts: tuple[Part, ...] = (Text(text),) if text else ()
    return Message("assistant", (*parts, *calls), **more)


def signed(text: str = "", *calls: ToolCall, thought: str = "Let me think.") -> Message:
    """An assistant message whose thinking is bound to what stands before it."""
    said_ = assistant(text, *calls)
    return msgspec.structs.replace(said_, parts=(Thinking(thought, "c2ln"), *said_.parts))


def system(text: str = "Be brief.") -> Message:
    return Message("system", (Text(text),))


def developer(text: str = "Use the tools.") -> Message:
    return Message("developer", (Text(text),))


def reminder(text: str = "<system-reminder>Be quick.</system-reminder>") -> Message:
    return user(text, injected=True)


def call(call_id: str, name: str = "read", given: Any = None, **arguments: Any) -> ToolCall:
    return ToolCall(call_id, name, arguments if given is None else given)


def calls(*ids: str, text: str = "") -> Message:
    return assistant(text, *(call(i, path=f"{i}.py") for i in ids))


def result(call_id: str, text: str = "done", *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id, (Text(text),), is_error=is_error)


def tool(call_id: str, text: str = "done", *, is_error: bool = False) -> Message:
    """A result as OpenAI has it: a message of its own."""
    return Message("tool", (result(call_id, text, is_error=is_error),))


def results(*answers: str | tuple[str, str], text: str = "") -> Message:
    """Results as Anthropic has them: in one user message, with what the user said beside them."""
    words = (Text(text),) if text else ()
    found = (result(one) if isinstance(one, str) else result(*one) for one in answers)
    return Message("user", (*found, *words))


def image(text: str = "") -> Message:
    words = (Text(text),) if text else ()
    return Message("user", (*words, Media("image", "image/png", data="iVBORw0KGgo=")))


def entries(*messages: Message, tokens: int | Sequence[int] = 10) -> list[Said]:
    """The messages as a chain; `tokens` is the size of each."""
    sizes = [tokens] * len(messages) if isinstance(tokens, int) else tokens
    chain: list[Said] = []
    for message, size in zip(messages, sizes, strict=True):
        before = chain[-1] if chain else None
        parent, key = (before.id, before.said_key) if before else (None, "")
        chain.append(said(message, parent=parent, said_key=key, tokens=size))
    return chain


def log_of(*messages: Message) -> Log:
    log = Log()
    for message in messages:
        add(log, message)
    return log


def repeat(text: str, times: int = 100) -> str:
    return " ".join([text] * times)


def message_of(item: Item) -> Message:
    return item.entry.message if isinstance(item, MessageItem) else item.message


def as_sent(item: Item) -> Message:
    """A view's message with its edits applied, as a dialect would send it."""
    message = message_of(item)
    if not isinstance(item, MessageItem):
        return message
    edits = {edit.part: edit.replacement for edit in item.edits}
    parts = [edits.get(index, part) for index, part in enumerate(message.parts)]
    return msgspec.structs.replace(message, parts=tuple(part for part in parts if part is not None))


def outline(items: Iterable[Item]) -> list[str]:
    """What a view holds, a word each: the kind of what was made, the role of what was kept."""
    return [item.entry.message.role if isinstance(item, MessageItem) else item.kind for item in items]


def text_of(items: Iterable[Item]) -> str:
    """Every text that the model reads in a view."""
    found: list[str] = []
    for item in items:
        for part in as_sent(item).parts:
            found.append(getattr(part, "text", ""))
    return "\n".join(found)
