from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.calling import CommandResult, coding_session, run_command, write_lines


@pytest.fixture(autouse=True)
def away_from_home(clean_home: Path) -> Path:
    """Keep the user's settings and store out of the tests."""
    return clean_home


@pytest.fixture
def foldline(capsysbinary: pytest.CaptureFixture[bytes]) -> Callable[..., CommandResult]:
    """Run a command in this process: its exit code, what it printed, and its JSON."""
    return lambda *args: run_command(capsysbinary, *args)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A coding session of three turns."""
    return write_lines(tmp_path / "session.jsonl", coding_session(3))
