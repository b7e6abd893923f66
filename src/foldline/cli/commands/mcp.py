"""`foldline mcp`: an MCP server, by which an agent reads what was folded away from it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from foldline.cli.options import STORE, argument, command, option
from foldline.cli.output import tell
from foldline.cli.store import with_store
from foldline.config import basic_settings
from foldline.errors import InputError
from foldline.mcp.sessions import Sessions, StoredSessions, TranscriptSessions
from foldline.stores import open_store
from foldline.stores.ids import find_session
from foldline.transcripts.places import agent_of

STORED = ("opencode", "hermes")  # their sessions are in databases: they read what the gateway stored


@command(
    "foldline mcp                        the session of an agent in this folder",
    "foldline mcp --agent claude",
    "foldline mcp session.jsonl",
    "foldline mcp login-bug --read-only  a stored session",
    "foldline mcp --http 127.0.0.1:8402",
    "claude mcp add foldline -- foldline mcp --agent claude",
    json=False,
)
def mcp(
    source: str | None = argument("[FILE|ID]", required=False),
    agent: str | None = option(
        "claude, codex, opencode, pi, hermes, copilot, gemini, klaude  [default: whose session is newest]",
        metavar="NAME",
    ),
    http: str | None = option("Serve HTTP there, not standard input and output.", metavar="HOST:PORT"),
    read_only: bool = option("Leave out the tool that folds a stored session."),
    store_url: str | None = STORE,
) -> None:
    """Serve a session to agents by the Model Context Protocol: search, read, rules, figures, hand-off.

    A session FILE of any known format, or the stored session ID. Without either, the session of the agent
    that calls, as far as it tells, or the one that was last written in this folder; with --store alone, or
    --agent opencode or hermes, the stored session in which the call stands. A file is read on as it grows. A
    stored session can also be folded. It ends when its client leaves, or at a signal.
    """
    try:
        from foldline.mcp.server import RecallServer, serve_http, serve_stdio  # noqa: PLC0415  an optional extra
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("foldline"):
            raise
        raise InputError(f"the MCP server needs {error.name}: pip install 'foldline[mcp]'") from error
    place = _place(http) if http is not None else None
    server = RecallServer(_sessions(source, agent, store_url), read_only=read_only)
    if place is None:
        if sys.stdin.isatty():
            tell("an agent starts this and talks to it on its standard input; Ctrl-C ends it")
        serve_stdio(server)
    else:
        serve_http(server, *place, _tell)


def _sessions(source: str | None, agent: str | None, store_url: str | None) -> Sessions:
    folder = Path.cwd()
    known_settings = basic_settings()
    if agent in STORED and source is None:
        return StoredSessions(
            open_store(store_url or known_settings.serve.store or known_settings.store), None
        )
    name = agent_of(agent) if agent else None
    if source is not None and Path(source).is_file():
        return TranscriptSessions(folder, name, Path(source).resolve())
    if source is None and store_url is None:
        return TranscriptSessions(folder, name)
    session = with_store(store_url, lambda store: find_session(store, source)) if source is not None else None
    return StoredSessions(open_store(store_url or known_settings.store), session)


def _place(http: str) -> tuple[str, int]:
    host, _, port = http.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise InputError(f"--http {http}: give HOST:PORT, such as 127.0.0.1:8402; port 0 takes a free one")
    return host.strip("[]"), int(port)


def _tell(url: str) -> None:
    click.echo(url)
    sys.stdout.flush()
