"""The plugin in Claude Code itself: `make soak`, where npm reaches its registry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.running import COMMAND, environment
from tests.e2e.test_agents_run_by_users import Remembering
from tests.support.gateway_agents import DONE
from tests.support.real_tools import Workspace

from foldline.core.measure.window import Window
from foldline.testing import Scripted, serve_in_thread
from foldline.wrapping.claude_hooks import HEAD

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]
RULE = "Never push to main."
RECALL = "mcp__plugin_foldline_foldline__recall_search"
MODS, OLDER = "2.1.332", "2.1.197"  # with function hooks, and before they came
TOO_LONG = "prompt is too long"  # which has Claude Code compact


class Claude:
    """Claude Code with the plugin, in a home of its own."""

    def __init__(self, program, home, url, **settings):
        self.place = Workspace(program, home, url)
        self.home = home
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "any",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "false",
            **settings,
        }

    def run(self, *words):
        done = self.place.run(*words, **self._environment)
        assert done.code == 0, done.err[-2_000:] + done.out[-2_000:]
        return done.out

    def install(self):
        self.run("plugin", "marketplace", "add", str(ROOT))
        self.run("plugin", "install", "foldline@foldline")
        assert self.enabled == {"foldline@foldline": True}

    def say(self, text, *more):
        return self.run(*more, "-p", text, "--model", "claude-sonnet-4-5", "--allowedTools", f"Bash,{RECALL}")

    @property
    def enabled(self):
        """The plugins in its settings."""
        return json.loads((self.home / ".claude/settings.json").read_text()).get("enabledPlugins")

    @property
    def records(self):
        found = sorted((self.home / ".foldline/claude-code").glob("*.json"))
        return {path.stem: json.loads(path.read_text()) for path in found}


@pytest.fixture
def work():
    return Remembering()


@pytest.fixture
def model(work):
    return Scripted(work, window=Window(context=200_000, input=60_000, output=128_000), signatures="block")


def last(model):
    """The messages of the newest request that has tools, as text."""
    return json.dumps(next(one.messages for one in reversed(model.requests) if one.tools))


def test_claude_code_is_folded_past_its_window_and_by_hand_and_recalls(claude_code, tmp_path, work, model):
    with serve_in_thread(model) as url:
        claude = Claude(claude_code(MODS), tmp_path, url)
        claude.install()
        work.left = 32
        assert DONE in claude.say(f"Write the reports. {RULE}")
        (session, record), *others = claude.records.items()
        assert others == []
        assert record["folds"] >= 2
        assert record["saved"] > 40_000
        assert record["rules"] == 1
        assert "<foldline-checkpoint " in last(model)
        assert RULE in last(model)
        asked = len(model.requests)
        claude.say("/compact", "--continue")
        assert len(model.requests) == asked  # no model wrote a summary
        assert claude.records[session]["folds"] == record["folds"] + 1
        assert HEAD not in last(model)
        work.recalling = True
        assert "It is in the past." in claude.say("What did the first report say?", "--continue")
        assert last(model).count("<foldline-checkpoint ") == 1
        told = {"session_id": session, "model": {"display_name": "Sonnet"}}
        line = subprocess.run(
            [*COMMAND, "statusline"],
            input=json.dumps(told).encode(),
            env=environment(tmp_path),
            capture_output=True,
            check=True,
        ).stdout.decode()
        assert line.startswith(f"Sonnet · {record['folds'] + 1} folds saved ")
        assert line.endswith(" · 1 rule held\n")
        claude.run("plugin", "uninstall", "foldline@foldline")
        assert not claude.enabled
    refused = [one.refused for one in model.requests if one.refused]
    assert [one for one in refused if TOO_LONG not in one] == []
    assert len(refused) == record["folds"]


def test_without_function_hooks_the_rules_are_put_back_behind_the_built_in_compaction(
    claude_code, tmp_path, work, model
):
    with serve_in_thread(model) as url:
        claude = Claude(claude_code(OLDER), tmp_path, url)
        claude.install()
        work.left = 6
        claude.say(f"Write the reports. {RULE}")
        claude.say("/compact", "--continue")
        claude.say("Go on.", "--continue")
        assert HEAD in last(model)
        assert f"- {RULE}" in last(model)
        assert "<foldline-checkpoint " not in last(model)
    assert [record["folds"] for record in claude.records.values()] == [0]


def test_without_foldline_claude_code_compacts_by_itself(claude_code, tmp_path, work, model):
    with serve_in_thread(model) as url:
        claude = Claude(claude_code(MODS), tmp_path, url, PATH=os.environ["PATH"])
        if "foldline" in claude.place.run("--version", PATH=os.environ["PATH"]).out:
            pytest.skip("foldline is on the path")
        claude.install()
        work.left = 6
        claude.say("Write the reports.")
        asked = len(model.requests)
        claude.say("/compact", "--continue")
        assert len(model.requests) > asked
        claude.say("Go on.", "--continue")
    assert claude.records == {}
