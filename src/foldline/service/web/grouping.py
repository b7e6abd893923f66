"""A history as the page shows it: folded messages together, folds at their cuts, results with calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from foldline.core.log.codec import encode_utf8
from foldline.core.log.log import digest
from foldline.service.api.history import ShownBoundary, ShownMessage, ShownPart

Item = ShownMessage | ShownBoundary
Place = tuple[str, int]  # of a call: its message, and which of the parts it is


class Group(msgspec.Struct, frozen=True):
    """Folded messages in a row, with the boundaries among them; or one item that is not folded.

    `fold` stands where what follows is sent: its summary is what the model reads instead.
    """

    folded: bool
    members: list[Item]
    fold: ShownBoundary | None = None

    @property
    def messages(self) -> list[ShownMessage]:
        """The messages of it."""
        return [one for one in self.members if isinstance(one, ShownMessage)]

    @property
    def tokens(self) -> int:
        """Their size."""
        return sum(one.tokens for one in self.messages)


def grouped(items: Sequence[Item], fold: ShownBoundary | None, *, newest: bool = True) -> list[Group]:
    """Return items with folded messages in a row put together, with boundaries and excluded ones between.

    `fold` is the newest fold that holds; unless `newest`, more messages follow, which may be folded as well.
    """
    items = _at_their_cuts(items, fold)
    inside = [isinstance(one, ShownMessage) and one.how == "folded" for one in items]
    places = [number for number, folded in enumerate(inside) if folded]
    for last, following in pairwise(places):
        between = range(last + 1, following)
        if all(_may_be_inside(items[number]) for number in between):
            for number in between:
                inside[number] = True
    found: list[Group] = []
    for one, folded in zip(items, inside, strict=True):
        if folded and found and found[-1].folded:
            found[-1].members.append(one)
        else:
            found.append(Group(folded, [one]))
    last = max((number for number, one in enumerate(found) if one.folded), default=len(found))
    if last < len(found) - (not newest):
        found[last] = msgspec.structs.replace(found[last], fold=fold)
    return found


def _at_their_cuts(items: Sequence[Item], fold: ShownBoundary | None) -> list[Item]:
    """Return items with each fold before the first message that it kept, if that is among them.

    The newest one that holds is left out where its messages are: it is shown behind them.
    """
    messages = [one for one in items if isinstance(one, ShownMessage)]
    known = {one.entry for one in messages}
    shown_behind = fold.entry if fold and any(one.how == "folded" for one in messages) else None
    at: dict[str, list[Item]] = defaultdict(list)
    rest: list[Item] = []
    for one in items:
        first = (
            one.receipt.first_kept if isinstance(one, ShownBoundary) and one.made == "compaction" else None
        )
        if isinstance(first, str) and first in known:
            at[first].append(one)
        else:
            rest.append(one)
    placed = [each for one in rest for each in (*at[one.entry], one)]
    return [one for one in placed if one.entry != shown_behind]


def _may_be_inside(one: Item) -> bool:
    return isinstance(one, ShownBoundary) or one.how == "excluded"


def newest_fold(boundaries: Sequence[ShownBoundary]) -> ShownBoundary | None:
    """Return the newest fold that was not undone."""
    made = (one for one in reversed(boundaries) if one.made == "compaction" and not one.undone)
    return next(made, None)


def state_of(items: Sequence[Item]) -> str:
    """Return a word that changes where an item that is shown has changed: by a fold, an undo, a pin."""
    looks = [
        [one.entry, *([one.how, one.pinned] if isinstance(one, ShownMessage) else [one.undone])]
        for one in items
    ]
    return digest(encode_utf8(looks))[:16]


# ---- what a call was answered


class PairedResult(msgspec.Struct, frozen=True):
    """A result, shown with its call; `first` of its message: there the message's own buttons are."""

    message: ShownMessage
    part: ShownPart
    first: bool


def answers(items: Sequence[Item]) -> dict[Place, PairedResult]:
    """Return what each call was answered, of the messages that hold nothing but results of these calls."""
    calls: dict[str, Place] = {}
    found: dict[Place, PairedResult] = {}
    for one in items:
        if not isinstance(one, ShownMessage):
            continue
        ids = {part.call for part in one.parts if part.kind == "result" and part.call in calls}
        if one.parts and len(ids) == len(one.parts):
            for number, part in enumerate(one.parts):
                found[calls.pop(part.call)] = PairedResult(one, part, first=not number)
        else:
            calls |= {part.call: (one.entry, n) for n, part in enumerate(one.parts) if part.kind == "call"}
    return found


def within(found: Mapping[Place, PairedResult]) -> set[str]:
    """Return the messages that are shown with calls, by their ids."""
    return {one.message.entry for one in found.values()}
