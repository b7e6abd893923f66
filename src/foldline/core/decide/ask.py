"""What is asked of one compaction, and the answer that none was made."""

from __future__ import annotations

from typing import Final, Literal, get_args

import msgspec

from foldline.core.decide.continuation import Continuation
from foldline.core.decide.policy import Policy, usable_of
from foldline.core.decide.price import Economy
from foldline.core.log.entries import Live, Reason
from foldline.core.measure.window import Floor, Window

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


class FoldRequest(msgspec.Struct, frozen=True):
    """What is asked of a compaction: the policy, the limits, and why.

    `target` replaces usable; `overhead` are the tokens of a system prompt and tools given apart; `now` is
    ISO 8601 UTC; `number` counts the session's compactions from 1. `live` is the live state that the
    checkpoint is to hold, `continuation` where the session stands (None: it is not recorded),
    `economy` what its requests cost, where that is known; `recall`: whether what is left out can be recalled.
    `notes` stand first in the receipt. `project` is what a system prompt given apart says of summaries.
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

    @property
    def usable(self) -> int:
        """Return what the view may take, in tokens."""
        return self.target if self.target is not None else usable_of(self.policy, self.window)

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
