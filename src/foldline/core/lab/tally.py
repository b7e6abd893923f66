"""What a replay counts: requests by turn, what of them the provider's cache had, boundaries, overflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from foldline.core.compact.receipt import APART
from foldline.core.lab.sizes import Scale
from foldline.core.log.entries import Compacted, Pruned, Reason
from foldline.core.log.messages import Usage
from foldline.core.measure.window import Window
from foldline.core.view import Item, MessageItem, item_tokens, sized


class BoundaryMark(msgspec.Struct, frozen=True):
    """A boundary: before which call of the turn (from 1), its kind and reason, and the view's tokens.

    One behind the last call of all is before the call after that.
    """

    call: int
    kind: Literal["compacted", "pruned"]
    reason: Reason
    tokens_before: int
    tokens_after: int


class ReplayedTurn(msgspec.Struct):
    """What one turn's model calls sent. Tokens are those of the model: estimates, calibrated.

    `baseline` is the context of the first call, `peak` the largest. `input_tokens` is the sum over the calls;
    with prompt caching, `cache_read` of it was sent before and the rest is written to the cache. `overflows`
    are requests larger than the window. `contexts` are the sizes of all its requests, and
    `fills` says what the first call's context was made of, in our count; both only where they are asked for.
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
    """What a replay came to.

    `compactions` and `prunes` count boundaries, `fruitless` tries that gained too little, `refused` those
    that nothing could help. `summaries` is what a model would have read and written for the compactions.
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
        self._marks: list[BoundaryMark] = []  # before the next request

    def turn(self) -> None:
        """The user speaks: a turn begins, unless nothing came of the one before."""
        if not self.turns or self.turns[-1].calls:
            self.turns.append(ReplayedTurn(len(self.turns) + 1))
            self._marks = [msgspec.structs.replace(mark, call=1) for mark in self._marks]

    def request(self, size: int, window: Window) -> ReplayedTurn:
        """Count a request; returns its turn."""
        if size > window.input_limit:
            self.overflow()
        turn, sums = self._now, self.sums
        cached, self.cached = min(self.cached, size), size
        turn.baseline = turn.baseline or size
        turn.calls += 1
        sums.calls += 1
        for counted in (turn, sums):
            counted.input_tokens += size
            counted.cache_read += cached
            counted.peak = max(counted.peak, size)
        turn.boundaries += self._marks
        self._marks = []
        return turn

    def asked(self) -> list[ReplayedTurn]:
        """Return the turns with a request; a boundary behind the last one is with the last of them."""
        asked = [turn for turn in self.turns if turn.calls or turn.overflows]
        if asked and self._marks:
            last = asked[-1]
            marks = [msgspec.structs.replace(mark, call=last.calls + 1) for mark in self._marks]
            asked[-1] = msgspec.structs.replace(last, boundaries=[*last.boundaries, *marks])
        return asked

    def reply(self, output: int) -> None:
        """Count what a reply took."""
        self.sums.output_tokens += output
        self._now.output_tokens += output

    def overflow(self) -> None:
        """Count a request that is larger than the window."""
        self._now.overflows += 1
        self.sums.overflows += 1

    def boundary(self, boundary: Compacted | Pruned, reason: Reason, same: int, scale: Scale) -> None:
        """Count a boundary; the next request begins as the newest one did for `same` tokens of our count."""
        compacted, receipt = isinstance(boundary, Compacted), boundary.receipt
        self.sums.compactions += compacted
        self.sums.prunes += not compacted
        self.cached = min(self.cached, scale.of(same))
        call = self.turns[-1].calls + 1 if self.turns else 1
        kind = "compacted" if compacted else "pruned"
        sizes = scale.of(receipt.tokens_before), scale.of(receipt.tokens_after)
        self._marks.append(BoundaryMark(call, kind, reason, *sizes))

    def summary(self, boundary: Compacted, scale: Scale) -> None:
        """Count what a model would have read and written: what left the view, and the checkpoint."""
        receipt, written = boundary.receipt, boundary.checkpoint.tokens
        read = max(0, receipt.tokens_before - receipt.tokens_after + written)
        known = self.sums.summaries
        self.sums.summaries = Usage(
            input=known.input + scale.of(read), output=known.output + scale.of(written)
        )

    @property
    def _now(self) -> ReplayedTurn:
        if not self.turns:
            self.turns.append(ReplayedTurn(1))
        return self.turns[-1]


def filled(items: Sequence[Item], overhead: int) -> dict[str, int]:
    """Return the tokens of a view by category, `overhead` what is sent beside it."""
    found = {APART: overhead} if overhead else {}
    for kind, tokens in sized(items):
        found[kind] = found.get(kind, 0) + tokens
    return found


def common_tokens(before: Sequence[Item], after: Sequence[Item]) -> int:
    """Return the tokens of the items that two views begin with alike."""
    tokens = 0
    for old, new in zip(before, after, strict=False):
        if isinstance(old, MessageItem) and isinstance(new, MessageItem):
            same = old.entry.id == new.entry.id and old.edits == new.edits
        else:
            same = old == new
        if not same:
            break
        tokens += item_tokens(old)
    return tokens
