"""What is asked of one compaction, and the answer that none was made."""

from __future__ import annotations

from typing import Final, Literal, get_args

import msgspec

from foldline.core.decide.continuation import Continuation
from foldline.core.decide.policy import Policy, usable_of
from foldline.core.decide.price import Economy
from foldline.core.log.entries import Live, Reason
from foldline.core.measure.window import Floor, Window
from foldline.errors import InputError

AutomaticReason = Literal["threshold", "overflow", "model_switch"]
AUTOMATIC: Final[frozenset[Reason]] = frozenset(get_args(AutomaticReason))  # nobody asked for it

Why = Literal[
    "fits", "nothing_new", "nothing_to_fold", "no_gain", "disabled", "signed_thinking", "void", "too_large"
]
WORDS: Final[dict[Why, str]] = {
    "fits": "it fits as it is",
    "nothing_new": "nothing was said since the last boundary; a new focus would make another one",
    "nothing_to_fold": "there is nothing that could be folded",
    "no_gain": "it would gain too little",
    "disabled": "it is switched off",
    "signed_thinking": "the thinking of an unfinished tool loop is signed, with all that comes before it",
    "void": "the session has changed meanwhile",
    "too_large": "what would be left is too large",
}


class FoldRange(msgspec.Struct, frozen=True):
    """A range that somebody chose to fold: all `up_to` an entry and its exchange, or all `since` an entry."""

    entry: str
    way: Literal["up_to", "since"]


def fold_range(up_to: str | None, since: str | None, target: int | None = None) -> FoldRange | None:
    """Return the range that is asked for; raises InputError where it is not one thing alone."""
    if sum(given is not None for given in (up_to, since, target)) > 1:
        raise InputError("give one of `up_to`, `since` and `target`: a range is folded whatever its size")
    if up_to is not None:
        return FoldRange(up_to, "up_to")
    return None if since is None else FoldRange(since, "since")


class FoldRequest(msgspec.Struct, frozen=True):
    """What is asked of a compaction: the policy, the limits, and why.

    `target` replaces usable; `overhead` are the tokens of a system prompt and tools given apart; `now` is
    ISO 8601 UTC; `number` counts the session's compactions from 1. `live` is the live state that the
    checkpoint is to hold, `continuation` where the session stands (None: it is not recorded),
    `economy` what its requests cost, where that is known; `recall`: whether what is left out can be recalled.
    `notes` stand first in the receipt. `project` is what a system prompt given apart says of summaries.
    `chosen` is the range to fold, whatever the policy keeps; then the view may be as large as it was,
    `least_usable` tokens.
    """

    policy: Policy
    window: Window
    reason: Reason
    target: int | None = None
    instructions: str | None = None
    goal: str | None = None
    overhead: Floor = Floor()
    now: str = ""
    number: int = 1
    live: tuple[Live, ...] = ()
    economy: Economy | None = None
    continuation: Continuation | None = None
    recall: bool = True
    notes: tuple[str, ...] = ()
    project: str = ""
    chosen: FoldRange | None = None
    least_usable: int = 0

    @property
    def usable(self) -> int:
        """Return what the view may take, in tokens."""
        if self.target is not None:
            return self.target
        return max(usable_of(self.policy, self.window), self.least_usable)

    @property
    def optional(self) -> bool:
        """Whether the session can go on without it: nobody asked for it, and the last request did fit.

        Such a compaction has to gain `min_gain`, and never interrupts a tool loop with signed thinking.
        """
        return is_optional(self.reason)

    @property
    def overhead_tokens(self) -> int:
        """Return the tokens of what is given apart from the messages."""
        return self.overhead.system + self.overhead.tools


def is_optional(reason: Reason) -> bool:
    """Whether a session can go on without a compaction for this reason."""
    return reason in AUTOMATIC and reason != "overflow"


class Nothing(msgspec.Struct, frozen=True):
    """No boundary was made, and why."""

    why: Why
    detail: str = ""

    @property
    def words(self) -> str:
        """Return why, for a person."""
        return self.detail or WORDS[self.why]
