"""Whether to compact, at a moment: the decision and the numbers that led to it."""

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

AFTER_APPEND = frozenset({"turn_start", "after_reply", "after_tools"})  # moments that an append brings about
GROWTH = 20  # a fruitless compaction is tried again when the view has grown by usable / GROWTH
StayWhy = Literal[
    "disabled",  # by the policy
    "moment",  # not one of the policy's
    "subagent",  # looks at no threshold
    "few_messages",
    "nothing_new",  # since the last boundary
    "below",  # every trigger
    "breaker",  # open
    "never",  # the policy has no trigger
    "mended",  # the overflow was folded away already, and no reply has come since
]


class Stay(msgspec.Struct, frozen=True, tag="stay"):
    """Nothing is to be done; `threshold` is the trigger that was not exceeded."""

    why: StayWhy
    moment: Moment
    size: int
    usable: int
    threshold: int | None = None


class StartDraft(msgspec.Struct, frozen=True, tag="draft"):
    """A summary is to be made in the background: `size` exceeds the soft trigger, not the hard one."""

    moment: Moment
    size: int
    usable: int
    threshold: int
    reason: AutomaticReason = "threshold"


class Compact(msgspec.Struct, frozen=True, tag="compact"):
    """A boundary is to be made now; `reason` is that of its receipt."""

    reason: AutomaticReason
    moment: Moment
    size: int
    usable: int
    threshold: int | None = None


class Refuse(msgspec.Struct, frozen=True, tag="refuse"):
    """A boundary is needed and none can help: what cannot be removed is larger than usable."""

    reason: AutomaticReason
    moment: Moment
    size: int
    usable: int
    floor: int
    breakdown: dict[str, int]
    threshold: int | None = None


Decision = Stay | StartDraft | Compact | Refuse


class Thresholds(msgspec.Struct, frozen=True):
    """The sizes that a view may have, in tokens, before it is drafted for (`soft`) and compacted (`hard`)."""

    usable: int
    soft: int | None
    hard: int | None


def thresholds(policy: Policy, window: Window) -> Thresholds:
    """Return the triggers of a policy for a window; none is above usable."""
    usable = usable_of(policy, window)
    soft = min(usable, policy.soft.resolve(window, usable)) if policy.soft and policy.background else None
    hard = min(usable, policy.hard.resolve(window, usable)) if policy.hard else None
    return Thresholds(usable, soft, hard)


class WatchLimits(msgspec.Struct, frozen=True):
    """What a session is kept to; `known` says that the window is the model's, not an assumption."""

    policy: Policy
    window: Window
    model: str | None = None
    subagent: bool = False
    known: bool = True


class TriggerFacts(msgspec.Struct, frozen=True):
    """What the machine sees of a view, sizes in tokens; what takes time to find out is a function.

    `size` is what the policy's triggers compare, `context` the next request by usage and our own estimates,
    `tokens` the view by our own count, `new_messages` those said since the newest boundary. `floor` is what
    no compaction can remove, `breaker` its state at the end of the path; `mended` says whether an overflow
    was folded away already, and no reply has come since.
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
    """Say whether a compaction starts by itself at this moment, and why.

    A trigger fires above its threshold, not at it; a context above the input limit is above every trigger
    that looks at the whole of it. Where `before_smaller_window` is the moment, the window is the smaller one.
    The floor and the breaker, which take longer, are asked where `careful`. Compactions by hand are not asked
    about here.
    """
    policy, window, size = resolve(limits.policy, limits.model, limits.window), limits.window, facts.size
    at = thresholds(policy, window)
    if overlooked(policy, window, size, facts.context):
        size, at = facts.context, Thresholds(at.usable, None, window.input_limit)
    seen = _Seen(moment, size, at, facts, careful)
    if moment == "overflow":
        return _on_overflow(seen, policy)
    ignored = _ignored(seen, policy, limits.subagent)
    return seen.stay(ignored) if ignored else _at_threshold(seen, policy)


def overlooked(policy: Policy, window: Window, size: int, context: int) -> bool:
    """Whether a context exceeds the input limit and the policy's own estimate of it, `size`, no hard trigger.

    That is so for text that `chars/4` undercounts: hexadecimal digits, Chinese. Not asked of a policy that
    looks at the last input, or at the messages alone: it overflows as its original does, and is mended.
    """
    limits = thresholds(policy, window)
    if policy.trigger_on != "context" or (limits.hard is None and limits.soft is None):
        return False
    return context > window.input_limit and (limits.hard is None or size <= limits.hard)


def counts(policy: Policy, moment: Moment) -> bool:
    """Whether a policy looks at its triggers at this moment. `append` stands for every moment after one."""
    return moment in policy.check_at or ("append" in policy.check_at and moment in AFTER_APPEND)


def counts_at_once(policy: Policy, moment: Moment) -> bool:
    """Whether a policy looks at its triggers right at this moment, while nobody waits.

    So after a reply, and with `append` after any message; at all other moments it looks before the next
    request.
    """
    return counts(policy, moment) and (moment == "after_reply" or "append" in policy.check_at)


class _Seen(msgspec.Struct, frozen=True):
    """What a decision is made from, and the answers that carry it."""

    moment: Moment
    size: int
    limits: Thresholds
    facts: TriggerFacts
    careful: bool

    def stay(self, why: StayWhy, threshold: int | None = None) -> Stay:
        return Stay(why, self.moment, self.size, self.limits.usable, threshold)

    def needed(self, reason: AutomaticReason, threshold: int | None = None) -> Compact | Refuse:
        """Compact, or refuse where even the smallest view would not fit."""
        usable = self.limits.usable
        floor = self.facts.floor() if self.careful else Floor()
        if floor.total <= usable:
            return Compact(reason, self.moment, self.size, usable, threshold)
        return Refuse(reason, self.moment, self.size, usable, floor.total, floor.breakdown, threshold)


def _on_overflow(seen: _Seen, policy: Policy) -> Decision:
    allowed = policy.enabled if policy.on_overflow is None else policy.on_overflow
    if not allowed or not (policy.enable_pruning or policy.enable_compaction):
        return seen.stay("disabled")
    brake = seen.facts.breaker() if seen.careful else BreakerState()
    return seen.stay("breaker") if brake.open_on_overflow else seen.needed("overflow")


def _ignored(seen: _Seen, policy: Policy, by_subagent: bool) -> StayWhy | None:
    """Why the triggers are not looked at, whatever the size."""
    if not policy.enabled or not (policy.enable_pruning or policy.enable_compaction):
        return "disabled"
    if seen.limits.hard is None and seen.limits.soft is None:
        return "never"
    if not counts(policy, seen.moment):
        return "moment"
    return "subagent" if by_subagent else None


def _at_threshold(seen: _Seen, policy: Policy) -> Decision:
    hard = seen.limits.hard
    soft = seen.limits.soft if policy.enable_compaction else None
    exceeded = max((limit for limit in (soft, hard) if limit is not None and seen.size > limit), default=None)
    if exceeded is None:
        return seen.stay("below", min((limit for limit in (soft, hard) if limit is not None), default=None))
    if seen.facts.messages < policy.min_messages:
        return seen.stay("few_messages", exceeded)
    switching = seen.moment == "before_smaller_window"
    if seen.facts.new_messages == 0 and not switching:
        return seen.stay("nothing_new", exceeded)
    reason: AutomaticReason = "model_switch" if switching else "threshold"
    needed = seen.needed(reason, exceeded)
    if isinstance(needed, Refuse):
        return needed
    if seen.careful and seen.facts.breaker().open:
        return seen.stay("breaker", exceeded)
    drafting = hard is None or seen.size <= hard
    return StartDraft(seen.moment, seen.size, seen.limits.usable, exceeded, reason) if drafting else needed


# ---- moments


def moment_of(message: Message) -> Moment | None:
    """Return the moment that a message brings about once its batch is complete.

    What a program says in the user's name begins no turn.
    """
    if message.role == "assistant":
        return "after_tools" if ends_in_results(message) else "after_reply"
    if message.results:
        return "after_tools"
    return "turn_start" if message.role == "user" and not message.injected else None


def idle_in(policy: Policy, newest: Message | None, at: float | None, now: float) -> float | None:
    """Return in how many seconds a session is idle, by its policy; 0: it is, None: it will not be.

    It is where nothing follows a reply for that long. `at` and `now` are Unix time, of the `newest` message
    and of the moment; with no time of its own the message is taken as new.
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
    """Whether to compact `tokens` now, where the last try, at `fruitless` tokens, gained too little."""
    return fruitless is None or not 0 <= tokens - fruitless < usable // GROWTH
