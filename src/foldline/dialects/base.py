"""The dialects: which there are, which one a message is in, and whole lists read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from foldline.core.log.codec import in_utf8
from foldline.core.log.messages import Message
from foldline.dialects.anthropic.dialect import AnthropicDialect
from foldline.dialects.bedrock_converse.dialect import BedrockConverseDialect
from foldline.dialects.dialect import Dialect, define, get, known, names, native_dialect
from foldline.dialects.gemini.dialect import GeminiDialect
from foldline.dialects.mend import Mender, mend_reply, with_notes
from foldline.dialects.openai_chat.dialect import OpenAIChatDialect
from foldline.dialects.payload import fields_of, is_list, items_of, read
from foldline.dialects.responses.dialect import OpenAIResponsesDialect
from foldline.dialects.ui_message.dialect import UIMessageDialect
from foldline.dialects.values import OPENAI_CHAT
from foldline.errors import DialectError

define(
    UIMessageDialect(),
    OpenAIResponsesDialect(),
    AnthropicDialect(),
    BedrockConverseDialect(),
    OpenAIChatDialect(),
    GeminiDialect(),
)


def message_dialect(payload: Any) -> str | None:
    """Return the only dialect that could have written a message; None if several could."""
    return next((dialect.name for dialect in known() if dialect.recognises(payload)), None)


def reply_dialect(payload: Any) -> str | None:
    """Return the dialect of a whole reply, as an SDK or an API returns it; None for a message."""
    return next((dialect.name for dialect in known() if dialect.is_reply(payload)), None)


def in_dialect(message: Any, name: str, salt: str) -> Any:
    """Return a message in a dialect's form: plain text gets an id made from `salt` where it needs one."""
    return get(name).adopt(message, salt) if name in names() else message


def detect(messages: Sequence[Any]) -> str:
    """Detect a list's dialect from its content; plain text, which fits several, is `openai-chat`.

    The first message that fits only one dialect decides: Anthropic's content blocks, or tool messages,
    tool_calls, image_url parts and the like, or items of the Responses API; texts without a type only where
    nothing else does. Raises DialectError (with the index of the message) if this is not a list of messages.
    """
    if not is_list(messages):
        raise DialectError(
            "expected a list of messages, each an object with a role; wrap a single one in [ ]"
        )
    found = bare = texts = None
    for index, payload in enumerate(messages):
        body = cast("dict[str, Any]", payload) if isinstance(payload, dict) else read(payload, index)[0]
        if bare is None and not isinstance(body.get("role"), str):
            bare = index
        if found is None and (name := message_dialect(body)):
            if get(name).is_bare_text(body):
                texts = texts or name
            else:
                found = name
    found = found or texts
    if bare is not None and not (found and get(found).bare):
        raise DialectError("no role; a message is an object with role and content", index=bare)
    return found or OPENAI_CHAT


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

    One message is one element, except in `openai-responses`, where a reply of the model is several items.
    Plain text messages in a list of UI messages become UI messages. What is malformed inside a message is
    mended and noted (`Mender`, which explains `salt` and `open_calls`).
    Raises DialectError with the index of an element that is not a message.
    """
    dialect = get(name)
    mender = Mender(dialect, salt=salt, open_calls=open_calls)
    messages = [dialect.adopt(payload, str(index)) for index, payload in enumerate(messages)]
    mended = [
        None if is_list(payload) else mender.mend(payload, index) for index, payload in enumerate(messages)
    ]
    payloads = [one.raw if one is not None else given for one, given in zip(mended, messages, strict=True)]
    found: list[tuple[int, Message]] = []
    for start, end in dialect.spans(payloads):
        payload = payloads[start] if end == start + 1 else payloads[start:end]
        message = dialect.decode(payload, index=start)
        found.append((start, with_notes(message, [one for one in mended[start:end] if one is not None])))
    return found


def decode_reply(reply: Any, name: str, *, salt: str = "") -> Message:
    """Read a provider's whole reply in a dialect; what is malformed in its message is mended and noted."""
    dialect = get(name)
    whole, mended = mend_reply(reply, dialect, Mender(dialect, salt=salt))
    return with_notes(dialect.decode_reply(whole), mended)


def elements(message: Message) -> int:
    """Return how many elements of a native list a message takes; a reply of Responses items takes several."""
    dialect = native_dialect(message)
    return dialect.elements(message.native) if dialect is not None and message.native is not None else 1


def read_system(system: Any, name: str) -> Message | None:
    """Read a system prompt given beside messages of a dialect; None if no dialect can read it.

    Files hold it in the form of another dialect too.
    """
    for dialect in (get(name), *known()):
        try:
            return dialect.decode_system(system)
        except DialectError:
            continue
    return None


def join_system(given: Any, recorded: Any, name: str) -> Any:
    """Join the system prompt that was given with the one found among the messages, as a dialect takes it."""
    given, recorded = in_utf8(given), in_utf8(recorded)
    if not given or not recorded:
        return given or recorded
    if isinstance(given, str) and isinstance(recorded, str):
        return f"{given}\n\n{recorded}"
    spoken = get(name)
    return [block for system in (given, recorded) for block in _blocks(system, spoken)]


def _blocks(system: Any, dialect: Dialect) -> list[Any]:
    if isinstance(system, str):
        return [dialect.text_part("system", system)]
    return items_of(fields_of(system)[dialect.content] if isinstance(system, dict) else system)
