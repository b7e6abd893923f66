"""A recorded session under a policy: what each model call would have sent, and where it would have folded.

A `Replay` is fed the recorded messages one after the other, holds what its view needs and nothing more, and
never does anything itself. When something is due it learns from `Watch`, as a live session does. Whoever
runs it asks before each message what is `due`, makes that boundary with the plan every session uses, and
tells what came of it:

    while (ask := replay.due(entry.message)) is not None:
        replay.settle(outcome_of(plan(CompactionInput(replay.state, ask, counter))))
    replay.say(entry)

A draft is made when it is due, and waits; it is committed onto the path as it is then, as a live session
commits it.

Usage that was recorded holds for the contexts of the recording alone. Each reply gets the usage that this
policy's context would have had, so that triggers see what they would have seen.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.fold_request import Sizer, continuation_of, fold_request, trigger_facts
from foldline.core.compact.plan import Outcome
from foldline.core.compact.rebase import Draft, drafted, holds, pays, rebased
from foldline.core.decide.ask import FoldRequest, Nothing
from foldline.core.decide.overflow import share_left
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import resolve
from foldline.core.decide.price import Cache, Economy, Price
from foldline.core.decide.triggers import Compact, Refuse, StartDraft, has_grown, idle_in
from foldline.core.decide.watch import CommitDraft, TriggerFacts, Wait, Watch, WatchLimits
from foldline.core.lab.sizes import Scale
from foldline.core.lab.tally import ReplayedTurn, Sums, Tally, common_tokens, filled
from foldline.core.log.entries import Compacted, Pruned, Reason, Said
from foldline.core.log.log import chained
from foldline.core.log.messages import Message, Usage
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.tokens import Counter
from foldline.core.measure.window import Floor, Window
from foldline.core.view import ViewState


class _Making(msgspec.Struct, frozen=True):
    """A boundary that somebody makes: what was asked, why, and at which request (from 1)."""

    ask: FoldRequest
    cause: Literal["trigger", "overflow", "draft"]
    request: int
    draft: Draft | None = None  # once it is made
    failed: Nothing | None = None


class Replay:
    """One recorded session under one policy; a draft is ready `draft_calls` requests after it was begun."""

    def __init__(
        self,
        policy: Policy,
        window: Window,
        counter: Counter,
        *,
        overhead: Floor | None = None,
        model: str | None = None,
        now: str = "",
        fills: bool = False,
        draft_calls: int = 1,
        price: Price | None = None,
    ) -> None:
        self.policy = resolve(policy, model, window)
        self.window = window
        self.state = ViewState(counter=counter)
        self.scale = Scale(overhead=overhead or Floor())
        self._counter = counter
        self._now = now
        self._fills = fills
        self._draft_calls = draft_calls
        self._price = price
        self._watch = Watch(WatchLimits(self.policy, window, model))
        self._sizer = Sizer(self.policy, counter)
        self._tally = Tally()
        self._making: _Making | None = None  # asked of whoever runs the replay
        self._drafting: _Making | None = None  # made, and not ready yet
        self._draft: Draft | None = None
        self._answered = False  # the next request was too large, and that was seen to
        self._refused_at: int | None = None
        self._replying = False  # the newest message is a reply
        self._at_request = 1  # the number of the next request, or of the newest where none is made now
        self._lost: int | None = None  # tokens of a context that nothing will ever make fit

    @property
    def turns(self) -> list[ReplayedTurn]:
        """What each turn's requests sent."""
        return self._tally.asked()

    @property
    def sums(self) -> Sums:
        """What the replay came to."""
        return self._tally.sums

    # ---- before a message

    @property
    def next_request(self) -> int:
        """The number of the next request (from 1)."""
        return self.sums.calls + 1

    def asks(self, following: Message) -> bool:
        """Whether the next message answers a request: it is the first of a run of replies."""
        return following.role == "assistant" and not self._replying

    def due(self, following: Message, at: float | None = None) -> FoldRequest | None:
        """Return the boundary that is to be made before the next message, if one is; ask again until None is.

        `at` is when that message was said, in Unix time, where the recording tells.

        Before a reply that is what the context needs which the reply answers; before any other message, what
        the policy looks at right behind the one before.
        """
        self._making, requested = None, self.asks(following)
        self._at_request = self.sums.calls + requested
        self._fold_idle(at)
        if requested and self._lost is None and not self._answered:
            self._making = self._at_trigger() or self._at_overflow()
        elif not requested and self._lost is None and self._watch.checks_at_once(self.state.open_calls):
            self._making = self._at_trigger()
        return self._making.ask if self._making is not None else None

    def _fold_idle(self, at: float | None) -> None:
        """Commit the draft, if there is one and the session was idle before what is said at a time."""
        newest = self.state.kept[-1] if self.state.kept else None
        if at is None or newest is None or newest.at is None or self._lost is not None:
            return
        if idle_in(self.policy, newest.message, newest.at, at) != 0:
            return
        self._end_draft()
        if self._draft is not None and holds(self._draft, self.state):
            self._commit_draft(self._ask("threshold"))

    def _at_trigger(self) -> _Making | None:
        while True:
            if self._draft is not None and not holds(self._draft, self.state):
                self._drop_draft()
            found = self._watch.due(self._facts_now(), pays=self._pays())
            if isinstance(found, CommitDraft):
                if self._commit_draft(self._ask(found.reason)):
                    self._watch.mark_checked()
                    return None
            elif isinstance(found, Wait):
                self._end_draft()
            elif isinstance(found, StartDraft):
                self._watch.draft_begun()
                return self._make(self._ask("threshold"), "draft")
            elif isinstance(found, Compact):
                return self._make(self._ask(found.reason), "trigger")
            else:
                self._count_refusal(found)
                return None

    def _pays(self) -> bool:
        if self._draft is None:
            return False
        return pays(CompactionInput(self.state, self._ask("threshold"), self._counter), self._draft)

    def _at_overflow(self) -> _Making | None:
        """See to a request that is larger than the window, as is done when a provider refuses it."""
        size = self._size()
        if size <= self.window.input_limit:
            return None
        self._answered = True
        found = self._watch.on_overflow(self._facts_now())
        if not isinstance(found, Compact):
            if _never_acts(self.policy):
                self._lost = size
                self.state = ViewState(counter=self._counter)
            return None
        self._tally.overflow()
        self._end_draft()
        own = self.scale.overhead_tokens + self.state.tokens
        ask = self._ask("overflow", share_left(Overflow(asked=size), own, self._ask("overflow").usable))
        draft = self._draft
        fits = draft is not None and draft.boundary.receipt.tokens_after <= ask.usable
        if fits and self._commit_draft(ask):
            return None
        self._drop_draft()
        return self._make(ask, "overflow")

    def _make(self, ask: FoldRequest, cause: Literal["trigger", "overflow", "draft"]) -> _Making:
        return _Making(ask, cause, self._at_request)

    def _facts_now(self) -> TriggerFacts:
        overhead = self.scale.overhead
        ask = fold_request(self.state, self.policy, self.window, "threshold", overhead=overhead, now="")
        return trigger_facts(self.state, ask, self._sizer, self._counter, ratio=self.scale.ratio, now=0.0)

    def _ask(self, reason: Reason, share: float = 1.0) -> FoldRequest:
        ask = fold_request(
            self.state,
            self.policy,
            self.window,
            reason,
            overhead=self.scale.overhead,
            now=self._now,
            ratio=self.scale.ratio,
            share=share,
            economy=self._economy(),
            sizer=self._sizer,
        )
        return msgspec.structs.replace(ask, continuation=continuation_of(self.state))

    def _economy(self) -> Economy | None:
        """Return what requests cost; no pause is longer than the provider's cache lives."""
        cache = Cache(int(self._tally.cached / self.scale.ratio), idle=0.0)
        return None if self._price is None else Economy(self._price, cache)

    def _count_refusal(self, found: Refuse | None) -> None:
        """Count what a live session raises, once for as long as the view stays as large as it is."""
        if found is not None and has_grown(self.state.tokens, self._refused_at, found.usable):
            self._refused_at = self.state.tokens
            self.sums.refused += 1

    # ---- what came of a boundary

    def settle(self, outcome: Outcome | None, seconds: float = 0.0) -> None:
        """Take what came of the boundary that was due; None where it was refused (the floor is too high).

        `seconds` is the time it took.
        """
        making, self._making = self._making, None
        assert making is not None, "nothing was due"
        self.sums.seconds += seconds
        if isinstance(outcome, Compacted):
            self._tally.summary(outcome, self.scale)
        made = drafted(self.state, outcome) if isinstance(outcome, Compacted | Pruned) else None
        failed = outcome if isinstance(outcome, Nothing) else None
        making = msgspec.structs.replace(making, draft=made, failed=failed)
        if making.cause == "draft":
            self._drafting = making
            self._see_to_draft()
            return
        if made is not None:
            failed = self._commit(made, making.ask)
        if made is None or failed is not None:
            self._fail(making.ask, failed)
        if making.cause == "trigger":
            self._watch.mark_checked()

    def _fail(self, ask: FoldRequest, failed: Nothing | None, *, draft: bool = False) -> None:
        """Tell the machine that no boundary came of it, and keep the notes that it leaves."""
        self.sums.refused += failed is None
        self.sums.fruitless += failed is not None
        why = failed.why if failed is not None else "floor"
        for note in self._watch.ended(ask.reason, why, self._facts_now(), 0.0, drafted=draft):
            self.state.push(chained(note, self.state.entries()[-1].id))

    def _see_to_draft(self) -> None:
        """End the draft that is being made, if it took as long as it takes."""
        making = self._drafting
        if making is not None and self.sums.calls >= making.request + self._draft_calls - 1:
            self._end_draft()

    def _end_draft(self) -> None:
        making, self._drafting = self._drafting, None
        if making is None:
            return
        self._draft = making.draft
        if making.draft is not None:
            self._watch.draft_made()
        else:
            self._fail(making.ask, making.failed, draft=True)

    def _drop_draft(self) -> None:
        self._draft = None
        self._watch.draft_dropped()

    def _commit_draft(self, ask: FoldRequest) -> bool:
        """Commit the ready draft, or leave it until a signed tool loop ends; False where it will not do."""
        draft = self._draft
        assert draft is not None
        failed = self._commit(draft, ask)
        if failed is not None and failed.why == "signed_thinking":
            return True
        self._drop_draft()
        return failed is None

    def _commit(self, draft: Draft, ask: FoldRequest) -> Nothing | None:
        """Put a boundary onto the path as it is now; returns why it was not."""
        before, path = self.state.items(), self.state.entries()
        found = rebased(CompactionInput(self.state, ask, self._counter), draft)
        if isinstance(found, Nothing):
            return found
        boundary = chained(found.boundary, path[-1].id if path else None)
        self.state = found.after
        self.state.set_id(boundary)
        same = self.scale.overhead_tokens + common_tokens(before, self.state.items())
        self._tally.boundary(boundary, ask.reason, same, self.scale)
        self._watch.folded()
        return None

    # ---- a message

    def say(self, entry: Said) -> None:
        """Take the next recorded message; the first of a run of replies is a model call."""
        message = entry.message
        if message.role == "assistant":
            self._reply(entry)
            return
        if message.is_prompt:
            self._tally.turn()
        self._replying = False
        self._push(entry, None)

    def _reply(self, entry: Said) -> None:
        message, tokens = entry.message, self.scale.of(entry.tokens)
        usage = None
        if not self._replying:
            usage = Usage(input=self._size(), output=tokens)
            self._request(usage.input)
        self._replying = True
        self._tally.reply((message.usage.output if message.usage is not None else 0) or tokens)
        self._push(entry, usage)

    def _request(self, size: int) -> None:
        turn = self._tally.request(size, self.window)
        if self._fills:
            turn.contexts.append(size)
        if self._fills and turn.calls == 1 and self._lost is None:
            turn.fills = filled(self.state.items(), self.scale.overhead_tokens)
        self._answered = False
        self._see_to_draft()

    def _push(self, entry: Said, usage: Usage | None) -> None:
        if self._lost is not None:
            self._lost += self.scale.of(entry.tokens)
            return
        message = msgspec.structs.replace(entry.message, usage=usage)
        self.state.push(msgspec.structs.replace(entry, message=message))
        self._watch.said([message])

    # ---- sizes

    def _size(self) -> int:
        """Return the tokens of the next request."""
        if self._lost is not None:
            return self._lost
        return self.scale.of(self.scale.overhead_tokens + self.state.tokens)

    @property
    def fits(self) -> bool:
        """Whether the view is one that can be sent at all."""
        return self._lost is None and self._size() <= self.window.input_limit

    @property
    def size(self) -> int:
        """The tokens of the view as it stands."""
        return self._size()


def _never_acts(policy: Policy) -> bool:
    """Whether a policy makes no boundary by itself, whatever happens."""
    mends = policy.enabled if policy.on_overflow is None else policy.on_overflow
    return not mends and (not policy.enabled or (policy.hard is None and policy.soft is None))
