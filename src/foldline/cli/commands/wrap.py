"""`foldline wrap`, `unwrap` and `doctor`: an agent's own settings, set to the gateway and the MCP server."""

from __future__ import annotations

import os
import re
import shutil
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
from foldline.transcripts.places import AGENTS as FOUND
from foldline.transcripts.places import agent_of, newest_transcript
from foldline.wrapping.agents import AGENTS, PROBE, SettingsFile, files_of, paths_of, server_command
from foldline.wrapping.backup import Record, as_before, change, is_wrapped, planned, put_back
from foldline.wrapping.documents import ABSENT, value_at, values

Name = Literal["claude", "codex", "opencode", "pi", "hermes"]
PLUGIN = ("enabledPlugins", "foldline@foldline")  # of Claude Code's settings
PATIENCE = 3.0  # seconds for a gateway to answer
GATEWAY = option("Where the gateway is  [default: the settings', else http://127.0.0.1:8400]", metavar="URL")
_USER = re.compile(r"//[^/\s]*@")  # of an address: who asks, or a key
SAYS = {
    "restored": "is as it was, to the byte",
    "removed": "is removed: there was none before",
    "taken out": "was changed since: only what Foldline set was taken out of it",
    "no copy": "has no copy any more: only what Foldline set was taken out of it",
    "was gone": "was gone",
}


@command(
    "foldline wrap claude                 gateway and MCP server",
    "foldline wrap codex --no-gateway     the MCP server alone",
    "foldline wrap opencode --gateway http://127.0.0.1:9000",
)
def wrap(
    agent: Name = argument("AGENT"),
    gateway: str | None = GATEWAY,
    no_gateway: bool = option("Add the MCP server alone."),
    no_mcp: bool = option("Set the gateway alone."),
    force: bool = option("Set a gateway that does not answer now."),
) -> Shown:
    """Lead an agent through the gateway, and give it the tools of `foldline mcp`, by its own settings.

    AGENT is claude, codex, opencode, pi (which has no MCP) or hermes. Claude Code is given a status line too,
    unless it has one. The files are kept beside themselves as they were; `foldline unwrap AGENT` puts them
    back.
    """
    url = None if no_gateway else _url(gateway)
    command = None if no_mcp or not AGENTS[agent].server([PROBE]) else server_command(agent)
    if url is not None and not force and not _answers(url):
        raise InputError(
            f"no gateway answers at {url}: start it with `foldline serve`, or set it anyway with --force"
        )
    if command is not None and find_spec("mcp") is None:
        raise InputError("the MCP server needs its SDK: pip install 'foldline[mcp]', or --no-mcp")
    wanted = _wanted(agent, url, command)
    done = _changed(agent, wanted)
    if shutil.which(AGENTS[agent].program) is None:
        warn([f"no `{AGENTS[agent].program}` was found on the PATH: is {AGENTS[agent].name} installed?"])
    warn([f"start the gateway with {file.needs}" for file in wanted if file.needs])
    warn(_exported(wanted))
    for file, record in done.items():
        warn(_replaced(file, record))

    def show() -> None:
        console = out()
        for file, record in done.items():
            paths = ", ".join(".".join(entry.path) for entry in record.entries)
            console.print(f"[green]set[/] {escape(str(file))}: {escape(paths)}", soft_wrap=True)
        console.print(f"[dim]start {AGENTS[agent].name} again; `foldline unwrap {agent}` puts it all back[/]")

    told = [
        {"file": str(file), "set": [list(entry.path) for entry in record.entries]}
        for file, record in done.items()
    ]
    return Shown(lambda: {"agent": agent, "gateway": url, "mcp": command, "files": told}, show)


def _wanted(agent: str, url: str | None, command: list[str] | None) -> list[SettingsFile]:
    """Return the files in which something is to be set; raises InputError where that leads nowhere."""
    known = AGENTS[agent]
    wanted = [file for file in files_of(agent, url, command) if file.settings or file.offered]
    if not wanted:
        raise InputError(f"{known.name} takes no MCP servers: there is nothing to set")
    if url is not None and (provider := known.elsewhere()):
        raise InputError(
            f"{known.name} is set to {provider}: what it asks would not go through the gateway. Choose "
            f"{known.providers}, or set the MCP server alone with --no-gateway"
        )
    return wanted


def _changed(agent: str, wanted: list[SettingsFile]) -> dict[Path, Record]:
    """Change every file, or none; one in which nothing is to be set any more is put back."""
    changes = [planned(file) for file in wanted]
    left = set(paths_of(agent)) - {one.path for one in changes}
    for path in filter(is_wrapped, left):
        as_before(path)  # raises where it cannot be put back
    done: list[Path] = []
    try:
        for one in changes:
            done.append(one.path)
            change(one)
    except BaseException:  # also where it is interrupted between two files
        for path in done:
            put_back(path)
        raise
    for path in left:
        put_back(path)
    return {one.path: one.record for one in changes}


def _replaced(file: Path, record: Record) -> list[str]:
    """Say what stood there before, without its secrets.

    An address of the user's own has to become the gateway's upstream.
    """
    return [
        f"{file}: {'.'.join(entry.path)} was {_known(entry.before)}{_go_on(entry.path)}"
        for entry in record.entries
        if entry.had and entry.before != entry.value
    ]


def _exported(wanted: list[SettingsFile]) -> list[str]:
    """Say which addresses of the user's own, exported by the shell, are no longer asked."""
    return [
        f"{path[1]} is {_known(own)} in this shell; the settings come first{_go_on(path)}"
        for file in wanted
        for path, value in file.settings
        if path[0] == "env" and "URL" in path[1] and (own := os.environ.get(path[1], value)) != value
    ]


def _known(value: Any) -> str:
    return redact(_USER.sub("//[redacted]@", repr(value)))


def _go_on(path: tuple[str, ...]) -> str:
    """Say how the gateway is to ask an address of the user's own that stood at a path."""
    if "url" not in path[-1].lower():
        return ""
    vendor = "anthropic" if "anthropic" in ".".join(path).lower() else "openai"
    return (
        f": to go on using it, start the gateway with `foldline serve --{vendor}-upstream` and this address"
    )


@command("foldline unwrap claude", "foldline unwrap codex --json")
def unwrap(agent: Name = argument("AGENT")) -> Shown:
    """Put an agent's settings back as they were before `foldline wrap`.

    A file that was changed since keeps that: only what Foldline set is taken out of it.
    """
    done: dict[Path, str] = {}
    failed: dict[Path, str] = {}
    for path in paths_of(agent):
        try:
            if (how := put_back(path)) is not None:
                done[path] = how
        except InputError as error:
            failed[path] = str(error)
    if not done and not failed:
        err().print(f"{AGENTS[agent].name} is not wrapped: nothing was changed")

    def show() -> None:
        for path, how in done.items():
            out().print(f"{escape(str(path))} {SAYS[how]}", soft_wrap=True)

    files = {str(path): how for path, how in done.items()}
    problems = {str(path): why for path, why in failed.items()}
    warn(list(failed.values()))
    return Shown(
        lambda: {"agent": agent, "files": files} | ({"problems": problems} if problems else {}),
        show,
        code=2 if failed else 0,
    )


# ---- doctor


@command("foldline doctor", "foldline doctor --json | jq .advice")
def doctor(gateway: str | None = GATEWAY) -> Shown:
    """Say which agents are wrapped, whether the gateway answers, and what to do.

    Exit code 1 where an agent is led to a gateway that does not answer.
    """
    url = _url(gateway)
    agents = {name: _agent(name, url) for name in AGENTS}
    used = {one["gateway"] for one in agents.values() if one["gateway"]}
    answers = {one: _answers(one) for one in sorted(used | {url})}
    extras = {"mcp": find_spec("mcp") is not None, "serve": find_spec("starlette") is not None}
    dead = [name for name, one in agents.items() if one["gateway"] and not answers[one["gateway"]]]
    advice = _advice(agents, dead, extras, first="" if answers[url] else "`foldline serve`, then ")

    def show() -> None:
        console = out()
        for address, alive in answers.items():
            says = "[green]answers[/]" if alive else "[yellow]does not answer[/]"
            console.print(f"gateway {escape(address)}: {says}")
        for name, one in agents.items():
            what = "wrapped" if one["wrapped"] else "not wrapped"
            there = "" if one["installed"] else ", not installed"
            told = [f"gateway {one['gateway']}"] if one["gateway"] else []
            told += ["MCP server"] if one["mcp"] else []
            told += ["plugin"] if one["plugin"] else []
            session = f"; session here: {one['session']}" if one["session"] else ""
            text = ", ".join((f"{AGENTS[name].name}: {what}{there}", *told)) + session
            console.print(escape(text), soft_wrap=True)
        for line in advice:
            console.print(f"[bold]to do:[/] {escape(line)}", soft_wrap=True)

    document = {"gateways": answers, "agents": agents, "extras": extras, "advice": advice}
    return Shown(lambda: document, show, code=1 if dead else 0)


def _agent(name: str, url: str) -> dict[str, Any]:
    """Return what is known of an agent on this machine; an address of the user's own is no gateway."""
    known = AGENTS[name]
    session = problem = None
    try:
        if agent_of(name) in FOUND:
            session = str(newest_transcript(Path.cwd(), agent_of(name)).path)
    except InputError:
        pass
    gateway, mcp, plugin = None, False, False
    wrapped = any(is_wrapped(path) for path in paths_of(name))
    for file in files_of(name, PROBE, [PROBE]):
        try:
            held = values(str(file.path), file.path.read_text("utf-8")) if file.path.exists() else {}
        except (InputError, OSError, UnicodeDecodeError) as error:
            problem = str(error)
            continue
        plugin = plugin or value_at(held, PLUGIN) is True
        for path, value in file.settings:
            found = value_at(held, path)
            if found is ABSENT:
                continue
            mcp = mcp or "foldline" in path
            if isinstance(value, str) and value.startswith(PROBE) and isinstance(found, str):
                gateway = gateway or found.rstrip("/").removesuffix("/v1")
    return {
        "installed": shutil.which(known.program) is not None,
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
    """Say what to do; `first` comes before an agent is wrapped."""
    told = [
        f"{AGENTS[name].name} asks {agents[name]['gateway']}, where nobody answers: `foldline serve`, or "
        f"`foldline unwrap {name}`"
        for name in dead
    ]
    told += [
        f"{AGENTS[name].name}: {one['problem']}" for name, one in agents.items() if one["problem"] is not None
    ]
    told += [
        f"{first}`foldline wrap {name}` leads {AGENTS[name].name} through the gateway"
        for name, one in agents.items()
        if one["installed"] and not one["wrapped"] and not one["plugin"] and one["problem"] is None
    ]
    return told + [
        f"pip install 'foldline[{name}]' for {what}"
        for name, what in (("mcp", "`foldline mcp`"), ("serve", "`foldline serve`"))
        if not extras[name]
    ]


# ---- the gateway


def _url(given: str | None) -> str:
    if given is None:
        serve = basic_settings().serve
        host = "127.0.0.1" if serve.host in ("0.0.0.0", "::") else serve.host  # noqa: S104 - not listened at
        return f"http://[{host}]:{serve.port}" if ":" in host else f"http://{host}:{serve.port}"
    found = urlsplit(given)
    if found.scheme not in ("http", "https") or not found.netloc:
        raise InputError(f"--gateway {given}: give an address such as http://127.0.0.1:8400")
    return given.rstrip("/").removesuffix("/v1")


def _answers(url: str) -> bool:
    """Whether a gateway answers at an address."""
    direct = build_opener(ProxyHandler({}))  # it is on this machine, or where the user says
    try:
        with direct.open(f"{url}/health", timeout=PATIENCE) as answer:
            return answer.status == 200
    except (OSError, HTTPException, ValueError):
        return False
