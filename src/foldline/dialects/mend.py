"""Repair lists of native messages: one malformed message must not make a session unusable.

`Mender` repairs each message with its dialect, then assigns missing call ids. Every change is noted in the
`Native` of the message, with the bytes as received.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

import msgspec

from foldline.core.cut.repair import ReplyIds
from foldline.core.log import codec
from foldline.core.log.messages import Message, Native, ToolCall, ToolResult
from foldline.dialects.dialect import UNSENT, Dialect, Slot
from foldline.dialects.forms import as_text
from foldline.dialects.ids import made_id
from foldline.dialects.payload import DEEPEST, Fields, is_deep, read
from foldline.errors import DialectError

_ENVELOPE = 8  # levels of a message around its values


class Mended(msgspec.Struct, frozen=True):
    """A repaired native message or item: its bytes, the bytes as received, and notes of the changes.

    `ids`: ids of its calls and of its results, if the message does not contain all of them.
    """

    raw: bytes
    received: bytes
    notes: tuple[str, ...] = ()
    ids: tuple[list[str], list[str]] | None = None


class Mender:
    """Repairs messages in order; a result without an id answers the oldest open call.

    Calls of one reply that share an id are numbered, and results are assigned to them in order.
    `open_calls`: ids of the open calls of earlier messages -> tool names. `salt`: seed of new ids.
    """

    def __init__(
        self, dialect: Dialect, *, salt: str = "", open_calls: Mapping[str, str] | None = None
    ) -> None:
        self._dialect = dialect
        self._salt = salt
        # the previous message was written by the model, or may have been where replies are split
        self._in_reply = dialect.traits.splits_replies
        self._ids = ReplyIds(open_calls or {}, goes_on=self._in_reply)
        self._earlier = open_calls or {}  # may hold thousands: searched only for results without an id
        self._called: dict[str, str] = {}
        self._answered: set[str] = set()

    def mend(self, payload: Any, index: int) -> Mended | None:
        """Repair one message; None if it cannot be read as an object."""
        try:
            body, raw = read(payload, index)
        except DialectError:
            return None
        notes: list[str] = []
        repaired, ids = self._repair(body, index, notes)
        if not notes:
            return Mended(raw, raw, ids=ids)
        return Mended(codec.encode(repaired), raw, tuple(dict.fromkeys(notes)), ids)

    def _repair(
        self, body: Fields, index: int, notes: list[str]
    ) -> tuple[Fields, tuple[list[str], list[str]] | None]:
        salt = f"{self._salt} {index}"
        new = self._dialect.check_message(lambda _, text: notes.append(text), body, salt)
        if notes and codec.encode(new) == codec.encode(body):  # cannot be repaired: requests omit it
            notes.clear()
        if is_deep(new, DEEPEST + _ENVELOPE):
            notes.append("deeply nested values were stored as text")
            new = cast("Fields", _with_deep_as_text(new, DEEPEST))
        calls, results = self._dialect.call_slots(new)
        self._start_reply(new)
        self._assign_results(results, salt, notes)
        self._assign_calls(calls, salt, notes)
        if not calls and not results and new.get("role") == "user":
            self._earlier = {}
            self._called.clear()
            self._answered.clear()
        if any(key == UNSENT for _, key in (*calls, *results)):
            return new, ([holder[key] for holder, key in calls], [holder[key] for holder, key in results])
        return new, None

    def _start_reply(self, body: Fields) -> None:
        """Start a new reply at a message of the model, unless it continues a split reply."""
        by_model = self._dialect.is_models(body)
        if by_model and not (self._in_reply and self._dialect.traits.splits_replies):
            self._ids.reply()
        self._in_reply = by_model

    def _assign_calls(self, calls: list[Slot], salt: str, notes: list[str]) -> None:
        for number, (holder, key) in enumerate(calls):
            if not holder[key]:
                holder[key] = made_id(f"{salt} {number}")
                notes.append("a tool call without an id was assigned one")
            new_id = self._ids.call(holder[key])
            if new_id != holder[key]:
                holder[key] = new_id
                if key != UNSENT:
                    notes.append("a tool call with the id of another call of its reply was assigned a new id")
            self._called.pop(holder[key], None)
            self._called[holder[key]] = str(holder.get("name"))
            self._answered.discard(holder[key])

    def _assign_results(self, results: list[Slot], salt: str, notes: list[str]) -> None:
        for number, (holder, key) in enumerate(results):
            if not holder[key]:
                holder[key] = self._oldest() or made_id(f"{salt} result {number}")
                notes.append("a result without a call id was assigned the id of the oldest open call")
            if key == UNSENT:
                name = holder.get("name")
                if not self._is_open(holder[key], name):
                    holder[key] = self._oldest(name) or holder[key]
            elif (new_id := self._ids.result(holder[key])) != holder[key]:
                holder[key] = new_id
                notes.append("a result that matches several calls was assigned to the first open one")
            self._answered.add(holder[key])

    def _is_open(self, call_id: str, name: Any) -> bool:
        """Return whether a call of the tool `name` is open."""
        tool = self._called.get(call_id, self._earlier.get(call_id))
        return call_id not in self._answered and tool is not None and tool == name

    def _oldest(self, name: str | None = None) -> str:
        """Return the id of the oldest open call (of the tool `name`); "" if there is none."""
        calls = chain(self._earlier.items(), self._called.items())
        return next((call for call, tool in calls if call not in self._answered and name in (None, tool)), "")


def with_notes(message: Message, mended: Sequence[Mended]) -> Message:
    """Return a message with the assigned ids, the notes of changes, and its bytes as received."""
    if mended and (ids := mended[0].ids) is not None:
        message = _with_ids(message, *map(iter, ids))
    notes = tuple(dict.fromkeys(note for item in mended for note in item.notes))
    if not notes or message.native is None:
        return message
    originals = [item.received for item in mended]
    received = originals[0] if len(originals) == 1 else b"[" + b",".join(originals) + b"]"
    native = Native(message.native.dialect, message.native.raw, notes, received)
    return msgspec.structs.replace(message, native=native)


def _with_ids(message: Message, calls: Iterator[str], results: Iterator[str]) -> Message:
    parts = tuple(
        msgspec.structs.replace(part, id=next(calls))
        if isinstance(part, ToolCall)
        else msgspec.structs.replace(part, call_id=next(results))
        if isinstance(part, ToolResult)
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def mend_reply(reply: Any, dialect: Dialect, mender: Mender) -> tuple[Any, list[Mended]]:
    """Return a reply with its message or items repaired, and the repaired messages."""
    try:
        body, _ = read(reply)
    except DialectError:
        return reply, []
    natives, replace = dialect.reply_messages(body)
    mended = [
        item for place, native in enumerate(natives) if (item := mender.mend(native, place)) is not None
    ]
    if len(mended) != len(natives):
        return reply, []
    if not any(item.notes for item in mended):
        return reply, mended
    return replace([codec.decode(item.raw) for item in mended]), mended


def _with_deep_as_text(value: Any, levels: int) -> Any:
    """Return a value in which everything deeper than `levels` is text."""
    if isinstance(value, dict | list) and levels == 0:
        return as_text(value)
    if isinstance(value, dict):
        return {key: _with_deep_as_text(item, levels - 1) for key, item in cast("Fields", value).items()}
    if isinstance(value, list):
        return [_with_deep_as_text(item, levels - 1) for item in cast("list[Any]", value)]
    return value
