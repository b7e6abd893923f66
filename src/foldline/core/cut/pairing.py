"""Which result answers which call, read from left to right as a provider would.

An assistant message with calls opens a batch. Results answer open calls of the batch alone. A system,
developer or injected message inside a batch waits until the batch is complete; an assistant message or words
of the user close it, and what is still open then stays unanswered. A result that finds no open call is late
(or an orphan). An assistant message may answer its own calls: they open nothing. Where a dialect writes one
reply as several messages, those in a row are that reply: their calls are one batch. A reference to a call
that its provider keeps takes one result whose call is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from foldline.core.log.dialects import traits_of
from foldline.core.log.messages import Message, ToolCall, ToolResult
from foldline.core.log.opaque import stored_calls
from foldline.core.log.steps import ends_in_results, own_results

Place = tuple[int, int]  # the index of a message, and of a part in it


class Batch(msgspec.Struct):
    """One assistant message's calls: `start` is its index, `end` that of the last message that belongs to it.

    `open` maps the ids not answered yet to the tool's name; `stored` counts the calls that it may refer to
    without a result so far; `closed` says that no more results are expected.
    """

    start: int
    end: int
    open: dict[str, str]
    stored: int = 0
    closed: bool = False

    @property
    def takes_results(self) -> bool:
        """Whether a result may still answer one of its calls."""
        return not self.closed and bool(self.open or self.stored)


class Pairing(msgspec.Struct):
    """The batches of a list of messages, and the result and call parts that pair with nothing.

    `late` and `doubled` list places: results without an open call, and calls whose id
    stands twice in one batch.
    """

    batches: list[Batch] = []
    late: list[Place] = []
    doubled: list[Place] = []
    last: Message | None = None
    begun: int = 0  # where the reply begins to which the last message belongs
    known: set[str] = set()  # the ids of all calls so far, also of those that stood there as references

    @property
    def current(self) -> Batch | None:
        """The batch that still takes results, if any."""
        last = self.batches[-1] if self.batches else None
        return last if last is not None and last.takes_results else None

    def say(self, index: int, message: Message) -> tuple[str, ...]:
        """Take the next message; return the ids of calls that it leaves unanswered for good."""
        batch = self.current
        own = own_results(message)
        if not waits(message, batch):
            follows = continues(message, self.last)
            self.last, self.begun = message, self.begun if follows else index
            if follows and batch is not None:
                batch.end = index
                self._ask(batch, index, message, own)
                return ()
        calls = {call.id for call in message.calls}
        for part_index, part in enumerate(message.parts):
            if isinstance(part, ToolResult) and part_index not in own:
                # a second result beside a call of its id is none of an earlier call's
                self._answer(None if part.call_id in calls else batch, index, part_index, part)
        if batch is None or not batch.takes_results or _stands_aside(message):
            self._open(index, message, own)
            return ()
        if message.results and not message.is_prompt and not own:
            return ()
        batch.closed = True
        left = tuple(batch.open)
        self._open(index, message, own)
        return left

    def _answer(self, batch: Batch | None, index: int, part_index: int, part: ToolResult) -> None:
        if batch is not None and part.call_id in batch.open:
            del batch.open[part.call_id]
            batch.end = index
        elif batch is not None and batch.stored and part.call_id not in self.known:
            self.known.add(part.call_id)
            batch.stored -= 1
            batch.end = index
        else:
            self.late.append((index, part_index))

    def _open(self, index: int, message: Message, own: Mapping[int, int]) -> None:
        if message.role != "assistant" or not (message.calls or stored_calls(message)):
            return
        batch = Batch(start=self.begun, end=index, open={})
        self._ask(batch, index, message, own)
        self.batches.append(batch)

    def _ask(self, batch: Batch, index: int, message: Message, own: Mapping[int, int]) -> None:
        asked = set(batch.open)
        kept = set(own.values())
        answered = {
            call.id for at, call in enumerate(message.parts) if at in kept and isinstance(call, ToolCall)
        }
        batch.stored += stored_calls(message)
        for part_index, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                if part.id in asked or (part.id in answered and part_index not in kept):
                    self.doubled.append((index, part_index))
                else:
                    asked.add(part.id)
                    self.known.add(part.id)
                    batch.open[part.id] = part.name
            elif isinstance(part, ToolResult) and part_index in own:
                del batch.open[part.call_id]


def waits(message: Message, batch: Batch | None) -> bool:
    """Whether a message inside an open batch has to wait until the batch is complete."""
    return batch is not None and bool(batch.open) and _stands_aside(message)


def _stands_aside(message: Message) -> bool:
    """Whether a message is none of the conversation between the model, its tools and the user."""
    if message.results:
        return False
    return message.role in ("system", "developer") or (message.role == "user" and message.injected)


def continues(message: Message, before: Message | None) -> bool:
    """Whether a message belongs to the reply of the one before it, where its dialect splits replies."""
    return before is not None and is_item(before) and is_item(message)


def is_item(message: Message) -> bool:
    """Whether a message may be a part of a reply that its dialect writes as several."""
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
    found: dict[Place, Place] = {}
    for index, message in enumerate(messages):
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                calls[part.id] = (index, place)
            elif isinstance(part, ToolResult) and part.call_id in calls:
                found[index, place] = calls[part.call_id]
    return found


def unanswered_from(messages: Sequence[Message]) -> int:
    """Return the index of the first message not yet answered; the length where everything is.

    Unanswered are user messages and results after the last assistant message, an open batch with it, and a
    message that ends with the results of its own calls.
    """
    last = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "assistant"), -1)
    while last > 0 and continues(messages[last], messages[last - 1]):
        last -= 1
    if pair(messages[max(last, 0) :]).current is not None or (last >= 0 and ends_in_results(messages[last])):
        return last
    after = range(last + 1, len(messages))
    return next((i for i in after if messages[i].role in ("user", "tool")), len(messages))
