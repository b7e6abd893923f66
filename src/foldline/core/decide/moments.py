"""When the triggers are looked at: the moments that messages bring about, and when a try is repeated."""

from __future__ import annotations

from foldline.core.decide.policy import Moment, Policy
from foldline.core.log.messages import Message
from foldline.core.log.steps import ends_in_results, finishes

GROWTH = 20  # a fruitless compaction is tried again when the view has grown by usable / GROWTH


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


def worth_a_try(tokens: int, fruitless: int | None, usable: int) -> bool:
    """Whether to compact `tokens` now, where the last try, at `fruitless` tokens, gained too little."""
    return fruitless is None or not 0 <= tokens - fruitless < usable // GROWTH
