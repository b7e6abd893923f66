"""The rows: Foldline's presets, trivial controls, and the rivals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import foldline
from foldline.bench.rivals import RIVALS
from foldline.bench.system import Fold, Messages, System, message_texts, size
from foldline.core.decide.presets import PRESETS
from foldline.errors import InputError, did_you_mean

FIRST = "foldline"  # the preset that is compared with all others


# ---- Foldline's presets


class LivePreset:
    """A live session of Foldline, in memory."""

    def __init__(self, policy: str, window: int) -> None:
        self._session = foldline.open_sync("memory://", "bench", window=window, policy=policy)

    def say(self, *messages: dict[str, Any]) -> None:
        """Append messages."""
        self._session.append(*messages)

    def view(self) -> Sequence[Any]:
        """Return the context, folded if necessary."""
        return self._session.context()

    def history(self) -> Any:
        """Return the whole history."""
        return self._session.history()

    def close(self) -> None:
        """Close the session."""
        self._session.close()


def _compact(policy: str, budget: int) -> Fold:
    return lambda messages: foldline.compact(messages, target=budget, policy=policy).messages


def _preset(name: str) -> System:
    entry = f"foldline.compact(messages, target=budget, policy={name!r}); foldline.open(..., policy={name!r})"
    return System(name, "preset", entry, partial(_compact, name), "foldline", live=partial(LivePreset, name))


# ---- controls


def everything(messages: Messages, budget: int) -> Messages:
    """Leave nothing out."""
    del budget
    return messages


def newest(messages: Messages, budget: int) -> Messages:
    """Keep the newest messages that fit, wherever that cuts."""
    room, at = budget, len(messages)
    while at and (room := room - size(message_texts(messages[at - 1 : at])[0])) >= 0:
        at -= 1
    return messages[at:]


def newest_turns(messages: Messages, budget: int) -> Messages:
    """Keep the newest turns that fit, from a user message on."""
    kept = newest(messages, budget)
    return kept[next((at for at, one in enumerate(kept) if one["role"] == "user"), len(kept)) :]


def user_words(messages: Messages, budget: int) -> Messages:
    """Keep what the user said, as far as half the budget takes it, and the newest turns."""
    kept = newest_turns(messages, budget // 2)
    asked = [one for one in messages[: len(messages) - len(kept)] if one["role"] == "user"]
    return [*newest(asked, budget // 2), *kept]


CONTROLS: tuple[Callable[[Messages, int], Messages], ...] = (everything, newest, newest_turns, user_words)


def _control(function: Callable[[Messages, int], Messages]) -> System:
    about = (function.__doc__ or "").rstrip(".")

    def make(budget: int) -> Fold:
        return lambda messages: function(messages, budget)

    return System(function.__name__.replace("_", "-"), "control", about, make, "foldline")


# ---- all of them

SYSTEMS: Mapping[str, System] = {
    one.name: one
    for one in (
        *(_preset(name) for name in PRESETS if ":" not in name),
        *(_control(function) for function in CONTROLS),
        *RIVALS,
    )
}
GROUPS = {"presets": "preset", "controls": "control", "rivals": "rival"}


def chosen(names: Sequence[str]) -> list[System]:
    """Return systems by name; `presets`, `controls`, `rivals` are groups; without names all systems.

    Raises InputError for an unknown name.
    """
    systems: dict[str, System] = {}
    for name in names or GROUPS:
        group = GROUPS.get(name)
        if group is None and name not in SYSTEMS:
            known = (*GROUPS, *SYSTEMS)
            raise InputError(f"no system {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}")
        for system in SYSTEMS.values():
            if system.name == name or system.kind == group:
                systems[system.name] = system
    return list(systems.values())
