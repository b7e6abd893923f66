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

from foldline.errors import InputError
from foldline.transcripts.places import home_of
from foldline.wrapping.documents import ABSENT, Place, value_at, values

PROBE: Final = "http://probe"  # an address, where only the places of settings are asked for
START: Final = 60  # seconds that the MCP server may take to start on a busy machine; usual are 5 or 10
Setting = tuple[Place, Any]  # a path in a file, and the value there
_BOTH: Final = ("anthropic", "openai")
_CLAUDE_CLOUDS: Final = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
_HERMES_VARIABLES: Final = {
    "anthropic": ("ANTHROPIC_BASE_URL", ""),
    "openai-api": ("OPENAI_BASE_URL", ""),
    "openrouter": ("OPENROUTER_BASE_URL", "--openai-upstream https://openrouter.ai/api/v1"),
    "nous": ("NOUS_INFERENCE_BASE_URL", "--openai-upstream https://inference-api.nousresearch.com/v1"),
}
_HERMES_OWN: Final = ("", "auto", "custom", "local", "ollama", "vllm", "llamacpp", "llama.cpp", "llama-cpp")
_HERMES_HOSTS: Final = ("anthropic.com", "openai.com", "openrouter.ai")  # it sends their keys to no other


class SettingsFile(NamedTuple):
    """A settings file, and what Foldline sets in it: `offered` only where nothing stands there.

    `needs` is an option that the gateway needs then.
    """

    path: Path
    settings: list[Setting]
    offered: list[Setting] = []
    needs: str = ""


class WrappedAgent(NamedTuple):
    """An agent: what is set for a gateway at a URL, for an MCP server that a command starts, in any case.

    `program` is the name of its own command, `providers` are those that go through the gateway, `elsewhere`
    returns the one that it is set to where that does not, else "".
    """

    program: str
    name: str
    gateway: Callable[[str], list[SettingsFile]]
    server: Callable[[list[str]], list[SettingsFile]]
    elsewhere: Callable[[], str]
    providers: str
    always: Callable[[], list[SettingsFile]] = list[SettingsFile]


def _held(path: Path) -> dict[str, Any]:
    """Return what a settings file holds; nothing where it cannot be read: whoever changes it is told why."""
    try:
        return values(path.name, path.read_text("utf-8"))
    except (InputError, OSError, UnicodeDecodeError):
        return {}


def _other_than(led: tuple[str, ...], provider: Any) -> str:
    return provider if isinstance(provider, str) and provider not in led else ""


def _claude_json() -> Path:
    """Return the file with Claude Code's MCP servers: beside its folder, or in one that was moved."""
    moved = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(moved).expanduser() / ".claude.json" if moved else Path.home() / ".claude.json"


def _claude(url: str) -> list[SettingsFile]:
    env: list[Setting] = [
        (("env", "ANTHROPIC_BASE_URL"), url),
        (("env", "DISABLE_AUTO_COMPACT"), "1"),
    ]
    return [SettingsFile(home_of("claude-code") / "settings.json", env)]


def _claude_elsewhere() -> str:
    held = _held(home_of("claude-code") / "settings.json")
    for name in _CLAUDE_CLOUDS:
        found = value_at(held, ("env", name))
        if (os.environ.get(name, "") if found is ABSENT else str(found)) not in ("", "0", "false"):
            return name
    return ""


def _claude_server(command: list[str]) -> list[SettingsFile]:
    about: dict[str, Any] = {"type": "stdio", "command": command[0], "args": command[1:], "env": {}}
    return [SettingsFile(_claude_json(), [(("mcpServers", "foldline"), about)])]


def _claude_status() -> list[SettingsFile]:
    about = {"type": "command", "command": shlex.join(_own_command("statusline"))}
    return [SettingsFile(home_of("claude-code") / "settings.json", [], [(("statusLine",), about)])]


def _codex_file() -> Path:
    return home_of("codex") / "config.toml"


def _codex(url: str) -> list[SettingsFile]:
    settings: list[Setting] = [
        (("openai_base_url",), f"{url}/v1"),
        (("model_context_window",), 1_000_000),
    ]
    return [SettingsFile(_codex_file(), settings)]


def _codex_elsewhere() -> str:
    return _other_than(("openai",), value_at(_held(_codex_file()), ("model_provider",)))


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


def _opencode_elsewhere() -> str:
    model = value_at(_held(_opencode_file()), ("model",))
    return _other_than(_BOTH, model.partition("/")[0] if isinstance(model, str) else "openai")


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


def _pi_elsewhere() -> str:
    return _other_than(_BOTH, value_at(_held(home_of("pi") / "settings.json"), ("defaultProvider",)))


def _hermes_file() -> Path:
    return Path(os.environ.get("HERMES_HOME") or "~/.hermes").expanduser() / "config.yaml"


def _hermes(url: str) -> list[SettingsFile]:
    """Set the address of the provider that Hermes asks: by a variable, or where the user's own stands."""
    path = _hermes_file()
    provider, address = _hermes_model(path)
    variable, upstream = _HERMES_VARIABLES.get(provider, ("", ""))
    led = url if provider == "anthropic" else f"{url}/v1"
    own = _is_own(provider, address)
    settings: list[Setting] = [(("compression", "enabled"), False)]
    return [
        SettingsFile(path.with_name(".env"), [((variable,), led)] if variable else [], needs=upstream),
        SettingsFile(path, [(("model", "base_url"), led), *settings] if own else settings),
    ]


def _is_own(provider: str, address: str) -> bool:
    """Whether Hermes asks a model at an address of the user's own."""
    return provider in _HERMES_OWN and bool(address) and not any(one in address for one in _HERMES_HOSTS)


def _hermes_elsewhere() -> str:
    provider, address = _hermes_model(_hermes_file())
    led = provider in _HERMES_VARIABLES or _is_own(provider, address)
    return "" if led else provider or "no provider"


def _hermes_model(path: Path) -> tuple[str, str]:
    """Return the provider that Hermes is set to, and the address of a model of the user's own."""
    try:
        held = values(path.name, path.read_text("utf-8"))
    except FileNotFoundError:
        return "", ""
    except (InputError, OSError, UnicodeDecodeError):  # whoever changes it is told why that cannot be
        return "custom", str(path)
    found = [value_at(held, ("model", key)) for key in ("provider", "base_url")]
    provider, address = (one.strip() if isinstance(one, str) else "" for one in found)
    return provider.lower(), address


def _hermes_server(command: list[str]) -> list[SettingsFile]:
    about = {"command": command[0], "args": command[1:], "connect_timeout": START}
    return [SettingsFile(_hermes_file(), [(("mcp_servers", "foldline"), about)])]


def _no_mcp(_command: list[str]) -> list[SettingsFile]:
    return []


AGENTS: Final[dict[str, WrappedAgent]] = {
    "claude": WrappedAgent(
        "claude", "Claude Code", _claude, _claude_server, _claude_elsewhere, "Anthropic's API", _claude_status
    ),
    "codex": WrappedAgent("codex", "Codex", _codex, _codex_server, _codex_elsewhere, "openai"),
    "opencode": WrappedAgent(
        "opencode", "OpenCode", _opencode, _opencode_server, _opencode_elsewhere, "anthropic or openai"
    ),
    "pi": WrappedAgent("pi", "pi", _pi, _no_mcp, _pi_elsewhere, "anthropic or openai"),
    "hermes": WrappedAgent(
        "hermes",
        "Hermes",
        _hermes,
        _hermes_server,
        _hermes_elsewhere,
        "anthropic, openai-api, openrouter, nous or custom with `hermes model`",
    ),
}


def server_command(agent: str) -> list[str]:
    """Return the command of the MCP server for an agent."""
    return _own_command("mcp", "--agent", agent)


def _own_command(*words: str) -> list[str]:
    found = shutil.which("foldline")
    return [*([found] if found else [sys.executable, "-m", "foldline"]), *words]


def files_of(agent: str, url: str | None, command: list[str] | None) -> list[SettingsFile]:
    """Return the files of an agent with all that is set in each, if anything: for gateway, server or both."""
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
        found[one.path] = SettingsFile(one.path, settings, offered, before.needs or one.needs)
    return list(found.values())


def paths_of(agent: str) -> list[Path]:
    """Return every settings file of an agent that may be wrapped, whatever stands beside it by now."""
    found = [one.path for one in files_of(agent, PROBE, [PROBE])]
    return list(
        dict.fromkeys([*found, *(path.with_suffix(".json") for path in found if path.suffix == ".jsonc")])
    )
