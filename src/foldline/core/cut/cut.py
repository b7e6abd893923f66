"""The cut: how much of the newest is kept word for word."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from foldline.core.cut.legal import fits_rule, legal_cuts
from foldline.core.cut.pairing import Pairing
from foldline.core.decide.policy import CutRule, Keep
from foldline.core.log.entries import Said
from foldline.core.log.log import prefix_tokens
from foldline.core.measure.window import Window


class Cut(msgspec.Struct, frozen=True):
    """A chosen cut: messages from `index` on are kept; `split` says that it falls inside a turn.

    `by_rule` is False where the policy's own rule allowed no cut and another legal one was taken.
    """

    index: int
    split: bool
    by_rule: bool


def keep_index(
    kept: Sequence[Said],
    keep: Keep,
    budget: int,
    *,
    window: Window,
    usable: int,
    weights: Sequence[int] | None = None,
) -> int:
    """Return the index at which walking back from the end reaches the amount to keep.

    `budget` caps the amount in tokens; `weights` are the tokens of each message as the policy estimates
    them (default: Foldline's own count). The message that reaches the amount is included, as in every seed.
    """
    sums = prefix_tokens(kept) if weights is None else [0, *accumulate(weights)]
    total = sums[-1]
    amount = min(budget, keep.amount.resolve(window, usable)) if keep.amount else budget
    counts = [
        *([keep.messages] if keep.messages is not None else []),
        *([int(len(kept) * keep.message_fraction)] if keep.message_fraction is not None else []),
    ]
    if not counts and keep.amount is None:
        return len(kept)
    by_tokens = bisect_right(sums, total - amount) - 1  # -1 where all is less than the amount
    by_count = len(kept) - min(counts, default=len(kept))
    fitting = bisect_left(sums, total - budget)
    if keep.amount is None:
        return max(by_count, fitting)
    return max(by_tokens, by_count, 0)


def choose_cut(
    kept: Sequence[Said], at: int, rule: CutRule, *, pairing: Pairing | None = None, first: int = 1
) -> Cut | None:
    """Return the nearest legal cut at or after `at` that the policy's rule allows.

    Where the rule allows none, any legal one is taken, and where none follows, the last before; None where
    nothing can be folded. `first` is the least index allowed (a boundary that must not be crossed).
    """
    legal = [index for index in legal_cuts(kept, pairing) if index >= first]
    if not legal:
        return None
    last = legal[-1]
    after = legal[bisect_left(legal, at) :]
    ruled = next((i for i in after if i < len(kept) and fits_rule(rule, kept, i)), None)
    if ruled is not None:
        return Cut(ruled, split=is_split(kept, ruled), by_rule=True)
    index = after[0] if after else last
    by_rule = index >= len(kept) and at >= len(kept)
    return Cut(index, split=is_split(kept, index), by_rule=by_rule)


def is_split(kept: Sequence[Said], index: int) -> bool:
    """Whether a cut leaves the first part of a turn behind and keeps the rest."""
    return index < len(kept) and not kept[index].message.is_prompt
