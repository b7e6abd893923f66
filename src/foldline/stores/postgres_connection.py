"""Reach a PostgreSQL database: what a URL says, one connection, its texts, PostgreSQL's errors as Foldline's.

A `text` of PostgreSQL holds no NUL and no half surrogate. Both are escaped by a backslash, which is doubled
itself: so any Python text comes back as it was.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.abc import Buffer
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg.types.string import StrDumperUnknown, TextLoader

from foldline.errors import FoldlineError, InputError, StoreCorrupt, StoreError

Connection = psycopg.Connection[TupleRow]
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_@-]{0,62}")
# Reasons for which waiting does not help: the server is there and refuses.
_REFUSED: Final = re.compile(
    r"authentication failed|does not exist|no pg_hba\.conf entry|no password supplied|permission denied"
)
_AGAIN: Final = frozenset({"40001", "40003", "40P01"})  # serialization failure, unknown outcome, deadlock
_GONE: Final = frozenset({"57P01", "57P02", "57P03", "25006", "53300"})  # shut down, starting, standby, full
_DAMAGED: Final = frozenset({"XX001", "XX002"})
_SPECIAL: Final = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


class Target(NamedTuple):
    """What a URL names: the parameters of libpq, the schema, and how many connections to make at most."""

    parameters: dict[str, Any]
    schema: str
    connections: int

    @property
    def name(self) -> str:
        """The host and the database, for messages: never the user or the password."""
        host = self.parameters.get("host") or "the local socket"
        port = self.parameters.get("port")
        database = self.parameters.get("dbname") or "the user's own"
        return f"PostgreSQL at {host}{f':{port}' if port else ''}, database {database}"


def read_url(url: str) -> Target:
    """Return what a `postgresql://` URL names; raises InputError, without the URL, which may hold a password.

    Beside libpq's own parameters (https://www.postgresql.org/docs/current/libpq-connect.html) it may have
    `schema` (default: foldline) and `connections` (default: 8).
    """
    try:
        parts = urlsplit(url)
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        schema, connections = asked.pop("schema", "foldline"), int(asked.pop("connections", "8"))
        parameters = conninfo_to_dict(urlunsplit(parts._replace(query=urlencode(asked, quote_via=quote))))
        _ = [int(port) for port in str(parameters.get("port") or 0).split(",")]  # one for each host
    except (ValueError, psycopg.Error):
        raise InputError(
            "this PostgreSQL URL cannot be read: write postgresql://USER:PASSWORD@HOST:5432/DATABASE, with "
            "special characters of the password as %XX"
        ) from None
    if not _SCHEMA.fullmatch(schema):
        raise InputError(f"schema={schema}: use a-z, 0-9, _, @ and -, at most 63 characters")
    if connections < 1:
        raise InputError(f"connections={connections}: at least one is needed")
    return Target(parameters, schema, connections)


def connect(target: Target, timeout: float) -> Connection:
    """Open one connection, whose tables are those of the target's schema; raises psycopg.Error."""
    settings = {
        "search_path": f'"{target.schema}"',
        "client_encoding": "utf8",
        "lock_timeout": str(max(1, round(timeout * 1000))),
        # a process that hangs in a transaction must not hold up all others
        "idle_in_transaction_session_timeout": "60000",
    }
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    given = target.parameters.get("options")
    parameters: dict[str, Any] = {
        "connect_timeout": max(2, round(timeout)),
        # a path that is cut without a word is noticed after that long, and not after TCP's two hours
        "tcp_user_timeout": round(timeout * 1000),
        "keepalives_idle": max(1, round(timeout / 2)),
        "keepalives_interval": max(1, round(timeout / 4)),
        "keepalives_count": 2,
        "application_name": "foldline",
        **target.parameters,
        "options": f"{given} {options}" if given else options,
    }
    connection = psycopg.connect(make_conninfo(**parameters), autocommit=True)
    connection.adapters.register_dumper(str, _EscapedDumper)
    connection.adapters.register_loader("text", _EscapedLoader)
    return connection


# ---- texts


def escaped(text: str) -> str:
    """Return a text as it is stored."""
    return _SPECIAL.sub(lambda found: r"\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", text)


def unescaped(stored: str) -> str:
    """Return the text that `escaped` stored."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", stored)


class _EscapedDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escaped(obj) if _SPECIAL.search(obj) else obj)


class _EscapedLoader(TextLoader):
    def load(self, data: Buffer) -> bytes | str:
        text = super().load(data)
        return unescaped(text) if isinstance(text, str) and "\\" in text else text


# ---- errors


def is_worth_a_retry(error: Exception, connection: Connection | None) -> bool:
    """Return whether the same work may succeed later: a conflict, or a server that is away for a moment."""
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate in _AGAIN | _GONE:
        return True
    if connection is None:
        return isinstance(error, psycopg.OperationalError) and not _REFUSED.search(str(error))
    # libpq's own errors have no state ("cannot exit pipeline mode while busy"): it was cut off half way
    return connection.broken or (isinstance(error, psycopg.OperationalError) and error.sqlstate is None)


def is_conflict(error: Exception) -> bool:
    """Return whether another transaction came between, so that the connection is still good."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _AGAIN


def store_error(error: psycopg.Error, target: Target, *, reached: bool, timeout: float) -> FoldlineError:
    """Return the Foldline error for an error of PostgreSQL, with advice."""
    said = " ".join(str(error).split())
    if not reached or error.sqlstate in _GONE:
        return StoreError(
            f"{target.name}, cannot be reached ({said}). Waited {timeout:g} seconds: check that the server "
            "runs and that the URL is right, and try again."
            if not _REFUSED.search(said)
            else f"{target.name}, refuses the connection ({said}): check user, password and database."
        )
    if error.sqlstate in _AGAIN:
        return StoreError(
            f"{target.name}: other writers came first for {timeout:g} seconds. Nothing was written; "
            "try again."
        )
    if error.sqlstate == "55P03":
        return StoreError(f"{target.name}: another connection held a lock for too long. Nothing was written.")
    if error.sqlstate == "53100":
        return StoreError(
            f"{target.name}: the disk is full. Nothing was written; free some space and try again."
        )
    if error.sqlstate == "42501":
        return StoreError(
            f"{target.name}: {said}. The user needs CREATE on the database for the first use, or a schema "
            f"{target.schema} of its own."
        )
    if error.sqlstate in _DAMAGED:
        return StoreCorrupt(f"{target.name} is damaged ({said}): restore a backup.")
    return StoreError(f"{target.name}: {said}")
