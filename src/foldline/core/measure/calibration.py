"""Learn from real usage how a model's tokenizer differs from the offline estimate."""

from __future__ import annotations

from typing import Final

import msgspec

from foldline.core.measure.accounting import FAR_OFF

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
