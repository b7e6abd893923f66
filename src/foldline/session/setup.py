"""How a session is kept, and the figures that it shows."""

from __future__ import annotations

from typing import Any

import msgspec

from foldline.core.decide.policy import Policy
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Floor, Window


class Setup(msgspec.Struct, frozen=True):
    """How a session is kept: its model's limits, its policy, and what is sent beside its messages.

    Of a `subagent` no threshold is looked at; an overflow is mended as in any session. `known` says that the
    window is the model's, not an assumption; `warnings` are told when the session is first used. `rules` is the
    policy as it was named, before it was fitted to the model.
    """

    policy: Policy
    window: Window
    model: str | None = None
    dialect: str | None = None
    system: Any = None
    tools: Any = None
    apart: Floor = Floor()
    counter: Counter = OFFLINE
    subagent: bool = False
    known: bool = True
    rules: Policy | None = None
    warnings: tuple[str, ...] = ()


class Stats(msgspec.Struct, frozen=True):
    """Figures of a session: messages in all and in the view, tokens in the view by category, compactions.

    `compression_ratio` is messages in the view / messages in all.
    """

    total_messages: int
    active_messages: int
    summaries: int
    compression_ratio: float
    view_tokens: int
    usable: int
    by_category: dict[str, int]
    open_calls: tuple[str, ...] = ()
