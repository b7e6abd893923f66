"""What the state machine of `decide.watch` reads of a view, and the compaction requests of the view."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.room import floor_of
from foldline.core.cut.edits import is_folded
from foldline.core.decide.ask import FoldRequest, is_optional
from foldline.core.decide.breaker import breaker_state
from foldline.core.decide.continuation import Continuation, continuation
from foldline.core.decide.overflow import mended_already
from foldline.core.decide.policy import Policy, message_estimate
from foldline.core.decide.price import Economy
from foldline.core.decide.triggers import overlooked
from foldline.core.decide.watch import TriggerFacts
from foldline.core.log.entries import Reason, Said
from foldline.core.log.messages import Message
from foldline.core.measure.accounting import context_size, last_input
from foldline.core.measure.tokens import Counter
from foldline.core.measure.window import Floor, Window
from foldline.core.view import ViewState
from foldline.core.view_items import MessageItem, item_parts


class Sizer:
    """The size of a growing view as a policy's triggers measure it; each message is estimated once."""

    def __init__(self, policy: Policy, counter: Counter) -> None:
        self._policy = policy
        self._counter = counter
        self._kept: Sequence[Said] = ()  # the estimated list, which may only grow
        self._estimated = 0  # how many of its entries are estimated
        self._total = 0  # their estimate

    def size(self, state: ViewState, overhead: int, ratio: float) -> int:
        """Return the size in tokens; `overhead` is the system prompt and tools, `ratio` the calibration."""
        policy = self._policy
        if policy.estimator == "foldline" and policy.trigger_on == "context":
            return state.context_size(overhead, ratio)
        if state.anchor is None or policy.trigger_on == "estimate":
            size = state.added_tokens + self._estimate_view(state)
            return size + (overhead if policy.trigger_on != "estimate" else 0)
        newest = state.kept[state.anchor :]
        input_tokens = last_input(newest) if policy.trigger_on == "input" else None
        return context_size(newest, weigh=self._estimate_entry) if input_tokens is None else input_tokens

    def overlooked(self, state: ViewState, window: Window, overhead: int, ratio: float) -> tuple[str, ...]:
        """Return a note if the context exceeds the window and the policy's triggers do not see it."""
        size, context = self.size(state, overhead, ratio), state.context_size(overhead, ratio)
        if not overlooked(self._policy, window, size, context):
            return ()
        seen_size = f"the policy's estimator ({self._policy.estimator}) sees {size:,} tokens"
        return (f"{seen_size}, Foldline {context:,}: more than the input limit of {window.input_limit:,}",)

    def _estimate_view(self, state: ViewState) -> int:
        """Return the estimate of all messages in the view."""
        if state.kept is not self._kept:
            self._kept, self._estimated, self._total = state.kept, 0, 0
        self._total += sum(self._estimate_shown(entry, state) for entry in state.kept[self._estimated :])
        self._estimated = len(state.kept)
        return self._total + sum(
            self._estimate_shown(entry, state) for entry in (*state.leading, *state.quoted)
        )

    def _estimate_shown(self, entry: Said, state: ViewState) -> int:
        """Return the estimate of an entry with its edits and without the parts that the view leaves out."""
        edits = (*state.edits.get(entry.id, ()), *state.repairs.get(entry.id, ()))
        if not edits:
            return self._estimate_entry(entry)
        if is_folded(edits):  # the summary is a message that the view adds
            return 0
        parts = item_parts(MessageItem(entry, edits))
        return self._estimate(msgspec.structs.replace(entry.message, parts=tuple(parts)))

    def _estimate_entry(self, entry: Said) -> int:
        """Return the estimate of an entry; Foldline's own was made when it was appended."""
        return entry.tokens if self._policy.estimator == "foldline" else self._estimate(entry.message)

    def _estimate(self, message: Message) -> int:
        return message_estimate(message, self._policy.estimator, self._counter)


def trigger_facts(
    state: ViewState, ask: FoldRequest, sizer: Sizer, counter: Counter, *, ratio: float, now: float
) -> TriggerFacts:
    """Return the facts about a view that `Watch` reads at a moment.

    `ask` is the request of a compaction at a threshold, `ratio` the calibration, `now` Unix time.
    """
    return TriggerFacts(
        size=sizer.size(state, ask.overhead_tokens, ratio),
        context=state.context_size(ask.overhead_tokens, ratio),
        tokens=state.tokens,
        messages=state.messages,
        new_messages=len(state.kept) - state.fresh_from,
        floor=lambda: floor_of(CompactionInput(state, ask, counter)),
        breaker=lambda: breaker_state(state.entries(), now),
        mended=lambda: mended_already(state.entries()),
    )


def fold_request(
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
    project: str = "",
) -> FoldRequest:
    """Return the request of a compaction of a view.

    With the policy's `sizer`, it has a note on what the triggers overlook. `ratio` is the model's tokens per
    token of ours. `share` is the part of the window to use after an overflow, when the provider counts more
    than we do.
    """
    notes: tuple[str, ...] = ()
    if is_optional(reason):
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
        project=project,
    )


def part_of_window(window: Window, share: float) -> Window:
    """Return a window with a `share` of the input limit and the same output limit."""
    return msgspec.structs.replace(window, context=max(1, int(window.input_limit * share)), input=None)


def number_of(state: ViewState) -> int:
    """Return the number of the next compaction of a path, from 1."""
    return state.boundary.checkpoint.number + 1 if state.boundary is not None else 1


def continuation_of(state: ViewState) -> Continuation:
    """Return the session's continuation state, from the newest messages or else from the checkpoint."""
    messages: Sequence[Message] = [entry.message for entry in state.kept]
    has_conversation = any(message.role == "assistant" or message.is_prompt for message in messages)
    if not has_conversation and state.boundary is not None and state.boundary.checkpoint.standing:
        return msgspec.convert(state.boundary.checkpoint.standing, Continuation)
    return continuation(messages)
