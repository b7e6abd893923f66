"""Open the store that a URL names: one opener for each scheme, and more can be registered."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from foldline.errors import InputError
from foldline.stores.base import Store
from foldline.stores.memory import MemoryStore
from foldline.stores.sqlite import SqliteStore

DEFAULT: Final = "~/.foldline/foldline.db"
Opener = Callable[[str], Store]
_PASSWORD: Final = re.compile(r"(//[^/@:]*):[^/@]*@")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")


def register(scheme: str, opener: Opener) -> None:
    """Open the URLs of a scheme (`redis` for `redis://...`) with a function that takes the whole URL.

    Registering a scheme again replaces its function. Raises InputError for an invalid scheme.
    """
    is_text = isinstance(scheme, str)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_text or not _SCHEME.fullmatch(scheme):
        raise InputError(f"scheme = {scheme!r}: give what stands before ://, in lower case, such as 'redis'")
    if not callable(opener):
        raise InputError(f"opener = {opener!r}: give a function that takes a URL and returns a Store")
    _OPENERS[scheme] = opener


def find_store(store: str | Store | None) -> Store:
    """Return a store that is given, or the one that a URL names; raises InputError for anything else."""
    if store is None or isinstance(store, str):
        return open_store(store)
    if isinstance(store, type) or not all(callable(getattr(store, name, None)) for name in _METHODS):
        raise InputError(
            f"store = {store!r}: give a store's URL, or an object with the methods of foldline.Store"
        )
    return store


def open_store(url: str | None = None) -> Store:
    """Return the store that a URL names; a file or a server is opened at the first use.

    `memory://`, `sqlite:///relative.db`, `sqlite:////absolute.db` (a leading ~ is the home directory),
    `postgresql://user@host/database`, or a registered scheme; None and a bare `sqlite://` name
    `~/.foldline/foldline.db`. New directories and files are private to their owner (0700, 0600). Raises
    InputError for any other URL, naming the known schemes.
    """
    url = url or "sqlite://"
    scheme, separator, _ = url.partition("://")
    opener = _OPENERS.get(scheme) if separator else None
    if opener is None:
        known = ", ".join(f"{name}://" for name in _OPENERS)
        raise InputError(
            f"unknown store URL {_without_password(url)!r}: there are {known}; use "
            "sqlite:///FILE (a path from here), sqlite:////FILE (from the root), "
            "postgresql://USER@HOST/DATABASE or memory://"
        )
    return opener(url)


def _without_password(url: str) -> str:
    return _PASSWORD.sub(r"\1:***@", url)


def _memory(url: str) -> Store:
    if url not in ("memory://", "memory:///"):
        raise InputError(f"unknown store URL {url!r}: a store in memory has no name; write memory://")
    return MemoryStore()


def _sqlite(url: str) -> Store:
    rest = url.partition("://")[2]
    if rest and not rest.startswith("/"):
        raise InputError(f"sqlite://{rest} names a host: write sqlite:///{rest} (three slashes) for a file")
    name = rest[1:]
    if name == ":memory:":
        raise InputError("for a store in memory use memory://")
    return SqliteStore(Path(name or DEFAULT).expanduser())


def _postgres(url: str) -> Store:
    try:
        from foldline.stores.postgres import PostgresStore  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError("postgresql:// needs psycopg: pip install 'foldline[postgres]'") from error
    return PostgresStore(url)


_METHODS: Final = tuple(name for name in vars(Store) if not name.startswith("_"))
_OPENERS: Final[dict[str, Opener]] = {
    "sqlite": _sqlite,
    "memory": _memory,
    "postgresql": _postgres,
    "postgres": _postgres,
}
