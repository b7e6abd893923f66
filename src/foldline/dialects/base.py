"""The dialects: what each one does, and which there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message
from foldline.dialects.anthropic.dialect import AnthropicDialect
from foldline.dialects.openai_chat.dialect import OpenAIChatDialect
from foldline.dialects.plain import is_list, parse, read
from foldline.dialects.responses.dialect import OpenAIResponsesDialect
from foldline.dialects.ui_message.dialect import UIMessageDialect
from foldline.dialects.ui_message.plain import adopted
from foldline.dialects.values import OPENAI_CHAT, OPENAI_RESPONSES, Problem, Rendered
from foldline.errors import DialectError


class Dialect(Protocol):
    """A stored message shape: native messages in and out, without loss, and its documented rules."""

    @property
    def name(self) -> str:
        """The name by which `get` finds it."""
        ...

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read one native message; DialectError (with `index`) for what is none."""
        ...

    def decode_reply(self, reply: Any) -> Message:
        """Read a whole reply of the provider: message, usage, model and why it stopped."""
        ...

    def decode_system(self, system: Any) -> Message:
        """Read a system prompt that is given apart from the messages."""
        ...

    def render(self, items: Sequence[tuple[Message, Sequence[Edit]]], *, whole: bool = False) -> Rendered:
        """Write messages, each with its edits, as native ones; `whole`: they are a request from its beginning."""
        ...

    def validate(self, messages: Sequence[Any], system: Any = None) -> list[Problem]:
        """List the documented rules that a native list breaks."""
        ...

    def recognises(self, payload: Any) -> bool:
        """Whether a native message can only be of this dialect."""
        ...


# in the order in which they are asked whether a message is theirs
_DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (UIMessageDialect(), OpenAIResponsesDialect(), AnthropicDialect(), OpenAIChatDialect())
}


def names() -> tuple[str, ...]:
    """The names of all dialects."""
    return tuple(sorted(_DIALECTS))


def get(name: str) -> Dialect:
    """Find a dialect by its name; raises DialectError for one that is not known."""
    if name not in _DIALECTS:
        raise DialectError(f"unknown dialect {name!r}; known are {', '.join(names())}")
    return _DIALECTS[name]


def recognised(payload: Any) -> str | None:
    """Return the dialect that alone could have written a message; None where several could."""
    return next((name for name, dialect in _DIALECTS.items() if dialect.recognises(payload)), None)


def detect(messages: Sequence[Any]) -> str:
    """Tell a list's dialect by its content; plain text, which could be either, is `openai-chat`.

    The first message that only one dialect can hold decides: content blocks of Anthropic's, or tool
    messages, tool_calls, image_url parts and their like, or items of the Responses API. Raises DialectError
    (with the index of the message) for what is no list of messages.
    """
    if not is_list(messages):
        raise DialectError(
            "expected a list of messages, each an object with a role; wrap a single one in [ ]"
        )
    found = bare = None
    for index, payload in enumerate(messages):
        body = cast("dict[str, Any]", payload) if isinstance(payload, dict) else read(payload, index)[0]
        if bare is None and not isinstance(body.get("role"), str):
            bare = index
        if found is None:
            found = recognised(body)
    if bare is not None and found != OPENAI_RESPONSES:  # items alone need no role
        raise DialectError("no role; a message is an object with role and content", index=bare)
    return found or OPENAI_CHAT


def decode_all(messages: Sequence[Any], name: str | None = None) -> list[Message]:
    """Read a whole list in a dialect (None: detected); raises DialectError with the index of a bad message."""
    return [message for _, message in decode_placed(messages, name or detect(messages))]


def decode_placed(messages: Sequence[Any], name: str) -> list[tuple[int, Message]]:
    """Read a whole list in a dialect: each message with the index of its first element.

    One message is one element, but in `openai-responses`, where a reply of the model is several items. Plain
    messages of text among UI messages are given their form.
    Raises DialectError with the index of a bad element.
    """
    dialect = get(name)
    if isinstance(dialect, UIMessageDialect):
        messages = [adopted(payload, str(index)) for index, payload in enumerate(messages)]
    if not isinstance(dialect, OpenAIResponsesDialect):
        return [(index, dialect.decode(payload, index=index)) for index, payload in enumerate(messages)]
    found: list[tuple[int, Message]] = []
    for start, end in dialect.spans(messages):
        payload = messages[start] if end == start + 1 else list(messages[start:end])
        found.append((start, dialect.decode(payload, index=start)))
    return found


def elements(message: Message) -> int:
    """How many elements of a native list a message is: one, but for a reply of several Responses items."""
    native = message.native
    several = native is not None and native.dialect == OPENAI_RESPONSES and native.raw.startswith(b"[")
    return len(parse(native.raw)) if native is not None and several else 1
