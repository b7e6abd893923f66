"""What is made once for the tests that run it: the wheel, and other tools themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.real_tools import SDKS, TOOLS
from tests.support.wheel import build_wheel


def run(*command: object) -> None:
    """Run an installer; skip the tests where it cannot."""
    done = subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, timeout=1_200, check=False
    )
    if done.returncode:
        pytest.skip(f"{command[0]} could not install the tools: {done.stderr.strip()[-200:]}")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tools of npm; `FOLDLINE_TOOLS` names one whose node_modules hold them already."""
    ready = os.environ.get("FOLDLINE_TOOLS")
    if ready:
        return Path(ready)
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm: install Node.js with npm")
    folder = tmp_path_factory.mktemp("tools")
    packages = [*(tool.package for tool in TOOLS.values()), *SDKS]
    run(npm, "install", "--no-fund", "--no-audit", "--prefix", folder, *packages)
    return folder


@pytest.fixture(scope="session")
def claude_code(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The program of a version of Claude Code, installed when it is asked for.

    `FOLDLINE_CLAUDE_CODE` names a folder which has them in folders named after the versions.
    """
    folder = Path(os.environ.get("FOLDLINE_CLAUDE_CODE") or tmp_path_factory.mktemp("claude"))

    def program(version: str) -> Path:
        found = folder / version / "node_modules/.bin/claude"
        if not found.exists():
            package = f"@anthropic-ai/claude-code@{version}"
            run(
                shutil.which("npm") or pytest.skip("no npm"), "install", "--prefix", folder / version, package
            )
        return found

    return program


@pytest.fixture(scope="session")
def mini_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of mini-swe-agent; `FOLDLINE_MINI` names one that is installed already."""
    ready = os.environ.get("FOLDLINE_MINI")
    if ready:
        return Path(ready)
    folder = tmp_path_factory.mktemp("mini")
    run(sys.executable, "-m", "venv", folder)
    # litellm 1.106 imports mcp, which it does not install
    run(folder / "bin" / "pip", "install", "-q", "mini-swe-agent", "litellm==1.83.0")
    return folder / "bin" / "mini"


@pytest.fixture(scope="session")
def hermes_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of Hermes; `FOLDLINE_HERMES` names one that is installed already."""
    ready = os.environ.get("FOLDLINE_HERMES")
    if ready:
        return Path(ready)
    folder = tmp_path_factory.mktemp("hermes")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "pip", "install", "-q", "hermes-agent[anthropic,mcp]==0.19.0")
    return folder / "bin" / "hermes"
