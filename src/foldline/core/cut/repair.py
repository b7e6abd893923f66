"""What makes a list sendable: an id for each call, results behind their calls.

Ids are unique in a reply when it is read, and in a view where the dialect wants that. Before a list is folded
late results go to their calls, and orphans are left out. What a call answers a second time, with other words,
stays where it is: the view quotes it as a late result. That is only for lists that are folded without a log
(and for files that are imported into one); in a log nothing moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from itertools import groupby

import msgspec

from foldline.core.cut.pairing import continues, is_item
from foldline.core.log.dialects import traits_of
from foldline.core.log.messages import Message, Part, ToolCall, ToolResult
from foldline.core.log.opaque import stored_calls

ID_LIMIT = 64  # characters of a call's id, the most that every API takes


def numbered(base: str, number: int, taken: Callable[[str], bool]) -> str:
    """Return an id made of another one and the first number from `number` on that is not `taken`."""
    while taken(new := f"{base[: ID_LIMIT - 1 - len(str(number))]}_{number}"):
        number += 1
    return new


class ReplyIds:
    """Gives the calls of one reply an id each, and results that of the call that they answer, in order.

    `before` are the calls that still wait for a result, of messages that were read earlier; with `goes_on`
    what is read first belongs to their reply.
    """

    def __init__(self, before: Collection[str] = (), *, goes_on: bool = False) -> None:
        self._before = before
        self._goes_on = goes_on
        self._in_reply: set[str] = set()
        self._waiting: dict[str, list[str]] = {}  # id as received -> ids of its calls without a result
        self._next: dict[str, int] = {}  # id as received -> the number that the next call with it may get
        self._answered: set[str] = set()

    def reply(self) -> None:
        """Begin a new reply: its ids may be those of an earlier one."""
        self._in_reply = set()
        self._waiting = {}
        self._next = {}
        self._goes_on = False

    def call(self, call_id: str) -> str:
        """Return the id of the reply's next call."""
        new = call_id
        if self._is_taken(call_id):
            new = numbered(call_id, self._next.get(call_id, 2), self._is_taken)
            self._next[call_id] = int(new.rpartition("_")[2]) + 1
        first = [call_id] if new != call_id and call_id not in self._in_reply else []
        self._in_reply.add(new)
        self._waiting.setdefault(call_id, first).append(new)
        self._answered.discard(new)
        return new

    def result(self, call_id: str) -> str:
        """Return the id of the call that a result answers: of several with one id, the first that waits."""
        new = self._answers(call_id)
        self._answered.add(new)
        return new

    def _answers(self, call_id: str) -> str:
        waiting = self._waiting.get(call_id)
        if waiting:
            return waiting.pop(0)
        if call_id in self._in_reply or self._is_open(call_id):
            return call_id
        renamed = (one for one in self._before if one not in self._answered and _is_numbered(one, call_id))
        return next(renamed, call_id)

    def _is_open(self, call_id: str) -> bool:
        return call_id in self._before and call_id not in self._answered

    def _is_taken(self, call_id: str) -> bool:
        return call_id in self._in_reply or (self._goes_on and self._is_open(call_id))


def _is_numbered(new: str, base: str) -> bool:
    start, _, number = new.rpartition("_")
    return number.isdigit() and start == base[: ID_LIMIT - 1 - len(number)]


def with_own_ids(messages: Sequence[Message], before: Collection[str] = ()) -> list[Message]:
    """Return messages in which no two calls of one reply have the same id; one that changes loses its native.

    For messages that no dialect has read as a list; `before` as in `ReplyIds`.
    """
    ids, found = ReplyIds(before, goes_on=bool(messages) and is_item(messages[0])), list[Message]()
    last: Message | None = None
    for message in messages:
        if message.role == "assistant" and last is not None and not continues(message, last):
            ids.reply()
        last = message
        parts = tuple(_with_own_id(part, ids) for part in message.parts)
        same = all(new is old for new, old in zip(parts, message.parts, strict=True))
        found.append(message if same else msgspec.structs.replace(message, parts=parts, native=None))
    return found


def _with_own_id(part: Part, ids: ReplyIds) -> Part:
    if isinstance(part, ToolCall):
        new = ids.call(part.id)
        return part if new == part.id else msgspec.structs.replace(part, id=new)
    if isinstance(part, ToolResult):
        new = ids.result(part.call_id)
        return part if new == part.call_id else msgspec.structs.replace(part, call_id=new)
    return part


class CallIds:
    """The ids of the calls of a view, taken message by message: one that is used again becomes another."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}  # id -> how many calls had it
        self._renamed: dict[str, str] = {}  # of the newest batch: its own id -> its id in the view

    def in_view(self, call_id: str) -> str:
        """Return the id that a call of the newest batch has in the view."""
        return self._renamed.get(call_id, call_id)

    def take(self, message: Message, gone: set[int]) -> dict[int, str]:
        """Take the next message; return the new ids of its calls and results, by part index.

        `gone` are the parts that the view leaves out.
        """
        unique = traits_of(message).unique_ids
        new: dict[int, str] = {}
        for index, part in enumerate(message.parts):
            if index in gone:
                continue
            if isinstance(part, ToolCall):
                times = self._used[part.id] = self._used.get(part.id, 0) + 1
                self._renamed.pop(part.id, None)
                if times > 1 and unique:
                    new[index] = self._renamed[part.id] = self._free(part.id, times, message)
            elif isinstance(part, ToolResult) and part.call_id in self._renamed:
                new[index] = self._renamed[part.call_id]
        return new

    def _free(self, call_id: str, number: int, message: Message) -> str:
        """Return an id that no call of the view has so far, nor another call of the message."""
        own = {call.id for call in message.calls}
        new = numbered(call_id, number, lambda one: one in self._used or one in own)
        self._used[new] = 1
        return new


# ---- a list before it is folded


PartAt = tuple[int, int]  # a message's index and a part's


class Repaired(msgspec.Struct):
    """Messages in a sendable order, each with its index in the input; `orphans` lists (index, call id).

    `changed` says whether anything moved, was split or was left out.
    """

    messages: list[tuple[int, Message]]
    orphans: list[tuple[int, str]]
    changed: bool


def repair(messages: Sequence[Message]) -> Repaired:
    """Order messages so that every result follows its call; return them with what was left out."""
    messages = with_own_ids(messages)
    owners, orphans = _owners(messages)
    answers: dict[int, list[PartAt]] = defaultdict(list)
    ends = _reply_ends(messages)
    for place, owner in owners.items():
        if owner is not None and owner != place[0]:
            answers[ends[owner]].append(place)
    order: list[PartAt] = []
    for index, message in enumerate(messages):
        own = [(index, at) for at in range(len(message.parts))] or [(index, 0)]
        order += [place for place in own if owners.get(place, index) == index]
        order += answers[index]
    found: list[tuple[int, Message]] = []
    for index, run in groupby(order, key=lambda place: place[0]):
        found.append((index, _with_parts(messages[index], [at for _, at in run])))
    same = len(found) == len(messages) and all(new is messages[at] for at, (_, new) in enumerate(found))
    return Repaired(found, orphans, changed=bool(orphans) or not same)


def _reply_ends(messages: Sequence[Message]) -> list[int]:
    """Return for each message the last one of its reply: results stand behind the whole reply."""
    ends = list(range(len(messages)))
    for index in range(len(messages) - 2, -1, -1):
        if continues(messages[index + 1], messages[index]):
            ends[index] = ends[index + 1]
    return ends


def _with_parts(message: Message, places: Sequence[int]) -> Message:
    """Return a message with these parts in this order; a whole one stays as received."""
    if not message.parts or list(places) == list(range(len(message.parts))):
        return message
    return msgspec.structs.replace(message, parts=tuple(message.parts[at] for at in places), native=None)


def _owners(messages: Sequence[Message]) -> tuple[dict[PartAt, int | None], list[tuple[int, str]]]:
    """Map each result to its call's message, the nearest unanswered one of that id before; None: an orphan's.

    A result whose call is not known belongs to the nearest reference before it that may be a call. Those by
    which a call is answered again, with other words, are left out of the map. Then come the orphans.
    """
    waiting: dict[str, list[int]] = {}
    stored: list[int] = []
    owners: dict[PartAt, int | None] = {}
    told: dict[str, set[str]] = {}  # the texts that answered a call
    orphans: list[tuple[int, str]] = []
    for index, message in enumerate(messages):
        stored += [index] * stored_calls(message)
        for at, part in enumerate(message.parts):
            if isinstance(part, ToolCall) and message.role == "assistant":
                waiting.setdefault(part.id, []).append(index)
            elif isinstance(part, ToolResult):
                calls = waiting.get(part.call_id, stored)
                if calls:
                    waiting.setdefault(part.call_id, [])  # a second result of a stored call answers none
                    owners[index, at] = calls.pop()
                elif not part.text.strip() or part.text in told.get(part.call_id, {part.text}):
                    owners[index, at] = None
                    orphans.append((index, part.call_id))
                    continue
                told.setdefault(part.call_id, set()).add(part.text)
    return owners, orphans
