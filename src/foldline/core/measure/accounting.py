"""The size of the context: the last real usage since the boundary plus estimates of later messages.

Real usage also calibrates the offline estimate for a model (`Calibration`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from foldline.core.log.codec import prepared
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Usage
from foldline.core.measure.window import Window

FAR_ABOVE = 2  # a usage up to so many times the window is credible
FAR_OFF = 4  # as is one up to so many times our estimate
HIDDEN = 8  # a usage may omit 1 / HIDDEN of the window
NOT_COMPLETE = frozenset({"aborted", "error"})


def real_usage(message: Message) -> Usage | None:
    """Return what a provider counted for a complete reply; None if its figures are unusable.

    They are for an aborted or errored reply, for another view, without any input (no request is empty), and
    with a negative figure.
    """
    usage = message.usage
    if message.role != "assistant" or usage is None or usage.outdated or message.stop in NOT_COMPLETE:
        return None
    if min(usage.input, usage.cache_read, usage.cache_write, usage.output) < 0:
        return None
    return usage if usage.input + usage.cache_read + usage.cache_write > 0 else None


def is_credible(usage: Usage, sent: int, window: Window) -> bool:
    """Whether a usage can be right for a request that was answered.

    `sent` is our estimate of the request, in tokens. A usage is wrong if its input or its output exceeds
    twice the window and four times the estimate: a window or an estimate can be wrong, but not both by so
    much.
    """
    figures = (usage.input, usage.cache_read, usage.cache_write, usage.output)
    largest = max(usage.total - usage.output, usage.output)
    return min(figures) >= 0 and (largest <= FAR_ABOVE * window.context or largest <= FAR_OFF * sent)


def is_too_small(usage: Usage, sent: int, window: Window) -> bool:
    """Whether a usage is too small for the request, as from servers that count only uncached input.

    `sent` is our own estimate of the request, in tokens, without any figure from a provider: figures that are
    too small would pull it down over time. A usage is too small if the estimate is more than four times the
    input and the difference exceeds an eighth of the window. An input of 0 means no usage.
    """
    counted = usage.total - usage.output
    return 0 < counted * FAR_OFF < sent and sent - counted > window.context // HIDDEN


def context_size(
    since: Sequence[Said], *, ratio: float = 1.0, weigh: Callable[[Said], int] | None = None
) -> int:
    """Return the size of the context after the last message of a view, in tokens.

    `since` are the entries from the newest complete reply with usage on: its usage counts, and estimates of
    the later entries. `ratio` is the calibration, real tokens per estimated token; `weigh` estimates an entry
    (default: the estimate made at append).
    """
    usage = real_usage(since[0].message)
    later_tokens = sum(weigh(entry) if weigh else entry.tokens for entry in since[1:])
    return (usage.total if usage else 0) + scaled(later_tokens, ratio)


def last_input(kept: Sequence[Said]) -> int | None:
    """Return the input of the newest complete reply, including cache reads and writes.

    None if that reply has no credible usage; older replies are not used instead.
    """
    for entry in reversed(kept):
        message = entry.message
        if message.role == "assistant" and message.stop not in NOT_COMPLETE:
            usage = real_usage(message)
            return usage.total - usage.output if usage else None
    return None


def scaled(tokens: int, ratio: float) -> int:
    """Return an estimate times its calibration, rounded up; monotonic in `tokens`."""
    return tokens if ratio == 1.0 else math.ceil(tokens * ratio)


# ---- calibration: how a model's tokenizer differs from the offline estimate


# A smaller estimate is mostly framing and says nothing about the tokenizer.
LEAST_ESTIMATE: Final = 200
RATIO_LEAST: Final = 0.5
RATIO_MOST: Final = 3.0
# Weight of a new sample; the first ones weigh more (1/2, 1/3, 1/4).
PACE: Final = 0.2
# After this many samples, a new one is limited to `STRAY` times the learned ratio, up or down.
SETTLED: Final = 3
STRAY: Final = 1.5


class Calibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's real tokens divided by the estimated ones, and the number of samples."""

    ratio: float = 1.0
    samples: int = 0


prepared(Calibration)


def update(calibration: Calibration, estimated: int, actual: int) -> Calibration:
    """Learn from one request: `estimated` tokens by the counter, `actual` tokens by the provider's usage.

    Both must cover the same content (system prompt and tools included). All-zero usage, requests estimated
    under `LEAST_ESTIMATE` tokens, and usage below a quarter of the estimate (servers that omit cached input)
    are ignored. The ratio is an exponentially weighted mean within `RATIO_LEAST` .. `RATIO_MOST`; outliers
    are limited first. Do not pass the usage of aborted or errored replies.
    """
    if actual <= 0 or estimated < LEAST_ESTIMATE or actual * FAR_OFF < estimated:
        return calibration
    sample = actual / estimated
    if calibration.samples >= SETTLED:
        sample = min(max(sample, calibration.ratio / STRAY), calibration.ratio * STRAY)
    sample = min(max(sample, RATIO_LEAST), RATIO_MOST)
    pace = max(PACE, 1 / (calibration.samples + 2))
    ratio = calibration.ratio + pace * (sample - calibration.ratio)
    return Calibration(ratio=ratio, samples=calibration.samples + 1)
