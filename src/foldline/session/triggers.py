"""What a session asks of a compaction, and when: the triggers, looked at for every moment that came about."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from foldline.core.compact.plan import floor_of
from foldline.core.decide.ask import Ask, Reason
from foldline.core.decide.breaker import breaker_state
from foldline.core.decide.estimate import Estimates, trigger_size
from foldline.core.decide.moments import moment_of, worth_a_try
from foldline.core.decide.policy import Moment
from foldline.core.decide.triggers import Compact, Decision, Refuse, StartDraft, decide
from foldline.core.log.messages import Message
from foldline.core.measure.overflow import silent
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.folding import now
from foldline.session.calibrate import Calibrator
from foldline.session.economy import economy_of
from foldline.session.setup import Setup


def ask_of(
    setup: Setup,
    fold: ViewState,
    reason: Reason,
    instructions: str | None = None,
    target: int | None = None,
    *,
    share: float = 1.0,
) -> Ask:
    """Return what is asked of a compaction of this fold.

    `share` is the part of the window to work with, where the provider counts more tokens than we do.
    """
    boundary = fold.boundary
    return Ask(
        policy=setup.policy,
        window=setup.window if share >= 1 else part_of(setup.window, share),
        reason=reason,
        target=target,
        instructions=instructions,
        apart=setup.apart,
        now=now(),
        number=boundary.checkpoint.number + 1 if boundary is not None else 1,
        economy=economy_of(setup, fold, time.time()),
    )


def part_of(window: Window, share: float) -> Window:
    """Return a window that holds a part of what this one does, in tokens; replies stay as long as they are."""
    whole = window.input_limit
    return msgspec.structs.replace(window, context=max(1, int(whole * share)), input=None)


class Triggers:
    """The moments of a session that were not looked at yet, and the size at which a compaction gained too little."""

    def __init__(self, setup: Setup, calibrator: Calibrator) -> None:
        self.calibrator = calibrator
        self.use(setup)
        self._moments: list[Moment] = ["before_smaller_window"]
        self._fruitless: int | None = None

    def use(self, setup: Setup) -> None:
        """Go on with other limits or another policy."""
        self.setup = setup
        self._estimates = Estimates(setup.policy.estimator, setup.counter)

    def happened(self, moment: Moment | None) -> None:
        """Remember a moment until it is looked at; one that says more than a threshold comes first."""
        if moment and moment not in self._moments:
            self._moments.insert(
                0 if moment in ("overflow", "before_smaller_window") else len(self._moments), moment
            )

    def said(self, messages: Sequence[Message]) -> None:
        """Remember the moment that the last message brings about, and an overflow that came as an ordinary reply."""
        self.happened(moment_of(messages[-1]))
        window = self.setup.window
        replies = (message for message in messages if message.role == "assistant")
        if self.setup.info.known and any(silent(reply.usage, reply.stop, window) for reply in replies):
            self.happened("overflow")

    def looked(self) -> None:
        """Forget the moments: they were looked at."""
        self._moments.clear()

    def tried(self, fold: ViewState, *, in_vain: bool) -> None:
        """Remember whether a compaction of this fold gained too little."""
        self._fruitless = fold.tokens if in_vain else None

    def worth_a_try(self, fold: ViewState, usable: int) -> bool:
        """Whether the view has grown since a compaction gained too little."""
        return worth_a_try(fold.tokens, self._fruitless, usable)

    def due(
        self, fold: ViewState, *, drafting: bool = False, careful: bool = True
    ) -> StartDraft | Compact | Refuse | None:
        """Look at the triggers, for every moment that came about since the last look; the gravest answer counts.

        While `drafting`, whether another draft is wanted is not asked; where not `careful`, neither are the floor
        and the breaker, which take longer.
        """
        found: StartDraft | None = None
        for moment in self._moments:
            quick = self.decide(fold, moment)
            if isinstance(quick, Compact) or (
                isinstance(quick, StartDraft) and not drafting and found is None
            ):
                sure = self.decide(fold, moment, careful=True) if careful else quick
                if isinstance(sure, Compact | Refuse):
                    return sure
                found = sure if isinstance(sure, StartDraft) else found
        return found

    def decide(self, fold: ViewState, moment: Moment, *, careful: bool = False) -> Decision:
        """Ask the triggers; `careful` also asks for the floor and the breaker, which take longer."""
        setup = self.setup
        return decide(
            self.size(fold),
            setup.window,
            setup.policy,
            moment,
            messages=fold.messages,
            floor=floor_of(fold, ask_of(setup, fold, "threshold"), setup.counter) if careful else None,
            breaker=breaker_state(fold.entries(), time.time()) if careful else None,
            model=setup.model,
            by_subagent=setup.subagent,
            new_messages=len(fold.kept) - fold.fresh_from,
        )

    def size(self, fold: ViewState) -> int:
        """Return the size that the policy's triggers look at, in tokens."""
        policy, apart = self.setup.policy, self.setup.apart
        outside = apart.system + apart.tools
        if policy.estimator == "foldline" and policy.trigger_on == "context":
            return fold.context_size(outside, self.calibrator.ratio).tokens
        if fold.anchor is None or policy.trigger_on == "estimate":
            size = fold.made + self._estimates.total(fold.kept)
            return size + (outside if policy.trigger_on != "estimate" else 0)
        return trigger_size(policy, fold.kept[fold.anchor :], self.setup.counter)
