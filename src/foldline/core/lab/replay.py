"""Replay a recorded session under a policy: what each request would have sent, and where it would fold.

A `Replay` takes the recorded messages one by one and keeps only what its view needs. `Watch` says when a
boundary is due, as in a live session. Before each message the caller asks what is `due`, makes that boundary
with the same plan as live sessions, and reports the outcome:

    while (ask := replay.due(entry.message)) is not None:
        replay.settle(outcome_of(plan(CompactionInput(replay.state, ask, counter))))
    replay.say(entry)

A draft is made when it is due and committed later onto the path as it is then, as in a live session.

Recorded usage is valid only for the recorded contexts. Each reply gets the usage that it would have had with
this policy's context, so that triggers see the right size.
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
from foldline.core.decide.triggers import Compact, StartDraft, has_grown, idle_in
from foldline.core.decide.watch import CommitDraft, TriggerFacts, Wait, Watch, WatchLimits
from foldline.core.lab.tally import ReplayedTurn, Scale, Sums, Tally, common_tokens, filled
from foldline.core.log.entries import Compacted, Pruned, Reason, Said
from foldline.core.log.log import chained
from foldline.core.log.messages import Message, Usage
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.tokens import Counter
from foldline.core.measure.window import Floor, Window
from foldline.core.view import ViewState


class _PendingBoundary(msgspec.Struct, frozen=True):
    """A boundary in the making: its request, its cause, and the number of the model request (from 1)."""

    ask: FoldRequest
    cause: Literal["trigger", "overflow", "draft"]
    request: int
    draft: Draft | None = None  # when it is made
    failed: Nothing | None = None


class Replay:
    """One recorded session under one policy; a draft is ready after `draft_calls` requests."""

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
        self._pending: _PendingBoundary | None = None  # to be made by the caller
        self._drafting: _PendingBoundary | None = None  # made but not ready yet
        self._draft: Draft | None = None
        self._overflow_handled = False  # the next request was too large, and that was handled
        self._refused_at: int | None = None
        self._replying = False  # the newest message is a reply
        self._at_request = 1  # the number of the next request, or of the newest if none is due now
        self._overflowed_size: int | None = None  # tokens of a context that can never fit

    @property
    def turns(self) -> list[ReplayedTurn]:
        """The requests of each turn."""
        return self._tally.turns_with_requests()

    @property
    def sums(self) -> Sums:
        """The sums of the replay."""
        return self._tally.sums

    # ---- before a message

    @property
    def next_request(self) -> int:
        """The number of the next request (from 1)."""
        return self.sums.calls + 1

    def asks(self, following: Message) -> bool:
        """Whether the next message answers a request: the first in a run of replies."""
        return following.role == "assistant" and not self._replying

    def due(self, following: Message, at: float | None = None) -> FoldRequest | None:
        """Return the boundary to make before the next message, or None; repeat until it is None.

        `at` is the Unix time of that message, if known. Before a reply the boundary is for the context of its
        request; before any other message it is what the policy wants directly after the previous message.
        """
        self._pending, is_request = None, self.asks(following)
        self._at_request = self.sums.calls + is_request
        self._fold_idle(at)
        if is_request and self._overflowed_size is None and not self._overflow_handled:
            self._pending = self._at_trigger() or self._at_overflow()
        elif (
            not is_request
            and self._overflowed_size is None
            and self._watch.checks_at_once(self.state.open_calls)
        ):
            self._pending = self._at_trigger()
        return self._pending.ask if self._pending is not None else None

    def _fold_idle(self, at: float | None) -> None:
        """Commit the draft if the session was idle before the message at a time."""
        newest = self.state.kept[-1] if self.state.kept else None
        if at is None or newest is None or newest.at is None or self._overflowed_size is not None:
            return
        if idle_in(self.policy, newest.message, newest.at, at) != 0:
            return
        self._finish_draft()
        if self._draft is not None and holds(self._draft, self.state):
            self._commit_draft(self._ask("threshold"))

    def _at_trigger(self) -> _PendingBoundary | None:
        while True:
            if self._draft is not None and not holds(self._draft, self.state):
                self._drop_draft()
            due = self._watch.due(self._facts_now(), pays=self._pays())
            if isinstance(due, CommitDraft):
                if self._commit_draft(self._ask(due.reason)):
                    self._watch.mark_checked()
                    return None
            elif isinstance(due, Wait):
                self._finish_draft()
            elif isinstance(due, StartDraft):
                self._watch.draft_begun()
                return _PendingBoundary(self._ask("threshold"), "draft", self._at_request)
            elif isinstance(due, Compact):
                return _PendingBoundary(self._ask(due.reason), "trigger", self._at_request)
            else:  # a refusal, which a live session raises, counts once until the view has grown
                if due is not None and has_grown(self.state.tokens, self._refused_at, due.usable):
                    self._refused_at = self.state.tokens
                    self.sums.refused += 1
                return None

    def _pays(self) -> bool:
        if self._draft is None:
            return False
        return pays(CompactionInput(self.state, self._ask("threshold"), self._counter), self._draft)

    def _at_overflow(self) -> _PendingBoundary | None:
        """Handle a request larger than the window, as a live session does when the provider refuses it."""
        size = self.size
        if size <= self.window.input_limit:
            return None
        self._overflow_handled = True
        decision = self._watch.on_overflow(self._facts_now())
        if not isinstance(decision, Compact):
            if _never_acts(self.policy):
                self._overflowed_size = size
                self.state = ViewState(counter=self._counter)
            return None
        self._tally.overflow()
        self._finish_draft()
        own_tokens = self.scale.overhead_tokens + self.state.tokens
        ask = self._ask(
            "overflow", share_left(Overflow(asked=size), own_tokens, self._ask("overflow").usable)
        )
        draft = self._draft
        fits = draft is not None and draft.boundary.receipt.tokens_after <= ask.usable
        if fits and self._commit_draft(ask):
            return None
        self._drop_draft()
        return _PendingBoundary(ask, "overflow", self._at_request)

    def _facts_now(self) -> TriggerFacts:
        overhead = self.scale.overhead
        ask = fold_request(self.state, self.policy, self.window, "threshold", overhead=overhead, now="")
        return trigger_facts(self.state, ask, self._sizer, self._counter, ratio=self.scale.ratio, now=0.0)

    def _ask(self, reason: Reason, share: float = 1.0) -> FoldRequest:
        # the provider's cache is taken never to expire
        cache = Cache(int(self._tally.cached / self.scale.ratio), idle=0.0)
        ask = fold_request(
            self.state,
            self.policy,
            self.window,
            reason,
            overhead=self.scale.overhead,
            now=self._now,
            ratio=self.scale.ratio,
            share=share,
            economy=Economy(self._price, cache) if self._price is not None else None,
            sizer=self._sizer,
        )
        return msgspec.structs.replace(ask, continuation=continuation_of(self.state))

    # ---- the outcome of a boundary

    def settle(self, outcome: Outcome | None, seconds: float = 0.0) -> None:
        """Report the outcome of the boundary that was due; None if it was refused (the floor is too high).

        `seconds` is the time it took.
        """
        making, self._pending = self._pending, None
        assert making is not None, "nothing was due"
        self.sums.seconds += seconds
        if isinstance(outcome, Compacted):
            self._tally.summary(outcome, self.scale)
        draft = drafted(self.state, outcome) if isinstance(outcome, Compacted | Pruned) else None
        failed = outcome if isinstance(outcome, Nothing) else None
        making = msgspec.structs.replace(making, draft=draft, failed=failed)
        if making.cause == "draft":
            self._drafting = making
            self._finish_draft_if_due()
            return
        if draft is not None:
            failed = self._commit(draft, making.ask)
        if draft is None or failed is not None:
            self._fail(making.ask, failed)
        if making.cause == "trigger":
            self._watch.mark_checked()

    def _fail(self, ask: FoldRequest, failed: Nothing | None, *, draft: bool = False) -> None:
        """Report to the watch that no boundary was made, and append its notes."""
        self.sums.refused += failed is None
        self.sums.fruitless += failed is not None
        why = failed.why if failed is not None else "floor"
        for note in self._watch.ended(ask.reason, why, self._facts_now(), 0.0, drafted=draft):
            self.state.push(chained(note, self.state.entries()[-1].id))

    def _finish_draft_if_due(self) -> None:
        """Finish the draft in the making if it is ready by now."""
        pending = self._drafting
        if pending is not None and self.sums.calls >= pending.request + self._draft_calls - 1:
            self._finish_draft()

    def _finish_draft(self) -> None:
        pending, self._drafting = self._drafting, None
        if pending is None:
            return
        self._draft = pending.draft
        if pending.draft is not None:
            self._watch.draft_made()
        else:
            self._fail(pending.ask, pending.failed, draft=True)

    def _drop_draft(self) -> None:
        self._draft = None
        self._watch.draft_dropped()

    def _commit_draft(self, ask: FoldRequest) -> bool:
        """Commit the ready draft, or keep it while a tool loop is signed; False if it cannot be committed."""
        draft = self._draft
        assert draft is not None
        failed = self._commit(draft, ask)
        if failed is not None and failed.why == "signed_thinking":
            return True
        self._drop_draft()
        return failed is None

    def _commit(self, draft: Draft, ask: FoldRequest) -> Nothing | None:
        """Append a boundary to the current path; return why it was not possible, or None."""
        before, path = self.state.items(), self.state.entries()
        outcome = rebased(CompactionInput(self.state, ask, self._counter), draft)
        if isinstance(outcome, Nothing):
            return outcome
        boundary = chained(outcome.boundary, path[-1].id if path else None)
        self.state = outcome.after
        self.state.set_id(boundary)
        same = self.scale.overhead_tokens + common_tokens(before, self.state.items())
        self._tally.boundary(boundary, ask.reason, same, self.scale)
        self._watch.folded()
        return None

    # ---- a message

    def say(self, entry: Said) -> None:
        """Take the next recorded message; the first in a run of replies is a model call."""
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
            usage = Usage(input=self.size, output=tokens)
            turn = self._tally.request(usage.input, self.window)
            if self._fills:
                turn.contexts.append(usage.input)
            if self._fills and turn.calls == 1 and self._overflowed_size is None:
                turn.fills = filled(self.state.items(), self.scale.overhead_tokens)
            self._overflow_handled = False
            self._finish_draft_if_due()
        self._replying = True
        self._tally.reply((message.usage.output if message.usage is not None else 0) or tokens)
        self._push(entry, usage)

    def _push(self, entry: Said, usage: Usage | None) -> None:
        if self._overflowed_size is not None:
            self._overflowed_size += self.scale.of(entry.tokens)
            return
        message = msgspec.structs.replace(entry.message, usage=usage)
        self.state.push(msgspec.structs.replace(entry, message=message))
        self._watch.said([message])

    # ---- sizes

    @property
    def size(self) -> int:
        """The tokens of the next request."""
        if self._overflowed_size is not None:
            return self._overflowed_size
        return self.scale.of(self.scale.overhead_tokens + self.state.tokens)

    @property
    def fits(self) -> bool:
        """Whether the view fits the window."""
        return self._overflowed_size is None and self.size <= self.window.input_limit


def _never_acts(policy: Policy) -> bool:
    """Whether a policy never makes an automatic boundary."""
    mends = policy.enabled if policy.on_overflow is None else policy.on_overflow
    return not mends and (not policy.enabled or (policy.hard is None and policy.soft is None))
