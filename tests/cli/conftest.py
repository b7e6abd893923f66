from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.calling import CommandResult, run_command


@pytest.fixture(autouse=True)
def away_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes the settings and the store of whoever runs it."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    for name in [
        *[name for name in os.environ if name.startswith("FOLDLINE_")],
        "FORCE_COLOR",
        "COLUMNS",
        "NO_COLOR",
    ]:
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def foldline(capsysbinary: pytest.CaptureFixture[bytes]) -> Callable[..., CommandResult]:
    """Run a command in this process: its exit code, what it printed, and its JSON."""
    return lambda *args: run_command(capsysbinary, *args)
