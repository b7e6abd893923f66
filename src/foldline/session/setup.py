"""A session's settings: those given, and those that its log and its model complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from foldline.catalogue import Catalogue, ModelInfo, learned
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import resolve
from foldline.core.decide.watch import WatchLimits
from foldline.core.log.entries import Entry
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Floor, Window
from foldline.session.kept import KeptModel, kept_with, learnt_window


class Setup(msgspec.Struct, frozen=True):
    """A session's settings: its model, its policy, and the system prompt and tools sent with its messages.

    A `subagent` is folded after an overflow only. `rules` is the policy as named, before it was fitted to the
    model. `catalogue` holds the models that the session may change to. `given` are the model and window
    passed at opening; missing ones come from the stored note.
    """

    policy: Policy
    rules: Policy
    info: ModelInfo
    given: KeptModel = KeptModel()
    catalogue: Catalogue = Catalogue()
    dialect: str | None = None
    system: Any = None
    tools: Any = None
    overhead: Floor = Floor()
    counter: Counter = OFFLINE
    subagent: bool = False

    @property
    def model(self) -> str | None:
        """The model's name as given."""
        return self.info.name

    @property
    def window(self) -> Window:
        """The model's limits, in tokens."""
        return self.info.window

    @property
    def limits(self) -> WatchLimits:
        """The limits that decide when the session is compacted."""
        return WatchLimits(self.policy, self.window, self.model, self.subagent, self.info.known)


def with_info(setup: Setup, info: ModelInfo) -> Setup:
    """Return the setup with another model or window, and the policy fitted to it."""
    policy = resolve(setup.rules, info.name, info.window)
    return msgspec.structs.replace(setup, info=info, policy=policy)


def with_kept(setup: Setup, kept: KeptModel) -> tuple[Setup, ModelInfo]:
    """Return the setup with the stored model applied, and the stored model's info."""
    # a window from the settings, if none was passed
    configured = setup.info.window if setup.info.found == "given" else None
    before, now = (
        setup.catalogue.look_up(
            stored.model or setup.model, configured if stored.window is None else stored.window
        )
        for stored in (kept, kept_with(setup.given, kept))
    )
    return with_info(setup, now), before


def with_learnt(setup: Setup, entries: Sequence[Entry]) -> Setup:
    """Return the setup with the window learnt from the log applied."""
    context = learnt_window(entries, setup.model)
    if context is None or context == setup.window.context:
        return setup
    return with_info(setup, learned(setup.info, context))
