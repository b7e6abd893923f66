"""Tools of a real MCP server, over standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
from tests.agent.program import settings
from tests.agent.working import host_on
from tests.support.waiting import until

from foldline.agent import servers
from foldline.testing import call

pytestmark = pytest.mark.slow

SERVER = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("weather")


@server.tool()
def forecast(city: str, days: int = 1) -> str:
    """Tell the weather of a city."""
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"{city}: rain for {days} days"


server.run()
'''


def serve(folder, name, program, timeout=600):
    """Set a server of that name in the user's settings; it may take long to come up on a busy machine."""
    file = folder / "server.py"
    file.write_text(program)
    settings(folder, f'[mcp.{name}]\ncommand = "{sys.executable}"\nargs = ["{file}"]\ntimeout = {timeout}\n')


async def test_the_model_calls_a_tool_of_a_server(tmp_path):
    serve(tmp_path, "weather", SERVER)
    answers = [
        call("weather_forecast", city="Turku", days=2),
        call("weather_forecast", city="Atlantis"),
        "Rain.",
    ]
    async with host_on(tmp_path, answers) as host:
        assert (await host.prompt("The weather in Turku?")).text == "Rain."
        first, second = host.heard.named("result")
        assert (first.text, first.failed) == ("Turku: rain for 2 days", False)
        assert second.failed
        assert "weather_forecast" in str(host.scripted.requests[0].body["tools"])


async def test_a_server_that_does_not_come_up_is_warned_of_and_the_rest_works(tmp_path):
    settings(tmp_path, '[mcp.gone]\ncommand = "/nonexistent/server"\n')
    async with host_on(tmp_path, ["Hello."]) as host:
        assert "gone" in host.heard.named("warning")[0].text
        assert (await host.prompt("Hello?")).text == "Hello."


async def test_a_tool_of_a_server_needs_permission(tmp_path):
    serve(tmp_path, "weather", SERVER)
    async with host_on(tmp_path, [call("weather_forecast", city="Turku"), "No."], allow=()) as host:
        await host.prompt("The weather?")
        assert "Permission denied" in host.heard.named("result")[0].text


async def test_a_server_that_comes_up_too_late_is_stopped_and_the_rest_works(tmp_path, caplog):
    serve(tmp_path, "slow", "import sys; sys.stdin.read()", timeout=0.1)
    async with host_on(tmp_path, ["Hello."]) as host:
        assert "did not start in 0.1 s (timeout in [mcp.slow])" in host.heard.named("warning")[0].text
        assert (await host.prompt("Hello?")).text == "Hello."
    assert "the MCP server slow ended" not in caplog.text


async def test_opening_is_stopped_without_a_wait_for_a_server_that_comes_up(tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "STOP_SECONDS", 600)
    begun = tmp_path / "begun"
    serve(tmp_path, "slow", f"import sys; open({str(begun)!r}, 'w'); sys.stdin.read()")
    opening = asyncio.ensure_future(host_on(tmp_path).__aenter__())
    await until(begun.exists)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening


ODD = """
import asyncio, json
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {
    "$defs": {"Filter": {"type": "object", "properties": {"field": {"type": "string"}}}},
    "type": "object",
    "properties": {
        "filters": {"type": "array", "items": {"$ref": "#/$defs/Filter"}},
        "note": {"type": "string"},
        "parent": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["filters", "note", "parent"],
}
PAGES = {None: ("find", "2"), "2": ("shell", "3"), "3": ("big", None)}


async def listed(_, params):
    name, after = PAGES[params.cursor if params else None]
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=SCHEMA)], next_cursor=after)


async def called(_, params):
    text = "begin" + "spam " * 400_000 + "end" if params.name == "big" else json.dumps(params.arguments)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def main():
    server = Server("x", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
"""


@pytest.fixture
def odd(tmp_path):
    """A server whose schema has parts of its own, whose list has pages, and one of whose answers is huge."""
    serve(tmp_path, "x", ODD)
    return tmp_path


async def test_schemas_and_arguments_of_a_server_stay_as_they_are(odd):
    given = {"filters": [{"field": "a"}], "note": "", "parent": None}
    async with host_on(odd, [call("x_find", **given), "Found."]) as host:
        await host.prompt("Find it.")
        sent = [one["function"] for one in host.scripted.requests[0].body["tools"]]
        own = [one for one in sent if one["name"].startswith("x_")]
        assert [one["name"] for one in own] == ["x_find", "x_shell", "x_big"], "of all pages"
        assert all("Filter" in one["parameters"]["$defs"] for one in own)
        assert json.loads(host.heard.named("result")[0].text) == given


async def test_rules_see_all_of_the_arguments_of_a_servers_tool(odd):
    asked = []

    async def ask(request):
        asked.append(request.detail)
        return "once"

    hidden = [call("x_shell", comment="c" * 600, command=command) for command in ("rm -rf ~", "ls ~")]
    async with host_on(odd, [*hidden, "Done."], allow=(), deny=("x_shell:*rm -rf*",), ask=ask) as host:
        await host.prompt("Go.")
        assert "settings deny" in host.heard.named("result")[0].text
        assert [detail.endswith('"command": "ls ~"}') for detail in asked] == [True]


async def test_a_huge_answer_of_a_server_is_shown_in_part(odd):
    async with host_on(odd, [call("x_big"), "Big."]) as host:
        await host.prompt("Go.")
        [result] = host.heard.named("result")
        assert (result.text[:5], result.text[-3:]) == ("begin", "end")
        assert "characters left out" in result.text
        assert len(result.text) < 65_000
