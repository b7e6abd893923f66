"""Mend a list of native messages: one malformed message must not make a session useless.

Every change is noted in the message's `Native`, beside its bytes as received.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import Any, cast

import msgspec

from foldline.core.cut.call_ids import ReplyIds
from foldline.core.log import codec
from foldline.core.log.messages import Message, Native
from foldline.dialects.anthropic.mend import mend as mend_anthropic
from foldline.dialects.mending import DEEPEST, Fields, Notes, as_text, fields_of, is_deep
from foldline.dialects.openai_chat.mend import mend as mend_chat
from foldline.dialects.payload import is_list, read
from foldline.dialects.responses.items import CALLS, answered_key, is_call, is_output, kind_of, role_of
from foldline.dialects.responses.mend import mend as mend_item
from foldline.dialects.ui_message.mend import mend as mend_ui
from foldline.dialects.values import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, UI_MESSAGE
from foldline.errors import DialectError

Slot = tuple[Fields, str]  # an object that holds a call's id, and the key of it
_ENVELOPE = 8  # levels of a message around the values that it holds


class Mended(msgspec.Struct, frozen=True):
    """A native message, or item, to be read: its bytes, those as received, and what was changed."""

    raw: bytes
    received: bytes
    notes: tuple[str, ...] = ()


class Mender:
    """Mends messages in their order: a result without an id answers the oldest call that is still open.

    Calls of one reply that share an id are numbered, and their results answer them in order. `open_calls` are
    those of the messages before, `salt` makes the ids that are given.
    """

    def __init__(self, dialect: str, *, salt: str = "", open_calls: Collection[str] = ()) -> None:
        self._dialect = dialect
        self._salt = salt
        self._in_reply = dialect == OPENAI_RESPONSES  # the item before was the model's, or may have been
        self._ids = ReplyIds(open_calls, goes_on=self._in_reply)
        self._before = open_calls  # looked at only where a result names no call: there may be thousands
        self._asked: list[str] = []
        self._answered: set[str] = set()

    def mend(self, payload: Any, index: int) -> Mended | None:
        """Return one message mended; None where it cannot be read as an object at all."""
        try:
            body, raw = read(payload, index)
        except DialectError:
            return None
        notes = Notes()
        mended = self._mended(body, index, notes)
        if not notes.lines:
            return Mended(raw, raw)
        return Mended(codec.encode(mended), raw, tuple(notes.lines))

    def _mended(self, body: Fields, index: int, notes: Notes) -> Fields:
        salt = f"{self._salt} {index}"
        if self._dialect == UI_MESSAGE:
            new = mend_ui(body, notes, salt)
        else:
            new = _MENDERS[self._dialect](body, notes)
        if is_deep(new, DEEPEST + _ENVELOPE):
            notes.add("what is nested too deeply was kept as text")
            new = cast("Fields", _clipped(new, DEEPEST))
        calls, results = _SLOTS[self._dialect](new)
        self._follow(new, answers=bool(results))
        self._answer(results, salt, notes)
        self._name(calls, salt, notes)
        if not calls and not results and new.get("role") == "user":
            self._before = ()
            self._asked.clear()
            self._answered.clear()
        return new

    def _follow(self, body: Fields, *, answers: bool) -> None:
        """Note where a reply begins: at each message of the model's, of items at the first in a row."""
        models, goes_on = body.get("role") == "assistant", False
        if self._dialect == OPENAI_RESPONSES:
            goes_on = self._in_reply
            if kind_of(body) not in ("message", None):
                models = not answers and role_of(body) == "assistant"
        if models and not goes_on:
            self._ids.reply()
        self._in_reply = models

    def _name(self, calls: list[Slot], salt: str, notes: Notes) -> None:
        for place, (holder, key) in enumerate(calls):
            if not holder[key]:
                holder[key] = _made_id(f"{salt} {place}")
                notes.add("a tool call without an id was given one")
            own = self._ids.call(holder[key])
            if own != holder[key]:
                holder[key] = own
                notes.add("a tool call with the id of another one of its reply was given its own")
            self._asked.append(holder[key])
            self._answered.discard(holder[key])

    def _answer(self, results: list[Slot], salt: str, notes: Notes) -> None:
        for place, (holder, key) in enumerate(results):
            if not holder[key]:
                holder[key] = self._oldest() or _made_id(f"{salt} result {place}")
                notes.add("a result without its call's id was given that of the oldest open call")
            own = self._ids.result(holder[key])
            if own != holder[key]:
                holder[key] = own
                notes.add("a result that names several calls was given to the first without one")
            self._answered.add(holder[key])

    def _oldest(self) -> str:
        """Return the oldest call that is still open, "" where there is none."""
        return next((call for call in chain(self._before, self._asked) if call not in self._answered), "")


def with_notes(message: Message, mended: Sequence[Mended]) -> Message:
    """Return a message with what was changed in it, and its bytes as received."""
    notes = tuple(dict.fromkeys(line for one in mended for line in one.notes))
    if not notes or message.native is None:
        return message
    both = [one.received for one in mended]
    received = both[0] if len(both) == 1 else b"[" + b",".join(both) + b"]"
    native = Native(message.native.dialect, message.native.raw, notes, received)
    return msgspec.structs.replace(message, native=native)


def mend_reply(reply: Any, dialect: str, mender: Mender) -> tuple[Any, list[Mended]]:
    """Return a whole reply with its message, or its items, mended, and what was changed."""
    try:
        body, _ = read(reply)
    except DialectError:
        return reply, []
    natives, put = _inside_reply(body, dialect)
    found = [mender.mend(native, place) for place, native in enumerate(natives)]
    known = [one for one in found if one is not None]
    if len(known) != len(natives) or not any(one.notes for one in known):
        return reply, []
    return put([codec.decode(one.raw) for one in known]), known


def _inside_reply(body: Fields, dialect: str) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return the messages or items of a reply, and a function that puts others in their place."""
    if dialect == OPENAI_CHAT and is_list(body.get("choices")) and body["choices"]:
        choice = fields_of(body["choices"][0])
        return [choice.get("message")], lambda new: {**body, "choices": [{**choice, "message": new[0]}]}
    if dialect == OPENAI_RESPONSES and isinstance(body.get("output"), list):
        return body["output"], lambda new: {**body, "output": new}
    if dialect == UI_MESSAGE and "responseMessage" in body:
        return [body["responseMessage"]], lambda new: {**body, "responseMessage": new[0]}
    return [body], lambda new: new[0]


def _made_id(salt: str) -> str:
    return f"call_{hashlib.blake2s(salt.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def _clipped(value: Any, levels: int) -> Any:
    """Return a value in which what lies deeper than `levels` is text."""
    if isinstance(value, dict | list) and levels == 0:
        return as_text(value)
    if isinstance(value, dict):
        return {key: _clipped(item, levels - 1) for key, item in cast("Fields", value).items()}
    if isinstance(value, list):
        return [_clipped(item, levels - 1) for item in cast("list[Any]", value)]
    return value


def _chat_slots(body: Fields) -> tuple[list[Slot], list[Slot]]:
    calls = cast("list[Fields]", body.get("tool_calls") or [])
    answers: list[Slot] = [(body, "tool_call_id")] if body.get("role") == "tool" else []
    return [(call, "id") for call in calls], answers


def _block_slots(body: Fields) -> tuple[list[Slot], list[Slot]]:
    content = body.get("content")
    blocks = [fields_of(block) for block in cast("list[Any]", content)] if isinstance(content, list) else []
    calls: list[Slot] = [(block, "id") for block in blocks if block.get("type") == "tool_use"]
    return calls, [(block, "tool_use_id") for block in blocks if block.get("type") == "tool_result"]


def _item_slots(item: Fields) -> tuple[list[Slot], list[Slot]]:
    if is_call(item):
        return [(item, CALLS[str(kind_of(item))].id)], []
    key = answered_key(item)
    return [], [(item, key)] if is_output(item) and isinstance(item.get(key), str) else []


def _part_slots(body: Fields) -> tuple[list[Slot], list[Slot]]:
    content = body.get("parts")
    held = [fields_of(part) for part in cast("list[Any]", content)] if isinstance(content, list) else []
    return [(part, "toolCallId") for part in held if isinstance(part.get("toolCallId"), str)], []


_MENDERS: dict[str, Callable[[Fields, Notes], Fields]] = {
    OPENAI_CHAT: mend_chat,
    ANTHROPIC: mend_anthropic,
    OPENAI_RESPONSES: mend_item,
}
_SLOTS: dict[str, Callable[[Fields], tuple[list[Slot], list[Slot]]]] = {
    OPENAI_CHAT: _chat_slots,
    ANTHROPIC: _block_slots,
    OPENAI_RESPONSES: _item_slots,
    UI_MESSAGE: _part_slots,
}
