"""What is compared. A system makes, of the messages said so far and a budget, what a model would see.

Every system gets the same Chat Completions messages, and is called as its own users call it. Most are
stateless, or give back a shorter history that the next request starts from (`replaces`); some hold the
session themselves (`live`). A system that is not installed, raises or takes too long keeps its row, which
says so.
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

CHARACTERS = 4  # of a token: one count for all systems, whatever they count themselves
FRAME = 4  # tokens around a message


class LiveSystem(Protocol):
    """A session under one system."""

    def say(self, *messages: dict[str, Any]) -> None:
        """Take the next messages."""
        ...

    def view(self) -> Sequence[Any]:
        """Return what the model would see now."""
        ...

    def history(self) -> Any:
        """Return all that can still be read; None where the caller keeps the messages."""
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
        """The version that is installed; None if none is."""
        return installed(self.package)

    def opened(self, window: int) -> LiveSystem:
        """Open a session; a system without sessions is asked for a fold of all messages at each request."""
        if self.live is not None:
            return self.live(window)
        fold = self.make(window)
        return Shortened(fold) if self.replaces else Refolded(fold)


class Refolded:
    """A session whose caller keeps all messages, and has them folded for each request."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._messages: Messages = []

    def say(self, *messages: dict[str, Any]) -> None:
        """Take the next messages."""
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
    """A session in which the folded messages take the place of the others."""

    def view(self) -> Sequence[Any]:
        """Return what is left, folded if it must be."""
        self._messages = list(self._fold(self._messages))
        return self._messages

    def history(self) -> Any:
        """Return what is left."""
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
    """Return the seconds of the processor so far, with all that were said to be spent `elsewhere`."""
    _elsewhere[0] += elsewhere
    return time.process_time() + _elsewhere[0]
