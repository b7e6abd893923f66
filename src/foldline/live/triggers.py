"""What a session asks of a compaction, and when: the triggers, looked at for every moment that came about."""

from __future__ import annotations

import time

from foldline.core.decide.ask import Ask, Reason
from foldline.core.decide.breaker import breaker_state
from foldline.core.decide.estimate import Estimates, trigger_size
from foldline.core.decide.moments import moment_of, worth_a_try
from foldline.core.decide.policy import Moment
from foldline.core.decide.triggers import Compact, Decision, Refuse, decide
from foldline.core.log.messages import Message
from foldline.core.plan import floor_of
from foldline.core.view import Fold
from foldline.live.setup import Setup
from foldline.stateless import now


def ask_of(
    setup: Setup, fold: Fold, reason: Reason, instructions: str | None = None, target: int | None = None
) -> Ask:
    """Return what is asked of a compaction of this fold."""
    boundary = fold.boundary
    return Ask(
        policy=setup.policy,
        window=setup.window,
        reason=reason,
        target=target,
        instructions=instructions,
        apart=setup.apart,
        now=now(),
        number=boundary.checkpoint.number + 1 if boundary is not None else 1,
    )


class Triggers:
    """The moments of a session that were not looked at yet, and the size at which a compaction gained too little."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._estimates = Estimates(setup.policy.estimator, setup.counter)
        self._moments: list[Moment] = ["before_smaller_window"]
        self._fruitless: int | None = None

    def said(self, message: Message) -> None:
        """Remember the moment that a message brings about."""
        if (moment := moment_of(message)) and moment not in self._moments:
            self._moments.append(moment)

    def looked(self) -> None:
        """Forget the moments: they were looked at."""
        self._moments.clear()

    def tried(self, fold: Fold, *, in_vain: bool) -> None:
        """Remember whether a compaction of this fold gained too little."""
        self._fruitless = fold.tokens if in_vain else None

    def worth_a_try(self, fold: Fold, usable: int) -> bool:
        """Whether the view has grown since a compaction gained too little."""
        return worth_a_try(fold.tokens, self._fruitless, usable)

    def due(self, fold: Fold) -> Compact | Refuse | None:
        """Look at the triggers, for every moment that came about since the last look."""
        for moment in self._moments:
            if isinstance(self._decide(fold, moment), Compact):
                careful = self._decide(fold, moment, careful=True)
                if isinstance(careful, Compact | Refuse):
                    return careful
        return None

    def _decide(self, fold: Fold, moment: Moment, *, careful: bool = False) -> Decision:
        """Ask the triggers; `careful` also asks for the floor and the breaker, which take longer."""
        setup = self.setup
        return decide(
            self._size(fold),
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

    def _size(self, fold: Fold) -> int:
        """Return the size that the policy's triggers look at, in tokens."""
        policy, apart = self.setup.policy, self.setup.apart
        outside = apart.system + apart.tools
        if policy.estimator == "foldline" and policy.trigger_on == "context":
            return fold.context_size(outside).tokens
        if fold.anchor is None or policy.trigger_on == "estimate":
            size = fold.made + self._estimates.total(fold.kept)
            return size + (outside if policy.trigger_on != "estimate" else 0)
        return trigger_size(policy, fold.kept[fold.anchor :], self.setup.counter)
