"""Retention of a replay: cuts of a session, the names needed after each cut, and the scores of each view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Self

import msgspec

from foldline.core.lab.replay import Replay
from foldline.core.lab.retention import (
    Demand,
    ScoredMessage,
    Scores,
    cut_at,
    demand,
    rendered,
    score,
    scored_message,
)
from foldline.core.log.entries import Said
from foldline.core.view import ViewState
from foldline.core.view_items import native_items
from foldline.dialects.edits import with_edits

MAX_TOKENS = 4_000_000  # of a session that is read into memory to find the names that it needed


class ScoredCut(msgspec.Struct, frozen=True):
    """One scored view: its message, and the sizes of the past and the view in tokens of four characters.

    `folds` counts the boundaries before it. A view that does not fit the window is not sent, so it has no
    scores.
    """

    message: int
    past_tokens: int
    view_tokens: int
    fits: bool
    folds: int
    scores: Scores | None = None


class CutDemand(msgspec.Struct, frozen=True):
    """The names that a session needed at one cut."""

    message: int
    wanted: Demand

    def scored(self, replay: Replay) -> ScoredCut:
        """Score the current view of a replay."""
        text = view_text(replay.state)
        fits = replay.fits
        folds = replay.sums.compactions + replay.sums.prunes
        scores = score(self.wanted, text) if fits else None
        return ScoredCut(self.message, self.wanted.past_tokens, len(text) // 4, fits, folds, scores)


def view_text(state: ViewState) -> str:
    """Return the text of a view as the score reads it."""
    sent = (with_edits(message, edits) for message, edits in native_items(state.items()))
    return rendered(message for message in sent if message is not None)


def demands_at(messages: Sequence[ScoredMessage], shares: Iterable[float]) -> list[CutDemand]:
    """Return the names needed at cuts of a session; `shares` are the cuts as shares of its tokens.

    A cut that needs fewer than five handles is not significant, and is left out.
    """
    places = {place for share in shares if (place := cut_at(messages, share)) is not None}
    demands = [
        CutDemand(place, demand(messages[:place], messages[place:], common_names()))
        for place in sorted(places)
    ]
    return [cut for cut in demands if cut.wanted.telling]


class Cuts:
    """The cuts of one session."""

    def __init__(self, needed: Sequence[CutDemand], warnings: Sequence[str] = ()) -> None:
        self.warnings = tuple(warnings)
        self._needed = {cut.message: cut for cut in needed}

    @classmethod
    def find(cls, steps: Iterable[object], shares: Sequence[float], limit: int = MAX_TOKENS) -> Self:
        """Read a session and find the names needed at its cuts; `shares` are shares of its tokens.

        A session of more than `limit` tokens has no cuts: it would not fit into memory twice.
        """
        messages: list[ScoredMessage] = []
        size = 0
        for step in steps:
            if isinstance(step, Said):
                messages.append(scored_message(step.message))
                size += messages[-1].tokens
                if size > limit:
                    return cls((), [f"retention is not measured above {limit:,} tokens"])
        return cls(demands_at(messages, shares))

    def at(self, message: int) -> CutDemand | None:
        """Return the cut before a message, or None."""
        return self._needed.get(message)


@cache
def common_names() -> frozenset[str]:
    """Return names that are not significant, because calls of at least three unrelated projects use them."""
    text = (resources.files("foldline.lab") / "common_names.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("# "))
