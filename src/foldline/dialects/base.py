"""Detect the dialect of messages, and read whole lists and replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from foldline.core.log.codec import in_utf8
from foldline.core.log.messages import Message
from foldline.dialects.anthropic.dialect import AnthropicDialect
from foldline.dialects.bedrock_converse.dialect import BedrockConverseDialect
from foldline.dialects.dialect import Dialect, all_dialects, get, names, native_dialect, register
from foldline.dialects.gemini.dialect import GeminiDialect
from foldline.dialects.mend import Mender, mend_reply, with_notes
from foldline.dialects.openai_chat.dialect import OpenAIChatDialect
from foldline.dialects.payload import fields_of, is_list, items_of, read
from foldline.dialects.responses.dialect import OpenAIResponsesDialect
from foldline.dialects.ui_message.dialect import UIMessageDialect
from foldline.dialects.values import OPENAI_CHAT
from foldline.errors import DialectError

register(
    UIMessageDialect(),
    OpenAIResponsesDialect(),
    AnthropicDialect(),
    BedrockConverseDialect(),
    OpenAIChatDialect(),
    GeminiDialect(),
)


def message_dialect(payload: Any) -> str | None:
    """Return the dialect of a message; None if several are possible."""
    return next((dialect.name for dialect in all_dialects() if dialect.recognises(payload)), None)


def reply_dialect(payload: Any) -> str | None:
    """Return the dialect of a complete reply of an API or SDK; None for a message."""
    return next((dialect.name for dialect in all_dialects() if dialect.is_reply(payload)), None)


def in_dialect(message: Any, name: str, salt: str) -> Any:
    """Convert plain text to a dialect (see `Dialect.adopt`); return other messages unchanged."""
    return get(name).adopt(message, salt) if name in names() else message


def detect(messages: Sequence[Any]) -> str:
    """Detect the dialect of a list of messages; plain text, which is valid in several, is `openai-chat`.

    The first message that is valid in only one dialect decides, e.g. one with Anthropic's content blocks,
    tool_calls or items of the Responses API. Untyped texts decide only if no other message does.
    Raises DialectError (with the index of the message) if this is not a list of messages.
    """
    if not is_list(messages):
        raise DialectError(
            "expected a list of messages, each an object with a role; wrap a single one in [ ]"
        )
    detected = first_bare = from_texts = None
    for index, payload in enumerate(messages):
        body = cast("dict[str, Any]", payload) if isinstance(payload, dict) else read(payload, index)[0]
        if first_bare is None and not isinstance(body.get("role"), str):
            first_bare = index
        if detected is None and (name := message_dialect(body)):
            if get(name).is_bare_text(body):
                from_texts = from_texts or name
            else:
                detected = name
    detected = detected or from_texts
    if first_bare is not None and not (detected and get(detected).bare):
        raise DialectError("no role; a message is an object with role and content", index=first_bare)
    return detected or OPENAI_CHAT


def decode_all(
    messages: Sequence[Any],
    name: str | None = None,
    *,
    salt: str = "",
    open_calls: Mapping[str, str] | None = None,
) -> list[Message]:
    """Read a whole list in a dialect (None: detect it); see `decode_placed`."""
    placed = decode_placed(messages, name or detect(messages), salt=salt, open_calls=open_calls)
    return [message for _, message in placed]


def decode_placed(
    messages: Sequence[Any], name: str, *, salt: str = "", open_calls: Mapping[str, str] | None = None
) -> list[tuple[int, Message]]:
    """Read a whole list in a dialect; return each message with the index of its first element.

    A message is one element, except in `openai-responses`, where a reply is several items. Plain text is
    converted to the dialect. Malformed messages are repaired, with notes (`Mender` explains `salt` and
    `open_calls`). Raises DialectError with the index of an element that is not a message.
    """
    dialect = get(name)
    mender = Mender(dialect, salt=salt, open_calls=open_calls)
    messages = [dialect.adopt(payload, str(index)) for index, payload in enumerate(messages)]
    mended = [
        None if is_list(payload) else mender.mend(payload, index) for index, payload in enumerate(messages)
    ]
    payloads = [
        item.raw if item is not None else payload for item, payload in zip(mended, messages, strict=True)
    ]
    placed: list[tuple[int, Message]] = []
    for start, end in dialect.spans(payloads):
        payload = payloads[start] if end == start + 1 else payloads[start:end]
        message = dialect.decode(payload, index=start)
        placed.append((start, with_notes(message, [item for item in mended[start:end] if item is not None])))
    return placed


def decode_reply(reply: Any, name: str, *, salt: str = "") -> Message:
    """Read a complete reply in a dialect; malformed messages are repaired, with notes."""
    dialect = get(name)
    reply, mended = mend_reply(reply, dialect, Mender(dialect, salt=salt))
    return with_notes(dialect.decode_reply(reply), mended)


def elements(message: Message) -> int:
    """Return the number of list elements of a message; a reply of Responses items has several."""
    dialect = native_dialect(message)
    return dialect.elements(message.native) if dialect is not None and message.native is not None else 1


def read_system(system: Any, name: str) -> Message | None:
    """Read the system prompt of a list in a dialect; None if no dialect can read it.

    In files it may be in the form of another dialect.
    """
    for dialect in (get(name), *all_dialects()):
        try:
            return dialect.decode_system(system)
        except DialectError:
            continue
    return None


def join_system(given: Any, recorded: Any, name: str) -> Any:
    """Join a given system prompt with the one recorded in the messages, in the form of a dialect."""
    given, recorded = in_utf8(given), in_utf8(recorded)
    if not given or not recorded:
        return given or recorded
    if isinstance(given, str) and isinstance(recorded, str):
        return f"{given}\n\n{recorded}"
    dialect = get(name)
    return [block for system in (given, recorded) for block in _blocks(system, dialect)]


def _blocks(system: Any, dialect: Dialect) -> list[Any]:
    if isinstance(system, str):
        return [dialect.text_part("system", system)]
    return items_of(fields_of(system)[dialect.content] if isinstance(system, dict) else system)
