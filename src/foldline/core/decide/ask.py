"""What is asked of one compaction, and the answer that none was made."""

from __future__ import annotations

from typing import Literal

import msgspec

from foldline.core.decide.continuation import Continuation
from foldline.core.decide.policy import Policy, usable_of
from foldline.core.decide.price import Economy
from foldline.core.log.entries import Live
from foldline.core.measure.window import Floor, Window

Reason = Literal["manual", "threshold", "overflow", "model_switch", "agent", "target"]


class Ask(msgspec.Struct, frozen=True):
    """What is asked of a compaction: the policy, the limits, and why.

    `target` replaces usable; `apart` are the tokens of a system prompt and tools given apart; `now` is
    ISO 8601 UTC; `number` counts the session's compactions from 1. `live` is the live state that the
    checkpoint is to hold, `standing` where the session stands (None: it is not recorded),
    `economy` what its requests cost, where that is known; `recall`: whether what is left out can be recalled.
    """

    policy: Policy
    window: Window
    reason: Reason
    target: int | None = None
    instructions: str | None = None
    goal: str | None = None
    apart: Floor = Floor()
    now: str = ""
    number: int = 1
    live: tuple[Live, ...] = ()
    economy: Economy | None = None
    standing: Continuation | None = None
    recall: bool = True

    @property
    def usable(self) -> int:
        """Return what the view may take, in tokens."""
        return self.target if self.target is not None else usable_of(self.policy, self.window)

    @property
    def automatic(self) -> bool:
        """Whether nobody asked for it: then it has to gain `min_gain`."""
        return self.reason in ("threshold", "model_switch")

    @property
    def apart_tokens(self) -> int:
        """Return the tokens of what is given apart from the messages."""
        return self.apart.system + self.apart.tools


class Nothing(msgspec.Struct, frozen=True):
    """No boundary was made; `why` is fits, nothing_new, nothing_to_fold, no_gain, disabled or signed_thinking."""

    why: str
    detail: str = ""
