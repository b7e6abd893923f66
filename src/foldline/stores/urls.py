"""Which store a URL names."""

from __future__ import annotations

from pathlib import Path

from foldline.errors import InputError
from foldline.stores.base import Store
from foldline.stores.memory import MemoryStore
from foldline.stores.sqlite import SqliteStore

DEFAULT = "~/.foldline/foldline.db"


def open_store(url: str | None = None) -> Store:
    """Return the store that a URL names; its file is opened at the first use.

    `memory://`, `sqlite:///relative.db`, `sqlite:////absolute.db` (a leading ~ is the home directory);
    None and a bare `sqlite://` name `~/.foldline/foldline.db`. Directories are made for their owner alone
    (0700), new files too (0600). Raises InputError for any other URL.
    """
    scheme, separator, rest = (url or "sqlite://").partition("://")
    if separator and scheme == "memory" and rest in {"", "/"}:
        return MemoryStore()
    if separator and scheme == "sqlite":
        return SqliteStore(_path(rest))
    raise InputError(
        f"unknown store URL {url!r}: use sqlite:///FILE (a path from here), sqlite:////FILE (from the root) or memory://"
    )


def _path(rest: str) -> Path:
    if rest and not rest.startswith("/"):
        raise InputError(f"sqlite://{rest} names a host: write sqlite:///{rest} (three slashes) for a file")
    name = rest[1:]
    if name == ":memory:":
        raise InputError("for a store in memory use memory://")
    return Path(name or DEFAULT).expanduser()
