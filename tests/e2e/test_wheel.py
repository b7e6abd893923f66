"""The wheel, as `pipx install foldline` or `uvx foldline` would run it: nothing but what it depends on."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest
from tests.support.wheel import ROOT, make_environment

pytestmark = pytest.mark.slow
SESSION = ROOT / "examples" / "session.jsonl"


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    return make_environment(tmp_path_factory.mktemp("alone") / "venv", wheel)


def run(programs: Path, home: Path, *args: object, **more: str) -> subprocess.CompletedProcess[str]:
    words = [str(programs / "foldline"), *map(str, args)]
    env = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", **more}
    return subprocess.run(words, env=env, cwd=home, capture_output=True, text=True, check=False)


def test_a_wheel_holds_the_package_and_nothing_else(wheel):
    package = ROOT / "src" / "foldline"
    ours = {f"foldline/{file.relative_to(package)}" for file in package.rglob("*") if file.is_file()}
    ours = {name for name in ours if "__pycache__" not in name}
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    assert names == ours
    assert {
        "foldline/py.typed",
        "foldline/example.jsonl",
        "foldline/service/web/static/page.js",
        "foldline/service/web/templates/session.html",
        "foldline/stores/sql/sqlite/0001_log.sql",
    } < names


def test_the_dependencies_alone_are_enough(programs, tmp_path):
    helped = run(programs, tmp_path, "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "Fit a session file into a token budget." in helped.stdout

    looked = run(programs, tmp_path, "inspect", SESSION, "--json")
    assert (looked.returncode, looked.stderr) == (0, "")
    assert json.loads(looked.stdout)["messages"] > 100

    folded = run(programs, tmp_path, "compact", SESSION, "--target", 9000, "-o", "folded.jsonl")
    assert folded.returncode == 0
    lines = (tmp_path / "folded.jsonl").read_text(encoding="utf-8").splitlines()
    assert [type(json.loads(line)) for line in lines] == [dict] * len(lines)

    shown = run(programs, tmp_path, "demo")
    assert (shown.returncode, shown.stderr) == (0, "")


def test_a_store_is_made_in_an_empty_home(programs, tmp_path):
    assert run(programs, tmp_path, "import", SESSION, "--id", "first").returncode == 0
    assert "first" in run(programs, tmp_path, "sessions").stdout
    assert (tmp_path / ".foldline" / "foldline.db").is_file()


@pytest.mark.parametrize(
    ("args", "extra"),
    [
        (["serve", "--demo"], "serve"),
        (["mcp", SESSION], "mcp"),
        (["sessions", "--store", "postgresql://db/x"], "postgres"),
    ],
)
def test_a_command_that_needs_an_extra_names_it(programs, tmp_path, args, extra):
    told = run(programs, tmp_path, *args)
    assert told.returncode == 2
    assert f"pip install 'foldline[{extra}]'" in told.stderr
    assert "Traceback" not in told.stderr


def test_pytest_finds_the_plugin_by_itself(wheel, tmp_path):
    programs = make_environment(tmp_path / "venv", wheel, "pytest")
    words = [str(programs / "python"), "-m", "pytest", "-q", "-W", "error", f"--foldline-sessions={SESSION}"]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
