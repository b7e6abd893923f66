"""The counts of a replay: requests by turn, cached tokens, boundaries, overflows.

They are in the model's tokens: our count, calibrated by the usage in the recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from foldline.core.compact.receipt import APART
from foldline.core.log.entries import Compacted, Pruned, Reason
from foldline.core.log.messages import Message, Usage
from foldline.core.measure.accounting import Calibration, real_usage, scaled, update
from foldline.core.measure.window import Floor, Window
from foldline.core.view_items import Item, MessageItem, sizes_of

# the most tokens of a system prompt and tools that a file leaves out; more would be history
UNSEEN_MOST = 60_000


class Scale(msgspec.Struct, frozen=True):
    """Converts our count to the model's tokens: the overhead beside the messages (our count), and a ratio."""

    overhead: Floor = Floor()
    ratio: float = 1.0

    @property
    def overhead_tokens(self) -> int:
        """The tokens of the system prompt and tools, in our count."""
        return self.overhead.system + self.overhead.tools

    def of(self, tokens: int) -> int:
        """Return a count of ours in tokens of the model."""
        return scaled(tokens, self.ratio)


class Learner:
    """Learns the scale of a recording, message by message.

    A recorded usage is the size of the recorded context. Up to the recording's first compaction the context
    is all messages so far, so both sizes can be compared; after it the context is unknown. The excess of the
    first request over its messages is taken as the system prompt and tools that the file leaves out.
    """

    def __init__(self, overhead: Floor) -> None:
        self._overhead = overhead
        self._message_tokens = 0
        self._hidden_overhead: int | None = None
        self._calibration = Calibration()
        self._learning = True
        self._replying = False

    @property
    def scale(self) -> Scale:
        """The scale learnt so far."""
        overhead = Floor(
            system=self._overhead.system, tools=self._overhead.tools + (self._hidden_overhead or 0)
        )
        return Scale(overhead, self._calibration.ratio)

    def folded(self) -> None:
        """Stop learning, because the recording was compacted here."""
        self._learning = False

    def hear(self, message: Message, tokens: int) -> None:
        """Learn from the next message, which has `tokens` in our count."""
        usage = real_usage(message)
        if usage is not None and self._learning and not self._replying:
            self._learn(usage.total - usage.output)
        self._replying = message.role == "assistant"
        self._message_tokens += tokens

    def _learn(self, actual: int) -> None:
        counted = self._overhead.system + self._overhead.tools + self._message_tokens
        if self._hidden_overhead is None:
            self._hidden_overhead = min(max(0, actual - counted), UNSEEN_MOST)
        self._calibration = update(self._calibration, counted + self._hidden_overhead, actual)


# ---- counts


class BoundaryMark(msgspec.Struct, frozen=True):
    """A boundary: the call of the turn that it precedes (from 1), its kind and reason, and the view's tokens.

    After the last call of all, `call` is the number of that call plus one.
    """

    call: int
    kind: Literal["compacted", "pruned"]
    reason: Reason
    tokens_before: int
    tokens_after: int


class ReplayedTurn(msgspec.Struct):
    """The model calls of one turn. Tokens are calibrated estimates of the model's tokens.

    `baseline` is the context of the first call, `peak` the largest. `input_tokens` is the sum over the calls;
    with prompt caching, `cache_read` of it was sent before and the rest is written to the cache. `overflows`
    are requests larger than the window. `contexts` are the sizes of all requests, `fills` the first call's
    context by category in our count; both only on request.
    """

    turn: int
    calls: int = 0
    baseline: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    peak: int = 0
    overflows: int = 0
    boundaries: list[BoundaryMark] = []
    contexts: list[int] = []
    fills: dict[str, int] = {}


class Sums(msgspec.Struct):
    """The sums of a replay.

    `compactions` and `prunes` count boundaries, `fruitless` tries that gained too little, `refused` those
    that could not help. `summaries` is what a model would have read and written for the compactions.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    compactions: int = 0
    prunes: int = 0
    overflows: int = 0
    fruitless: int = 0
    refused: int = 0
    peak: int = 0
    summaries: Usage = Usage()
    seconds: float = 0.0


class Tally:
    """The turns and the sums of one replay."""

    def __init__(self) -> None:
        self.turns: list[ReplayedTurn] = []
        self.sums = Sums()
        self.cached = 0  # tokens of the newest request that the next one begins with
        self._pending_marks: list[BoundaryMark] = []  # before the next request

    def turn(self) -> None:
        """Begin a turn, unless the previous one has no request yet."""
        if not self.turns or self.turns[-1].calls:
            self.turns.append(ReplayedTurn(len(self.turns) + 1))
            self._pending_marks = [msgspec.structs.replace(mark, call=1) for mark in self._pending_marks]

    def request(self, size: int, window: Window) -> ReplayedTurn:
        """Count a request; return its turn."""
        if size > window.input_limit:
            self.overflow()
        turn, sums = self._turn, self.sums
        cached, self.cached = min(self.cached, size), size
        turn.baseline = turn.baseline or size
        turn.calls += 1
        sums.calls += 1
        for totals in (turn, sums):
            totals.input_tokens += size
            totals.cache_read += cached
            totals.peak = max(totals.peak, size)
        turn.boundaries += self._pending_marks
        self._pending_marks = []
        return turn

    def turns_with_requests(self) -> list[ReplayedTurn]:
        """Return the turns with a request; boundaries after the last request belong to the last turn."""
        turns = [turn for turn in self.turns if turn.calls or turn.overflows]
        if turns and self._pending_marks:
            last = turns[-1]
            marks = [msgspec.structs.replace(mark, call=last.calls + 1) for mark in self._pending_marks]
            turns[-1] = msgspec.structs.replace(last, boundaries=[*last.boundaries, *marks])
        return turns

    def reply(self, output: int) -> None:
        """Count the output of a reply."""
        self.sums.output_tokens += output
        self._turn.output_tokens += output

    def overflow(self) -> None:
        """Count a request larger than the window."""
        self._turn.overflows += 1
        self.sums.overflows += 1

    def boundary(self, boundary: Compacted | Pruned, reason: Reason, same: int, scale: Scale) -> None:
        """Count a boundary; the first `same` tokens (our count) of the next request are unchanged."""
        compacted, receipt = isinstance(boundary, Compacted), boundary.receipt
        self.sums.compactions += compacted
        self.sums.prunes += not compacted
        self.cached = min(self.cached, scale.of(same))
        call = self.turns[-1].calls + 1 if self.turns else 1
        kind = "compacted" if compacted else "pruned"
        sizes = scale.of(receipt.tokens_before), scale.of(receipt.tokens_after)
        self._pending_marks.append(BoundaryMark(call, kind, reason, *sizes))

    def summary(self, boundary: Compacted, scale: Scale) -> None:
        """Count what a model would have read (what left the view) and written (the checkpoint)."""
        receipt, written = boundary.receipt, boundary.checkpoint.tokens
        read = max(0, receipt.tokens_before - receipt.tokens_after + written)
        totals = self.sums.summaries
        self.sums.summaries = Usage(
            input=totals.input + scale.of(read), output=totals.output + scale.of(written)
        )

    @property
    def _turn(self) -> ReplayedTurn:
        if not self.turns:
            self.turns.append(ReplayedTurn(1))
        return self.turns[-1]


def filled(items: Sequence[Item], overhead: int) -> dict[str, int]:
    """Return the tokens of a view by category; `overhead` is sent beside it."""
    return ({APART: overhead} if overhead else {}) | sizes_of(items)


def common_tokens(before: Sequence[Item], after: Sequence[Item]) -> int:
    """Return the tokens of the common prefix of two views."""
    tokens = 0
    for old, new in zip(before, after, strict=False):
        if isinstance(old, MessageItem) and isinstance(new, MessageItem):
            same = old.entry.id == new.entry.id and old.edits == new.edits
        else:
            same = old == new
        if not same:
            break
        tokens += old.tokens
    return tokens
