"""When a session is compacted: one state machine, driven by the live session and by the lab's replay.

A `Watch` is told what happened (a message, a boundary, how a draft or a compaction ended, another model),
and answers what is `due`: before the next request, and where `checks_at_once` says so right behind a message.
It does nothing itself, keeps no message and knows no clock: it looks at `TriggerFacts` of the view as it is,
and what has to survive a restart stands in the log.

    due = watch.due(facts)
    CommitDraft   put the draft that is ready onto the path: `folded`, or `draft_dropped` and ask again
    StartDraft    make a boundary beside the session: `draft_begun`, then `draft_made` or `ended`
    Compact       make a boundary now: `folded` or `ended`, then `mark_checked`
    Wait          the draft that is being made is needed: ask again when it is there
    Refuse        nothing can help
    None          go on

A moment (a turn begins, a reply came, tools answered, the model changed, a request overflowed) is remembered
until it was checked, so none is lost while a compaction runs. The draft has three states:

             StartDraft                 ready
    none ------------------> making ------------> ready
     ^     soft trigger         | failed, void      | hard trigger, a cold cache, a pause: CommitDraft
     +--------------------------+-------------------+

Two brakes keep it from trying for nothing: a size at which a compaction gained too little is not tried again
before the view has grown, and after three failures in a row the breaker (`breaker.py`) is open for a while.
An overflow passes the first, and is folded away once for each message of the user.
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

URGENT: frozenset[Moment] = frozenset({"overflow", "before_smaller_window"})  # say more than a threshold does


class CommitDraft(msgspec.Struct, frozen=True):
    """The draft that is ready is to be committed, for this reason."""

    reason: AutomaticReason


class Wait(msgspec.Struct, frozen=True):
    """The view does not fit: the draft that is being made has to be waited for."""


Due = StartDraft | CommitDraft | Compact | Wait | Refuse


class Watch:
    """The moments not looked at yet, the draft, and the size at which a compaction gained too little."""

    def __init__(self, limits: WatchLimits) -> None:
        self.limits = limits
        self.draft: Literal["none", "making", "ready"] = "none"
        self.event_number = 0  # moments that came, looked at or not
        self._moments: dict[
            Moment, int
        ] = {}  # not looked at yet, each with the newest happening that made it
        self._looked_until = 0  # the newest happening that was looked at, and done
        self._at_once = 0  # the newest happening that asks for a look right away; 0 for none
        self._fruitless: int | None = None

    # ---- what happened

    def use(self, limits: WatchLimits, *, switched: bool = False) -> None:
        """Go on with other limits; `switched`: of another model, whose window may be smaller."""
        self.limits = limits
        if switched:
            self.happened("before_smaller_window")

    def happened(self, moment: Moment) -> None:
        """Remember a moment until it is looked at."""
        self.event_number += 1
        self._moments[moment] = self.event_number

    def said(self, messages: Sequence[Message]) -> None:
        """Take what was said at once: its last message makes the moment; a reply may be a silent overflow."""
        if moment := moment_of(messages[-1]):
            self.happened(moment)
            if counts_at_once(self.limits.policy, moment) and not _calls(messages[-1]):
                self._at_once = self.event_number
        window = self.limits.window
        replies = (message for message in messages if message.role == "assistant")
        if self.limits.known and any(silent(reply.usage, reply.stop, window) for reply in replies):
            self.happened("overflow")

    def checks_at_once(self, open_calls: Collection[str]) -> bool:
        """Whether the triggers are to be looked at right away, before anything else is said.

        Not while calls wait for their results: `open_calls` are those of the view.
        """
        return bool(self._at_once) and not open_calls

    def mark_checked(self, until: int | None = None) -> None:
        """Forget the moments: what they asked for was done, or failed.

        With `until`, the number of `event_number` at the look, those stay that came since.
        """
        until = self.event_number if until is None else until
        self._looked_until = max(until, self._looked_until)
        self._moments = {moment: at for moment, at in self._moments.items() if at > until}
        self._at_once = self._at_once if self._at_once > until else 0

    def has_checked(self, until: int) -> bool:
        """Whether what a check found was seen to since; `until` is the `event_number` of that check."""
        return until <= self._looked_until

    def folded(self) -> None:
        """A boundary came onto the path, was lifted or put back, or the leaf moved: a new try may gain."""
        self._fruitless = None

    def undone(self, *, fits: bool) -> None:
        """The newest boundary was lifted by hand: that stands until something is said, if the view `fits`."""
        self.mark_checked()
        if not fits:
            self.happened("before_smaller_window")

    def draft_begun(self) -> None:
        """A draft is being made."""
        self.draft = "making"

    def draft_made(self) -> None:
        """The draft is ready."""
        self.draft = "ready"

    def draft_dropped(self) -> None:
        """There is no draft any more: committed, cancelled, or void."""
        self.draft = "none"

    def ended(
        self, reason: Reason, why: Failure, facts: TriggerFacts, now: float, *, drafted: bool = False
    ) -> tuple[Noted, ...]:
        """Take that a compaction made no boundary, and why; return the notes to append for it.

        `error` and `floor` were raised; `now` is Unix time. A trigger is not heeded again before the view
        has grown.
        """
        if drafted:
            self.draft_dropped()
        if drafted or (is_optional(reason) and why not in ("error", "floor")):
            self._fruitless = facts.tokens
        return failure_notes(reason, why, facts.breaker(), now) if reason in AUTOMATIC else ()

    # ---- what is due

    def due(self, facts: TriggerFacts, *, pays: bool = False) -> Due | None:
        """Return what is to be done now.

        Where the draft that is ready `pays`, since the next request costs less with it, it is committed above
        the soft trigger. The floor and the breaker were asked when the draft was begun.
        """
        if self.draft == "ready":
            found = self._gravest(facts, drafting=not pays, careful=False)
            if isinstance(found, Compact | StartDraft):
                return CommitDraft(found.reason)
        found = self._gravest(facts, drafting=self.draft != "none", careful=True)
        if isinstance(found, Refuse):
            return found
        if isinstance(found, Compact) and (found.reason == "overflow" or self._has_grown(found, facts)):
            if self.draft != "making":
                return found
            fits = found.reason == "threshold" and found.size <= found.usable
            return None if fits else Wait()  # it is looked at again when the draft is there
        self.mark_checked()
        return found if isinstance(found, StartDraft) and self._has_grown(found, facts) else None

    def on_overflow(self, facts: TriggerFacts) -> Compact | Refuse | Stay:
        """Return what is to be done about a request that the provider refused: it is folded away once.

        Again only where the user has spoken, or the model has replied, since.
        """
        if facts.mended():
            return Stay("mended", "overflow", facts.size, 0)
        found = decide(self.limits, facts, "overflow", careful=True)
        assert not isinstance(found, StartDraft)
        return found

    def has_grown(self, tokens: int, usable: int) -> bool:
        """Whether a view of so many tokens has grown since a compaction gained too little."""
        return has_grown(tokens, self._fruitless, usable)

    def _has_grown(self, found: Compact | StartDraft, facts: TriggerFacts) -> bool:
        return self.has_grown(facts.tokens, found.usable)

    def _gravest(
        self, facts: TriggerFacts, *, drafting: bool, careful: bool
    ) -> StartDraft | Compact | Refuse | None:
        """Look at the triggers, for every moment since the last look; the gravest answer counts.

        While `drafting`, whether another draft is wanted is not asked; where not `careful`, neither are the
        floor and the breaker, which take longer.
        """
        draft: StartDraft | None = None
        for moment in self._in_order():
            found = decide(self.limits, facts, moment)
            wanted = isinstance(found, Compact) or (
                isinstance(found, StartDraft) and not drafting and draft is None
            )
            if wanted and careful:
                found = decide(self.limits, facts, moment, careful=True)
            if wanted and isinstance(found, Compact | Refuse):
                return found
            draft = found if wanted and isinstance(found, StartDraft) else draft
        return draft

    def _in_order(self) -> list[Moment]:
        """Return the moments not looked at yet; those that say more than a threshold come first."""
        return sorted(self._moments, key=lambda moment: -self._moments[moment] if moment in URGENT else 1)


def _calls(message: Message) -> bool:
    """Whether a message is a reply that waits for results of calls: nobody reads it as an answer yet."""
    return message.role == "assistant" and moment_of(message) == "after_reply" and not finishes(message)
