"""When a session is compacted: the triggers, looked at for every moment that came about since the last look."""

from __future__ import annotations

import time
from collections.abc import Sequence

from foldline.core.compact.job import Job, floor_of
from foldline.core.decide.breaker import breaker_state
from foldline.core.decide.moments import moment_of, worth_a_try
from foldline.core.decide.policy import Moment
from foldline.core.decide.triggers import Compact, Decision, Refuse, StartDraft, decide
from foldline.core.log.entries import Lifted, Said
from foldline.core.log.messages import Message
from foldline.core.measure.overflow import silent
from foldline.core.view import ViewState
from foldline.session.model import SessionModel, ask_of


class Triggers:
    """The moments of a session that were not looked at yet, and the size at which a compaction gained too little."""

    def __init__(self, model: SessionModel) -> None:
        self._model = model
        self._moments: list[Moment] = ["before_smaller_window"]
        self._fruitless: int | None = None

    def happened(self, moment: Moment | None) -> None:
        """Remember a moment until it is looked at; one that says more than a threshold comes first."""
        if moment and moment not in self._moments:
            first = moment in ("overflow", "before_smaller_window")
            self._moments.insert(0 if first else len(self._moments), moment)

    def said(self, messages: Sequence[Message]) -> None:
        """Remember the moment that the last message brings about, and an overflow that came as an ordinary reply."""
        self.happened(moment_of(messages[-1]))
        setup = self._model.setup
        replies = (message for message in messages if message.role == "assistant")
        if setup.info.known and any(silent(reply.usage, reply.stop, setup.window) for reply in replies):
            self.happened("overflow")

    def lifted(self, fold: ViewState) -> None:
        """Where the newest of the path is an undo, let it stand until something is said, if the view fits as it is."""
        newest = next((e for e in reversed(fold.entries()) if isinstance(e, Said | Lifted)), None)
        if isinstance(newest, Lifted) and newest.lifted:
            self.looked()
            if self._model.view_tokens > self._model.ask("threshold").usable:
                self.happened("before_smaller_window")

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
        setup = self._model.setup
        return decide(
            self._model.trigger_size(fold),
            setup.window,
            setup.policy,
            moment,
            messages=fold.messages,
            floor=floor_of(Job(fold, ask_of(setup, fold, "threshold"), setup.counter)) if careful else None,
            breaker=breaker_state(fold.entries(), time.time()) if careful else None,
            model=setup.model,
            by_subagent=setup.subagent,
            new_messages=len(fold.kept) - fold.fresh_from,
        )
