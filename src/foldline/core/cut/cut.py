"""The cut: how much of the newest is kept word for word."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

import msgspec

from foldline.core.cut.legal import fits_rule, legal_cuts
from foldline.core.decide.policy import CutRule, Keep
from foldline.core.log.entries import Said

HowCut = Literal["by_rule", "walked_back", "split"]
"""How a cut came about: the policy's rule allows it; the rule allows it, but it keeps more than was asked
for; the rule allows none that is near enough, so a turn is split at another legal index."""


class Cut(msgspec.Struct, frozen=True):
    """A chosen cut: messages from `index` on are kept; `inside_turn`: the turn it falls into began before."""

    index: int
    inside_turn: bool
    how: HowCut = "by_rule"


class Places(msgspec.Struct, frozen=True):
    """Where a cut may fall, ascending: the `legal` places, and those of them that a policy's rule `allows`.

    `tails[i]` is what a cut at index i keeps, in tokens as the policy estimates them.
    """

    kept: Sequence[Said]
    legal: Sequence[int]
    allowed: Sequence[int]
    tails: Sequence[int]

    def since(self, first: int) -> Places:
        """Return the places from `first` on."""
        return msgspec.structs.replace(
            self,
            legal=self.legal[bisect_left(self.legal, first) :],
            allowed=self.allowed[bisect_left(self.allowed, first) :],
        )


def places(
    kept: Sequence[Said],
    rule: CutRule,
    *,
    legal: Sequence[int] | None = None,
    weights: Sequence[int] | None = None,
) -> Places:
    """Return where a cut may fall, of the `legal` places where they are known.

    `weights` are the tokens of each message (default: Foldline's own count).
    """
    weighed = [entry.tokens for entry in kept] if weights is None else weights
    sums = list(accumulate(weighed, initial=0))
    legal = legal_cuts(kept) if legal is None else legal
    return Places(
        kept=kept,
        legal=legal,
        allowed=[index for index in legal if fits_rule(rule, kept, index)],
        tails=[sums[-1] - before for before in sums],
    )


def counted_from(keep: Keep, messages: int) -> int:
    """Return the first index of so many that a policy's count of messages keeps; 0: it names no count."""
    counts = [
        *([keep.messages] if keep.messages is not None else []),
        *([int(messages * keep.message_fraction)] if keep.message_fraction is not None else []),
    ]
    return max(0, messages - min(counts, default=messages))


def cut_by_count(found: Places, first: int, budget: int) -> Cut | None:
    """Return the nearest cut that the rule allows at `first` or after it, that keeps `budget` tokens at most.

    Where the rule allows none that keeps a message, any legal one; where none follows, the last one before.
    None where nothing can be folded.
    """
    if not found.legal:
        return None
    at = max(first, _first_within(found, budget))
    after = found.since(at)
    allowed = next((index for index in after.allowed if index < len(found.kept)), None)
    if allowed is not None:
        return _cut(found, allowed)
    return _cut(found, after.legal[0] if after.legal else found.legal[-1])


def cut_by_tokens(
    found: Places, wanted: int, *, least: int | None = None, walk_back: bool = False, most: int = 0
) -> Cut | None:
    """Return the cut that keeps nearest to `wanted` tokens from below, and at least half of them, or `least`.

    With `walk_back`, the message that reaches `wanted` is kept too, and so is what stands before it up to a
    place that the rule allows, while all of it is no more than `most`. Where the rule allows no such cut, a
    turn is split; where no legal cut keeps half, because one message or batch is larger than the other half,
    the next larger is taken. None where nothing can be folded.
    """
    if not found.legal:
        return None
    if walk_back and (back := _walked_back(found, wanted, most)) is not None:
        return back
    all_of_it = found.tails[found.legal[0]]
    enough = min(wanted, all_of_it) / 2 if least is None else min(least, all_of_it)
    for indices in (found.allowed, found.legal):
        nearest = _nearest_below(indices, found.tails, wanted)
        if nearest is not None and found.tails[nearest] >= enough:
            return _cut(found, nearest)
    larger = found.legal[: bisect_left(found.legal, _first_within(found, wanted))]
    return _cut(found, larger[-1], larger=wanted > 0)


def _walked_back(found: Places, wanted: int, most: int) -> Cut | None:
    reached = max(0, bisect_right(found.tails, -wanted, key=lambda tail: -tail) - 1)
    before = bisect_right(found.allowed, reached)
    if before == 0 or found.tails[found.allowed[before - 1]] > most:
        return None
    index = found.allowed[before - 1]
    return _cut(found, index, larger=index < reached)


def _first_within(found: Places, tokens: int) -> int:
    """Return the first index whose tail is no larger than `tokens`."""
    return bisect_left(found.tails, -tokens, key=lambda tail: -tail)


def _nearest_below(indices: Sequence[int], tails: Sequence[int], wanted: int) -> int | None:
    """Return the first of the indices whose tail is no larger than wanted."""
    at = bisect_left(indices, -wanted, key=lambda index: -tails[index])
    return indices[at] if at < len(indices) else None


def _cut(found: Places, index: int, *, larger: bool = False) -> Cut:
    by_rule = index in found.allowed
    how: HowCut = "split" if not by_rule else "walked_back" if larger else "by_rule"
    return Cut(index, is_split(found.kept, index), how)


def cut_notes(cut: Cut, rule: CutRule) -> list[str]:
    """Return what a receipt says of a cut that is not by the policy's own rule: `any` forbids none."""
    if rule == "any":
        return []
    if cut.how == "walked_back":
        return [f"more than asked for was kept: the cut rule {rule!r} allows no closer place"]
    if cut.how == "split":
        return [f"a turn was split: by the cut rule {rule!r} less than half of what fits would be kept"]
    return []


def is_split(kept: Sequence[Said], index: int) -> bool:
    """Whether a cut leaves the first part of a turn behind and keeps the rest."""
    return index < len(kept) and not kept[index].message.is_prompt
