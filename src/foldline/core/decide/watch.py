"""When a session is compacted: one state machine, driven by the live session and by the lab's replay.

The caller reports events to a `Watch` (a message, a boundary, the end of a draft or compaction, another
model) and asks what is `due`: before the next request, and directly after a message if `checks_at_once`. The
watch has no side effects and no clock: it reads `TriggerFacts` of the current view, and the log holds what
must survive a restart.

    due = watch.due(facts)
    CommitDraft   commit the ready draft: report `folded`, or `draft_dropped` and ask again
    StartDraft    make a boundary in the background: report `draft_begun`, then `draft_made` or `ended`
    Compact       make a boundary now: report `folded` or `ended`, then `mark_checked`
    Wait          the draft in the making is needed: ask again when it is ready
    Refuse        no compaction can help
    None          continue

A moment (a turn begins, a reply came, tools answered, the model changed, a request overflowed) is remembered
until it is checked, so none is lost while a compaction runs. The draft has three states:

             StartDraft                 ready
    none ------------------> making ------------> ready
     ^     soft trigger         | failed, void      | hard trigger, a cold cache, a pause: CommitDraft
     +--------------------------+-------------------+

Two rules prevent useless tries: after a compaction that gained too little the view must grow first, and after
three failures in a row the breaker (`breaker.py`) is open for a while. The first does not apply to an
overflow, which is compacted once for each prompt.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from foldline.core.decide.ask import AUTOMATIC, AutomaticReason, is_optional
from foldline.core.decide.breaker import Failure, failure_notes
from foldline.core.decide.policy import Moment
from foldline.core.decide.triggers import (
    Compact,
    Decision,
    Refuse,
    StartDraft,
    Stay,
    TriggerFacts,
    WatchLimits,
    counts_at_once,
    decide,
    has_grown,
    moment_of,
)
from foldline.core.log.entries import Noted, Reason
from foldline.core.log.messages import Message
from foldline.core.log.steps import finishes
from foldline.core.measure.overflow import silent

URGENT: frozenset[Moment] = frozenset({"overflow", "before_smaller_window"})  # more urgent than a threshold


class CommitDraft(msgspec.Struct, frozen=True):
    """Commit the ready draft, for this reason."""

    reason: AutomaticReason


class Wait(msgspec.Struct, frozen=True):
    """The view does not fit: wait for the draft in the making."""


Due = StartDraft | CommitDraft | Compact | Wait | Refuse


class Watch:
    """The unchecked moments, the draft, and the size at which a compaction gained too little."""

    def __init__(self, limits: WatchLimits) -> None:
        self.limits = limits
        self.draft: Literal["none", "making", "ready"] = "none"
        self.event_number = 0  # counts all moments
        self._moments: dict[Moment, int] = {}  # unchecked, each with its newest event number
        self._checked_until = 0  # the newest event number that was handled
        self._check_at_once = 0  # the newest event that asks for a check at once; 0 for none
        self._view_changed = 0  # the newest event that changed the view without a new message
        self._fruitless: int | None = None

    # ---- what happened

    def use(self, limits: WatchLimits, *, switched: bool = False) -> None:
        """Use other limits; `switched`: those of another model, whose window may be smaller."""
        self.limits = limits
        if switched:
            self.happened("before_smaller_window")

    def happened(self, moment: Moment) -> None:
        """Remember a moment until it is checked."""
        self.event_number += 1
        self._moments[moment] = self.event_number

    def view_changed(self) -> None:
        """Check again although nothing was said: an undo or a move of the leaf changed the view."""
        self.happened("before_smaller_window")
        self._view_changed = self.event_number

    def said(self, messages: Sequence[Message]) -> None:
        """Report appended messages: the last one sets the moment; a reply may be a silent overflow."""
        if moment := moment_of(messages[-1]):
            self.happened(moment)
            calling = moment == "after_reply" and not finishes(messages[-1])
            if counts_at_once(self.limits.policy, moment) and not calling:
                self._check_at_once = self.event_number
        window = self.limits.window
        replies = (message for message in messages if message.role == "assistant")
        if self.limits.known and any(silent(reply.usage, reply.stop, window) for reply in replies):
            self.happened("overflow")

    def checks_at_once(self, open_calls: Collection[str]) -> bool:
        """Whether the triggers must be checked now, before another message; not while calls are open."""
        return bool(self._check_at_once) and not open_calls

    def mark_checked(self, until: int | None = None) -> None:
        """Forget the moments: what they required was done, or failed.

        `until` is the `event_number` at the check; later moments stay.
        """
        until = self.event_number if until is None else until
        self._checked_until = max(until, self._checked_until)
        self._moments = {moment: at for moment, at in self._moments.items() if at > until}
        self._check_at_once = self._check_at_once if self._check_at_once > until else 0

    def has_checked(self, until: int) -> bool:
        """Whether the result of a check was handled since; `until` is the `event_number` of that check."""
        return until <= self._checked_until

    def folded(self) -> None:
        """Report that a boundary was added, undone or redone, or the leaf moved: a new try may gain."""
        self._fruitless = None

    def undone(self, *, fits: bool) -> None:
        """Report that the newest boundary was undone by hand: if the view `fits`, wait for new messages."""
        self.mark_checked()
        if not fits:
            self.view_changed()

    def draft_begun(self) -> None:
        """Report that a draft is being made."""
        self.draft = "making"

    def draft_made(self) -> None:
        """Report that the draft is ready."""
        self.draft = "ready"

    def draft_dropped(self) -> None:
        """Report that the draft was committed, cancelled or void."""
        self.draft = "none"

    def ended(
        self, reason: Reason, why: Failure, facts: TriggerFacts, now: float, *, drafted: bool = False
    ) -> tuple[Noted, ...]:
        """Report that a compaction made no boundary, and why; return the notes to append.

        `error` and `floor` were raised; `now` is Unix time. After a fruitless try the view must grow first.
        """
        if drafted:
            self.draft_dropped()
        if drafted or (is_optional(reason) and why not in ("error", "floor")):
            self._fruitless = facts.tokens
        return failure_notes(reason, why, facts.breaker(), now) if reason in AUTOMATIC else ()

    # ---- what is due

    def due(self, facts: TriggerFacts, *, pays: bool = False) -> Due | None:
        """Return what to do now, or None.

        A ready draft that `pays` (the next request costs less with it) is committed above the soft trigger.
        The floor and the breaker were checked when the draft was begun.
        """
        if self.draft == "ready":
            decision = self._most_urgent(facts, drafting=not pays, careful=False)
            if isinstance(decision, Compact | StartDraft):
                return CommitDraft(decision.reason)
        decision = self._most_urgent(facts, drafting=self.draft != "none", careful=True)
        if isinstance(decision, Refuse):
            return decision
        if isinstance(decision, Compact) and (
            decision.reason == "overflow" or self.has_grown(facts.tokens, decision.usable)
        ):
            if self.draft != "making":
                return decision
            fits = decision.reason == "threshold" and decision.size <= decision.usable
            return None if fits else Wait()  # it is checked again when the draft is ready
        self.mark_checked()
        return (
            decision
            if isinstance(decision, StartDraft) and self.has_grown(facts.tokens, decision.usable)
            else None
        )

    def on_overflow(self, facts: TriggerFacts) -> Compact | Refuse | Stay:
        """Return what to do about a request that the provider refused.

        It is compacted once, and again only after a new prompt or reply.
        """
        if facts.mended():
            return Stay("mended", "overflow", facts.size, 0)
        decision = decide(self.limits, facts, "overflow", careful=True)
        assert not isinstance(decision, StartDraft)
        return decision

    def has_grown(self, tokens: int, usable: int) -> bool:
        """Whether a view of `tokens` has grown since a compaction gained too little."""
        return has_grown(tokens, self._fruitless, usable)

    def _most_urgent(
        self, facts: TriggerFacts, *, drafting: bool, careful: bool
    ) -> StartDraft | Compact | Refuse | None:
        """Check the triggers for every unchecked moment; return the most urgent decision.

        While `drafting`, no other draft is started. The floor and the breaker, which are slow, are checked
        only if `careful`.
        """
        draft: StartDraft | None = None
        for moment in sorted(self._moments, key=lambda one: -self._moments[one] if one in URGENT else 1):
            decision = self._decide(facts, moment, careful=False)
            wanted = isinstance(decision, Compact) or (
                isinstance(decision, StartDraft) and not drafting and draft is None
            )
            if wanted and careful:
                decision = self._decide(facts, moment, careful=True)
            if wanted and isinstance(decision, Compact | Refuse):
                return decision
            draft = decision if wanted and isinstance(decision, StartDraft) else draft
        return draft

    def _decide(self, facts: TriggerFacts, moment: Moment, *, careful: bool) -> Decision:
        """Decide at a moment; a view that changed in the same window is not a switch of the model."""
        decision = decide(self.limits, facts, moment, careful=careful)
        if self._moments[moment] != self._view_changed or isinstance(decision, Stay):
            return decision
        return msgspec.structs.replace(decision, reason="threshold")
