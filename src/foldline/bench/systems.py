"""The rows: Foldline's presets, trivial controls, and the rivals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile

import foldline
from foldline.bench.rivals import RIVALS
from foldline.bench.system import Fold, LiveSystem, Messages, System, message_texts, size
from foldline.core.decide.presets import PRESETS
from foldline.errors import InputError, did_you_mean

FIRST = "foldline"  # the preset that is compared with all others


# ---- Foldline's presets


def _preset(name: str) -> System:
    entry = f"foldline.compact(messages, target=budget, policy={name!r}); foldline.open(..., policy={name!r})"

    def make(budget: int) -> Fold:
        return lambda messages: foldline.compact(messages, target=budget, policy=name).messages

    def live(window: int) -> LiveSystem:
        return foldline.open_sync("memory://", "bench", window=window, policy=name)

    return System(name, "preset", entry, make, "foldline", live=live)


# ---- controls


def everything(messages: Messages, budget: int) -> Messages:
    """Keep all messages."""
    del budget
    return messages


def newest(messages: Messages, budget: int) -> Messages:
    """Keep the newest messages that fit, even if that separates a call from its result."""
    room, start = budget, len(messages)
    while start and (room := room - size(message_texts(messages[start - 1 : start])[0])) >= 0:
        start -= 1
    return messages[start:]


def newest_turns(messages: Messages, budget: int) -> Messages:
    """Keep the newest turns that fit, from a user message on."""
    return list(dropwhile(lambda message: message["role"] != "user", newest(messages, budget)))


def user_words(messages: Messages, budget: int) -> Messages:
    """Keep the newest user messages in half of the budget, and the newest turns in the other half."""
    kept = newest_turns(messages, budget // 2)
    prompts = [message for message in messages[: len(messages) - len(kept)] if message["role"] == "user"]
    return [*newest(prompts, budget // 2), *kept]


CONTROLS: tuple[Callable[[Messages, int], Messages], ...] = (everything, newest, newest_turns, user_words)


def _control(function: Callable[[Messages, int], Messages]) -> System:
    about = (function.__doc__ or "").rstrip(".")

    def make(budget: int) -> Fold:
        return lambda messages: function(messages, budget)

    return System(function.__name__.replace("_", "-"), "control", about, make, "foldline")


# ---- all of them

SYSTEMS: Mapping[str, System] = {
    system.name: system
    for system in (
        *(_preset(name) for name in PRESETS if ":" not in name),
        *(_control(function) for function in CONTROLS),
        *RIVALS,
    )
}
GROUPS = {"presets": "preset", "controls": "control", "rivals": "rival"}


def select_systems(names: Sequence[str]) -> list[System]:
    """Return systems by name, or by the groups `presets`, `controls`, `rivals`; without names all systems.

    Raises InputError for an unknown name.
    """
    systems: dict[str, System] = {}
    for name in names or GROUPS:
        group = GROUPS.get(name)
        if group is None and name not in SYSTEMS:
            known = (*GROUPS, *SYSTEMS)
            raise InputError(
                f"no system {name!r}{did_you_mean(name, known)}; the systems are {', '.join(known)}"
            )
        for system in SYSTEMS.values():
            if system.name == name or system.kind == group:
                systems[system.name] = system
    return list(systems.values())
