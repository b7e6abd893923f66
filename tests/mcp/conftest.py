from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home and a folder to work in; no test sees those of whoever runs it."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    moved = (
        "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_SESSION_ID", "CODEX_HOME", "PI_CODING_AGENT_DIR", "COPILOT_HOME",
    )  # fmt: skip
    for name in [name for name in os.environ if name.startswith("FOLDLINE_") or name in moved]:
        monkeypatch.delenv(name)
    return home


@pytest.fixture
def here(tmp_path):
    return tmp_path / "here"
