"""The list that `make run` installs is a part of the one that the tests need, in the same versions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pins(name):
    """The lines of a lock, with what platform or Python they are for."""
    return set((ROOT / name).read_text(encoding="utf-8").splitlines())


def test_what_running_needs_is_what_the_tests_run():
    assert pins("requirements-run.lock") < pins("requirements.lock")


def test_running_needs_the_dependencies_and_the_build_backend():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["run"]]
    pinned = {line.partition("==")[0] for line in pins("requirements-run.lock")}
    assert {re.split(r"[<>=\[]", each)[0] for each in wanted} <= pinned
