"""The MCP server, over standard input and output, or over HTTP on this machine.

An invalid call is answered with a tool error that says what to do. Only the protocol may write to standard
output.
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

GRACE: Final = 3  # seconds for running requests after a signal
META: Final = {"session": "threadId", "call": "claudecode/toolUseId"}  # set by Codex, by Claude Code
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
INSTRUCTIONS: Final = (
    "Everything that was said in this conversation, including what was folded or compacted away and you no "
    "longer see. After a compaction call user_rules first. Search with recall_search before you ask the user "
    "for something again or redo work; read a message in full with recall_read."
)


class RecallServer(MCPServer[dict[str, Any]]):
    """Serves the tools of sessions, with their schemas and checks of arguments."""

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
                name=served.tool.name,
                description=served.tool.description,
                input_schema=served.tool.schema,
                annotations=ToolAnnotations(
                    read_only_hint=not served.writes, destructive_hint=False, open_world_hint=False
                ),
            )
            for served in self._answers.tools.values()
        ]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> CallToolResult:
        """Answer a call."""
        meta: Any = (context and context.request_context.meta) or {}
        ids = {name: str(meta.get(key) or "") for name, key in META.items()}
        try:
            text, failed = await self._answers.call(name, arguments, **ids), False
        except (FoldlineError, OSError) as error:
            text, failed = str(error), True
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)


def serve_stdio(server: RecallServer) -> None:
    """Serve one client over standard input and output, until it disconnects or a signal arrives."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)  # the thread that reads input would keep the process alive

    async def run() -> None:
        try:
            await server.run_stdio_async()
        finally:
            await server.sessions.close()

    asyncio.run(run())


def _end(number: int, frame: FrameType | None) -> None:
    """Exit at once: the only write, of a boundary, is atomic."""
    del frame
    os._exit(128 + number)


def serve_http(server: RecallServer, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve any number of clients at http://HOST:PORT/mcp until a signal; `ready` gets the URL."""
    if host not in LOOPBACK:
        raise InputError(f"other machines could read the sessions at {host}: use {' or '.join(LOOPBACK)}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise InputError(
                f"cannot listen at {host}:{port}: {error.strerror}; port 0 selects a free port"
            ) from error
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listener.getsockname()[1]}/mcp"
        app = server.streamable_http_app(host=host)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE, lifespan="on"
        )

        async def run() -> None:
            try:
                await uvicorn.Server(config).serve([listener])
            finally:
                await server.sessions.close()

        listener.listen()  # from now on clients wait until they are served
        ready(url)
        asyncio.run(run())
