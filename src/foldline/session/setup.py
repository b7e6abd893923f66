"""How a session is kept, and the figures that it shows."""

from __future__ import annotations

from typing import Any

import msgspec

from foldline.catalogue import Catalogue, ModelInfo
from foldline.core.decide.policy import Policy
from foldline.core.decide.watch import WatchLimits
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Floor, Window


class Setup(msgspec.Struct, frozen=True):
    """How a session is kept: its model, its policy, and what is sent beside its messages.

    No threshold folds a `subagent`; an overflow does, as in any session. `rules` is the policy as it was
    named, before it was fitted to the model. `catalogue` knows the models that the session may change to.
    """

    policy: Policy
    info: ModelInfo
    dialect: str | None = None
    system: Any = None
    tools: Any = None
    apart: Floor = Floor()
    counter: Counter = OFFLINE
    subagent: bool = False
    rules: Policy | None = None
    catalogue: Catalogue = Catalogue()

    @property
    def model(self) -> str | None:
        """The model's name as it was given."""
        return self.info.name

    @property
    def window(self) -> Window:
        """The model's limits, in tokens."""
        return self.info.window

    @property
    def limits(self) -> WatchLimits:
        """What decides when the session is compacted."""
        return WatchLimits(self.policy, self.window, self.model, self.subagent, self.info.known)


class Stats(msgspec.Struct, frozen=True):
    """Figures of a session: messages in all and in the view, tokens in the view by category, compactions.

    `compression_ratio` is messages in the view / messages in all. `view_tokens` is the view's size by
    Foldline's own count, `context_tokens` that of the next request: the newest reply's usage, its four parts
    summed, and estimates of what came since. `usable` is what the policy lets a view take of `window`, the
    model's limits.
    """

    total_messages: int
    active_messages: int
    summaries: int
    compression_ratio: float
    view_tokens: int
    context_tokens: int
    usable: int
    window: Window
    by_category: dict[str, int]
    open_calls: tuple[str, ...] = ()
