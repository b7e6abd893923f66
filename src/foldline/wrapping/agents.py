"""What the settings of each agent are set to, and where they are. `docs/gateway.md` says what was tried.

Sources: the agents' own pages on their settings (November 2026).
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from foldline.transcripts.places import home_of
from foldline.wrapping.documents import Place

PROBE: Final = "http://probe"  # an address, where only the places of settings are asked for
START: Final = 60  # seconds that the MCP server may take to start on a busy machine; usual are 5 or 10
Setting = tuple[Place, Any]  # a path in a file, and the value there


class SettingsFile(NamedTuple):
    """A settings file, and what Foldline sets in it: `offered` only where nothing stands there."""

    path: Path
    settings: list[Setting]
    offered: list[Setting] = []


class WrappedAgent(NamedTuple):
    """An agent: what is set for a gateway at a URL, for an MCP server that a command starts, in any case.

    `program` is the name of its own command.
    """

    program: str
    name: str
    gateway: Callable[[str], list[SettingsFile]]
    server: Callable[[list[str]], list[SettingsFile]]
    always: Callable[[], list[SettingsFile]] = list[SettingsFile]


def _claude_home() -> Path:
    return home_of("claude-code")


def _claude_json() -> Path:
    """Return the file with Claude Code's MCP servers: beside its folder, or in one that was moved."""
    moved = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(moved).expanduser() / ".claude.json" if moved else Path.home() / ".claude.json"


def _claude(url: str) -> list[SettingsFile]:
    env: list[Setting] = [
        (("env", "ANTHROPIC_BASE_URL"), url),
        (("env", "DISABLE_AUTO_COMPACT"), "1"),
    ]
    return [SettingsFile(_claude_home() / "settings.json", env)]


def _claude_server(command: list[str]) -> list[SettingsFile]:
    about: dict[str, Any] = {"type": "stdio", "command": command[0], "args": command[1:], "env": {}}
    return [SettingsFile(_claude_json(), [(("mcpServers", "foldline"), about)])]


def _claude_status() -> list[SettingsFile]:
    about = {"type": "command", "command": shlex.join(_own_command("statusline"))}
    return [SettingsFile(_claude_home() / "settings.json", [], [(("statusLine",), about)])]


def _codex_file() -> Path:
    return home_of("codex") / "config.toml"


def _codex(url: str) -> list[SettingsFile]:
    settings: list[Setting] = [
        (("openai_base_url",), f"{url}/v1"),
        (("model_context_window",), 1_000_000),
    ]
    return [SettingsFile(_codex_file(), settings)]


def _codex_server(command: list[str]) -> list[SettingsFile]:
    about = {"command": command[0], "args": command[1:], "startup_timeout_sec": START}
    return [
        SettingsFile(
            _codex_file(), [(("mcp_servers", "foldline", key), value) for key, value in about.items()]
        )
    ]


def _opencode_file() -> Path:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "opencode"
    commented = home / "opencode.jsonc"
    return commented if commented.exists() else home / "opencode.json"


def _opencode(url: str) -> list[SettingsFile]:
    settings: list[Setting] = [
        (("provider", "anthropic", "options", "baseURL"), f"{url}/v1"),
        (("provider", "openai", "options", "baseURL"), f"{url}/v1"),
        (("compaction", "auto"), False),
        (("compaction", "prune"), False),
    ]
    return [SettingsFile(_opencode_file(), settings)]


def _opencode_server(command: list[str]) -> list[SettingsFile]:
    about = {"type": "local", "command": command, "enabled": True, "timeout": 1_000 * START}
    return [SettingsFile(_opencode_file(), [(("mcp", "foldline"), about)])]


def _pi(url: str) -> list[SettingsFile]:
    home = home_of("pi")
    return [
        SettingsFile(
            home / "models.json",
            [
                (("providers", "anthropic", "baseUrl"), url),
                (("providers", "openai", "baseUrl"), f"{url}/v1"),
            ],
        ),
        SettingsFile(home / "settings.json", [(("compaction", "enabled"), False)]),
    ]


def _no_mcp(_command: list[str]) -> list[SettingsFile]:
    return []


AGENTS: Final[dict[str, WrappedAgent]] = {
    "claude": WrappedAgent("claude", "Claude Code", _claude, _claude_server, _claude_status),
    "codex": WrappedAgent("codex", "Codex", _codex, _codex_server),
    "opencode": WrappedAgent("opencode", "OpenCode", _opencode, _opencode_server),
    "pi": WrappedAgent("pi", "pi", _pi, _no_mcp),
}


def server_command(agent: str) -> list[str]:
    """Return the command of the MCP server for an agent."""
    return _own_command("mcp", "--agent", agent)


def _own_command(*words: str) -> list[str]:
    found = shutil.which("foldline")
    return [*([found] if found else [sys.executable, "-m", "foldline"]), *words]


def files_of(agent: str, url: str | None, command: list[str] | None) -> list[SettingsFile]:
    """Return the files of an agent with all that is set in each, for a gateway, a server, or both."""
    known = AGENTS[agent]
    parts = [
        *(known.gateway(url) if url else ()),
        *(known.server(command) if command else ()),
        *known.always(),
    ]
    found: dict[Path, SettingsFile] = {}
    for one in parts:
        before = found.get(one.path, SettingsFile(one.path, []))
        settings, offered = [*before.settings, *one.settings], [*before.offered, *one.offered]
        found[one.path] = SettingsFile(one.path, settings, offered)
    return list(found.values())


def paths_of(agent: str) -> list[Path]:
    """Return every settings file of an agent that may be wrapped, whatever stands beside it by now."""
    found = [one.path for one in files_of(agent, PROBE, [PROBE])]
    return list(
        dict.fromkeys([*found, *(path.with_suffix(".json") for path in found if path.suffix == ".jsonc")])
    )
