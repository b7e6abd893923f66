"""Tools of a real MCP server, over standard input and output."""

from __future__ import annotations

import sys

import pytest
from tests.agent.working import host_on

from foldline.testing import call

pytestmark = pytest.mark.slow

PATIENT = "timeout = 600\n"  # a server may take long to come up on a busy machine

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


def settings(folder, text):
    file = folder / "home/.foldline/settings.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


async def test_the_model_calls_a_tool_of_a_server(tmp_path):
    (tmp_path / "server.py").write_text(SERVER)
    settings(
        tmp_path,
        f'[mcp.weather]\ncommand = "{sys.executable}"\nargs = ["{tmp_path / "server.py"}"]\n{PATIENT}',
    )
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
    (tmp_path / "server.py").write_text(SERVER)
    settings(
        tmp_path,
        f'[mcp.weather]\ncommand = "{sys.executable}"\nargs = ["{tmp_path / "server.py"}"]\n{PATIENT}',
    )
    async with host_on(tmp_path, [call("weather_forecast", city="Turku"), "No."], allow=()) as host:
        await host.prompt("The weather?")
        assert "Permission denied" in host.heard.named("result")[0].text


async def test_a_server_that_comes_up_too_late_is_stopped_and_the_rest_works(tmp_path, caplog):
    (tmp_path / "server.py").write_text("import sys; sys.stdin.read()")
    settings(
        tmp_path,
        f'[mcp.slow]\ncommand = "{sys.executable}"\nargs = ["{tmp_path / "server.py"}"]\ntimeout = 0.1\n',
    )
    async with host_on(tmp_path, ["Hello."]) as host:
        assert "did not come up in 0.1 s (timeout in [mcp.slow])" in host.heard.named("warning")[0].text
        assert (await host.prompt("Hello?")).text == "Hello."
    assert "the MCP server slow ended" not in caplog.text
