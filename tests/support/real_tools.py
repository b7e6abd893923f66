"""Other tools themselves: each opens an export and asks a model on this machine what to do next."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foldline.exports import ExportResult
from foldline.testing import Scripted
from foldline.testing.signatures import Signer

PROMPT = "Go on with the next step, please."
ANSWER = "The next step is done."
LIMIT = 240  # seconds for one resume


class AcceptingSigner(Signer):
    """A signer that takes every signature: those of recorded sessions are the real providers' own."""

    def bad(self, system: Any, messages: Any) -> list[tuple[int, int]]:
        return []

    def sealed(self, value: str) -> bool:
        return True


def provider() -> Scripted:
    """A provider as strict as the real ones, with room for every session."""
    model = Scripted(lambda _: ANSWER, window=10_000_000)
    model._signer = AcceptingSigner()  # pyright: ignore[reportPrivateUsage]
    return model


@dataclass(frozen=True)
class Run:
    """How a tool ended: its exit code and what it said."""

    code: int
    out: str
    err: str


class Workspace:
    """A home, a project folder and the tool's program, for one resume."""

    def __init__(self, program: Path, home: Path, url: str) -> None:
        self.program, self.home, self.url = program, home, url
        self.project = home / "project"
        self.project.mkdir(parents=True, exist_ok=True)

    def put(self, told: ExportResult, raw: bytes) -> Path:
        """Write the export where the tool looks for it."""
        assert told.place is not None
        path = Path(told.place.replace("~", str(self.home), 1))
        path = path if path.is_absolute() else self.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
        return path

    def write(self, name: str, text: str) -> None:
        """Write a file of settings under the home."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *arguments: str, **environment: str) -> Run:
        """Run the tool in the project; it sees nothing of this machine's settings."""
        known = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TERM": "dumb", "NO_COLOR": "1"}
        done = subprocess.run(
            [str(self.program), *arguments],
            cwd=self.project,
            env={**known, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)


def resume_codex(place: Workspace, told: ExportResult, raw: bytes) -> Run:
    """`codex exec resume ID`."""
    place.put(told, raw)
    settings = f"""
        model = "gpt-5.4"
        model_provider = "local"
        [model_providers.local]
        name = "local"
        base_url = "{place.url}/v1"
        env_key = "LOCAL_KEY"
        wire_api = "responses"
        request_max_retries = 0
        stream_max_retries = 0
    """
    place.write(".codex/config.toml", settings)
    return place.run("exec", "resume", "--skip-git-repo-check", told.session, PROMPT, LOCAL_KEY="any")


def resume_claude_code(place: Workspace, told: ExportResult, raw: bytes) -> Run:
    """`claude --resume ID -p`."""
    place.put(told, raw)
    return place.run(
        "--resume", told.session, "-p", PROMPT, "--output-format", "json", "--model", "claude-sonnet-4-5[1m]",
        ANTHROPIC_BASE_URL=place.url, ANTHROPIC_API_KEY="any", DISABLE_TELEMETRY="1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1", DISABLE_COMPACT="1",
    )  # fmt: skip


def resume_opencode(place: Workspace, told: ExportResult, raw: bytes) -> Run:
    """`opencode import FILE`, then `opencode run --session ID`."""
    path = place.put(told, raw)
    model = {"name": "m", "limit": {"context": 9_000_000, "output": 32_000}}
    local = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "local",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": "any"},
        "models": {"m": model},
    }
    settings = {"provider": {"local": local}, "model": "local/m", "small_model": "local/m", "autoupdate": False,
                "share": "disabled", "compaction": {"auto": False, "prune": False}}  # fmt: skip
    place.write(".config/opencode/opencode.json", json.dumps(settings))
    quiet = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    imported = place.run("import", str(path), **quiet)
    if imported.code:
        return imported
    session = shlex.split(told.command or "")[-1]
    done = place.run("run", "--session", session, "--model", "local/m", PROMPT, **quiet)
    return Run(done.code, imported.out + done.out, imported.err + done.err)


def resume_pi(place: Workspace, told: ExportResult, raw: bytes) -> Run:
    """`pi --session FILE -p`."""
    path = place.put(told, raw)
    model = {
        "id": "m",
        "name": "m",
        "contextWindow": 9_000_000,
        "maxTokens": 32_000,
        "input": ["text", "image"],
    }
    local = {"baseUrl": place.url, "api": "anthropic-messages", "apiKey": "any", "models": [model]}
    place.write(".pi/agent/models.json", json.dumps({"providers": {"local": local}}))
    return place.run(
        "--session", str(path), "--provider", "local", "--model", "m", "-p", PROMPT, PI_OFFLINE="1"
    )


@dataclass(frozen=True)
class Tool:
    """A tool: its package, its program, the form of its files, and how it goes on with one."""

    package: str
    program: str
    form: str
    resume: Callable[[Workspace, ExportResult, bytes], Run]


TOOLS: Mapping[str, Tool] = {
    "codex": Tool("@openai/codex", "codex", "codex", resume_codex),
    "opencode": Tool("opencode-ai", "opencode", "opencode", resume_opencode),
    "claude-code": Tool("@anthropic-ai/claude-code", "claude", "claude-code", resume_claude_code),
    "pi": Tool("@mariozechner/pi-coding-agent", "pi", "pi", resume_pi),
}
SDKS = ("openai", "@anthropic-ai/sdk")  # of npm
