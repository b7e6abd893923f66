"""Decide whether to compact at a moment, with the numbers behind the decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from foldline.core.decide.ask import AutomaticReason
from foldline.core.decide.breaker import BreakerState
from foldline.core.decide.policy import Moment, Policy, usable_of
from foldline.core.decide.presets import resolve
from foldline.core.log.messages import Message
from foldline.core.log.steps import ends_in_results, finishes
from foldline.core.measure.window import Floor, Window

AFTER_APPEND = frozenset({"turn_start", "after_reply", "after_tools"})  # moments that follow an append
GROWTH = 20  # after a fruitless compaction, retry when the view has grown by usable / GROWTH
StayWhy = Literal[
    "disabled",  # by the policy
    "moment",  # the policy does not check at this one
    "subagent",  # which ignores thresholds
    "few_messages",
    "nothing_new",  # since the last boundary
    "below",  # all triggers
    "breaker",  # open
    "never",  # the policy has no trigger
    "mended",  # a fold followed the overflow, and no reply has come since
]


class Stay(msgspec.Struct, frozen=True, tag="stay"):
    """Do nothing; `threshold` is the trigger that was not exceeded."""

    why: StayWhy
    moment: Moment
    size: int
    usable: int
    threshold: int | None = None


class StartDraft(msgspec.Struct, frozen=True, tag="draft"):
    """Make a summary in the background: `size` exceeds the soft trigger, not the hard one."""

    moment: Moment
    size: int
    usable: int
    threshold: int
    reason: AutomaticReason = "threshold"


class Compact(msgspec.Struct, frozen=True, tag="compact"):
    """Make a boundary now; `reason` is for its receipt."""

    reason: AutomaticReason
    moment: Moment
    size: int
    usable: int
    threshold: int | None = None


class Refuse(msgspec.Struct, frozen=True, tag="refuse"):
    """A boundary is needed but cannot help: what cannot be removed is larger than usable."""

    reason: AutomaticReason
    moment: Moment
    size: int
    usable: int
    floor: int
    breakdown: dict[str, int]
    threshold: int | None = None


Decision = Stay | StartDraft | Compact | Refuse


class Thresholds(msgspec.Struct, frozen=True):
    """The sizes in tokens above which a draft is made (`soft`) or the view is compacted (`hard`)."""

    usable: int
    soft: int | None
    hard: int | None


def thresholds(policy: Policy, window: Window) -> Thresholds:
    """Return the triggers of a policy for a window; they are at most usable."""
    usable = usable_of(policy, window)
    soft = min(usable, policy.soft.resolve(window, usable)) if policy.soft and policy.background else None
    hard = min(usable, policy.hard.resolve(window, usable)) if policy.hard else None
    return Thresholds(usable, soft, hard)


class WatchLimits(msgspec.Struct, frozen=True):
    """The limits of a session; `known`: the window is the model's and not assumed."""

    policy: Policy
    window: Window
    model: str | None = None
    subagent: bool = False
    known: bool = True


class TriggerFacts(msgspec.Struct, frozen=True):
    """The facts about a view that decisions need, sizes in tokens; slow ones are functions.

    `size` is what the policy's triggers compare, `context` the next request by usage and our estimates,
    `tokens` the view by our count, `new_messages` those since the newest boundary. `floor` is what no
    compaction can remove, `breaker` the breaker's state; `mended` says whether a fold followed an overflow
    and no reply has come since.
    """

    size: int
    context: int
    tokens: int
    messages: int
    new_messages: int
    floor: Callable[[], Floor]
    breaker: Callable[[], BreakerState]
    mended: Callable[[], bool]


def decide(limits: WatchLimits, facts: TriggerFacts, moment: Moment, *, careful: bool = False) -> Decision:
    """Decide whether an automatic compaction starts at this moment, and why.

    A trigger fires above its threshold, not at it; a context above the input limit exceeds every trigger that
    compares the whole context. At `before_smaller_window`, the window is the smaller one. The floor and the
    breaker, which are slow, are checked only if `careful`.
    """
    policy, window, size = resolve(limits.policy, limits.model, limits.window), limits.window, facts.size
    at = thresholds(policy, window)
    if overlooked(policy, window, size, facts.context):
        size, at = facts.context, Thresholds(at.usable, None, window.input_limit)
    check = _Check(moment, size, at, facts, careful)
    if moment == "overflow":
        return _on_overflow(check, policy)
    ignored = _ignored_because(check, policy, limits.subagent)
    return check.stay(ignored) if ignored else _at_threshold(check, policy)


def overlooked(policy: Policy, window: Window, size: int, context: int) -> bool:
    """Whether the context exceeds the input limit although the policy's estimate `size` is below its trigger.

    This happens with text that `chars/4` undercounts, such as hexadecimal digits or Chinese. A policy that
    compares only the last input or the messages is exempt: it overflows as its original does, then compacts.
    """
    limits = thresholds(policy, window)
    if policy.trigger_on != "context" or (limits.hard is None and limits.soft is None):
        return False
    return context > window.input_limit and (limits.hard is None or size <= limits.hard)


def counts(policy: Policy, moment: Moment) -> bool:
    """Whether a policy checks its triggers at this moment; `append` covers every moment after one."""
    return moment in policy.check_at or ("append" in policy.check_at and moment in AFTER_APPEND)


def counts_at_once(policy: Policy, moment: Moment) -> bool:
    """Whether a policy checks its triggers immediately, and not only before the next request.

    It does after a reply, and with `append` after any message.
    """
    return counts(policy, moment) and (moment == "after_reply" or "append" in policy.check_at)


class _Check(msgspec.Struct, frozen=True):
    """The input of a decision, and its possible answers."""

    moment: Moment
    size: int
    limits: Thresholds
    facts: TriggerFacts
    careful: bool

    def stay(self, why: StayWhy, threshold: int | None = None) -> Stay:
        return Stay(why, self.moment, self.size, self.limits.usable, threshold)

    def needed(self, reason: AutomaticReason, threshold: int | None = None) -> Compact | Refuse:
        """Compact, or refuse if even the smallest view would not fit."""
        usable = self.limits.usable
        floor = self.facts.floor() if self.careful else Floor()
        if floor.total <= usable:
            return Compact(reason, self.moment, self.size, usable, threshold)
        return Refuse(reason, self.moment, self.size, usable, floor.total, floor.breakdown, threshold)


def _on_overflow(check: _Check, policy: Policy) -> Decision:
    allowed = policy.enabled if policy.on_overflow is None else policy.on_overflow
    if not allowed or not (policy.enable_pruning or policy.enable_compaction):
        return check.stay("disabled")
    breaker = check.facts.breaker() if check.careful else BreakerState()
    return check.stay("breaker") if breaker.open_on_overflow else check.needed("overflow")


def _ignored_because(check: _Check, policy: Policy, by_subagent: bool) -> StayWhy | None:
    """Return why the triggers are ignored, whatever the size; None if they are not."""
    if not policy.enabled or not (policy.enable_pruning or policy.enable_compaction):
        return "disabled"
    if check.limits.hard is None and check.limits.soft is None:
        return "never"
    if not counts(policy, check.moment):
        return "moment"
    return "subagent" if by_subagent else None


def _at_threshold(check: _Check, policy: Policy) -> Decision:
    hard = check.limits.hard
    soft = check.limits.soft if policy.enable_compaction else None
    exceeded = max(
        (limit for limit in (soft, hard) if limit is not None and check.size > limit), default=None
    )
    if exceeded is None:
        return check.stay("below", min((limit for limit in (soft, hard) if limit is not None), default=None))
    if check.facts.messages < policy.min_messages:
        return check.stay("few_messages", exceeded)
    switching = check.moment == "before_smaller_window"
    if check.facts.new_messages == 0 and not switching:
        return check.stay("nothing_new", exceeded)
    reason: AutomaticReason = "model_switch" if switching else "threshold"
    answer = check.needed(reason, exceeded)
    if isinstance(answer, Refuse):
        return answer
    if check.careful and check.facts.breaker().open:
        return check.stay("breaker", exceeded)
    drafting = hard is None or check.size <= hard
    return StartDraft(check.moment, check.size, check.limits.usable, exceeded, reason) if drafting else answer


# ---- moments


def moment_of(message: Message) -> Moment | None:
    """Return the moment that follows a message once its batch is complete.

    An injected message begins no turn.
    """
    if message.role == "assistant":
        return "after_tools" if ends_in_results(message) else "after_reply"
    if message.results:
        return "after_tools"
    return "turn_start" if message.role == "user" and not message.injected else None


def idle_in(policy: Policy, newest: Message | None, at: float | None, now: float) -> float | None:
    """Return in how many seconds a session becomes idle by its policy; 0: it is, None: it never will.

    It is idle when nothing follows a reply for that long. `at` is the Unix time of the `newest` message
    (None: `now`).
    """
    if (
        not (policy.enabled and policy.background)
        or policy.idle is None
        or newest is None
        or newest.role != "assistant"
        or not finishes(newest)
    ):
        return None
    return max(0.0, policy.idle - (now - (now if at is None else at)))


def has_grown(tokens: int, fruitless: int | None, usable: int) -> bool:
    """Whether to compact `tokens` now, although the last try at `fruitless` tokens gained too little."""
    return fruitless is None or not 0 <= tokens - fruitless < usable // GROWTH
