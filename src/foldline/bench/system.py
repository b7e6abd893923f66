"""The systems to compare. A system turns messages and a budget into a view for the model.

Every system gets the same Chat Completions messages, and is called as in its documentation. Most are
stateless, or return a shorter history that replaces the messages (`replaces`); some keep sessions (`live`).
The row of a system that is not installed, raises or takes too long has an error instead of figures.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

Messages = list[dict[str, Any]]
Fold = Callable[[Messages], Sequence[Any]]
Kind = Literal["preset", "control", "rival"]

CHARACTERS = 4  # per token: the same count for all systems
FRAME = 4  # tokens around a message


class LiveSystem(Protocol):
    """A session under one system; our own live sessions are such."""

    def append(self, *messages: dict[str, Any]) -> object:
        """Append messages."""
        ...

    def context(self) -> Sequence[Any]:
        """Return the current view."""
        ...

    def history(self) -> Any:
        """Return everything that can still be read; None if the caller keeps the messages."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


class System(msgspec.Struct, frozen=True):
    """One row. `make(budget)` returns its fold, `entry` is the call in a user's program.

    `live(window)` opens a session, for systems that keep one. `writer`: a model writes its summaries. Here a
    script writes them, so only the validity of its views and its cost are measured.
    """

    name: str
    kind: Kind
    entry: str
    make: Callable[[int], Fold]
    package: str
    live: Callable[[int], LiveSystem] | None = None
    replaces: bool = False
    writer: bool = False
    dialect: str = "openai-chat"  # of its views

    @property
    def version(self) -> str | None:
        """The installed version, or None."""
        return installed(self.package)

    def opened(self, window: int) -> LiveSystem:
        """Open a session; a system without sessions folds its messages at each request."""
        if self.live is not None:
            return self.live(window)
        fold = self.make(window)
        return Shortened(fold) if self.replaces else Refolded(fold)


class Refolded:
    """A session whose caller keeps all messages, and folds them for each request."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._messages: Messages = []

    def append(self, *messages: dict[str, Any]) -> None:
        """Append messages."""
        self._messages += messages

    def context(self) -> Sequence[Any]:
        """Return all messages, folded."""
        return self._fold(self._messages)

    def history(self) -> Any:
        """Return None: the caller keeps the messages."""
        return None

    def close(self) -> None:
        """Do nothing."""


class Shortened(Refolded):
    """A session in which each view replaces the messages."""

    def context(self) -> Sequence[Any]:
        """Return the messages, folded if necessary."""
        self._messages = list(self._fold(self._messages))
        return self._messages

    def history(self) -> Any:
        """Return the remaining messages."""
        return self._messages


# ---- the text of a view


def texts(value: Any, parents: tuple[int, ...] = ()) -> Iterator[str]:
    """Yield every text in a value: in lists, in mappings, in the fields of objects."""
    if isinstance(value, str):
        yield value
        return
    path = (*parents, id(value))
    if isinstance(value, Mapping):
        for item in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from texts(item, path)
    elif isinstance(value, list | tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from texts(item, path)
    elif id(value) not in parents and not callable(value) and hasattr(value, "__dict__"):
        yield from texts(vars(value), path)


def message_texts(view: Sequence[Any]) -> list[str]:
    """Return the text of each message of a view."""
    return ["\n".join(texts(message)) for message in view]


def size(text: str) -> int:
    """Return the size of a message with this text, in tokens."""
    return len(text) // CHARACTERS + FRAME


# ---- packages of rows: from PyPI, or from npm if the name starts with `npm:`

NPM: Final = "npm:"
VARIABLE: Final = "FOLDLINE_NODE_MODULES"
FOLDER: Final = "node_modules"


def node_modules() -> Path:
    """Return the folder of npm packages."""
    folder = Path(os.environ.get(VARIABLE) or ".").absolute()
    return folder if folder.name == FOLDER else folder / FOLDER


def installed(package: str) -> str | None:
    """Return the version of a package; None if it, or Node.js for npm, is not installed."""
    try:
        if not package.startswith(NPM):
            return version_of(package)
        manifest = node_modules() / package.removeprefix(NPM) / "package.json"
        return json.loads(manifest.read_bytes())["version"] if shutil.which("node") else None
    except (PackageNotFoundError, OSError, ValueError, KeyError):
        return None


def how_to_install(package: str) -> str:
    """Return the command that installs a package, or what to install first."""
    if not package.startswith(NPM):
        return f"pip install {package}"
    if not shutil.which("node"):
        return "install Node.js first"
    return f"npm install {package.removeprefix(NPM)}, in this folder or the folder in {VARIABLE}"


# ---- the machine, and its time


def machine() -> str:
    """Describe this machine: cores, processor, system, Python."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor()
    return f"{os.cpu_count()} cores of {processor}, {platform.system()}, Python {platform.python_version()}"


_external_seconds = [0.0]


def clock(external: float = 0.0) -> float:
    """Return the processor time in seconds; `external` adds seconds of another process to all later calls."""
    _external_seconds[0] += external
    return time.process_time() + _external_seconds[0]
