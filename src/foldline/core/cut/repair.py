"""Make a list of messages sendable: a unique id for each call, and results after their calls.

Ids become unique in a reply when it is read, and in a view if the dialect needs that. Before a list is folded
without a log, or imported into one, late results move to their calls and orphans are left out. A second
result of a call with another text stays where it is: the view quotes it as a late result. In a log nothing
moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from itertools import groupby

import msgspec

from foldline.core.cut.pairing import Place, continues, is_item
from foldline.core.log.dialects import traits_of
from foldline.core.log.messages import Message, Part, ToolCall, ToolResult
from foldline.core.log.opaque import stored_calls

ID_LIMIT = 64  # characters: the longest call id that every API accepts


def numbered(base: str, number: int, taken: Callable[[str], bool]) -> str:
    """Return `base` with the first number from `number` on that makes an id that is not `taken`."""
    while taken(new := f"{base[: ID_LIMIT - 1 - len(str(number))]}_{number}"):
        number += 1
    return new


class ReplyIds:
    """Gives each call of a reply a unique id, and each result the id of the call that it answers.

    `before` are calls of earlier messages that still wait for a result. With `goes_on`, the first message
    belongs to their reply.
    """

    def __init__(self, before: Collection[str] = (), *, goes_on: bool = False) -> None:
        self._before = before
        self._goes_on = goes_on
        self._in_reply: set[str] = set()
        self._waiting: dict[str, list[str]] = {}  # id as received -> ids of its calls without a result
        self._next: dict[str, int] = {}  # id as received -> the number to try for its next call
        self._answered: set[str] = set()

    def reply(self) -> None:
        """Begin a new reply, which may repeat the ids of an earlier one."""
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
        """Return the id of the call that a result answers: the first unanswered one with that id."""
        new = self._answers(call_id)
        self._answered.add(new)
        return new

    def _answers(self, call_id: str) -> str:
        waiting = self._waiting.get(call_id)
        if waiting:
            return waiting.pop(0)
        if call_id in self._in_reply or self._is_open(call_id):
            return call_id
        renamed = (old for old in self._before if old not in self._answered and _is_numbered(old, call_id))
        return next(renamed, call_id)

    def _is_open(self, call_id: str) -> bool:
        return call_id in self._before and call_id not in self._answered

    def _is_taken(self, call_id: str) -> bool:
        return call_id in self._in_reply or (self._goes_on and self._is_open(call_id))


def _is_numbered(new: str, base: str) -> bool:
    start, _, number = new.rpartition("_")
    return number.isdigit() and start == base[: ID_LIMIT - 1 - len(number)]


def with_own_ids(messages: Sequence[Message], before: Collection[str] = ()) -> list[Message]:
    """Return messages in which the calls of each reply have unique ids; a changed message loses its native.

    For messages that were not read as a list by a dialect. `before` as in `ReplyIds`.
    """
    ids, result = ReplyIds(before, goes_on=bool(messages) and is_item(messages[0])), list[Message]()
    previous: Message | None = None
    for message in messages:
        if message.role == "assistant" and previous is not None and not continues(message, previous):
            ids.reply()
        previous = message
        parts = tuple(_with_own_id(part, ids) for part in message.parts)
        same = all(new is old for new, old in zip(parts, message.parts, strict=True))
        result.append(message if same else msgspec.structs.replace(message, parts=parts, native=None))
    return result


def _with_own_id(part: Part, ids: ReplyIds) -> Part:
    if isinstance(part, ToolCall):
        new = ids.call(part.id)
        return part if new == part.id else msgspec.structs.replace(part, id=new)
    if isinstance(part, ToolResult):
        new = ids.result(part.call_id)
        return part if new == part.call_id else msgspec.structs.replace(part, call_id=new)
    return part


class CallIds:
    """Renames call ids that a view uses again, message by message."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}  # id -> how many calls had it
        self._renamed: dict[str, str] = {}  # of the newest batch: its own id -> its id in the view

    def in_view(self, call_id: str) -> str:
        """Return the id of a call of the newest batch in the view."""
        return self._renamed.get(call_id, call_id)

    def take(self, message: Message, gone: set[int]) -> dict[int, str]:
        """Read the next message; return the new ids of its calls and results by part index.

        `gone` are the parts that the view leaves out.
        """
        unique = traits_of(message).unique_ids
        new_ids: dict[int, str] = {}
        for index, part in enumerate(message.parts):
            if index in gone:
                continue
            if isinstance(part, ToolCall):
                uses = self._used[part.id] = self._used.get(part.id, 0) + 1
                self._renamed.pop(part.id, None)
                if uses > 1 and unique:
                    new_ids[index] = self._renamed[part.id] = self._free(part.id, uses, message)
            elif isinstance(part, ToolResult) and part.call_id in self._renamed:
                new_ids[index] = self._renamed[part.call_id]
        return new_ids

    def _free(self, call_id: str, number: int, message: Message) -> str:
        """Return an id that no call of the view or of the message has."""
        message_ids = {call.id for call in message.calls}
        new = numbered(call_id, number, lambda candidate: candidate in self._used or candidate in message_ids)
        self._used[new] = 1
        return new


# ---- a list before it is folded


class Repaired(msgspec.Struct):
    """Messages in a sendable order, each with its index in the input; `orphans` lists (index, call id).

    `changed`: whether anything was moved, split or left out.
    """

    messages: list[tuple[int, Message]]
    orphans: list[tuple[int, str]]
    changed: bool


def repair(messages: Sequence[Message]) -> Repaired:
    """Order messages so that every result follows its call."""
    messages = with_own_ids(messages)
    owners, orphans = _owners(messages)
    answers: dict[int, list[Place]] = defaultdict(list)
    ends = _reply_ends(messages)
    for place, owner in owners.items():
        if owner is not None and owner != place[0]:
            answers[ends[owner]].append(place)
    sequence: list[Place] = []
    for index, message in enumerate(messages):
        places = [(index, at) for at in range(len(message.parts))] or [(index, 0)]
        sequence += [place for place in places if owners.get(place, index) == index]
        sequence += answers[index]
    repaired: list[tuple[int, Message]] = []
    for index, run in groupby(sequence, key=lambda place: place[0]):
        repaired.append((index, _with_parts(messages[index], [at for _, at in run])))
    unchanged = len(repaired) == len(messages) and all(
        new is messages[at] for at, (_, new) in enumerate(repaired)
    )
    return Repaired(repaired, orphans, changed=bool(orphans) or not unchanged)


def _reply_ends(messages: Sequence[Message]) -> list[int]:
    """Return for each message the index of the last message of its reply: results follow the whole reply."""
    ends = list(range(len(messages)))
    for index in range(len(messages) - 2, -1, -1):
        if continues(messages[index + 1], messages[index]):
            ends[index] = ends[index + 1]
    return ends


def _with_parts(message: Message, places: Sequence[int]) -> Message:
    """Return a message with these parts in this order; a complete one stays as received."""
    if not message.parts or list(places) == list(range(len(message.parts))):
        return message
    return msgspec.structs.replace(message, parts=tuple(message.parts[at] for at in places), native=None)


def _owners(messages: Sequence[Message]) -> tuple[dict[Place, int | None], list[tuple[int, str]]]:
    """Map each result to the message of its call (None for an orphan); list orphans as (index, call id).

    The call is the nearest unanswered one of that id before the result. A result whose call is unknown
    belongs to the nearest reference before it that may be a call. A second result with another text is not in
    the map.
    """
    waiting: dict[str, list[int]] = {}
    stored: list[int] = []
    owners: dict[Place, int | None] = {}
    answers: dict[str, set[str]] = {}  # call id -> the texts of its results
    orphans: list[tuple[int, str]] = []
    for index, message in enumerate(messages):
        stored += [index] * stored_calls(message)
        for at, part in enumerate(message.parts):
            if isinstance(part, ToolCall) and message.role == "assistant":
                waiting.setdefault(part.id, []).append(index)
            elif isinstance(part, ToolResult):
                calls = waiting.get(part.call_id, stored)
                if calls:
                    waiting.setdefault(part.call_id, [])  # a second result of a stored call has no call
                    owners[index, at] = calls.pop()
                elif not part.text.strip() or part.text in answers.get(part.call_id, {part.text}):
                    owners[index, at] = None
                    orphans.append((index, part.call_id))
                    continue
                answers.setdefault(part.call_id, set()).add(part.text)
    return owners, orphans
