"""The estimators that presets bring along, and the size that a policy's trigger looks at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from foldline.core.decide.policy import Estimator, Policy
from foldline.core.log.codec import encode
from foldline.core.log.entries import Said
from foldline.core.log.messages import Media, Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.accounting import context_size, last_input, stored_tokens
from foldline.core.measure.tokens import Counter, message_tokens

MEDIA_CHARACTERS = 4_800  # pi and klaude charge an image 1,200 tokens, whatever its size


def estimate(messages: Iterable[Message], estimator: Estimator, counter: Counter) -> int:
    """Return what an estimator makes of messages, in tokens; `counter` is used by `foldline` alone.

    `chars/4` (coop, klaude, GenCode, pi): all characters of a message, arguments and results included,
    divided by four, rounded up. `chars/3.5+10` (Moldable): text and reasoning alone, divided by 3.5, rounded
    up, and ten for each message.
    """
    return sum(message_estimate(message, estimator, counter) for message in messages)


def message_estimate(message: Message, estimator: Estimator, counter: Counter) -> int:
    """Return what an estimator makes of one message, in tokens."""
    if estimator == "chars/4":
        return math.ceil(sum(_characters(part) for part in message.parts) / 4)
    if estimator == "chars/3.5+10":
        said = sum(len(part.text) for part in message.parts if isinstance(part, Text | Thinking))
        return math.ceil(said / 3.5) + 10
    return message_tokens(message, counter)


def _characters(part: Part) -> int:
    if isinstance(part, Text | Thinking):
        return len(part.text)
    if isinstance(part, ToolCall):
        arguments = part.arguments if isinstance(part.arguments, str) else encode(part.arguments).decode()
        return len(part.name) + len(arguments)
    if isinstance(part, ToolResult):
        return sum(_characters(inner) for inner in part.content)
    if isinstance(part, Media):
        return MEDIA_CHARACTERS
    return len(encode(part.data))


class Estimates:
    """What an estimator makes of a view that grows: every message is estimated once."""

    def __init__(self, estimator: Estimator, counter: Counter) -> None:
        self._estimator: Estimator = estimator
        self._counter = counter
        self._kept: Sequence[Said] = ()
        self._known = 0
        self._tokens = 0

    def total(self, kept: Sequence[Said]) -> int:
        """Return the estimate of all these entries, in tokens; the same list may only have been extended."""
        if kept is not self._kept:
            self._kept, self._known, self._tokens = kept, 0, 0
        new = kept[self._known :]
        self._tokens += sum(self._weigh(entry) for entry in new)
        self._known += len(new)
        return self._tokens

    def _weigh(self, entry: Said) -> int:
        if self._estimator == "foldline":
            return entry.tokens
        return message_estimate(entry.message, self._estimator, self._counter)


def trigger_size(
    policy: Policy,
    kept: Sequence[Said],
    counter: Counter,
    *,
    fresh_from: int = 0,
    overhead: int = 0,
    made: int = 0,
    saved: int = 0,
    ratio: float = 1.0,
) -> int:
    """Return the size that a policy's triggers compare with their thresholds, in tokens.

    The arguments are those of `context_size`. By `policy.trigger_on` it is the whole context (usage and
    estimates), the input of the last reply (where there is none: the whole context), or estimates of the
    messages alone.
    """

    def weigh(entry: Said) -> int:
        return message_estimate(entry.message, policy.estimator, counter)

    weighed = stored_tokens if policy.estimator == "foldline" else weigh
    if policy.trigger_on == "estimate":
        return max(0, made + sum(weighed(entry) for entry in kept) - saved)
    if policy.trigger_on == "input":
        seen = last_input(kept, fresh_from)
        if seen is not None:
            return seen
    size = context_size(
        kept, fresh_from=fresh_from, overhead=overhead, made=made, saved=saved, ratio=ratio, weigh=weighed
    )
    return size.tokens
