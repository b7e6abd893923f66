"""What the state machine of `decide.watch` sees of a view, and what is then asked of a compaction of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.compact.job import CompactionInput, floor_of
from foldline.core.decide.ask import AUTOMATIC, FoldRequest
from foldline.core.decide.breaker import BreakerState, breaker_state
from foldline.core.decide.continuation import Continuation, continuation
from foldline.core.decide.estimate import Estimates, message_estimate, trigger_size
from foldline.core.decide.overflow import mended_already
from foldline.core.decide.policy import Policy
from foldline.core.decide.price import Economy
from foldline.core.decide.triggers import overlooked
from foldline.core.log.entries import Reason, Said
from foldline.core.log.messages import Message
from foldline.core.measure.tokens import Counter
from foldline.core.measure.window import Floor, Window
from foldline.core.view import ViewState


class Sizer:
    """The size of a growing view, as the triggers of a policy compare it; each message is estimated once."""

    def __init__(self, policy: Policy, counter: Counter) -> None:
        self._policy = policy
        self._counter = counter
        self._estimates = Estimates(policy.estimator, counter)

    def size(self, state: ViewState, overhead: int, ratio: float) -> int:
        """Return the size in tokens; `overhead` is the system prompt and tools, `ratio` the calibration."""
        policy = self._policy
        if policy.estimator == "foldline" and policy.trigger_on == "context":
            return state.context_size(overhead, ratio).tokens
        if state.anchor is None or policy.trigger_on == "estimate":
            size = state.made + self._said(state) - self._saved(state)
            return size + (overhead if policy.trigger_on != "estimate" else 0)
        return trigger_size(policy, state.kept[state.anchor :], self._counter)

    def overlooked(self, state: ViewState, window: Window, overhead: int, ratio: float) -> tuple[str, ...]:
        """Return a note where the context exceeds the window, and the policy's triggers do not see it."""
        size, context = self.size(state, overhead, ratio), state.context_size(overhead, ratio).tokens
        if not overlooked(self._policy, window, size, context):
            return ()
        seen = f"the policy's estimator ({self._policy.estimator}) sees {size:,} tokens"
        return (f"{seen}, Foldline {context:,}: more than the input limit of {window.input_limit:,}",)

    def _said(self, state: ViewState) -> int:
        """Return the estimate of every message that is in the view, as it was received."""
        older = sum(self._weigh(entry.message) for entry in (*state.leading, *state.quoted))
        return older + self._estimates.total(state.kept)

    def _saved(self, state: ViewState) -> int:
        """Return by how much edits, and parts that the view leaves out, make the estimate smaller."""
        if not state.edits and not state.repairs:
            return 0
        said = (*state.leading, *state.quoted, *state.kept)
        edited = [entry for entry in said if entry.id in state.edits or entry.id in state.repairs]
        return sum(self._weigh(entry.message) - self._weigh(_edited(entry, state)) for entry in edited)

    def _weigh(self, message: Message) -> int:
        return message_estimate(message, self._policy.estimator, self._counter)


def _edited(entry: Said, state: ViewState) -> Message:
    edits = (*state.edits.get(entry.id, ()), *state.repairs.get(entry.id, ()))
    new = {edit.part: edit.replacement for edit in edits}
    parts = (new.get(index, part) for index, part in enumerate(entry.message.parts))
    return msgspec.structs.replace(entry.message, parts=tuple(part for part in parts if part is not None))


class ViewSight:
    """A view at a moment, as `Watch` wants to see it.

    `ask` is what would be asked of a compaction at a threshold, `now` Unix time; `size` is what the policy's
    triggers compare, `context` the same by Foldline's own estimates, in tokens.
    """

    def __init__(
        self, state: ViewState, ask: FoldRequest, sizer: Sizer, counter: Counter, *, ratio: float, now: float
    ) -> None:
        self.size = sizer.size(state, ask.overhead_tokens, ratio)
        self.context = state.context_size(ask.overhead_tokens, ratio).tokens
        self._state = state
        self._ask = ask
        self._counter = counter
        self._now = now

    @property
    def tokens(self) -> int:
        """The view by Foldline's own count."""
        return self._state.tokens

    @property
    def messages(self) -> int:
        """The number of messages in the view."""
        return self._state.messages

    @property
    def new_messages(self) -> int:
        """The number of messages said since the newest boundary."""
        return len(self._state.kept) - self._state.fresh_from

    def floor(self) -> Floor:
        """Return what no compaction can remove."""
        return floor_of(CompactionInput(self._state, self._ask, self._counter))

    def breaker(self) -> BreakerState:
        """Return the breaker's state at the end of the path."""
        return breaker_state(self._state.entries(), self._now)

    def mended(self) -> bool:
        """Whether an overflow was folded away already, and no reply has come since."""
        return mended_already(self._state.entries())


def asked(
    state: ViewState,
    policy: Policy,
    window: Window,
    reason: Reason,
    *,
    instructions: str | None = None,
    target: int | None = None,
    overhead: Floor,
    now: str,
    ratio: float = 1.0,
    share: float = 1.0,
    economy: Economy | None = None,
    sizer: Sizer | None = None,
) -> FoldRequest:
    """Return what is asked of a compaction of a view.

    With the policy's `sizer`, it carries a note on what the policy's triggers overlook. `ratio` is the
    model's tokens to one of ours, `share` the part of the window to work with after an overflow: where the
    provider counts more than we do, a compaction works with less.
    """
    notes: tuple[str, ...] = ()
    if reason in AUTOMATIC:
        share = min(share, 1 / ratio)
        notes = sizer.overlooked(state, window, overhead.system + overhead.tools, ratio) if sizer else ()
    return FoldRequest(
        policy=policy,
        window=window if share >= 1 else part_of_window(window, share),
        reason=reason,
        target=target,
        instructions=instructions,
        overhead=overhead,
        now=now,
        number=number_of(state),
        economy=economy,
        notes=notes,
    )


def part_of_window(window: Window, share: float) -> Window:
    """Return a window that holds a part of what this one does; its replies may be as long."""
    whole = window.input_limit
    return msgspec.structs.replace(window, context=max(1, int(whole * share)), input=None)


def number_of(state: ViewState) -> int:
    """Return the number of the next compaction of a path, from 1."""
    return state.boundary.checkpoint.number + 1 if state.boundary is not None else 1


def standing(state: ViewState) -> Continuation:
    """Return where the session stands, by code: from the newest messages, or what the checkpoint recorded."""
    messages: Sequence[Message] = [entry.message for entry in state.kept]
    speaks = any(message.role == "assistant" or message.is_prompt for message in messages)
    if not speaks and state.boundary is not None and state.boundary.checkpoint.standing:
        return msgspec.convert(state.boundary.checkpoint.standing, Continuation)
    return continuation(messages)
