"""The dialects: what each one does, and which there are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol, cast

from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message
from foldline.dialects.anthropic.dialect import AnthropicDialect
from foldline.dialects.mend import Mender, mend_reply, with_notes
from foldline.dialects.openai_chat.dialect import OpenAIChatDialect
from foldline.dialects.payload import is_list, parse, read
from foldline.dialects.responses.dialect import OpenAIResponsesDialect
from foldline.dialects.ui_message.dialect import UIMessageDialect
from foldline.dialects.ui_message.plain_text import to_ui_message
from foldline.dialects.values import OPENAI_CHAT, OPENAI_RESPONSES, Problem, Rendered
from foldline.errors import DialectError, did_you_mean


class Dialect(Protocol):
    """A stored message shape: native messages in and out, without loss, and its documented rules."""

    @property
    def name(self) -> str:
        """The name by which `get` finds it."""
        ...

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read one native message; raises DialectError (with `index`) for anything else."""
        ...

    def decode_reply(self, reply: Any) -> Message:
        """Read a provider's whole reply: the message, its usage, the model and why it stopped."""
        ...

    def decode_system(self, system: Any) -> Message:
        """Read a system prompt given separately from the messages."""
        ...

    def render(self, items: Sequence[tuple[Message, Sequence[Edit]]], *, whole: bool = False) -> Rendered:
        """Write messages, each with its edits, as native ones; `whole`: they are a complete request."""
        ...

    def validate(self, messages: Sequence[Any], system: Any = None) -> list[Problem]:
        """Return the documented rules that a native list breaks."""
        ...

    def recognises(self, payload: Any) -> bool:
        """Return whether a native message can only be in this dialect."""
        ...


# detection asks them in this order
_DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (UIMessageDialect(), OpenAIResponsesDialect(), AnthropicDialect(), OpenAIChatDialect())
}


def names() -> tuple[str, ...]:
    """Return the names of all dialects."""
    return tuple(sorted(_DIALECTS))


def get(name: str) -> Dialect:
    """Find a dialect by name; raises DialectError for an unknown one."""
    if name not in _DIALECTS:
        hint = did_you_mean(name, names())
        raise DialectError(f"unknown dialect {name!r}{hint}; known are {', '.join(names())}")
    return _DIALECTS[name]


def message_dialect(payload: Any) -> str | None:
    """Return the only dialect that could have written a message; None if several could."""
    return next((name for name, dialect in _DIALECTS.items() if dialect.recognises(payload)), None)


def detect(messages: Sequence[Any]) -> str:
    """Detect a list's dialect from its content; plain text, which fits several, is `openai-chat`.

    The first message that fits only one dialect decides: Anthropic's content blocks, or tool messages,
    tool_calls, image_url parts and the like, or items of the Responses API. Raises DialectError (with the
    index of the message) if this is not a list of messages.
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
            found = message_dialect(body)
    if bare is not None and found != OPENAI_RESPONSES:  # items alone need no role
        raise DialectError("no role; a message is an object with role and content", index=bare)
    return found or OPENAI_CHAT


def decode_all(
    messages: Sequence[Any], name: str | None = None, *, salt: str = "", open_calls: Collection[str] = ()
) -> list[Message]:
    """Read a whole list in a dialect (None: detect it); see `decode_placed`."""
    placed = decode_placed(messages, name or detect(messages), salt=salt, open_calls=open_calls)
    return [message for _, message in placed]


def decode_placed(
    messages: Sequence[Any], name: str, *, salt: str = "", open_calls: Collection[str] = ()
) -> list[tuple[int, Message]]:
    """Read a whole list in a dialect; return each message with the index of its first element.

    One message is one element, except in `openai-responses`, where a reply of the model is several items.
    Plain text messages in a list of UI messages become UI messages. What is malformed inside a message is
    mended and noted (`Mender`, which explains `salt` and `open_calls`).
    Raises DialectError with the index of an element that is no message.
    """
    dialect = get(name)
    mender = Mender(name, salt=salt, open_calls=open_calls)
    if isinstance(dialect, UIMessageDialect):
        messages = [to_ui_message(payload, str(index)) for index, payload in enumerate(messages)]
    mended = [
        None if is_list(payload) else mender.mend(payload, index) for index, payload in enumerate(messages)
    ]
    payloads = [one.raw if one is not None else given for one, given in zip(mended, messages, strict=True)]
    several = isinstance(dialect, OpenAIResponsesDialect)
    spans = dialect.spans(payloads) if several else [(place, place + 1) for place in range(len(payloads))]
    found: list[tuple[int, Message]] = []
    for start, end in spans:
        payload = payloads[start] if end == start + 1 else payloads[start:end]
        message = dialect.decode(payload, index=start)
        found.append((start, with_notes(message, [one for one in mended[start:end] if one is not None])))
    return found


def decode_reply(reply: Any, name: str, *, salt: str = "") -> Message:
    """Read a provider's whole reply in a dialect; what is malformed in its message is mended and noted."""
    whole, mended = mend_reply(reply, name, Mender(name, salt=salt))
    return with_notes(get(name).decode_reply(whole), mended)


def elements(message: Message) -> int:
    """Return how many elements of a native list a message takes; a reply of Responses items takes several."""
    native = message.native
    several = native is not None and native.dialect == OPENAI_RESPONSES and native.raw.startswith(b"[")
    return len(parse(native.raw)) if native is not None and several else 1
