"""The request of one compaction, and the result that none was made."""

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
AUTOMATIC: Final[frozenset[Reason]] = frozenset(get_args(AutomaticReason))  # not requested by anyone

Why = Literal[
    "fits", "nothing_new", "nothing_to_fold", "no_gain", "disabled", "signed_thinking", "void", "too_large"
]
WORDS: Final[dict[Why, str]] = {
    "fits": "it already fits",
    "nothing_new": "there are no new messages since the last boundary; give a new focus to compact again",
    "nothing_to_fold": "there is nothing to fold",
    "no_gain": "it would gain too little",
    "disabled": "compaction is switched off",
    "signed_thinking": "an unfinished tool loop has signed thinking, which is bound to what comes before it",
    "void": "the session has changed since",
    "too_large": "the remaining view would be too large",
}


class FoldRange(msgspec.Struct, frozen=True):
    """A range that the user chose to fold: all `up_to` an entry and its exchange, or all `since` an entry."""

    entry: str
    way: Literal["up_to", "since"]


def fold_range(up_to: str | None, since: str | None, target: int | None = None) -> FoldRange | None:
    """Return the requested range; raises InputError if more than one argument is given."""
    if sum(given is not None for given in (up_to, since, target)) > 1:
        raise InputError(
            "give only one of `up_to`, `since` and `target`: a range is folded whatever its size"
        )
    if up_to is not None:
        return FoldRange(up_to, "up_to")
    return None if since is None else FoldRange(since, "since")


class FoldRequest(msgspec.Struct, frozen=True):
    """The request of a compaction: the policy, the limits and the reason.

    `target` replaces usable. `overhead` are the tokens of a separate system prompt and tools, and `project`
    is what that prompt says about summaries. `now` is ISO 8601 UTC; `number` counts the session's compactions
    from 1. The checkpoint shows `live` state and the `continuation` state (None: not recorded). `economy` is
    the cost of the session's requests, if known. `recall`: whether what is left out can be recalled. `notes`
    come first in the receipt. `chosen` is the range to fold, whatever the policy keeps; the view may then
    stay as large as it was, `least_usable` tokens.
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
        """The tokens that the view may take."""
        if self.target is not None:
            return self.target
        return max(usable_of(self.policy, self.window), self.least_usable)

    @property
    def optional(self) -> bool:
        """Whether the session can continue without it: it is automatic, and the last request did fit.

        Such a compaction must gain `min_gain` and never interrupts a tool loop with signed thinking.
        """
        return is_optional(self.reason)

    @property
    def overhead_tokens(self) -> int:
        """The tokens of a separate system prompt and tools."""
        return self.overhead.system + self.overhead.tools


def is_optional(reason: Reason) -> bool:
    """Whether a session can continue without a compaction for this reason."""
    return reason in AUTOMATIC and reason != "overflow"


class Nothing(msgspec.Struct, frozen=True):
    """No boundary was made, with the reason."""

    why: Why
    detail: str = ""

    @property
    def words(self) -> str:
        """The reason in words."""
        return self.detail or WORDS[self.why]
