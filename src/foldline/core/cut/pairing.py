"""Pair results with calls, reading from left to right as a provider does.

An assistant message with calls opens a batch, and results answer only open calls of the newest batch. A
system, developer or injected message inside a batch waits until the batch is complete. An assistant message
or a prompt closes the batch; calls that are still open stay unanswered. A result without an open call is late
(or an orphan). An assistant message may answer its own calls, which then open no batch. If a dialect splits a
reply into several messages, the calls of all of them are one batch. A reference to a call that the provider
stores takes one result whose call is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from foldline.core.log.dialects import traits_of
from foldline.core.log.messages import Message, ToolCall, ToolResult
from foldline.core.log.opaque import stored_calls
from foldline.core.log.steps import ends_in_results, last_step, own_results

Place = tuple[int, int]  # the index of a message, and of a part in it


class Batch(msgspec.Struct):
    """The calls of one reply: `start` is its index, `end` that of the last message of the batch.

    `open` maps the ids of unanswered calls to tool names. `stored` counts references to stored calls without
    a result so far. A `closed` batch takes no more results.
    """

    start: int
    end: int
    open: dict[str, str]
    stored: int = 0
    closed: bool = False

    @property
    def takes_results(self) -> bool:
        """Whether a result may still answer a call of the batch."""
        return not self.closed and bool(self.open or self.stored)


class Pairing(msgspec.Struct):
    """The batches of a list of messages, and the results and calls that pair with nothing.

    `late` lists the places of results without an open call, `doubled` those of calls that repeat an id of
    their batch.
    """

    batches: list[Batch] = []
    late: list[Place] = []
    doubled: list[Place] = []
    last: Message | None = None
    reply_start: int = 0  # index where the reply of the last message begins
    call_ids: set[str] = set()  # of all calls so far, including stored ones that a result has named

    @property
    def current(self) -> Batch | None:
        """The batch that still takes results, or None."""
        last = self.batches[-1] if self.batches else None
        return last if last is not None and last.takes_results else None

    def say(self, index: int, message: Message) -> tuple[str, ...]:
        """Take the next message; return the ids of calls that it leaves unanswered for good."""
        batch = self.current
        own = own_results(message)
        if not waits(message, batch):
            follows = continues(message, self.last)
            self.last, self.reply_start = message, self.reply_start if follows else index
            if follows and batch is not None:
                batch.end = index
                self._add_calls(batch, index, message, own)
                return ()
        call_ids = {call.id for call in message.calls}
        for part_index, part in enumerate(message.parts):
            if isinstance(part, ToolResult) and part_index not in own:
                # a second result in the message of a call with its id does not answer an earlier call
                self._answer(None if part.call_id in call_ids else batch, index, part_index, part)
        if batch is None or not batch.takes_results or _stands_aside(message):
            self._open_batch(index, message, own)
            return ()
        if message.results and not message.is_prompt and not own:
            return ()
        batch.closed = True
        unanswered = tuple(batch.open)
        self._open_batch(index, message, own)
        return unanswered

    def _answer(self, batch: Batch | None, index: int, part_index: int, part: ToolResult) -> None:
        if batch is not None and part.call_id in batch.open:
            del batch.open[part.call_id]
            batch.end = index
        elif batch is not None and batch.stored and part.call_id not in self.call_ids:
            self.call_ids.add(part.call_id)
            batch.stored -= 1
            batch.end = index
        else:
            self.late.append((index, part_index))

    def _open_batch(self, index: int, message: Message, own: Mapping[int, int]) -> None:
        if message.role != "assistant" or not (message.calls or stored_calls(message)):
            return
        batch = Batch(start=self.reply_start, end=index, open={})
        self._add_calls(batch, index, message, own)
        self.batches.append(batch)

    def _add_calls(self, batch: Batch, index: int, message: Message, own: Mapping[int, int]) -> None:
        batch_ids = set(batch.open)
        own_calls = set(own.values())
        answered = {
            call.id for at, call in enumerate(message.parts) if at in own_calls and isinstance(call, ToolCall)
        }
        batch.stored += stored_calls(message)
        for part_index, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                if part.id in batch_ids or (part.id in answered and part_index not in own_calls):
                    self.doubled.append((index, part_index))
                else:
                    batch_ids.add(part.id)
                    self.call_ids.add(part.id)
                    batch.open[part.id] = part.name
            elif isinstance(part, ToolResult) and part_index in own:
                del batch.open[part.call_id]


def waits(message: Message, batch: Batch | None) -> bool:
    """Whether a message must wait until an open batch is complete."""
    return batch is not None and bool(batch.open) and _stands_aside(message)


def _stands_aside(message: Message) -> bool:
    """Whether a message is outside the conversation of model, tools and user."""
    if message.results:
        return False
    return message.role in ("system", "developer") or (message.role == "user" and message.injected)


def continues(message: Message, before: Message | None) -> bool:
    """Whether a message continues the reply of the one before it, in a dialect that splits replies."""
    return before is not None and is_item(before) and is_item(message)


def is_item(message: Message) -> bool:
    """Whether a message may be one of several that make up a reply in its dialect."""
    return message.role == "assistant" and traits_of(message).splits_replies


def pair(messages: Sequence[Message]) -> Pairing:
    """Pair the calls and results of a whole list."""
    pairing = Pairing()
    for index, message in enumerate(messages):
        pairing.say(index, message)
    return pairing


def calls_answered(messages: Iterable[Message]) -> dict[Place, Place]:
    """Map each result of a list to the newest call of its id before it."""
    calls: dict[str, Place] = {}
    result: dict[Place, Place] = {}
    for index, message in enumerate(messages):
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                calls[part.id] = (index, place)
            elif isinstance(part, ToolResult) and part.call_id in calls:
                result[index, place] = calls[part.call_id]
    return result


def parts_seen(messages: Sequence[Message]) -> list[int]:
    """Return for each message the number of its parts that a reply has seen."""
    newest = max((i for i, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return [
        len(message.parts) if i < newest else last_step(message) if i == newest else 0
        for i, message in enumerate(messages)
    ]


def unanswered_from(messages: Sequence[Message]) -> int:
    """Return the index of the first unanswered message; the length if all are answered.

    Unanswered are user messages and results after the last assistant message, the last assistant message if
    its batch is open, and one that ends with the results of its own calls.
    """
    last = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "assistant"), -1)
    while last > 0 and continues(messages[last], messages[last - 1]):
        last -= 1
    if pair(messages[max(last, 0) :]).current is not None or (last >= 0 and ends_in_results(messages[last])):
        return last
    after = range(last + 1, len(messages))
    return next((i for i in after if messages[i].role in ("user", "tool")), len(messages))
