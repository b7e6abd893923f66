"""Open the store of a URL; other packages can register more schemes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from foldline.errors import InputError
from foldline.files import expanded
from foldline.stores.base import Store
from foldline.stores.sqlite import MemoryStore, SqliteStore

DEFAULT: Final = "~/.foldline/foldline.db"
Opener = Callable[[str], Store]
Beside = Callable[[str, str], str]
_PASSWORD: Final = re.compile(r"(//[^/@:]*):[^/@]*@")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")


class Scheme(NamedTuple):
    """The functions of a URL scheme.

    `open` opens a store. `beside` takes a URL and a name, and returns the URL of a sibling store, in which a
    service keeps a tenant's sessions; None if the scheme has no sibling stores.
    """

    open: Opener
    beside: Beside | None = None


def register(scheme: str, opener: Opener, beside: Beside | None = None) -> None:
    """Register a function that opens the URLs of a scheme (`redis` for `redis://...`).

    `beside` takes a URL and a name and returns the URL of a sibling store, so that a service can keep a store
    for each tenant. Registering a scheme again replaces its functions. Raises InputError for an invalid
    scheme.
    """
    is_text = isinstance(scheme, str)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_text or not _SCHEME.fullmatch(scheme):
        raise InputError(f"scheme = {scheme!r}: give the part before :// in lower case, such as 'redis'")
    if not callable(opener):
        raise InputError(f"opener = {opener!r}: give a function that takes a URL and returns a Store")
    _SCHEMES[scheme] = Scheme(opener, beside)


def find_store(store: str | Store | None) -> Store:
    """Return a store unchanged, or open the store of a URL; raises InputError for anything else."""
    if store is None or isinstance(store, str):
        return open_store(store)
    if isinstance(store, type) or not all(callable(getattr(store, name, None)) for name in _METHODS):
        raise InputError(
            f"store = {store!r}: give a store's URL, or an object with the methods of foldline.Store"
        )
    return store


def open_store(url: str | None = None) -> Store:
    """Return the store of a URL; its file or server is opened at the first use.

    `memory://`, `sqlite:///relative.db`, `sqlite:////absolute.db` (a leading ~ is the home directory),
    `postgresql://user@host/database`, or a registered scheme; None and a bare `sqlite://` name
    `~/.foldline/foldline.db`. New directories and files are private to their owner (0700, 0600). Raises
    InputError for any other URL, naming the known schemes.
    """
    url = url or "sqlite://"
    scheme, separator, _ = url.partition("://")
    known = _SCHEMES.get(scheme) if separator else None
    if known is None:
        names = ", ".join(f"{name}://" for name in _SCHEMES)
        raise InputError(
            f"unknown store URL {without_password(url)!r}: it must begin with one of {names}, such as "
            "sqlite:///FILE (relative), sqlite:////FILE (absolute), postgresql://USER@HOST/DATABASE or memory://"
        )
    return known.open(url)


def url_beside(url: str | None, name: str) -> str:
    """Return the URL of a sibling store; raises InputError if the scheme has none."""
    url = url or f"sqlite:///{DEFAULT}"
    scheme = url.partition("://")[0]
    known = _SCHEMES.get(scheme)
    if known is None or known.beside is None:
        raise InputError(
            f"{scheme}:// cannot keep a store for each tenant: use sqlite:///FILE or postgresql://..., or "
            "run a service for each tenant"
        )
    return known.beside(url, name)


def without_password(url: str) -> str:
    """Return a URL with its password masked, for display."""
    return _PASSWORD.sub(r"\1:***@", url)


def _memory(url: str) -> Store:
    if url not in ("memory://", "memory:///"):
        raise InputError(f"unknown store URL {url!r}: write memory:// without a name")
    return MemoryStore()


def _memory_beside(url: str, name: str) -> str:
    del name  # every store in memory is separate
    return url


def _sqlite(url: str) -> Store:
    path = url.partition("://")[2]
    if path and not path.startswith("/"):
        raise InputError(f"sqlite://{path} names a host: write sqlite:///{path} (three slashes) for a file")
    name = path[1:]
    if name == ":memory:":
        raise InputError("sqlite:///:memory: is not supported: write memory:// for a store in memory")
    return SqliteStore(expanded(name or DEFAULT))


def _file_beside(url: str, name: str) -> str:
    file = PurePosixPath(url.partition("://")[2] or f"/{DEFAULT}")
    return f"sqlite://{file.with_name(f'{file.stem}@{name}{file.suffix}')}"


def _postgres(url: str) -> Store:
    try:
        from foldline.stores.postgres import PostgresStore  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError("postgresql:// needs psycopg: pip install 'foldline[postgres]'") from error
    return PostgresStore(url)


def _schema_beside(url: str, name: str) -> str:
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    query["schema"] = f"{query.get('schema', 'foldline')}@{name}"
    return urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))


_METHODS: Final = tuple(name for name in vars(Store) if not name.startswith("_"))
_POSTGRES: Final = Scheme(_postgres, _schema_beside)
_SCHEMES: Final[dict[str, Scheme]] = {
    "sqlite": Scheme(_sqlite, _file_beside),
    "memory": Scheme(_memory, _memory_beside),
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
}
