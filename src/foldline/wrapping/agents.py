"""The settings files of each agent, and what `foldline wrap` sets in them.

`docs/gateway.md` says what was tested. Sources: the agents' documentation of their settings (November 2026).
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from foldline.errors import InputError
from foldline.files import expanded
from foldline.transcripts.places import home_of
from foldline.wrapping.documents import ABSENT, Place, value_at, values

PROBE: Final = "http://probe"  # stands for a gateway's URL when only the places of the settings matter
START: Final = 60  # seconds that the MCP server may take to start on a busy machine; agents allow 5 or 10
CLAUDE_PLUGIN: Final = ("enabledPlugins", "foldline@foldline")
Setting = tuple[Place, Any]  # a path in a file, and the value there
_BOTH: Final = ("anthropic", "openai")
_CLAUDE_CLOUDS: Final = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
_HERMES_VARIABLES: Final = {
    "anthropic": ("ANTHROPIC_BASE_URL", ""),
    "openai-api": ("OPENAI_BASE_URL", ""),
    "openrouter": ("OPENROUTER_BASE_URL", "--openai-upstream https://openrouter.ai/api/v1"),
    "nous": ("NOUS_INFERENCE_BASE_URL", "--openai-upstream https://inference-api.nousresearch.com/v1"),
}
_HERMES_LOCAL: Final = ("", "auto", "custom", "local", "ollama", "vllm", "llamacpp", "llama.cpp", "llama-cpp")
_HERMES_HOSTS: Final = ("anthropic.com", "openai.com", "openrouter.ai")  # it sends their keys to no other


class SettingsFile(NamedTuple):
    """A settings file, and what Foldline sets in it: `offered` only where the user has no value.

    `needs` are options with which the gateway must be started.
    """

    path: Path
    settings: list[Setting]
    offered: list[Setting] = []
    needs: str = ""


class WrappedAgent(NamedTuple):
    """An agent: its settings for a gateway at a URL, for an MCP server's command, and those set `always`.

    `providers` names those that work through the gateway. `elsewhere` returns the provider that the agent
    uses now if it does not, else "".
    """

    name: str
    gateway: Callable[[str], list[SettingsFile]]
    server: Callable[[list[str]], list[SettingsFile]]
    elsewhere: Callable[[], str]
    providers: str
    always: Callable[[], list[SettingsFile]] = list[SettingsFile]


def _read(path: Path) -> dict[str, Any]:
    """Return the values of a settings file; none if it cannot be read: changing it reports the error."""
    try:
        return values(path.name, path.read_text("utf-8"))
    except (InputError, OSError, UnicodeDecodeError):
        return {}


def _unless(supported: tuple[str, ...], provider: Any) -> str:
    return provider if isinstance(provider, str) and provider not in supported else ""


def _claude_json() -> Path:
    """Return the file with Claude Code's MCP servers: in the home folder, or in CLAUDE_CONFIG_DIR."""
    return expanded(os.environ.get("CLAUDE_CONFIG_DIR") or "~") / ".claude.json"


def _claude_settings() -> Path:
    return home_of("claude-code") / "settings.json"


def _claude(url: str) -> list[SettingsFile]:
    env: list[Setting] = [
        (("env", "ANTHROPIC_BASE_URL"), url),
        (("env", "DISABLE_AUTO_COMPACT"), "1"),
    ]
    return [SettingsFile(_claude_settings(), env)]


def _claude_elsewhere() -> str:
    settings = _read(_claude_settings())
    for name in _CLAUDE_CLOUDS:
        value = value_at(settings, ("env", name))
        if (os.environ.get(name, "") if value is ABSENT else str(value)) not in ("", "0", "false"):
            return name
    return ""


def _claude_server(command: list[str]) -> list[SettingsFile]:
    """Register the MCP server, unless the plugin is enabled: it brings the same one."""
    if value_at(_read(_claude_settings()), CLAUDE_PLUGIN) is True:
        return []
    server: dict[str, Any] = {"type": "stdio", "command": command[0], "args": command[1:], "env": {}}
    return [SettingsFile(_claude_json(), [(("mcpServers", "foldline"), server)])]


def _claude_always() -> list[SettingsFile]:
    """Offer a status line, and name the servers' file even if nothing is set there: it may be wrapped."""
    line = {"type": "command", "command": shlex.join(_foldline_command("statusline"))}
    return [SettingsFile(_claude_settings(), [], [(("statusLine",), line)]), SettingsFile(_claude_json(), [])]


def _codex_file() -> Path:
    return home_of("codex") / "config.toml"


def _codex(url: str) -> list[SettingsFile]:
    settings: list[Setting] = [
        (("openai_base_url",), f"{url}/v1"),
        (("model_context_window",), 1_000_000),
    ]
    return [SettingsFile(_codex_file(), settings)]


def _codex_elsewhere() -> str:
    return _unless(("openai",), value_at(_read(_codex_file()), ("model_provider",)))


def _codex_server(command: list[str]) -> list[SettingsFile]:
    server = {"command": command[0], "args": command[1:], "startup_timeout_sec": START}
    settings = [(("mcp_servers", "foldline", key), value) for key, value in server.items()]
    return [SettingsFile(_codex_file(), settings)]


def _opencode_file() -> Path:
    home = expanded(os.environ.get("XDG_CONFIG_HOME") or "~/.config") / "opencode"
    with_comments = home / "opencode.jsonc"
    return with_comments if with_comments.exists() else home / "opencode.json"


def _opencode(url: str) -> list[SettingsFile]:
    settings: list[Setting] = [
        (("provider", "anthropic", "options", "baseURL"), f"{url}/v1"),
        (("provider", "openai", "options", "baseURL"), f"{url}/v1"),
        (("compaction", "auto"), False),
        (("compaction", "prune"), False),
    ]
    return [SettingsFile(_opencode_file(), settings)]


def _opencode_elsewhere() -> str:
    model = value_at(_read(_opencode_file()), ("model",))
    return _unless(_BOTH, model.partition("/")[0] if isinstance(model, str) else "openai")


def _opencode_server(command: list[str]) -> list[SettingsFile]:
    server = {"type": "local", "command": command, "enabled": True, "timeout": 1_000 * START}
    return [SettingsFile(_opencode_file(), [(("mcp", "foldline"), server)])]


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


def _pi_elsewhere() -> str:
    return _unless(_BOTH, value_at(_read(home_of("pi") / "settings.json"), ("defaultProvider",)))


def _hermes_file() -> Path:
    return expanded(os.environ.get("HERMES_HOME") or "~/.hermes") / "config.yaml"


def _hermes(url: str) -> list[SettingsFile]:
    """Set the URL of the provider that Hermes uses: by its variable, or by the user's own `base_url`."""
    path = _hermes_file()
    provider, address = _hermes_model(path)
    variable, upstream = _HERMES_VARIABLES.get(provider, ("", ""))
    base_url = url if provider == "anthropic" else f"{url}/v1"
    settings: list[Setting] = [(("compression", "enabled"), False)]
    if _is_custom(provider, address):
        settings.insert(0, (("model", "base_url"), base_url))
    return [
        SettingsFile(path.with_name(".env"), [((variable,), base_url)] if variable else [], needs=upstream),
        SettingsFile(path, settings),
    ]


def _is_custom(provider: str, address: str) -> bool:
    """Whether Hermes uses a model at an address that the user set."""
    return provider in _HERMES_LOCAL and bool(address) and not any(host in address for host in _HERMES_HOSTS)


def _hermes_elsewhere() -> str:
    provider, address = _hermes_model(_hermes_file())
    works = provider in _HERMES_VARIABLES or _is_custom(provider, address)
    return "" if works else provider or "no provider"


def _hermes_model(path: Path) -> tuple[str, str]:
    """Return the provider in Hermes's settings, and the address that the user set for its model."""
    try:
        settings = values(path.name, path.read_text("utf-8"))
    except FileNotFoundError:
        return "", ""
    except (InputError, OSError, UnicodeDecodeError):  # changing the file reports the error
        return "custom", str(path)
    fields = [value_at(settings, ("model", key)) for key in ("provider", "base_url")]
    provider, address = (field.strip() if isinstance(field, str) else "" for field in fields)
    return provider.lower(), address


def _hermes_server(command: list[str]) -> list[SettingsFile]:
    server = {"command": command[0], "args": command[1:], "connect_timeout": START}
    return [SettingsFile(_hermes_file(), [(("mcp_servers", "foldline"), server)])]


def _no_mcp(_command: list[str]) -> list[SettingsFile]:
    return []


AGENTS: Final[dict[str, WrappedAgent]] = {  # by their commands
    "claude": WrappedAgent(
        "Claude Code", _claude, _claude_server, _claude_elsewhere, "Anthropic's API", _claude_always
    ),
    "codex": WrappedAgent("Codex", _codex, _codex_server, _codex_elsewhere, "openai"),
    "opencode": WrappedAgent(
        "OpenCode", _opencode, _opencode_server, _opencode_elsewhere, "anthropic or openai"
    ),
    "pi": WrappedAgent("pi", _pi, _no_mcp, _pi_elsewhere, "anthropic or openai"),
    "hermes": WrappedAgent(
        "Hermes",
        _hermes,
        _hermes_server,
        _hermes_elsewhere,
        "anthropic, openai-api, openrouter, nous or custom with `hermes model`",
    ),
}


def server_command(agent: str) -> list[str]:
    """Return the command of the MCP server for an agent."""
    return _foldline_command("mcp", "--agent", agent)


def _foldline_command(*words: str) -> list[str]:
    program = shutil.which("foldline")
    return [*([program] if program else [sys.executable, "-m", "foldline"]), *words]


def files_of(agent: str, url: str | None, command: list[str] | None) -> list[SettingsFile]:
    """Return the settings files of an agent, each once, with what is set for a gateway and an MCP server."""
    wrapped = AGENTS[agent]
    parts = [
        *(wrapped.gateway(url) if url else ()),
        *(wrapped.server(command) if command else ()),
        *wrapped.always(),
    ]
    files: dict[Path, SettingsFile] = {}
    for part in parts:
        file = files.get(part.path, SettingsFile(part.path, []))
        settings, offered = [*file.settings, *part.settings], [*file.offered, *part.offered]
        files[part.path] = SettingsFile(part.path, settings, offered, file.needs or part.needs)
    return list(files.values())


def paths_of(agent: str) -> list[Path]:
    """Return every settings file of an agent that may be wrapped, also under an earlier name."""
    paths = [file.path for file in files_of(agent, PROBE, [PROBE])]
    return list(
        dict.fromkeys([*paths, *(path.with_suffix(".json") for path in paths if path.suffix == ".jsonc")])
    )
