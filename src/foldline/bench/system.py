"""The systems to compare. A system turns messages and a budget into a view for the model.

Every system gets the same Chat Completions messages, and is called as its users call it. Most are stateless,
or return a shorter history with which the next request starts (`replaces`); some keep the session themselves
(`live`). The row of a system that is not installed, raises or takes too long says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from foldline.bench.packages import installed

Messages = list[dict[str, Any]]
Fold = Callable[[Messages], Sequence[Any]]
Kind = Literal["preset", "control", "rival"]

CHARACTERS = 4  # per token: the same count for all systems
FRAME = 4  # tokens around a message


class LiveSystem(Protocol):
    """A session under one system."""

    def say(self, *messages: dict[str, Any]) -> None:
        """Append messages."""
        ...

    def view(self) -> Sequence[Any]:
        """Return the current view."""
        ...

    def history(self) -> Any:
        """Return everything that can still be read; None if the caller keeps the messages."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


class System(msgspec.Struct, frozen=True):
    """One row. `make(budget)` returns its fold, `entry` is what a user writes, `package` states its version.

    `live(window)` opens a session, for systems that hold one. `writer` says that a model writes its
    summaries: here a script does, so only the form of its views, and its cost, are measured.
    """

    name: str
    kind: Kind
    entry: str
    make: Callable[[int], Fold]
    package: str
    live: Callable[[int], LiveSystem] | None = None
    replaces: bool = False
    writer: bool = False
    dialect: str = "openai-chat"  # of what it returns

    @property
    def version(self) -> str | None:
        """The installed version, or None."""
        return installed(self.package)

    def opened(self, window: int) -> LiveSystem:
        """Open a session; a system without sessions folds all messages at each request."""
        if self.live is not None:
            return self.live(window)
        fold = self.make(window)
        return Shortened(fold) if self.replaces else Refolded(fold)


class Refolded:
    """A session whose caller keeps all messages, and folds them for each request."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._messages: Messages = []

    def say(self, *messages: dict[str, Any]) -> None:
        """Append messages."""
        self._messages += messages

    def view(self) -> Sequence[Any]:
        """Return the fold of everything."""
        return self._fold(self._messages)

    def history(self) -> Any:
        """Return None: the caller keeps the messages."""
        return None

    def close(self) -> None:
        """Do nothing."""


class Shortened(Refolded):
    """A session in which folded messages replace the others."""

    def view(self) -> Sequence[Any]:
        """Return the messages, folded if necessary."""
        self._messages = list(self._fold(self._messages))
        return self._messages

    def history(self) -> Any:
        """Return the remaining messages."""
        return self._messages


# ---- what every measure reads of a view


def texts(value: Any, above: tuple[int, ...] = ()) -> Iterator[str]:
    """Yield every text in a value: in lists, in mappings, in the fields of objects."""
    if isinstance(value, str):
        yield value
        return
    below = (*above, id(value))
    if isinstance(value, Mapping):
        for one in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from texts(one, below)
    elif isinstance(value, list | tuple):
        for one in value:  # pyright: ignore[reportUnknownVariableType]
            yield from texts(one, below)
    elif id(value) not in above and not callable(value) and hasattr(value, "__dict__"):
        yield from texts(vars(value), below)


def message_texts(view: Sequence[Any]) -> list[str]:
    """Return the text of each message of a view."""
    return ["\n".join(texts(one)) for one in view]


def size(text: str) -> int:
    """Return the size of a message with this text, in tokens."""
    return len(text) // CHARACTERS + FRAME


# ---- what every measure times with

_elsewhere = [0.0]


def clock(elsewhere: float = 0.0) -> float:
    """Return the processor time in seconds, plus all time that was spent `elsewhere`."""
    _elsewhere[0] += elsewhere
    return time.process_time() + _elsewhere[0]
