"""How large the context is: the last real usage since the boundary, and estimates of what came after.

Real usage also teaches how a model's tokenizer differs from the offline estimate (`Calibration`).
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

FAR_ABOVE = 2  # times the window that a usage is at most, unless
FAR_OFF = 4  # times our estimate are more
HIDDEN = 8  # the part of the window that a usage may hide: an eighth
NOT_COMPLETE = frozenset({"aborted", "error"})


def real_usage(message: Message) -> Usage | None:
    """Return what a provider counted for a complete reply, or None where its figures count for nothing.

    That is so for an aborted or errored reply, where no input was reported (no request is empty), and where
    a figure is negative.
    """
    usage = message.usage
    if message.role != "assistant" or usage is None or message.stop in NOT_COMPLETE:
        return None
    if min(usage.input, usage.cache_read, usage.cache_write, usage.output) < 0:
        return None
    return usage if usage.input + usage.cache_read + usage.cache_write > 0 else None


def is_credible(usage: Usage, sent: int, window: Window) -> bool:
    """Whether a provider can have counted so much for a request that it answered.

    `sent` is our estimate of the request, in tokens. Not where the input is twice the window and four times
    the estimate, and not where the output is: a window can be wrong, and so can an estimate, but not both by
    so much.
    """
    figures = (usage.input, usage.cache_read, usage.cache_write, usage.output)
    largest = max(usage.total - usage.output, usage.output)
    return min(figures) >= 0 and (largest <= FAR_ABOVE * window.context or largest <= FAR_OFF * sent)


def is_too_small(usage: Usage, sent: int, window: Window) -> bool:
    """Whether a provider must have counted more for a request that held what we know of.

    `sent` is our own estimate of the request, in tokens, without anything that a provider counted: else
    figures that are too small would pull it down by and by. So where that is four times the input, and an
    eighth of the window is missing: some servers count only what their cache did not hold. An input of
    nothing is no figure.
    """
    counted = usage.total - usage.output
    return 0 < counted * FAR_OFF < sent and sent - counted > window.context // HIDDEN


def context_size(
    since: Sequence[Said], *, ratio: float = 1.0, weigh: Callable[[Said], int] | None = None
) -> int:
    """Return the size of the context after the last message of a view, in tokens.

    `since` are the entries from the newest complete reply with usage on: what it counted, and estimates of
    what follows. `ratio` is the calibration, real tokens to an estimated one; `weigh` estimates an entry
    (default: the estimate made at append).
    """
    usage = real_usage(since[0].message)
    after = sum(weigh(entry) if weigh else entry.tokens for entry in since[1:])
    return (usage.total if usage else 0) + scaled(after, ratio)


def last_input(kept: Sequence[Said]) -> int | None:
    """Return the input of the newest complete reply, cache included, its output not.

    None where that reply has no usage, or one that was not believed: an older reply's says nothing of it.
    """
    for entry in reversed(kept):
        message = entry.message
        if message.role == "assistant" and message.stop not in NOT_COMPLETE:
            usage = real_usage(message)
            return usage.total - usage.output if usage else None
    return None


def scaled(tokens: int, ratio: float) -> int:
    """Return an estimate times its calibration, rounded up; never falls as `tokens` rises."""
    return tokens if ratio == 1.0 else math.ceil(tokens * ratio)


# ---- calibration: how a model's tokenizer differs from the offline estimate


# Below this an estimate is mostly framing, and its ratio says nothing about the tokenizer.
LEAST_ESTIMATE: Final = 200
RATIO_LEAST: Final = 0.5
RATIO_MOST: Final = 3.0
# Weight of a new sample once there are several; the first ones weigh more (1/2, 1/3, 1/4).
PACE: Final = 0.2
# After this many samples a new one counts for at most `STRAY` times the learned ratio, up or down.
SETTLED: Final = 3
STRAY: Final = 1.5


class Calibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's real tokens divided by the estimated ones, and how many samples taught it."""

    ratio: float = 1.0
    samples: int = 0


prepared(Calibration)


def update(calibration: Calibration, estimated: int, actual: int) -> Calibration:
    """Learn from one request: `estimated` tokens by the counter, `actual` tokens by the provider's usage.

    Both must cover the same content (system prompt and tools included). All-zero usage, requests
    estimated under `LEAST_ESTIMATE` tokens, and usage below a quarter of the estimate (a server that leaves
    out what its cache held) teach nothing. An exponentially weighted mean of ratios within
    `RATIO_LEAST` .. `RATIO_MOST`; a stray sample is drawn near first. Pass no aborted or errored usage.
    """
    if actual <= 0 or estimated < LEAST_ESTIMATE or actual * FAR_OFF < estimated:
        return calibration
    seen = actual / estimated
    if calibration.samples >= SETTLED:
        seen = min(max(seen, calibration.ratio / STRAY), calibration.ratio * STRAY)
    seen = min(max(seen, RATIO_LEAST), RATIO_MOST)
    pace = max(PACE, 1 / (calibration.samples + 2))
    ratio = calibration.ratio + pace * (seen - calibration.ratio)
    return Calibration(ratio=ratio, samples=calibration.samples + 1)
