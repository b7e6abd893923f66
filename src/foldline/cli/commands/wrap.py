"""`foldline wrap`, `unwrap` and `doctor`: set up an agent to use the gateway and the MCP server."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from foldline.cli.options import Shown, argument, command, option
from foldline.cli.output import err, escape, out, warn
from foldline.config import basic_settings
from foldline.core.secrets.redact import redact
from foldline.errors import InputError
from foldline.transcripts.places import AGENTS as TRANSCRIPTS
from foldline.transcripts.places import agent_of, newest_transcript
from foldline.wrapping.agents import (
    AGENTS,
    CLAUDE_PLUGIN,
    PROBE,
    SettingsFile,
    files_of,
    paths_of,
    server_command,
)
from foldline.wrapping.backup import Record, as_before, change, is_wrapped, planned, put_back
from foldline.wrapping.documents import ABSENT, value_at, values

Name = Literal["claude", "codex", "opencode", "pi", "hermes"]
TIMEOUT = 3.0  # seconds for a gateway to answer
GATEWAY = option("The gateway's address  [default: the settings', else http://127.0.0.1:8400]", metavar="URL")
_USER = re.compile(r"//[^/\s]*@")  # a user name, password or key in an address
OUTCOMES = {
    "restored": "is restored, byte for byte",
    "removed": "is removed: it did not exist before",
    "taken out": "was changed after `foldline wrap`: only Foldline's settings are removed",
    "no copy": "cannot be restored, because its copy is gone: only Foldline's settings are removed",
    "was gone": "no longer exists",
}


@command(
    "foldline wrap claude                 gateway and MCP server",
    "foldline wrap codex --no-gateway     the MCP server alone",
    "foldline wrap opencode --gateway http://127.0.0.1:9000",
)
def wrap(
    agent: Name = argument("AGENT"),
    gateway: str | None = GATEWAY,
    no_gateway: bool = option("Add only the MCP server."),
    no_mcp: bool = option("Set only the gateway."),
    force: bool = option("Set the gateway even if it does not answer now."),
) -> Shown:
    """Make an agent use the gateway and the tools of `foldline mcp`: change its settings.

    AGENT is claude, codex, opencode, pi (which has no MCP) or hermes. Claude Code also gets a status line,
    unless it has one. The original of each file is kept beside it; `foldline unwrap AGENT` restores it.
    """
    url = None if no_gateway else _gateway_url(gateway)
    server = None if no_mcp or not AGENTS[agent].server([PROBE]) else server_command(agent)
    if url is not None and not force and not _answers(url):
        raise InputError(
            f"no gateway answers at {url}: start it with `foldline serve`, or use --force to set it anyway"
        )
    if server is not None and find_spec("mcp") is None:
        raise InputError(
            "the MCP server needs its SDK: pip install 'foldline[mcp]', or leave the server out with --no-mcp"
        )
    files = _files_to_set(agent, url, server)
    records = _change_files(agent, files)
    if shutil.which(agent) is None:
        warn([f"no `{agent}` was found on the PATH: is {AGENTS[agent].name} installed?"])
    warn([f"start the gateway with {file.needs}" for file in files if file.needs])
    warn(_exported_addresses(files))
    for path, record in records.items():
        warn(_replaced_values(path, record))

    def show() -> None:
        console = out()
        for path, record in records.items():
            names = ", ".join(".".join(entry.path) for entry in record.entries)
            console.print(f"[green]set[/] {escape(str(path))}: {escape(names)}", soft_wrap=True)
        console.print(
            f"[dim]restart {AGENTS[agent].name}; `foldline unwrap {agent}` restores its settings[/]"
        )

    document = [
        {"file": str(path), "set": [list(entry.path) for entry in record.entries]}
        for path, record in records.items()
    ]
    return Shown(lambda: {"agent": agent, "gateway": url, "mcp": server, "files": document}, show)


def _files_to_set(agent: str, url: str | None, server: list[str] | None) -> list[SettingsFile]:
    """Return the files to change; raises InputError if there is none, or the gateway would get no request."""
    known = AGENTS[agent]
    files = [file for file in files_of(agent, url, server) if file.settings or file.offered]
    if not files:
        raise InputError(f"{known.name} does not support MCP servers: there is nothing to set")
    if url is not None and (provider := known.elsewhere()):
        raise InputError(
            f"{known.name} uses {provider}: its requests would not go through the gateway. Choose "
            f"{known.providers}, or add only the MCP server with --no-gateway"
        )
    return files


def _change_files(agent: str, files: list[SettingsFile]) -> dict[Path, Record]:
    """Change all files, or none; restore wrapped files that need no setting any more."""
    changes = [planned(file) for file in files]
    unused = set(paths_of(agent)) - {planned_change.path for planned_change in changes}
    for path in filter(is_wrapped, unused):
        as_before(path)  # raises if it cannot be restored
    changed: list[Path] = []
    try:
        for planned_change in changes:
            changed.append(planned_change.path)
            change(planned_change)
    except BaseException:  # also an interrupt between two files
        for path in changed:
            put_back(path)
        raise
    for path in unused:
        put_back(path)
    return {planned_change.path: planned_change.record for planned_change in changes}


def _replaced_values(path: Path, record: Record) -> list[str]:
    """Return warnings with the user's values that were replaced, without secrets."""
    return [
        f"{path}: {'.'.join(entry.path)} was {_redacted(entry.before)}{_upstream_advice(entry.path)}"
        for entry in record.entries
        if entry.had and entry.before != entry.value
    ]


def _exported_addresses(files: list[SettingsFile]) -> list[str]:
    """Return warnings for addresses that the shell exports and the new settings override."""
    return [
        f"{path[1]} is {_redacted(exported)} in this shell, but the settings override it"
        f"{_upstream_advice(path)}"
        for file in files
        for path, value in file.settings
        if path[0] == "env" and "URL" in path[1] and (exported := os.environ.get(path[1], value)) != value
    ]


def _redacted(value: Any) -> str:
    return redact(_USER.sub("//[redacted]@", repr(value)))


def _upstream_advice(path: tuple[str, ...]) -> str:
    """Return how to make the gateway use the address that a setting had; "" for other settings."""
    if "url" not in path[-1].lower():
        return ""
    vendor = "anthropic" if "anthropic" in ".".join(path).lower() else "openai"
    return f": to keep using it, start the gateway with `foldline serve --{vendor}-upstream` and this address"


@command("foldline unwrap claude", "foldline unwrap codex --json")
def unwrap(agent: Name = argument("AGENT")) -> Shown:
    """Restore an agent's settings from before `foldline wrap`.

    In a file that was changed in the meantime, only Foldline's settings are removed.
    """
    outcomes: dict[Path, str] = {}
    failed: dict[Path, str] = {}
    for path in paths_of(agent):
        try:
            if (outcome := put_back(path)) is not None:
                outcomes[path] = outcome
        except InputError as error:
            failed[path] = str(error)
    if not outcomes and not failed:
        err().print(f"{AGENTS[agent].name} is not wrapped: nothing was changed")

    def show() -> None:
        for path, outcome in outcomes.items():
            out().print(f"{escape(str(path))} {OUTCOMES[outcome]}", soft_wrap=True)

    files = {str(path): outcome for path, outcome in outcomes.items()}
    problems = {str(path): error for path, error in failed.items()}
    warn(list(failed.values()))
    return Shown(
        lambda: {"agent": agent, "files": files} | ({"problems": problems} if problems else {}),
        show,
        code=2 if failed else 0,
    )


# ---- doctor


@command("foldline doctor", "foldline doctor --json | jq .advice")
def doctor(gateway: str | None = GATEWAY) -> Shown:
    """Show which agents are wrapped, whether the gateway answers, and what to do.

    Exit code 1: an agent uses a gateway that does not answer.
    """
    url = _gateway_url(gateway)
    agents = {name: _agent(name, url) for name in AGENTS}
    used = {agent["gateway"] for agent in agents.values() if agent["gateway"]}
    answers = {address: _answers(address) for address in sorted(used | {url})}
    extras = {"mcp": find_spec("mcp") is not None, "serve": find_spec("starlette") is not None}
    dead = [name for name, agent in agents.items() if agent["gateway"] and not answers[agent["gateway"]]]
    advice = _advice(agents, dead, extras, first="" if answers[url] else "`foldline serve`, then ")

    def show() -> None:
        console = out()
        for address, alive in answers.items():
            state = "[green]answers[/]" if alive else "[yellow]does not answer[/]"
            console.print(f"gateway {escape(address)}: {state}")
        for name, agent in agents.items():
            facts = ["wrapped" if agent["wrapped"] else "not wrapped"]
            facts += [] if agent["installed"] else ["not installed"]
            facts += [f"gateway {agent['gateway']}"] if agent["gateway"] else []
            facts += ["MCP server"] if agent["mcp"] else []
            facts += ["plugin"] if agent["plugin"] else []
            session = f"; session here: {agent['session']}" if agent["session"] else ""
            text = f"{AGENTS[name].name}: {', '.join(facts)}{session}"
            console.print(escape(text), soft_wrap=True)
        for line in advice:
            console.print(f"[bold]to do:[/] {escape(line)}", soft_wrap=True)

    document = {"gateways": answers, "agents": agents, "extras": extras, "advice": advice}
    return Shown(lambda: document, show, code=1 if dead else 0)


def _agent(name: str, url: str) -> dict[str, Any]:
    """Return the state of an agent on this machine; only Foldline's address counts as the gateway."""
    session = problem = None
    with suppress(InputError):
        if agent_of(name) in TRANSCRIPTS:
            session = str(newest_transcript(Path.cwd(), agent_of(name)).path)
    gateway, mcp, plugin = None, False, False
    wrapped = any(map(is_wrapped, paths_of(name)))
    for file in files_of(name, PROBE, [PROBE]):
        try:
            settings = values(str(file.path), file.path.read_text("utf-8")) if file.path.exists() else {}
        except (InputError, OSError, UnicodeDecodeError) as error:
            problem = str(error)
            continue
        plugin = plugin or value_at(settings, CLAUDE_PLUGIN) is True
        for path, probe in file.settings:
            value = value_at(settings, path)
            if value is ABSENT:
                continue
            mcp = mcp or "foldline" in path
            if isinstance(probe, str) and probe.startswith(PROBE) and isinstance(value, str):
                gateway = gateway or value.rstrip("/").removesuffix("/v1")
    return {
        "installed": shutil.which(name) is not None,
        "wrapped": wrapped,
        "gateway": gateway if wrapped or gateway == url else None,
        "mcp": mcp,
        "plugin": plugin,
        "session": session,
        "problem": problem,
    }


def _advice(
    agents: dict[str, dict[str, Any]], dead: list[str], extras: dict[str, bool], *, first: str
) -> list[str]:
    """Return what to do, one line each; `first` is what to run before an agent is wrapped."""
    advice = [
        f"{AGENTS[name].name} uses the gateway {agents[name]['gateway']}, which does not answer: run "
        f"`foldline serve`, or `foldline unwrap {name}`"
        for name in dead
    ]
    advice += [
        f"{AGENTS[name].name}: {agent['problem']}"
        for name, agent in agents.items()
        if agent["problem"] is not None
    ]
    advice += [
        f"{first}`foldline wrap {name}` makes {AGENTS[name].name} use the gateway"
        for name, agent in agents.items()
        if agent["installed"] and not agent["wrapped"] and not agent["plugin"] and agent["problem"] is None
    ]
    return advice + [
        f"pip install 'foldline[{name}]' for `foldline {name}`"
        for name, installed in extras.items()
        if not installed
    ]


# ---- the gateway


def _gateway_url(address: str | None) -> str:
    if address is None:
        serve = basic_settings().serve
        host = "127.0.0.1" if serve.host in ("0.0.0.0", "::") else serve.host  # noqa: S104 - a name to call
        return f"http://[{host}]:{serve.port}" if ":" in host else f"http://{host}:{serve.port}"
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"--gateway {address}: give an address such as http://127.0.0.1:8400")
    return address.rstrip("/").removesuffix("/v1")


def _answers(url: str) -> bool:
    direct = build_opener(ProxyHandler({}))  # never through a proxy
    try:
        with direct.open(f"{url}/health", timeout=TIMEOUT) as answer:
            return answer.status == 200
    except (OSError, HTTPException, ValueError):
        return False
