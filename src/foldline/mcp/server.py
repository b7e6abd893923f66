"""The server: its protocol over standard input and output, or over HTTP on this machine.

A call that is wrong is answered with an error of its tool, which says what to do. On standard output there is
nothing but the protocol.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from mcp_types import Tool as ToolDefinition

import foldline
from foldline.errors import FoldlineError, InputError
from foldline.mcp.sessions import Sessions
from foldline.mcp.tools import Answers

GRACE: Final = 3  # seconds that requests under way have after a signal
TOLD: Final = {"session": "threadId", "call": "claudecode/toolUseId"}  # by Codex, by Claude Code
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
INSTRUCTIONS: Final = (
    "Everything that was said in this conversation, also what was folded or compacted away and that you no "
    "longer see. After a compaction call user_rules first. Search with recall_search before you ask the user "
    "for something again or redo work; read a message in full with recall_read."
)


class RecallServer(MCPServer[dict[str, Any]]):
    """Serves the tools of sessions; the schemas and the checks of arguments are those of the tools."""

    def __init__(self, sessions: Sessions, *, read_only: bool = False) -> None:
        super().__init__(
            "foldline", version=foldline.__version__, instructions=INSTRUCTIONS, log_level="WARNING"
        )
        self.sessions = sessions
        self._answers = Answers(sessions, read_only=read_only)

    async def list_tools(self) -> list[ToolDefinition]:
        """Return the tools."""
        return [
            ToolDefinition(
                name=one.about.name,
                description=one.about.description,
                input_schema=one.about.schema,
                annotations=ToolAnnotations(
                    read_only_hint=not one.writes, destructive_hint=False, open_world_hint=False
                ),
            )
            for one in self._answers.tools.values()
        ]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> CallToolResult:
        """Answer a call."""
        meta: Any = (context and context.request_context.meta) or {}
        told = {what: str(meta.get(key) or "") for what, key in TOLD.items()}
        try:
            text, failed = await self._answers.call(name, arguments, **told), False
        except (FoldlineError, OSError) as error:
            text, failed = str(error), True
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)


def serve_stdio(server: RecallServer) -> None:
    """Serve one client over standard input and output, until it leaves or a signal comes."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)  # the thread that waits for input would keep the process

    async def run() -> None:
        try:
            await server.run_stdio_async()
        finally:
            await server.sessions.close()

    asyncio.run(run())


def _end(number: int, frame: FrameType | None) -> None:
    """End at once: a boundary is one append, and nothing else is written."""
    del frame
    os._exit(128 + number)


def serve_http(server: RecallServer, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve any number of clients at http://HOST:PORT/mcp until a signal; `ready` is told the URL."""
    if host not in LOOPBACK:
        raise InputError(f"anybody could read the sessions at {host}: listen at {' or '.join(LOOPBACK)}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind((host, port))
        except OSError as error:
            raise InputError(
                f"cannot listen at {host}:{port}: {error.strerror}; port 0 takes a free one"
            ) from error
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{held.getsockname()[1]}/mcp"
        app = server.streamable_http_app(host=host)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE, lifespan="on"
        )

        async def run() -> None:
            try:
                await _TellingServer(config, lambda: ready(url)).serve([held])
            finally:
                await server.sessions.close()

        asyncio.run(run())


class _TellingServer(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say that it has."""
        await super().startup(sockets)
        if self.started:
            self._ready()
