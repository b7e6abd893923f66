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
"""How a cut was found: the policy's rule allows it; the rule allows it, but it keeps more than requested; the
rule allows no cut that is near enough, so a turn is split at another legal index."""


class Cut(msgspec.Struct, frozen=True):
    """A chosen cut: messages from `index` on are kept; `inside_turn`: it splits a turn."""

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
    """Return where a cut may fall; pass the `legal` places if they are known.

    `weights` are the tokens of each message (default: Foldline's own count).
    """
    tokens = [entry.tokens for entry in kept] if weights is None else weights
    sums = list(accumulate(tokens, initial=0))
    legal = legal_cuts(kept) if legal is None else legal
    return Places(
        kept=kept,
        legal=legal,
        allowed=[index for index in legal if fits_rule(rule, kept, index)],
        tails=[sums[-1] - before for before in sums],
    )


def counted_from(keep: Keep, messages: int) -> int:
    """Return the first of so many `messages` that a policy keeps by count; 0 if it has no count."""
    counts = [
        *([keep.messages] if keep.messages is not None else []),
        *([int(messages * keep.message_fraction)] if keep.message_fraction is not None else []),
    ]
    return max(0, messages - min(counts, default=messages))


def cut_by_count(places: Places, first: int, budget: int) -> Cut | None:
    """Return the first cut from `first` on that the rule allows and that keeps at most `budget` tokens.

    If the rule allows no cut that keeps a message, take any legal one; if none follows, the last one before.
    None if nothing can be folded.
    """
    if not places.legal:
        return None
    at = max(first, _first_within(places, budget))
    after = places.since(at)
    allowed = next((index for index in after.allowed if index < len(places.kept)), None)
    if allowed is not None:
        return _cut(places, allowed)
    return _cut(places, after.legal[0] if after.legal else places.legal[-1])


def cut_by_tokens(
    places: Places, wanted: int, *, least: int | None = None, walk_back: bool = False, most: int = 0
) -> Cut | None:
    """Return the cut that keeps nearest to `wanted` tokens from below, and at least half of them, or `least`.

    With `walk_back`, also keep the message that reaches `wanted` and what comes before it, back to a place
    that the rule allows, if all of it takes at most `most` tokens. If the rule allows no such cut, split a
    turn. If no legal cut keeps half, because one message or batch is larger than the other half, keep the
    next larger tail. None if nothing can be folded.
    """
    if not places.legal:
        return None
    if walk_back and (cut := _walked_back(places, wanted, most)) is not None:
        return cut
    largest = places.tails[places.legal[0]]
    enough = min(wanted, largest) / 2 if least is None else min(least, largest)
    for indices in (places.allowed, places.legal):
        nearest = _nearest_below(indices, places.tails, wanted)
        if nearest is not None and places.tails[nearest] >= enough:
            return _cut(places, nearest)
    larger = places.legal[: bisect_left(places.legal, _first_within(places, wanted))]
    return _cut(places, larger[-1], larger=wanted > 0)


def _walked_back(places: Places, wanted: int, most: int) -> Cut | None:
    reached = max(0, bisect_right(places.tails, -wanted, key=lambda tail: -tail) - 1)
    count = bisect_right(places.allowed, reached)
    if count == 0 or places.tails[places.allowed[count - 1]] > most:
        return None
    index = places.allowed[count - 1]
    return _cut(places, index, larger=index < reached)


def _first_within(places: Places, tokens: int) -> int:
    """Return the first index whose tail is no larger than `tokens`."""
    return bisect_left(places.tails, -tokens, key=lambda tail: -tail)


def _nearest_below(indices: Sequence[int], tails: Sequence[int], wanted: int) -> int | None:
    """Return the first of the indices whose tail is no larger than wanted."""
    at = bisect_left(indices, -wanted, key=lambda index: -tails[index])
    return indices[at] if at < len(indices) else None


def _cut(places: Places, index: int, *, larger: bool = False) -> Cut:
    by_rule = index in places.allowed
    how: HowCut = "split" if not by_rule else "walked_back" if larger else "by_rule"
    return Cut(index, is_split(places.kept, index), how)


def cut_notes(cut: Cut, rule: CutRule) -> list[str]:
    """Return the receipt's notes on a cut that departs from the policy's rule; the rule `any` has none."""
    if rule == "any":
        return []
    if cut.how == "walked_back":
        return [f"more was kept than requested: the cut rule {rule!r} allows no closer cut"]
    if cut.how == "split":
        return [f"a turn was split: the cut rule {rule!r} would keep less than half of what fits"]
    return []


def is_split(kept: Sequence[Said], index: int) -> bool:
    """Whether a cut leaves the first part of a turn behind and keeps the rest."""
    return index < len(kept) and not kept[index].message.is_prompt
