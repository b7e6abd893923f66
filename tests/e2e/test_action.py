"""The GitHub Action: its steps in bash, as a runner would run them, on the wheel of this checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.support.recordings import GOOD, TOO_FEW, with_rules
from tests.support.wheel import ROOT

import foldline

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXAMPLE = re.search(
    r"^```yaml\n(.*?)^```",
    (ROOT / "docs" / "testing-agents.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture
def action(wheel, tmp_path):
    """Run the steps with inputs; returns the last step that ran. `pip` finds the wheel, and nothing is downloaded."""
    inputs = {name: about.get("default") for name, about in ACTION["inputs"].items()}

    def run(**given: str) -> subprocess.CompletedProcess[str]:
        values = {f"inputs.{name}": value for name, value in {**inputs, **given}.items()}
        values |= {"steps.python.outputs.python-path": sys.executable, "github.action_path": str(wheel)}
        runner = {"RUNNER_TEMP": str(tmp_path / "temp"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        pip = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_FIND_LINKS": str(wheel.parent)}
        for step in ACTION["runs"]["steps"][1:]:
            env = {name: filled(value, values) for name, value in step["env"].items()}
            # how a runner calls bash: https://docs.github.com/actions/reference/workflow-syntax#jobsjob_idstepsshell
            words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                words, env={**runner, **pip, **env}, cwd=tmp_path, capture_output=True, text=True, check=False
            )
            if done.returncode:
                break
        return done

    return run


def filled(text: str, values: dict[str, str]) -> str:
    """Put values in place of the expressions in a text."""
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values[found[1]], text)


def test_the_steps_take_what_a_caller_gives_by_their_environment_alone():
    assert ACTION["runs"]["using"] == "composite"
    assert [name for name, about in ACTION["inputs"].items() if about.get("required")] == ["sessions"]
    python, *steps = ACTION["runs"]["steps"]
    assert python["uses"].startswith("actions/setup-python@")
    assert all("${{" not in step["run"] and step["shell"] == "bash" for step in steps)
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(ACTION["inputs"])


def test_the_example_gives_inputs_that_there_are():
    assert EXAMPLE is not None
    (job,) = yaml.safe_load(EXAMPLE[1])["jobs"].values()
    (step,) = [step for step in job["steps"] if "with" in step]
    assert {"sessions"} <= set(step["with"]) <= set(ACTION["inputs"])


@pytest.mark.slow
def test_sessions_that_go_well(action, tmp_path):
    (tmp_path / "click.py").write_text("raise SystemExit('this is no module of ours')")
    folder = tmp_path / "my recordings"
    folder.mkdir()
    shutil.copy(GOOD, folder / "good.jsonl")
    done = action(sessions="my recordings\n\nmy rec*/*.jsonl\n", window="20000", policy="foldline,codex")
    assert (done.returncode, done.stdout) == (0, "2 sessions, 0 failed, under foldline, codex\n")
    assert (Path(tmp_path) / "temp" / "foldline" / "foldline" / "example.jsonl").is_file()


@pytest.mark.slow
def test_a_lost_rule_fails_the_job(action, tmp_path):
    with_rules(tmp_path / "rules.jsonl")
    done = action(sessions="rules.jsonl", window=str(TOO_FEW), version=foldline.__version__)
    assert done.returncode == 1
    assert (
        "rules.jsonl: policy foldline, request 12: a rule of the user is missing from the view: Never"
        in done.stdout
    )


@pytest.mark.slow
def test_a_version_that_is_not_there_fails_before_any_session(action):
    done = action(sessions="rules.jsonl", version="0.0.9")
    assert done.returncode == 1
    assert "foldline==0.0.9" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("sessions", ["", "\n", "nothing/*.jsonl"])
def test_no_session_is_a_mistake(action, sessions):
    assert action(sessions=sessions).returncode == 2
