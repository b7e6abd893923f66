"""Whether to compact, at a moment: the decision and the numbers that led to it."""

from __future__ import annotations

from typing import Literal

import msgspec

from foldline.core.decide.breaker import BreakerState
from foldline.core.decide.policy import Moment, Policy, usable_of
from foldline.core.decide.presets import resolve
from foldline.core.measure.window import Floor, Window

AFTER_APPEND = frozenset({"turn_start", "after_reply", "after_tools"})  # moments that an append brings about
Unasked = Literal["threshold", "overflow", "model_switch"]  # reasons of a compaction that nobody asked for
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
LEAST_OUTPUT = 1_024  # tokens under which an answer is not worth asking for


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
    reason: Unasked = "threshold"


class Compact(msgspec.Struct, frozen=True, tag="compact"):
    """A boundary is to be made now; `reason` is that of its receipt."""

    reason: Unasked
    moment: Moment
    size: int
    usable: int
    threshold: int | None = None


class Refuse(msgspec.Struct, frozen=True, tag="refuse"):
    """A boundary is needed and none can help: what cannot be removed is larger than usable."""

    reason: Unasked
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


def decide(
    size: int,
    window: Window,
    policy: Policy,
    moment: Moment,
    *,
    messages: int,
    context: int | None = None,
    floor: Floor | int | None = None,
    breaker: BreakerState | None = None,
    model: str | None = None,
    by_subagent: bool = False,
    new_messages: int | None = None,
) -> Decision:
    """Say whether a compaction starts by itself at this moment, and why.

    `size` is the policy's `trigger_size`, `context` the same by Foldline's own estimates (default: `size`),
    `messages` the messages in the view, `new_messages` those said since the newest boundary, `floor` what
    no compaction can remove; all sizes are in tokens. A trigger fires above its threshold, not at it; a
    context above the input limit is above every trigger that looks at the whole of it. Where
    `before_smaller_window` is the moment, `window` is the smaller one. Compactions by hand are not asked
    about here.
    """
    policy = resolve(policy, model, window)
    limits = thresholds(policy, window)
    if context is not None and overlooked(policy, window, size, context):
        size, limits = context, Thresholds(limits.usable, None, window.input_limit)
    seen = _Seen(moment, size, limits, messages, new_messages, floor)
    brake = breaker or BreakerState()
    if moment == "overflow":
        return _on_overflow(seen, policy, brake)
    ignored = _ignored(seen, policy, by_subagent)
    return seen.stay(ignored) if ignored else _at_threshold(seen, policy, brake)


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
    messages: int
    new_messages: int | None
    floor: Floor | int | None

    def stay(self, why: StayWhy, threshold: int | None = None) -> Stay:
        return Stay(why, self.moment, self.size, self.limits.usable, threshold)

    def needed(self, reason: Unasked, threshold: int | None = None) -> Compact | Refuse:
        """Compact, or refuse where even the smallest view would not fit."""
        usable, floor = self.limits.usable, self.floor
        total = floor.total if isinstance(floor, Floor) else floor
        if total is None or total <= usable:
            return Compact(reason, self.moment, self.size, usable, threshold)
        parts = floor.breakdown if isinstance(floor, Floor) else {"floor": total}
        return Refuse(reason, self.moment, self.size, usable, total, parts, threshold)


def _on_overflow(seen: _Seen, policy: Policy, brake: BreakerState) -> Decision:
    allowed = policy.enabled if policy.on_overflow is None else policy.on_overflow
    if not allowed or not (policy.enable_pruning or policy.enable_compaction):
        return seen.stay("disabled")
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


def _at_threshold(seen: _Seen, policy: Policy, brake: BreakerState) -> Decision:
    hard = seen.limits.hard
    soft = seen.limits.soft if policy.enable_compaction else None
    exceeded = max((limit for limit in (soft, hard) if limit is not None and seen.size > limit), default=None)
    if exceeded is None:
        return seen.stay("below", min((limit for limit in (soft, hard) if limit is not None), default=None))
    if seen.messages < policy.min_messages:
        return seen.stay("few_messages", exceeded)
    switching = seen.moment == "before_smaller_window"
    if seen.new_messages == 0 and not switching:
        return seen.stay("nothing_new", exceeded)
    reason: Unasked = "model_switch" if switching else "threshold"
    needed = seen.needed(reason, exceeded)
    if isinstance(needed, Refuse):
        return needed
    if brake.open:
        return seen.stay("breaker", exceeded)
    drafting = hard is None or seen.size <= hard
    return StartDraft(seen.moment, seen.size, seen.limits.usable, exceeded, reason) if drafting else needed


def fitting_output(size: int, window: Window, wanted: int, *, least: int = LEAST_OUTPUT) -> int | None:
    """Return a smaller `max_tokens` with which a request of `size` tokens fits, or None where none does.

    Tried first on an overflow: providers count the output asked for against the context.
    """
    room = window.context - size
    if size > window.input_limit or room < least or room >= wanted:
        return None
    return room
