"""Find the transcripts of coding agents that belong to a folder.

Some agents have a folder of transcripts per project, with a name that two projects may share; others keep all
transcripts together. In both cases the beginning of a file, or its sidecar, names the folder in which the
session began: sessions of another folder, and those of sub-agents, are left out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from glob import escape
from hashlib import sha256
from heapq import nlargest
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from foldline.dialects.payload import fields_of
from foldline.errors import InputError, did_you_mean
from foldline.files import expanded
from foldline.transcripts.lines import Row, read_sidecar

LINES: Final = 20  # at the beginning of a file, among which one names the folder
LONGEST: Final = 1024 * 1024  # bytes of such a line
LOOKED_AT: Final = 300  # newest files of an agent that are opened


class FoundTranscript(msgspec.Struct, frozen=True):
    """A transcript of an agent; `modified` is Unix time, `size` bytes."""

    agent: str
    path: Path
    modified: float
    size: int

    @property
    def id(self) -> str:
        """The session's id: the name of its file, or of its own folder."""
        return self.path.parent.name if self.path.stem == "events" else self.path.stem


class _Place(NamedTuple):
    """Where an agent keeps its transcripts: a pattern under its own folder, with the project's name.

    The environment `variable` overrides the `default` folder. `must_say`: transcripts of all projects are
    together, so a file must name its folder to count.
    """

    default: str
    variable: str
    pattern: str
    must_say: bool = False


def project_names(folder: str) -> dict[str, str]:
    """Return the names that agents derive from the path of a project's folder."""
    return {
        "letters": re.sub("[^a-zA-Z0-9]", "-", folder),
        "dashed": re.sub(r"[/\\:]", "-", folder.strip("/\\")),
        "hashed": sha256(folder.encode("utf-8", "replace")).hexdigest(),
    }


AGENTS: Final[dict[str, _Place]] = {
    "claude-code": _Place("~/.claude", "CLAUDE_CONFIG_DIR", "projects/{letters}/*.jsonl"),
    "codex": _Place("~/.codex", "CODEX_HOME", "sessions/*/*/*/rollout-*.jsonl", must_say=True),
    "pi": _Place("~/.pi/agent", "PI_CODING_AGENT_DIR", "sessions/--{dashed}--/*.jsonl"),
    "copilot-cli": _Place("~/.copilot", "COPILOT_HOME", "session-state/*/events.jsonl", must_say=True),
    "gemini-cli": _Place("~/.gemini", "", "tmp/{hashed}/chats/session-*.json*"),
    "klaude-code": _Place("~/.klaude", "", "projects/{dashed}/sessions/*/events.jsonl"),
}
"""The agents whose transcripts can be found, by the name of the format."""
NAMES: Final = {
    "claude": "claude-code",
    "copilot": "copilot-cli",
    "gemini": "gemini-cli",
    "klaude": "klaude-code",
}
"""Commands of agents whose formats have other names."""


def agent_of(name: str) -> str:
    """Return the format of an agent, by either name; raises InputError for any other agent."""
    format_ = NAMES.get(name, name)
    if format_ not in AGENTS:
        hint = did_you_mean(name, [*NAMES, *AGENTS])
        raise InputError(
            f"unknown agent {name!r}{hint}: choose one of {', '.join(AGENTS)}, or name a session file"
        )
    return format_


def home_of(agent: str) -> Path:
    """Return the folder in which an agent keeps its transcripts."""
    place = AGENTS[agent]
    return expanded(os.environ.get(place.variable) or place.default)


def transcripts_of(folder: Path, agent: str | None = None) -> list[FoundTranscript]:
    """Return the transcripts of sessions that began in a folder, the last modified first.

    `agent` is the name of one agent's format (None: all agents).
    """
    folder = folder.resolve()
    agents = [agent] if agent else AGENTS
    transcripts = [transcript for name in agents for transcript in _of_agent(name, folder)]
    return sorted(transcripts, key=lambda transcript: -transcript.modified)


def newest_transcript(folder: Path, agent: str | None = None) -> FoundTranscript:
    """Return the last modified transcript of a folder; raises InputError if there is none."""
    folder = folder.resolve()
    newest = [next(_of_agent(name, folder), None) for name in ([agent] if agent else AGENTS)]
    found = max(filter(None, newest), key=lambda transcript: transcript.modified, default=None)
    if found is None:
        agents = agent or f"an agent ({', '.join(AGENTS)})"
        raise InputError(
            f"no session of {agents} was found for {folder}: send the agent a message in this folder first, "
            "or name a session file"
        )
    return found


def _of_agent(agent: str, folder: Path) -> Iterator[FoundTranscript]:
    """Yield an agent's transcripts for a folder, the last modified first."""
    found: list[FoundTranscript] = []
    for path in _paths(agent, folder):
        if path.name.startswith("agent-"):  # a sub-agent's, of Claude Code
            continue
        with suppress(OSError):
            stat = path.stat()
            found.append(FoundTranscript(agent, path, stat.st_mtime, stat.st_size))
    for transcript in nlargest(LOOKED_AT, found, key=lambda transcript: transcript.modified):
        if _belongs(transcript, folder):
            yield transcript


def _paths(agent: str, folder: Path) -> Iterator[Path]:
    """Yield the files of an agent that may belong to a folder.

    Gemini CLI used to name a project by its hash; newer versions copy that folder and leave the old one.
    """
    home = home_of(agent)
    names = {name: escape(text) for name, text in project_names(str(folder)).items()}
    projects = [names["hashed"]]
    if agent == "gemini-cli":
        projects = [
            escape(root.parent.name)
            for root in home.glob("tmp/*/.project_root")
            if _contains_path(root, folder)
        ] or projects
    for project in projects:
        yield from home.glob(AGENTS[agent].pattern.format_map({**names, "hashed": project}))


def _contains_path(root: Path, folder: Path) -> bool:
    """Return whether a file contains the path of a folder."""
    with suppress(OSError, ValueError):
        return Path(root.read_text("utf-8").strip()).resolve() == folder
    return False


def _belongs(transcript: FoundTranscript, folder: Path) -> bool:
    """Return whether a session began in a folder, and is not a sub-agent's."""
    for record in _beginning(transcript):
        if _is_sub_agent(record):
            return False
        if cwd := _cwd(record):
            return Path(cwd).resolve() == folder
    return not AGENTS[transcript.agent].must_say


def _beginning(transcript: FoundTranscript) -> Iterator[Row]:
    """Yield the records that may name a session's folder: klaude-code's sidecar, then the first lines."""
    if transcript.agent == "klaude-code":
        yield Row(fields_of(read_sidecar(transcript.path.with_name("meta.json"))))
    with suppress(OSError), transcript.path.open("rb") as file:
        for _ in range(LINES):
            with suppress(ValueError):
                yield Row(fields_of(json.loads(file.readline(LONGEST))))


def _is_sub_agent(record: Row) -> bool:
    """Return whether a line of Codex, or klaude-code's sidecar, marks the session as a sub-agent's."""
    payload = record.inner("payload")
    return (
        payload.get("thread_source") == "subagent"
        or payload.inner("source").get("subagent") is not None
        or bool(record.get("sub_agent_state"))
    )


def _cwd(record: Row) -> str:
    """Return the folder in a line of Claude Code, pi, Codex or Copilot CLI, or in klaude-code's sidecar."""
    holders = (record, record.inner("payload"), record.inner("data", "context"))
    return next((cwd for cwd in (holder.text("cwd") for holder in holders) if cwd), record.text("work_dir"))
