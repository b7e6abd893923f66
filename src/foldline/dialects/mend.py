"""Mend a list of native messages: one malformed message must not make a session useless.

`Mender` goes through a list: each message is mended by its dialect, then ids are given where they lack. Every
change is noted in the message's `Native`, beside its bytes as received.
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

_ENVELOPE = 8  # levels of a message around the values that it holds


class Mended(msgspec.Struct, frozen=True):
    """A native message, or item, to be read: its bytes, those as received, and what was changed.

    `ids` are those of its calls, and of its results, where some of them are not in the message.
    """

    raw: bytes
    received: bytes
    notes: tuple[str, ...] = ()
    ids: tuple[list[str], list[str]] | None = None


class Mender:
    """Mends messages in their order: a result without an id answers the oldest call that is still open.

    Calls of one reply that share an id are numbered, and their results answer them in order. `open_calls` are
    those of the messages before, with the names of their tools, `salt` makes the ids that are given.
    """

    def __init__(
        self, dialect: Dialect, *, salt: str = "", open_calls: Mapping[str, str] | None = None
    ) -> None:
        self._dialect = dialect
        self._salt = salt
        # where replies are split: the message before was the model's, or may have been
        self._in_reply = dialect.traits.splits_replies
        self._ids = ReplyIds(open_calls or {}, goes_on=self._in_reply)
        self._before = open_calls or {}  # looked at only where a result names no call: there may be thousands
        self._asked: dict[str, str] = {}
        self._answered: set[str] = set()

    def mend(self, payload: Any, index: int) -> Mended | None:
        """Return one message mended; None where it cannot be read as an object at all."""
        try:
            body, raw = read(payload, index)
        except DialectError:
            return None
        notes: list[str] = []
        mended, ids = self._mended(body, index, notes)
        if not notes:
            return Mended(raw, raw, ids=ids)
        return Mended(codec.encode(mended), raw, tuple(dict.fromkeys(notes)), ids)

    def _mended(
        self, body: Fields, index: int, notes: list[str]
    ) -> tuple[Fields, tuple[list[str], list[str]] | None]:
        salt = f"{self._salt} {index}"
        new = self._dialect.look(lambda _, text: notes.append(text), body, salt)
        if notes and codec.encode(new) == codec.encode(body):  # what is wrong stays: a request leaves it out
            notes.clear()
        if is_deep(new, DEEPEST + _ENVELOPE):
            notes.append("what is nested too deeply was kept as text")
            new = cast("Fields", _clipped(new, DEEPEST))
        calls, results = self._dialect.call_slots(new)
        self._follow(new)
        self._answer(results, salt, notes)
        self._name(calls, salt, notes)
        if not calls and not results and new.get("role") == "user":
            self._before = {}
            self._asked.clear()
            self._answered.clear()
        if any(key == UNSENT for _, key in (*calls, *results)):
            return new, ([holder[key] for holder, key in calls], [holder[key] for holder, key in results])
        return new, None

    def _follow(self, body: Fields) -> None:
        """Note where a reply begins: at a message of the model's; of those in a row, perhaps at the first."""
        models = self._dialect.is_models(body)
        if models and not (self._in_reply and self._dialect.traits.splits_replies):
            self._ids.reply()
        self._in_reply = models

    def _name(self, calls: list[Slot], salt: str, notes: list[str]) -> None:
        for place, (holder, key) in enumerate(calls):
            if not holder[key]:
                holder[key] = made_id(f"{salt} {place}")
                notes.append("a tool call without an id was given one")
            own = self._ids.call(holder[key])
            if own != holder[key]:
                holder[key] = own
                if key != UNSENT:
                    notes.append("a tool call with the id of another one of its reply was given its own")
            self._asked.pop(holder[key], None)
            self._asked[holder[key]] = str(holder.get("name"))
            self._answered.discard(holder[key])

    def _answer(self, results: list[Slot], salt: str, notes: list[str]) -> None:
        for place, (holder, key) in enumerate(results):
            if not holder[key]:
                holder[key] = self._oldest() or made_id(f"{salt} result {place}")
                notes.append("a result without its call's id was given that of the oldest open call")
            if key == UNSENT:
                name = holder.get("name")
                if not self._is_open(holder[key], name):
                    holder[key] = self._oldest(name) or holder[key]
            elif (own := self._ids.result(holder[key])) != holder[key]:
                holder[key] = own
                notes.append("a result that names several calls was given to the first without one")
            self._answered.add(holder[key])

    def _is_open(self, call_id: str, name: Any) -> bool:
        """Return whether a call of the tool `name` is still open."""
        asked = self._asked.get(call_id, self._before.get(call_id))
        return call_id not in self._answered and asked is not None and asked == name

    def _oldest(self, name: str | None = None) -> str:
        """Return the oldest call that is still open, of the tool `name` where one is named; "" for none."""
        calls = chain(self._before.items(), self._asked.items())
        waiting = (call for call, tool in calls if call not in self._answered and name in (None, tool))
        return next(waiting, "")


def with_notes(message: Message, mended: Sequence[Mended]) -> Message:
    """Return a message with the ids that its calls are known by, what was changed in it, and its bytes."""
    if mended and (ids := mended[0].ids) is not None:
        message = _with_ids(message, *map(iter, ids))
    notes = tuple(dict.fromkeys(line for one in mended for line in one.notes))
    if not notes or message.native is None:
        return message
    both = [one.received for one in mended]
    received = both[0] if len(both) == 1 else b"[" + b",".join(both) + b"]"
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
    """Return a whole reply with its message, or its items, mended, and what was changed."""
    try:
        body, _ = read(reply)
    except DialectError:
        return reply, []
    natives, put = dialect.in_reply(body)
    found = [mender.mend(native, place) for place, native in enumerate(natives)]
    known = [one for one in found if one is not None]
    if len(known) != len(natives):
        return reply, []
    if not any(one.notes for one in known):
        return reply, known
    return put([codec.decode(one.raw) for one in known]), known


def _clipped(value: Any, levels: int) -> Any:
    """Return a value in which what lies deeper than `levels` is text."""
    if isinstance(value, dict | list) and levels == 0:
        return as_text(value)
    if isinstance(value, dict):
        return {key: _clipped(item, levels - 1) for key, item in cast("Fields", value).items()}
    if isinstance(value, list):
        return [_clipped(item, levels - 1) for item in cast("list[Any]", value)]
    return value
