"""`foldline mcp`: an MCP server with which an agent reads its folded messages."""

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

STORED = ("opencode", "hermes")  # they keep sessions in databases, so the gateway's copy is served


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
        "claude, codex, opencode, pi, hermes, copilot, gemini, klaude  [default: the newest session's]",
        metavar="NAME",
    ),
    http: str | None = option("Serve HTTP at this address, not standard input/output.", metavar="HOST:PORT"),
    read_only: bool = option("Leave out the tool that folds a stored session."),
    store_url: str | None = STORE,
) -> None:
    """Serve a session to agents by the Model Context Protocol: search, read, rules, figures, hand-off.

    FILE is a session file of any known format, ID a stored session. By default it serves the calling agent's
    session, if the agent identifies it, else the newest session in this folder. With only --store, or with
    --agent opencode or hermes, it serves the stored session that contains the call. New messages in a file
    are read as they arrive. A stored session can also be folded. The server ends with its client, or at a
    signal.
    """
    try:
        from foldline.mcp.server import RecallServer, serve_http, serve_stdio  # noqa: PLC0415  an optional extra
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("foldline"):
            raise
        raise InputError(f"the MCP server needs {error.name}: pip install 'foldline[mcp]'") from error
    address = _host_and_port(http) if http is not None else None
    server = RecallServer(_sessions(source, agent, store_url), read_only=read_only)
    if address is None:
        if sys.stdin.isatty():
            tell("waiting for requests on standard input (agents start this command); Ctrl-C ends it")
        serve_stdio(server)
    else:
        serve_http(server, *address, click.echo)


def _sessions(source: str | None, agent: str | None, store_url: str | None) -> Sessions:
    folder = Path.cwd()
    current = basic_settings()
    if agent in STORED and source is None:
        return StoredSessions(open_store(store_url or current.serve.store or current.store), None)
    name = agent_of(agent) if agent else None
    if source is not None and Path(source).is_file():
        return TranscriptSessions(folder, name, Path(source).resolve())
    if source is None and store_url is None:
        return TranscriptSessions(folder, name)
    session = with_store(store_url, lambda store: find_session(store, source)) if source is not None else None
    return StoredSessions(open_store(store_url or current.store), session)


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise InputError(f"--http {address}: give HOST:PORT, such as 127.0.0.1:8402; port 0: any free port")
    return host.strip("[]"), int(port)
