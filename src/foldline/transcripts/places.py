"""Where coding agents keep their transcripts, and which of them belong to a folder.

Some agents have a folder of transcripts for each project, named after it in a way that two projects may
share; others keep those of all projects together. In both cases the beginning of a file, or a file beside it,
says where its session was begun: one that names another folder, or a sub-agent, is left out.
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
from foldline.transcripts.lines import Row, read_sidecar

LINES: Final = 20  # of a file, in which it says where its session was begun
LONGEST: Final = 1024 * 1024  # bytes of such a line
LOOKED_AT: Final = 300  # newest files of an agent that keeps those of all projects together


class FoundTranscript(msgspec.Struct, frozen=True):
    """A transcript of an agent; `id` is the session's by its file's name, `modified` Unix time."""

    agent: str
    path: Path
    modified: float
    size: int

    @property
    def id(self) -> str:
        """The name of the session: that of its file, or of the folder that it has for itself."""
        return self.path.parent.name if self.path.stem == "events" else self.path.stem


class _Place(NamedTuple):
    """An agent's transcripts for a folder: a pattern under the agent's own folder, with the project's name.

    `variable` names that folder where the environment moves it. Those of all projects are together where
    files `must_say` that they belong to the folder.
    """

    default: str
    variable: str
    pattern: str
    must_say: bool = False


def _named(folder: Path) -> dict[str, str]:
    """Return how agents name a project by its folder, for a pattern."""
    text = str(folder)
    return {
        "letters": re.sub("[^a-zA-Z0-9]", "-", text),
        "dashed": escape(re.sub(r"[/\\:]", "-", text.lstrip("/\\"))),
        "hashed": sha256(text.encode()).hexdigest(),
    }


AGENTS: Final[dict[str, _Place]] = {
    "claude-code": _Place("~/.claude", "CLAUDE_CONFIG_DIR", "projects/{letters}/*.jsonl"),
    "codex": _Place("~/.codex", "CODEX_HOME", "sessions/*/*/*/rollout-*.jsonl", must_say=True),
    "pi": _Place("~/.pi/agent", "PI_CODING_AGENT_DIR", "sessions/--{dashed}--/*.jsonl"),
    "copilot-cli": _Place("~/.copilot", "COPILOT_HOME", "session-state/*/events.jsonl", must_say=True),
    "gemini-cli": _Place("~/.gemini", "", "tmp/{hashed}/chats/session-*.json*"),
    "klaude-code": _Place("~/.klaude", "", "projects/{dashed}/sessions/*/events.jsonl"),
}
"""The agents whose transcripts are found by themselves, each under the name of its format."""
NAMES: Final = {
    "claude": "claude-code",
    "copilot": "copilot-cli",
    "gemini": "gemini-cli",
    "klaude": "klaude-code",
}
"""Agents as their commands are called, where their formats are called otherwise."""


def agent_of(name: str) -> str:
    """Return the name of an agent's format; raises InputError for an agent whose files are not found."""
    found = NAMES.get(name, name)
    if found not in AGENTS:
        hint = did_you_mean(name, [*NAMES, *AGENTS])
        raise InputError(f"no agent {name!r}{hint}: there are {', '.join(AGENTS)}; or name a session file")
    return found


def home_of(agent: str) -> Path:
    """Return the folder in which an agent keeps its transcripts."""
    place = AGENTS[agent]
    return Path(os.environ.get(place.variable) or place.default).expanduser()


def transcripts_of(folder: Path, agent: str | None = None) -> list[FoundTranscript]:
    """Return the transcripts of the sessions that were begun in a folder, the last written first.

    Those of one agent, by the name of its format, or of all whose places are known.
    """
    folder = folder.resolve()
    found = [one for name in ([agent] if agent else AGENTS) for one in _of_agent(name, folder)]
    return sorted(found, key=lambda one: -one.modified)


def newest_transcript(folder: Path, agent: str | None = None) -> FoundTranscript:
    """Return the transcript of a folder that was written last; raises InputError where there is none."""
    folder = folder.resolve()
    newest = [next(_of_agent(name, folder), None) for name in ([agent] if agent else AGENTS)]
    found = max(filter(None, newest), key=lambda one: one.modified, default=None)
    if found is None:
        whose = agent or f"an agent ({', '.join(AGENTS)})"
        raise InputError(
            f"no session of {whose} was found for {folder}: say something to the agent in this folder first, "
            "or name a session file"
        )
    return found


def _of_agent(agent: str, folder: Path) -> Iterator[FoundTranscript]:
    """Yield an agent's transcripts for a folder, the last written first."""
    found: list[FoundTranscript] = []
    for path in _paths(agent, folder):
        if path.name.startswith("agent-"):  # a sub-agent's, of Claude Code
            continue
        with suppress(OSError):
            stat = path.stat()
            found.append(FoundTranscript(agent, path, stat.st_mtime, stat.st_size))
    for one in nlargest(LOOKED_AT, found, key=lambda one: one.modified):
        if _belongs(one, folder):
            yield one


def _paths(agent: str, folder: Path) -> Iterator[Path]:
    """Yield the files that may be an agent's for a folder.

    Gemini CLI had a project's hash for a name; it copies that folder to a new one, and leaves the old one.
    """
    home, named = home_of(agent), _named(folder)
    own = [named["hashed"]]
    if agent == "gemini-cli":
        own = [
            escape(one.parent.name) for one in home.glob("tmp/*/.project_root") if _names(one, folder)
        ] or own
    for project in own:
        yield from home.glob(AGENTS[agent].pattern.format_map({**named, "hashed": project}))


def _names(root: Path, folder: Path) -> bool:
    """Return whether a file holds the path of a folder."""
    with suppress(OSError, ValueError):
        return Path(root.read_text("utf-8").strip()).resolve() == folder
    return False


def _belongs(found: FoundTranscript, folder: Path) -> bool:
    """Return whether a session was begun in a folder, and by no other session."""
    for record in _beginning(found):
        if _is_sub_agent(record):
            return False
        if cwd := _cwd(record):
            return Path(cwd).resolve() == folder
    return not AGENTS[found.agent].must_say


def _beginning(found: FoundTranscript) -> Iterator[Row]:
    """Yield what may say where a session was begun: the file beside klaude-code's, then the first lines."""
    if found.agent == "klaude-code":
        yield Row(fields_of(read_sidecar(found.path.with_name("meta.json"))))
    with suppress(OSError), found.path.open("rb") as file:
        for _ in range(LINES):
            with suppress(ValueError):
                yield Row(fields_of(json.loads(file.readline(LONGEST))))


def _is_sub_agent(record: Row) -> bool:
    """Return whether a line of Codex's, or the file beside klaude-code's, says that a sub-agent has it."""
    payload = record.inner("payload")
    return (
        payload.get("thread_source") == "subagent"
        or payload.inner("source").get("subagent") is not None
        or bool(record.get("sub_agent_state"))
    )


def _cwd(record: Row) -> str:
    """Return the folder that a line names: Claude Code, pi and Codex; Copilot CLI; then klaude-code."""
    holders = (record, record.inner("payload"), record.inner("data", "context"))
    return next((cwd for cwd in (one.text("cwd") for one in holders) if cwd), record.text("work_dir"))
