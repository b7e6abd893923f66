"""Decisions of `decide` by the few figures that a test is about."""

from foldline.core.decide.breaker import BreakerState
from foldline.core.decide.triggers import Decision, TriggerFacts, WatchLimits, decide
from foldline.core.measure.window import Floor


def decision(
    size,
    window,
    policy,
    moment,
    *,
    messages=50,
    context=None,
    floor=None,
    breaker=None,
    model=None,
    by_subagent=False,
    new_messages=1,
) -> Decision:
    facts = TriggerFacts(
        size,
        size if context is None else context,
        size,
        messages,
        new_messages,
        lambda: floor or Floor(),
        lambda: breaker or BreakerState(),
        lambda: False,
    )
    limits = WatchLimits(policy, window, model, by_subagent)
    return decide(limits, facts, moment, careful=True)
