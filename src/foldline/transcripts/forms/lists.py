"""Detect the form of a list of messages, and read it: a dialect, or the form of another library or API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from foldline.core.log.codec import encode
from foldline.core.log.messages import Message
from foldline.dialects import BEDROCK_CONVERSE, OPENAI_CHAT, decode_placed, detect
from foldline.dialects.base import message_dialect
from foldline.dialects.payload import fields_of, is_list, items_of, read
from foldline.errors import DialectError
from foldline.transcripts.forms import flat, langchain, model_message, pydantic_ai
from foldline.transcripts.forms.chat_list import ChatListWriter, keys_of
from foldline.transcripts.lines import text_or
from foldline.transcripts.payloads import mark_failed


class Form(msgspec.Struct, frozen=True):
    """A form outside the dialects: its name, whether a message has it, and how to convert a message."""

    name: str
    fits: Callable[[dict[str, Any]], bool]
    write: Callable[[dict[str, Any], ChatListWriter], None]


FORMS: Final = (  # checked in this order
    *(Form(module.NAME, module.fits, module.write) for module in (langchain, pydantic_ai, model_message)),
    Form("Ollama", flat.fits_ollama, flat.write_ollama),
    Form("a list of roles and texts", flat.fits_bare, flat.write_bare),
)
_COMMON: Final = {"role", "content", "name", "tool_call_id"}
_METADATA: Final = {"role", "name", "id", "type", "timestamp", "created_at", "metadata"}


class Decoded(msgspec.Struct):
    """A decoded list: its dialect, each message with the place of its first element, and warnings."""

    dialect: str
    placed: list[tuple[int, Message]]
    warnings: list[str] = []
    translated: bool = False


def decode_list(
    messages: Sequence[Any],
    dialect: str | None = None,
    *,
    salt: str = "",
    open_calls: Mapping[str, str] | None = None,
) -> Decoded:
    """Read a list of messages in a dialect (None: detected); other forms become Chat Completions.

    `salt` and `open_calls` are those of `decode_placed`. Raises DialectError with the index of an element
    that is not a message, or has an unknown form.
    """
    if dialect is None and is_list(messages):
        if is_foreign(messages):
            return _translated(messages, salt, open_calls)
        for index, message in enumerate(messages):
            check_known(message, index)
    name = dialect or detect(messages)
    return Decoded(name, decode_placed(messages, name, salt=salt, open_calls=open_calls))


def is_foreign(messages: Sequence[Any]) -> bool:
    """Return whether the first message with an unambiguous form is outside the dialects."""
    for message in messages:
        if _is_common(message):
            continue
        if form_of(message) is not None:
            return True
        if isinstance(message, dict) and message_dialect(message) not in (None, OPENAI_CHAT):
            return False
    return False


def form_of(message: Any) -> Form | None:
    """Return the form of a message; None for one that a dialect reads."""
    body = _as_dict(message)
    return None if body is None else next((form for form in FORMS if form.fits(body)), None)


def _is_common(message: Any) -> bool:
    """Return whether a message has only a role and text, as in several dialects."""
    return (
        isinstance(message, dict)
        and fields_of(message).keys() <= _COMMON
        and isinstance(fields_of(message).get("content"), str)
    )


def check_known(message: Any, index: int | None = None) -> None:
    """Raise DialectError for a message that a dialect would misread, or read without its content."""
    why = _unreadable(fields_of(message))
    if why and message_dialect(message) != BEDROCK_CONVERSE:
        text = f"unknown form of message: {why}; docs/transcripts.md lists the known forms"
        raise DialectError(text, index=index)


def _unreadable(body: dict[str, Any]) -> str:
    """Return what only Bedrock's dialect could read in a message; "" if there is nothing."""
    others = {key: body[key] for key in body if key not in _METADATA}
    has_content = any(map(bool, others.values()))
    if body.get("role") == "user" and has_content and not {"content", "parts"} & body.keys():
        return f"it has no content, but {keys_of(others)}"
    for part in map(fields_of, items_of(body.get("content"))):
        if part and not isinstance(part.get("type"), str) and not isinstance(part.get("text"), str):
            return f"a part of it has no type, but {keys_of(part)}"
    return ""


def _as_dict(message: Any) -> dict[str, Any] | None:
    """Return a message as a dict; None if a dialect reads its class, or it is not a message."""
    if isinstance(message, dict):
        return fields_of(message)
    if isinstance(message, tuple | list):
        pair = cast("Sequence[Any]", message)
        return langchain.from_pair(text_or(pair[0]), pair[1]) if len(pair) == 2 else None
    kind, parts = getattr(message, "type", None), getattr(message, "parts", None)
    dump = getattr(message, "model_dump", None)
    if isinstance(kind, str) and callable(dump) and langchain.fits({"type": kind, "content": ""}):
        return {**fields_of(dump(mode="json")), "type": kind}
    of_pydantic_ai = parts is not None and getattr(message, "kind", None) in ("request", "response")
    of_ollama = callable(dump) and hasattr(message, "tool_name")
    return read(message)[0] if of_pydantic_ai or of_ollama else None


def _translated(messages: Sequence[Any], salt: str, open_calls: Mapping[str, str] | None) -> Decoded:
    """Convert each message of another form to Chat Completions, and decode the result."""
    out = ChatListWriter(salt)
    received: dict[int, bytes] = {}
    names: dict[int, str] = {}
    for place, message in enumerate(messages):
        form, body = form_of(message), _as_dict(message)
        if form is None or body is None:
            check_known(message, place)
            out.begin(place, "")
            fields = read(message, place)[0]
            out.add({key: fields[key] for key in fields if fields[key] is not None or key == "content"})
            continue
        out.begin(place, form.name)
        form.write(body, out)
        received[place], names[place] = encode(body), form.name
    placed = decode_placed(out.payloads, OPENAI_CHAT, salt=salt, open_calls=open_calls)
    decoded: list[tuple[int, Message]] = []
    for index, message in placed:
        place = out.places[index]
        if index in out.failed:
            message = mark_failed(message)  # noqa: PLW2901
        note = f"a message of {names[place]} was converted to Chat Completions" if place in names else ""
        if note and message.native is not None:
            notes = (note, *out.take_losses(place), *message.native.mended)
            native = msgspec.structs.replace(message.native, mended=notes, received=received.pop(place, b""))
            message = msgspec.structs.replace(message, native=native)  # noqa: PLW2901
        decoded.append((place, message))
    form = " and ".join(dict.fromkeys(names.values()))
    count = f"{len(names)} message{'s' * (len(names) != 1)}"
    warning = f"{count} of {form}: converted to {OPENAI_CHAT}"
    return Decoded(OPENAI_CHAT, decoded, [warning, *out.losses.lines()], translated=True)
