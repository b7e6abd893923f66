"""A recorded session under a policy: what each model call would have sent, and where it would have been folded.

A `Replay` is fed the recorded messages one after the other, holds what its view needs and nothing more, and
never does anything itself. Whoever runs it asks before each message what is `due`, makes that compaction with
the plan every session uses, and tells what came of it:

    while (ask := replay.due(entry.message)) is not None:
        replay.settle(outcome_of(plan(replay.fold, ask, counter)))
    replay.say(entry)

Usage that was recorded holds for the contexts of the recording alone. Each reply gets the usage that this
policy's context would have had, so that triggers see what they would have seen.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.compact.plan import Outcome
from foldline.core.decide.ask import Ask, Nothing, Reason
from foldline.core.decide.estimate import trigger_size
from foldline.core.decide.moments import moment_of, worth_a_try
from foldline.core.decide.policy import Moment, Policy
from foldline.core.decide.presets import resolve
from foldline.core.decide.triggers import Compact, Decision, decide
from foldline.core.lab.sizes import Scale
from foldline.core.log.entries import Compacted, Pruned, Said
from foldline.core.log.log import chained
from foldline.core.log.messages import Message, Usage
from foldline.core.measure.tokens import Counter
from foldline.core.measure.window import Floor, Window
from foldline.core.view import Item, Kept, ViewState, item_tokens, sized


class BoundaryMark(msgspec.Struct, frozen=True):
    """A boundary: before which call of the turn (from 1), of what kind, why, and the view's tokens around it."""

    call: int
    kind: str
    reason: str
    tokens_before: int
    tokens_after: int


APART = "system and tools"  # what `fills` calls what is sent beside the messages, as usage told it


class ReplayedTurn(msgspec.Struct):
    """What one turn's model calls sent. Tokens are those of the model: estimates, calibrated.

    `baseline` is the context of the first call, `peak` the largest. `input_tokens` is the sum over the calls;
    with prompt caching, `cache_read` of it was sent before and the rest is written to the cache. `overflows`
    are requests larger than the window. `fills` says what the first call's context was made of, in our count.
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
    fills: dict[str, int] = {}


class Sums(msgspec.Struct):
    """What a replay came to.

    `compactions` and `prunes` count boundaries, `fruitless` tries that gained too little, `refused` those that
    nothing could help. `summaries` is what a model would have read and written for the compactions.
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


class Replay:
    """One recorded session under one policy."""

    def __init__(
        self,
        policy: Policy,
        window: Window,
        counter: Counter,
        *,
        apart: Floor | None = None,
        model: str | None = None,
        now: str = "",
        fills: bool = False,
    ) -> None:
        self.policy = resolve(policy, model, window)
        self.window = window
        self.fold = ViewState(counter=counter)
        self.turns: list[ReplayedTurn] = []
        self.sums = Sums()
        self.scale = Scale(apart=apart or Floor())
        self._counter = counter
        self._now = now
        self._fills = fills
        self._number = 0  # compactions so far
        self._moments: list[Moment] = []  # not looked at yet
        self._fruitless: int | None = None
        self._mended = False  # an overflow was answered since the user spoke
        self._asked: Ask | None = None
        self._replying = False  # the newest message is a reply
        self._cached = 0  # tokens of the newest request that the next one begins with
        self._shown: Sequence[Item] = ()  # the newest request, as far as a boundary has to compare it
        self._marks: list[BoundaryMark] = []
        self._lost: int | None = None  # tokens of a context that nothing will ever make fit
        self._idle = _never_acts(self.policy)

    # ---- before a message

    def due(self, following: Message) -> Ask | None:
        """Return the compaction that is due before the next message, if one is; ask again until None is.

        Nothing is but before a reply: then the context is made that the reply answers.
        """
        if following.role != "assistant" or self._replying or self._lost is not None:
            return None
        if (ask := self._threshold()) is None:
            ask = self._overflow()
        self._asked = ask
        return ask

    def _threshold(self) -> Ask | None:
        moments, self._moments = self._moments, []
        if any(isinstance(self._decide(moment), Compact) for moment in moments):
            ask = self._ask("threshold")
            if worth_a_try(self.fold.tokens, self._fruitless, ask.usable):
                return ask
        return None

    def _overflow(self) -> Ask | None:
        if self._mended or self._size() <= self.window.input_limit:
            return None
        if not isinstance(self._decide("overflow"), Compact):
            if self._idle:
                self._lost = self._size()
                self.fold = ViewState(counter=self._counter)
            return None
        self._count_overflow()
        self._mended = True
        return self._ask("overflow")

    def _decide(self, moment: Moment) -> Decision:
        fold = self.fold
        size = trigger_size(
            self.policy,
            fold.kept,
            self._counter,
            fresh_from=fold.usage_from,
            overhead=self.scale.apart_tokens,
            made=fold.made,
            saved=sum(edit.saved for edits in fold.edits.values() for edit in edits),
            ratio=self.scale.ratio,
        )
        return decide(
            size,
            self.window,
            self.policy,
            moment,
            messages=fold.messages,
            new_messages=len(fold.kept) - fold.fresh_from,
        )

    def _ask(self, reason: Reason) -> Ask:
        return Ask(
            policy=self.policy,
            window=self.window,
            reason=reason,
            apart=self.scale.apart,
            now=self._now,
            number=self._number + 1,
        )

    # ---- what came of a compaction

    def settle(self, outcome: Outcome | None, seconds: float = 0.0) -> None:
        """Take what came of the compaction that was due; None where it was refused (the floor is too high).

        `seconds` is the time it took.
        """
        self.sums.seconds += seconds
        if isinstance(outcome, Compacted | Pruned):
            self._take(outcome)
            self._fruitless = None
        else:
            self.sums.refused += outcome is None
            self.sums.fruitless += isinstance(outcome, Nothing)
            self._fruitless = self.fold.tokens

    def _take(self, outcome: Compacted | Pruned) -> None:
        before, ask = self.fold.items(), self._asked
        path = self.fold.entries()
        boundary = chained(outcome, path[-1].id if path else None)
        if isinstance(boundary, Compacted):
            self._number = boundary.checkpoint.number
            self.sums.compactions += 1
            self.fold = ViewState([*active(path, boundary), boundary], counter=self._counter)
            self._add_summary(boundary)
        else:
            self.sums.prunes += 1
            self.fold = ViewState([*path, boundary], counter=self._counter)
        same = self.scale.apart_tokens + _common(before, self.fold.items())
        self._cached = min(self._cached, self.scale.of(same))
        kind = "compacted" if isinstance(boundary, Compacted) else "pruned"
        receipt, calls = boundary.receipt, self._next_call()
        reason = ask.reason if ask is not None else receipt.reason
        self._marks.append(BoundaryMark(calls, kind, reason, receipt.tokens_before, receipt.tokens_after))

    def _add_summary(self, boundary: Compacted) -> None:
        """Add what a model would have read and written: what left the view, and the checkpoint."""
        receipt, written = boundary.receipt, boundary.checkpoint.tokens
        read = max(0, receipt.tokens_before - receipt.tokens_after + written)
        known = self.sums.summaries
        self.sums.summaries = Usage(input=known.input + read, output=known.output + written)

    # ---- a message

    def say(self, entry: Said) -> None:
        """Take the next recorded message; the first of a run of replies is a model call."""
        message = entry.message
        if message.role == "assistant":
            self._reply(entry)
            return
        if message.is_prompt:
            self._mended = False
        self._replying = False
        self._remember(message)
        self._push(msgspec.structs.replace(entry, message=_without_usage(message)))

    def _reply(self, entry: Said) -> None:
        message = entry.message
        output = message.usage.output if message.usage is not None else 0
        output = output or self.scale.of(entry.tokens)
        usage = None
        if not self._replying:
            size = self._size()
            self._count(size)
            usage = Usage(input=size, output=self.scale.of(entry.tokens))
        self._replying = True
        self.sums.output_tokens += output
        self.turns[-1].output_tokens += output
        self._remember(message)
        self._push(msgspec.structs.replace(entry, message=msgspec.structs.replace(message, usage=usage)))

    def _remember(self, message: Message) -> None:
        moment = None if message.injected else moment_of(message)
        if moment is not None and moment not in self._moments:
            self._moments.append(moment)
        if message.is_prompt and (not self.turns or self.turns[-1].calls):
            self.turns.append(ReplayedTurn(len(self.turns) + 1))

    def _push(self, entry: Said) -> None:
        if self._lost is None:
            self.fold.push(entry)
        else:
            self._lost += self.scale.of(entry.tokens)

    # ---- counting

    def _size(self) -> int:
        """Return the tokens of the next request."""
        if self._lost is not None:
            return self._lost
        return self.fold.context_size(self.scale.apart_tokens, self.scale.ratio).tokens

    @property
    def fits(self) -> bool:
        """Whether the view is one that can be sent at all."""
        return self._lost is None and self._size() <= self.window.input_limit

    @property
    def size(self) -> int:
        """The tokens of the view as it stands."""
        return self._size()

    def _next_call(self) -> int:
        return self.turns[-1].calls + 1 if self.turns else 1

    def _count(self, size: int) -> None:
        if not self.turns:
            self.turns.append(ReplayedTurn(1))
        if size > self.window.input_limit:
            self._count_overflow()
        turn, sums = self.turns[-1], self.sums
        cached, self._cached = min(self._cached, size), size
        turn.baseline = turn.baseline or size
        turn.calls += 1
        sums.calls += 1
        for counted in (turn, sums):
            counted.input_tokens += size
            counted.cache_read += cached
            counted.peak = max(counted.peak, size)
        turn.boundaries += self._marks
        self._marks = []
        if self._fills and turn.calls == 1 and self._lost is None:
            turn.fills = self._filled()

    def _filled(self) -> dict[str, int]:
        found = {APART: self.scale.apart_tokens} if self.scale.apart_tokens else {}
        for kind, tokens in sized(self.fold.items()):
            found[kind] = found.get(kind, 0) + tokens
        return found

    def _count_overflow(self) -> None:
        if not self.turns:
            self.turns.append(ReplayedTurn(1))
        self.turns[-1].overflows += 1
        self.sums.overflows += 1


def _never_acts(policy: Policy) -> bool:
    """Whether a policy makes no boundary by itself, whatever happens."""
    mends = policy.enabled if policy.on_overflow is None else policy.on_overflow
    return not mends and (not policy.enabled or (policy.hard is None and policy.soft is None))


def active(path: Sequence[object], boundary: Compacted) -> list[Said]:
    """Return the messages of a path that the view of a new boundary needs, in order."""
    said = [entry for entry in path if isinstance(entry, Said)]
    first = next((i for i, entry in enumerate(said) if entry.id == boundary.first_kept), len(said))
    older = {*boundary.leading, *boundary.quoted}
    return [entry for index, entry in enumerate(said) if index >= first or entry.id in older]


def _common(before: Sequence[Item], after: Sequence[Item]) -> int:
    """Return the tokens of the items that two views begin with alike."""
    tokens = 0
    for old, new in zip(before, after, strict=False):
        if isinstance(old, Kept) and isinstance(new, Kept):
            same = old.entry.id == new.entry.id and old.edits == new.edits
        else:
            same = old == new
        if not same:
            break
        tokens += item_tokens(old)
    return tokens


def _without_usage(message: Message) -> Message:
    return msgspec.structs.replace(message, usage=None) if message.usage is not None else message
