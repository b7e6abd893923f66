"""Tools of MCP servers, as the settings name them; each runs in a task of its own until the host closes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final, cast

from foldline.agent.permissions import PermissionRequest
from foldline.agent.tools.toolbox import AgentTool, Arguments, Output
from foldline.config import McpServer
from foldline.core.log.messages import Media
from foldline.errors import InputError
from foldline.session.tools import Tool

log = logging.getLogger("foldline")

STOP: Final = 20.0  # seconds that the servers may take to end
PATIENCE: Final = 120.0  # seconds for one call


class McpServers:
    """The servers of one host."""

    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        self._servers = servers
        self._closing = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> tuple[list[AgentTool], list[str]]:
        """Start every server; return their tools, and why those that did not come up did not."""
        ready = {name: asyncio.get_running_loop().create_future() for name in self._servers}
        tasks = {
            name: asyncio.ensure_future(self._serve(name, server, ready[name]))
            for name, server in self._servers.items()
        }
        self._tasks += tasks.values()
        tools: list[AgentTool] = []
        failed: list[str] = []
        for name, made in ready.items():
            try:
                tools += await asyncio.wait_for(made, self._servers[name].timeout)
            except TimeoutError:
                tasks[name].cancel()
                limit = f"{self._servers[name].timeout:g} s (timeout in [mcp.{name}])"
                failed.append(f"the MCP server {name} did not come up in {limit}")
            except Exception as error:  # whatever a server of somebody else does
                failed.append(f"the MCP server {name} failed: {error or type(error).__name__}")
        return tools, failed

    async def close(self) -> None:
        """Stop every server."""
        self._closing.set()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=STOP)
            for task in late:
                task.cancel()

    async def _serve(self, name: str, server: McpServer, ready: asyncio.Future[list[AgentTool]]) -> None:
        """Hold the connection to a server: it is opened and closed in this one task."""
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(_client(server, stack))
                ready.set_result([_tool(name, one, client) async for one in _listed(client)])
                await self._closing.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # anyio raises groups
            if not ready.done():
                ready.set_exception(InputError(_first(error)))
            else:
                log.warning("the MCP server %s ended: %s", name, _first(error))


def _client(server: McpServer, stack: AsyncExitStack) -> Any:
    try:
        from mcp import Client, StdioServerParameters, stdio_client  # noqa: PLC0415  an optional extra
    except ImportError as error:
        raise InputError("MCP servers need the SDK: pip install 'foldline[mcp]'") from error
    if server.url:
        return Client(server.url, read_timeout_seconds=PATIENCE)
    if not server.command:
        raise InputError("give a command or a url")
    silent = stack.enter_context(open(os.devnull, "w"))  # noqa: PTH123, SIM115 - a server must not write on the screen
    given = StdioServerParameters(command=server.command, args=list(server.args), env=server.env or None)
    return Client(stdio_client(given, errlog=silent), read_timeout_seconds=PATIENCE)


async def _listed(client: Any) -> AsyncGenerator[Any]:
    """Yield the tools of a server, from all pages of its list."""
    page = await client.list_tools()
    while True:
        for one in page.tools:
            yield one
        if page.next_cursor is None:
            return
        page = await client.list_tools(cursor=page.next_cursor)


def _tool(server: str, found: Any, client: Any) -> AgentTool:
    """Return a server's tool as one of the agent's."""
    name = f"{server}_{found.name}"
    schema: dict[str, Any] = found.input_schema or {"type": "object", "properties": {}}
    about = Tool(name, found.description or f"The tool {found.name} of {server}.", foreign=schema)

    async def run(given: Arguments) -> Output:
        try:
            answer = await client.call_tool(found.name, given)
        except Exception as error:
            raise InputError(f"{name}: {error or type(error).__name__}") from error
        return _output(answer)

    def asks(given: Arguments) -> PermissionRequest:
        return PermissionRequest(name, json.dumps(given, ensure_ascii=False, default=str))

    return AgentTool(about, run, asks=asks)


def _output(answer: Any) -> Output:
    """Return what a server answered: its texts, and its pictures."""
    texts = [part.text for part in answer.content if part.type == "text"]
    pictures = tuple(
        Media("image", part.mime_type, data=part.data) for part in answer.content if part.type == "image"
    )
    others = [f"({part.type})" for part in answer.content if part.type not in ("text", "image")]
    return Output("\n".join([*texts, *others]), pictures, failed=bool(answer.is_error))


def _first(error: BaseException) -> str:
    """Return the words of the first error in a group."""
    found = error
    while isinstance(found, BaseExceptionGroup):
        found = cast("BaseExceptionGroup[BaseException]", found).exceptions[0]
    return str(found) or type(found).__name__
