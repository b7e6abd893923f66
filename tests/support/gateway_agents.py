"""Agents of others, pointed at a gateway by their base URL alone, and the work that a model gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from tests.support.real_tools import Run, Workspace

from foldline.testing import Answer, Asked, call

DONE = "The report is written."
SHELLS = ("exec_command", "Bash", "bash", "terminal")  # what the agents call their shell
LINES = 150  # of a report: 2,400 tokens
PLAN = "I write the next of the reports, and look at each of its lines. " * 30  # no prune takes it away
HEADINGS = (
    "Goal", "Constraints & Preferences", "Progress", "Key Decisions", "Next Steps", "Critical Context",
    "Turn in Progress",
)  # fmt: skip
SUMMARY = "\n\n".join(f"## {heading}\nThe report is written step by step." for heading in HEADINGS)


class ReportModel:
    """A model that has a report written, one shell command a request, then says that it is done.

    `left` commands are still to be given. Of the requests, those without a shell are for titles and summaries.
    """

    def __init__(self) -> None:
        self.left = 0
        self.reports = 0
        self.summaries = 0

    def __call__(self, asked: Asked) -> Answer:
        thinking = "I have thought about it." if asked.thinking else None
        if "## Goal" in json.dumps(asked.messages[-1]):
            self.summaries += 1
            return Answer(text=SUMMARY)
        shell = next((name for name in map(_name, asked.tools or ()) if name in SHELLS), None)
        if shell is None:
            return Answer(text="A report")
        if self.left == 0:
            last = self._last_word(asked, shell)
            return msgspec.structs.replace(last, thinking=thinking)
        self.left -= 1
        self.reports += 1
        command = f"seq -f '{report(self.reports)} %g is as it should be' {LINES}"
        return msgspec.structs.replace(self._call(shell, command), text=PLAN, thinking=thinking)

    def _last_word(self, asked: Asked, shell: str) -> Answer:
        if "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" in json.dumps(asked.messages[:2]):  # mini-swe-agent
            return self._call(shell, f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo {DONE}")
        return Answer(text=DONE)

    def _call(self, shell: str, command: str) -> Answer:
        if shell == "exec_command":
            return call(shell, cmd=command)
        if shell == "terminal":
            return call(shell, command=command)
        return call(shell, command=command, description="Write the report")


def report(number: int) -> str:
    """How each line of a report begins."""
    return f"Report {number:03d}, line"


def _name(tool: Any) -> str:
    return str((tool.get("function") or tool).get("name"))


# ---- agents: each says `text` in a process of its own; `again` goes on with its last session


def codex(place: Workspace, text: str, *, again: bool, more: str = "model_context_window = 1000000") -> Run:
    settings = f"""
        model = "gpt-5.4"
        openai_base_url = "{place.url}/v1"
        {more}
    """
    place.write(".codex/config.toml", settings)
    words = ["exec", *(["resume", "--last"] if again else []), "--skip-git-repo-check"]
    free = "--dangerously-bypass-approvals-and-sandbox"
    return place.run(*words, free, text, OPENAI_API_KEY="any", CODEX_API_KEY="any")


def codex_that_compacts(place: Workspace, text: str, *, again: bool) -> Run:
    """It asks its server for a compaction item, at 25,000 tokens."""
    return codex(place, text, again=again, more="model_auto_compact_token_limit = 25000")


def claude_code(place: Workspace, text: str, *, again: bool) -> Run:
    words = [*(["--continue"] if again else []), "-p", text]
    return place.run(
        *words, "--model", "claude-sonnet-4-5", "--allowedTools", "Bash",
        ANTHROPIC_BASE_URL=place.url, ANTHROPIC_API_KEY="any", DISABLE_AUTO_COMPACT="1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1",
    )  # fmt: skip


def opencode(place: Workspace, text: str, *, again: bool) -> Run:
    foldline = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": "any"},
        "models": {"m": {"limit": {"context": 1_000_000, "output": 4_000}}},
    }
    settings = {"provider": {"foldline": foldline}, "model": "foldline/m", "small_model": "foldline/m",
                "compaction": {"auto": False, "prune": False}, "autoupdate": False, "share": "disabled"}  # fmt: skip
    place.write(".config/opencode/opencode.json", json.dumps(settings))
    words = ["run", *(["--continue"] if again else []), text]
    return place.run(*words, OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1")


def pi(place: Workspace, text: str, *, again: bool) -> Run:
    model = {"id": "m", "contextWindow": 1_000_000, "maxTokens": 4_000}
    foldline = {
        "baseUrl": f"{place.url}/v1",
        "api": "openai-completions",
        "apiKey": "any",
        "models": [model],
    }
    place.write(".pi/agent/models.json", json.dumps({"providers": {"foldline": foldline}}))
    place.write(".pi/agent/settings.json", json.dumps({"compaction": {"enabled": False}}))
    words = ["--provider", "foldline", "--model", "m", *(["--continue"] if again else []), "-p", text]
    return place.run(*words, PI_OFFLINE="1")


def mini(place: Workspace, text: str, *, again: bool) -> Run:
    """It keeps no sessions: `again` is another task."""
    del again
    settings = ["mini.yaml", f"model.model_kwargs.api_base={place.url}/v1", "agent.cost_limit=0"]
    chosen = [word for one in settings for word in ("-c", one)]
    return place.run(
        *("-y", "--exit-immediately", "-m", "openai/scripted", *chosen, "-t", text),
        OPENAI_API_KEY="any", MSWEA_CONFIGURED="true", MSWEA_COST_TRACKING="ignore_errors",
        MSWEA_GLOBAL_CONFIG_DIR=str(place.home / "mini"),
    )  # fmt: skip


class RunAgent(Protocol):
    """Has an agent say a text."""

    def __call__(self, place: Workspace, text: str, *, again: bool) -> Run:
        """Run it to its end."""
        ...


@dataclass(frozen=True)
class Agent:
    """An agent, the gateway's window for it, and how many commands it is given each time.

    `overflows`: its replies may be so long that the model refuses a request before anything is to be folded.
    """

    say: RunAgent
    window: int
    commands: int
    overflows: bool = False


AGENTS: Mapping[str, Agent] = {
    "codex": Agent(codex, 30_000, 14),
    "claude-code": Agent(claude_code, 60_000, 16, overflows=True),
    "opencode": Agent(opencode, 30_000, 14),
    "pi": Agent(pi, 20_000, 14),
}
