"""Tools of the MCP servers in the settings; each server runs in a separate task until the host closes."""

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
from foldline.session.definitions import Tool

log = logging.getLogger("foldline")

STOP_SECONDS: Final = 20.0
CALL_SECONDS: Final = 120.0


class McpServers:
    """The servers of one host."""

    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        self._servers = servers
        self._closing = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> tuple[list[AgentTool], list[str]]:
        """Start every server; return their tools, and an error text for each that failed to start."""
        ready = {name: asyncio.get_running_loop().create_future() for name in self._servers}
        tasks = {
            name: asyncio.ensure_future(self._serve(name, server, ready[name]))
            for name, server in self._servers.items()
        }
        self._tasks += tasks.values()
        tools: list[AgentTool] = []
        failures: list[str] = []
        for name, future in ready.items():
            try:
                tools += await asyncio.wait_for(future, self._servers[name].timeout)
            except TimeoutError:
                tasks[name].cancel()
                limit = f"{self._servers[name].timeout:g} s (timeout in [mcp.{name}])"
                failures.append(f"the MCP server {name} did not start in {limit}")
            except asyncio.CancelledError:
                for task in self._tasks:  # one that is starting would be waited for at the close
                    task.cancel()
                raise
            except Exception as error:  # anything a third-party server may do
                failures.append(f"the MCP server {name} failed: {error or type(error).__name__}")
        return tools, failures

    async def close(self) -> None:
        """Stop every server."""
        self._closing.set()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()

    async def _serve(self, name: str, server: McpServer, ready: asyncio.Future[list[AgentTool]]) -> None:
        """Keep the connection to a server open; it must be opened and closed in the same task."""
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(_client(server, stack))
                ready.set_result([_tool(name, tool, client) async for tool in _server_tools(client)])
                await self._closing.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # anyio raises groups
            if not ready.done():
                ready.set_exception(InputError(_first_text(error)))
            else:
                log.warning("the MCP server %s ended: %s", name, _first_text(error))


def _client(server: McpServer, stack: AsyncExitStack) -> Any:
    try:
        from mcp import Client, StdioServerParameters, stdio_client  # noqa: PLC0415  an optional extra
    except ImportError as error:
        raise InputError("MCP servers need the MCP SDK: pip install 'foldline[mcp]'") from error
    if server.url:
        return Client(server.url, read_timeout_seconds=CALL_SECONDS)
    if not server.command:
        raise InputError("set a command or a url")
    silent = stack.enter_context(open(os.devnull, "w"))  # noqa: PTH123, SIM115 - a server must not write to the screen
    parameters = StdioServerParameters(command=server.command, args=list(server.args), env=server.env or None)
    return Client(stdio_client(parameters, errlog=silent), read_timeout_seconds=CALL_SECONDS)


async def _server_tools(client: Any) -> AsyncGenerator[Any]:
    """Yield the tools of a server, from all pages of its list."""
    page = await client.list_tools()
    while True:
        for tool in page.tools:
            yield tool
        if page.next_cursor is None:
            return
        page = await client.list_tools(cursor=page.next_cursor)


def _tool(server: str, tool: Any, client: Any) -> AgentTool:
    name = f"{server}_{tool.name}"
    schema: dict[str, Any] = tool.input_schema or {"type": "object", "properties": {}}
    about = Tool(name, tool.description or f"The tool {tool.name} of {server}.", foreign=schema)

    async def run(arguments: Arguments) -> Output:
        try:
            answer = await client.call_tool(tool.name, arguments)
        except Exception as error:
            raise InputError(f"{name}: {error or type(error).__name__}") from error
        return _output(answer)

    def asks(arguments: Arguments) -> PermissionRequest:
        return PermissionRequest(name, json.dumps(arguments, ensure_ascii=False, default=str))

    return AgentTool(about, run, asks=asks)


def _output(answer: Any) -> Output:
    """Return the answer of a server: its texts and pictures."""
    texts = [part.text for part in answer.content if part.type == "text"]
    pictures = tuple(
        Media("image", part.mime_type, data=part.data) for part in answer.content if part.type == "image"
    )
    others = [f"({part.type})" for part in answer.content if part.type not in ("text", "image")]
    return Output("\n".join([*texts, *others]), pictures, failed=bool(answer.is_error))


def _first_text(error: BaseException) -> str:
    """Return the text of an error, or of the first one in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return str(error) or type(error).__name__
