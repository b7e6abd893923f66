"""Connect to PostgreSQL: read the URL, open a connection, escape texts, and translate PostgreSQL's errors.

PostgreSQL's `text` cannot hold NUL or lone surrogates. They are escaped with a backslash, and a backslash is
doubled, so that any Python text can be stored.
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
# Errors that waiting does not solve: the server runs, and refuses the connection.
_REFUSED: Final = re.compile(
    r"authentication failed|does not exist|no pg_hba\.conf entry|no password supplied|permission denied"
)
_CONFLICTS: Final = frozenset({"40001", "40003", "40P01"})  # serialization failure, unknown outcome, deadlock
_AWAY: Final = frozenset({"57P01", "57P02", "57P03", "25006", "53300"})  # shut down, starting, standby, full
_DAMAGED: Final = frozenset({"XX001", "XX002"})
_SPECIAL: Final = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


class Target(NamedTuple):
    """The contents of a URL: libpq's parameters, the schema, and the largest number of connections."""

    parameters: dict[str, Any]
    schema: str
    connections: int

    @property
    def name(self) -> str:
        """The host and the database, for messages; without the user and the password."""
        host = self.parameters.get("host") or "the local socket"
        port = self.parameters.get("port")
        database = self.parameters.get("dbname")
        named = f"database {database}" if database else "the user's default database"
        return f"PostgreSQL at {host}{f':{port}' if port else ''}, {named}"


def read_url(url: str) -> Target:
    """Return the contents of a `postgresql://` URL.

    In addition to libpq's parameters (https://www.postgresql.org/docs/current/libpq-connect.html) it may have
    `schema` (default: foldline) and `connections` (default: 8). Raises InputError that does not show the URL,
    which may have a password.
    """
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        schema, connections = query.pop("schema", "foldline"), int(query.pop("connections", "8"))
        parameters = conninfo_to_dict(urlunsplit(parts._replace(query=urlencode(query, quote_via=quote))))
        _ = [int(port) for port in str(parameters.get("port") or 0).split(",")]  # a port for each host
    except (ValueError, psycopg.Error):
        raise InputError(
            "this PostgreSQL URL cannot be read: write postgresql://USER:PASSWORD@HOST:5432/DATABASE, and "
            "special characters in the password as %XX"
        ) from None
    if not _SCHEMA.fullmatch(schema):
        raise InputError(f"schema={schema}: use a-z, 0-9, _, @ and -, at most 63 characters")
    if connections < 1:
        raise InputError(f"connections={connections}: must be at least one")
    return Target(parameters, schema, connections)


def connect(target: Target, timeout: float) -> Connection:
    """Open a connection that uses the tables of the target's schema; raises psycopg.Error."""
    settings = {
        "search_path": f'"{target.schema}"',
        "client_encoding": "utf8",
        "lock_timeout": str(max(1, round(timeout * 1000))),
        # a process that hangs in a transaction must not block all others
        "idle_in_transaction_session_timeout": "60000",
    }
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    from_url = target.parameters.get("options")
    parameters: dict[str, Any] = {
        "connect_timeout": max(2, round(timeout)),
        # so that a connection that is cut silently is noticed after this time, not after TCP's two hours
        "tcp_user_timeout": round(timeout * 1000),
        "keepalives_idle": max(1, round(timeout / 2)),
        "keepalives_interval": max(1, round(timeout / 4)),
        "keepalives_count": 2,
        "application_name": "foldline",
        **target.parameters,
        "options": f"{from_url} {options}" if from_url else options,
    }
    connection = psycopg.connect(make_conninfo(**parameters), autocommit=True)
    connection.adapters.register_dumper(str, _EscapedDumper)
    connection.adapters.register_loader("text", _EscapedLoader)
    return connection


# ---- texts


def escaped(text: str) -> str:
    """Return the form in which a text is stored."""
    return _SPECIAL.sub(lambda found: r"\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", text)


def unescaped(stored: str) -> str:
    """Return the text of a stored form."""
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
    """Return whether the same work may succeed later: after a conflict, or when the server is back."""
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate in _CONFLICTS | _AWAY:
        return True
    if connection is None:
        return isinstance(error, psycopg.OperationalError) and not _REFUSED.search(str(error))
    # libpq's own errors ("cannot exit pipeline mode while busy") have no state: the connection was cut off
    return connection.broken or (isinstance(error, psycopg.OperationalError) and error.sqlstate is None)


def is_conflict(error: Exception) -> bool:
    """Return whether the error is a conflict with another transaction: the connection can be used again."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _CONFLICTS


def store_error(error: psycopg.Error, target: Target, *, reached: bool, timeout: float) -> FoldlineError:
    """Return the Foldline error, with advice, for an error of PostgreSQL."""
    reason = " ".join(str(error).split())
    if not reached or error.sqlstate in _AWAY:
        return StoreError(
            f"{target.name}, cannot be reached ({reason}). Waited {timeout:g} seconds: check that the server "
            "runs and that the URL is right, and try again."
            if not _REFUSED.search(reason)
            else f"{target.name}, refuses the connection ({reason}): check user, password and database."
        )
    if error.sqlstate in _CONFLICTS:
        return contention_error(target, timeout)
    if error.sqlstate == "55P03":
        return StoreError(f"{target.name}: another connection held a lock for too long. Nothing was written.")
    if error.sqlstate == "53100":
        return StoreError(
            f"{target.name}: the disk is full. Nothing was written; free some space and try again."
        )
    if error.sqlstate == "42501":
        return StoreError(
            f"{target.name}: {reason}. Let the user own a schema {target.schema}, or grant it CREATE on the "
            "database, in which Foldline then creates the schema."
        )
    if error.sqlstate in _DAMAGED:
        return StoreCorrupt(f"{target.name}, is damaged ({reason}): restore a backup.")
    return StoreError(f"{target.name}: {reason}")


def contention_error(target: Target, timeout: float) -> StoreError:
    """Return the error for work that other writers have kept from its commit for `timeout` seconds."""
    return StoreError(
        f"{target.name}: other writers came first for {timeout:g} seconds. Nothing was written; try again."
    )
