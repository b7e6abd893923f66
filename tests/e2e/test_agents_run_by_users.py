"""`slim` and `wrap` with the agents themselves: `make soak`, where npm reaches its registry.

With `FOLDLINE_RECORDINGS=FOLDER` what a user types and sees while an agent is wrapped is written there, as text.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from itertools import groupby
from pathlib import Path

import msgspec
import pytest
from tests.e2e.running import COMMAND, environment
from tests.exports.moving import export, load
from tests.support.gateway_agents import DONE, SHELLS, ReportModel, report
from tests.support.gateway_process import GatewayProcess
from tests.support.real_tools import ANSWER, PROMPT, TOOLS, Workspace, provider

from foldline.core.cut.notes import MARK
from foldline.core.measure.window import Window
from foldline.exports import ExportResult
from foldline.testing import Answer, Scripted, call, serve_in_thread

pytestmark = pytest.mark.soak

EXAMPLE = Path(__file__).parents[2] / "examples/session.jsonl"
TARGET = 9_000
LINES, WIDTH = 36, 160  # of what a recording shows of an answer
NO_ROOM = "input length and `max_tokens` exceed context limit"
HERMES = """# mine
model:
  provider: anthropic  # my key is in the environment
  default: claude-sonnet-4-5

display:
  streaming: true  # as it comes
"""
PROGRAMS = {"claude-code": "claude", "codex": "codex", "hermes": "hermes", "opencode": "opencode", "pi": "pi"}


def document(place, *args):
    """Run a command of Foldline in the agent's project; return its JSON."""
    done = subprocess.run(
        [*COMMAND, *(str(arg) for arg in args), "--json"],
        cwd=place.project,
        env=environment(place.home),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_an_agent_resumes_what_slim_made_of_its_session(tool, tools, tmp_path):
    model = provider()
    with serve_in_thread(model) as url:
        place = Workspace(tools / "node_modules" / ".bin" / TOOLS[tool].program, tmp_path, url)
        raw, told = export(load(EXAMPLE.read_bytes()), TOOLS[tool].form, cwd=str(place.project))
        original = place.put(told, raw)
        source = [original] if tool == "opencode" else [PROGRAMS[tool]]
        slim = document(place, "slim", *source, "--target", TARGET)
        written = place.project / slim["file"]
        made = ExportResult(slim["session"], 0, place=str(written), command=slim["command"])
        done = TOOLS[tool].resume(place, made, written.read_bytes())
    assert ANSWER in done.out, done.err[-2_000:]
    assert [one.refused for one in model.requests if one.refused] == []
    asked = max(model.requests, key=lambda one: len(one.messages))
    assert PROMPT in json.dumps(asked.messages[-3:])
    assert "foldline-checkpoint" in json.dumps(asked.messages)
    assert len(json.dumps(asked.messages)) < len(raw) // 3
    assert original.read_bytes() == raw


# ---- wrapped


class Recording:
    """What a user types, and what is printed: `~` is the home, and the gateway is at its usual port."""

    def __init__(self, place, gateway):
        self._place = place
        self._gateway = gateway
        self._lines = []

    def say(self, *words):
        """Run a command of Foldline; return what it printed."""
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=self._place.project,
            env=environment(self._place.home, COLUMNS="100"),
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        self.saw(f"foldline {shlex.join(words)}", done.stderr + done.stdout)
        return done.stdout

    def git(self, *words):
        """Run git over the settings; its repository is elsewhere, so that no agent finds it."""
        home = self._place.home
        places = [f"--git-dir={home.parent / 'settings.git'}", f"--work-tree={home}"]
        done = subprocess.run(
            ["git", *places, "-c", "user.name=me", "-c", "user.email=me@localhost", *words],
            cwd=home,
            capture_output=True,
            check=True,
            text=True,
        )
        self.saw(f"git {shlex.join(words)}", done.stdout)
        return done.stdout

    def saw(self, command, printed):
        lines = [line for line, _ in groupby(line.rstrip() for line in printed.strip().splitlines())]
        if len(lines) > LINES:
            lines = [*lines[: LINES // 2], "…", *lines[-LINES // 2 :]]
        cut = (line if len(line) <= WIDTH else f"{line[:WIDTH]}…" for line in lines)
        self._lines.append("\n".join((f"$ {command}", *cut)))

    def save(self, tool):
        if folder := os.environ.get("FOLDLINE_RECORDINGS"):
            text = "\n\n".join(self._lines).replace(self._gateway, "http://127.0.0.1:8400")
            text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.replace(str(self._place.home), "~"))
            text = re.sub(r"-tmp-[\w-]*home-project", "-home-me-project", text)
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / f"{tool}.txt").write_text(text + "\n")


def names_of(tool):
    """The names of a tool, or of those in a namespace of Codex."""
    known = str((tool.get("function") or tool).get("name"))
    return [known, *(f"{known}__{one['name']}" for one in tool.get("tools") or ())]


class Remembering(ReportModel):
    """It writes reports, and recalls the first of them when it is asked for it."""

    def __init__(self):
        super().__init__()
        self.recalling = False
        self.recalled = 0

    def __call__(self, asked):
        names = [name for tool in asked.tools or () for name in names_of(tool)]
        tool = next((name for name in names if name.endswith("recall_search")), None)
        last = json.dumps(asked.messages[-1])
        if not self.recalling or not any(name in SHELLS for name in names):
            return super().__call__(asked)
        if MARK in last or self.recalled > 3:
            return Answer(text=f"{DONE} It is in {'the past' if report(1) in last else 'nothing'}.")
        if tool is not None:
            self.recalled += 1
            made = call(tool, query=f"{report(1)} 7")
        elif "WaitForMcpServers" in names:
            made = call("WaitForMcpServers")
        else:  # agents begin before their servers have started
            made = self._call(next(name for name in names if name in SHELLS), "sleep 5")
        return thoughtful(made, asked)


def thoughtful(answer, asked):
    return msgspec.structs.replace(answer, thinking="I have thought about it." if asked.thinking else None)


def claude(place, text, *, again):
    words = [*(["--continue"] if again else []), "-p", text, "--model", "claude-sonnet-4-5"]
    tools = "Bash,mcp__foldline__recall_search"
    return place.run(
        *words, "--allowedTools", tools, ANTHROPIC_API_KEY="any",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1", ENABLE_TOOL_SEARCH="false",
    )  # fmt: skip


def codex(place, text, *, again):
    words = ["exec", *(["resume", "--last"] if again else []), "--skip-git-repo-check"]
    free = "--dangerously-bypass-approvals-and-sandbox"
    return place.run(*words, free, "--model", "gpt-5.4", text, OPENAI_API_KEY="any", CODEX_API_KEY="any")


def opencode(place, text, *, again):
    words = ["run", *(["--continue"] if again else []), "--model", "anthropic/claude-sonnet-4-5", text]
    quiet = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return place.run(*words, ANTHROPIC_API_KEY="any", **quiet)


def pi(place, text, *, again):
    words = ["--provider", "anthropic", "--model", "claude-sonnet-4-5", *(["--continue"] if again else [])]
    return place.run(*words, "-p", text, ANTHROPIC_API_KEY="any", PI_OFFLINE="1")


def hermes(place, text, *, again):
    words = ["chat", "--quiet", "--yolo", *(["--continue"] if again else []), "--query", text]
    return place.run(*words, ANTHROPIC_API_KEY="any")


SAYS = {"claude-code": claude, "codex": codex, "hermes": hermes, "opencode": opencode, "pi": pi}


@pytest.fixture
def program(tool, request):
    """The program of a tool."""
    if tool == "hermes":
        return request.getfixturevalue("hermes_program")
    return request.getfixturevalue("tools") / "node_modules" / ".bin" / TOOLS[tool].program


@pytest.mark.parametrize("tool", sorted(SAYS))
def test_a_wrapped_agent_works_past_its_window_recalls_and_is_unwrapped(tool, program, tmp_path):
    work, window = Remembering(), 30_000 if tool == "codex" else 60_000
    model = Scripted(work, window=Window(context=window, output=128_000), signatures="block")
    home, name = tmp_path / "home", PROGRAMS[tool]
    with serve_in_thread(model) as url:
        gateway = GatewayProcess(home, url, window=window, summaries="offline")
        place = Workspace(program, home, gateway.url)
        record = Recording(place, gateway.url)
        kept = settings_of(home, tool)
        place.write(".foldline/settings.toml", f'store = "{gateway.store}"\n')  # the MCP server reads it, too
        record.git("init", "--quiet")
        record.git("add", *kept)
        record.git("commit", "--quiet", "-m", "my settings")
        gateway.start()
        try:
            record.say("wrap", name, "--gateway", gateway.url)
            work.left = 32
            asked = "Write the reports. Never push to main."
            first = SAYS[tool](place, asked, again=False)
            record.saw(f"{name} … {asked!r}", first.out)
            assert first.code == 0, first.err[-2_000:]
            assert DONE in first.out + first.err
            if tool != "pi":  # it has no MCP
                work.recalling = True
                asked = "What did the first report say?"
                second = SAYS[tool](place, asked, again=True)
                record.saw(f"{name} … {asked!r}   # with its last session", second.out)
                assert "It is in the past." in second.out + second.err
            record.say("doctor", "--gateway", gateway.url)
            state = document(place, "doctor", "--gateway", gateway.url)["agents"][name]
            assert (state["gateway"], state["mcp"]) == (gateway.url, tool != "pi")
        finally:
            gateway.stop()
    stored = ["--store", gateway.store]
    longest = max(document(place, "sessions", *stored), key=lambda one: one["messages"])
    assert document(place, "show", longest["id"], "--receipts", *stored) != []  # it was folded or pruned
    record.say("show", longest["id"], "--receipts", *stored)
    refused = [one.refused for one in model.requests if one.refused]
    assert [one for one in refused if NO_ROOM not in one] == []  # the gateway lowers what a reply may take
    record.say("unwrap", name)
    assert record.git("diff") == ""
    record.save(tool)
    left = [one for one in home.rglob("*") if "foldline" in one.name and one.suffix != ".db"]
    assert [one for one in left if ".cache" not in one.parts and one.name != ".foldline"] == []


def settings_of(home, tool):
    """Write settings of the user's own, which are to come back to the byte; those that no agent rewrites."""
    own = {
        "claude-code": {".claude/settings.json": '{"cleanupPeriodDays": 90}\n'},
        "codex": {".codex/config.toml": "# mine\nhide_agent_reasoning = true  # quiet\n"},
        "hermes": {".hermes/config.yaml": HERMES},
        # OpenCode adds the schema where a file lacks it
        "opencode": {".config/opencode/opencode.json": '{"$schema": "https://opencode.ai/config.json", "share": "disabled"}\n'},
        "pi": {".pi/agent/models.json": '{"providers": {}}'},
    }[tool]  # fmt: skip
    for name, text in own.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    return list(own)
