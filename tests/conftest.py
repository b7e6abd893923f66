from __future__ import annotations

import functools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpcore2
import pytest
from hypothesis import HealthCheck, settings
from tests.support.llama import llama
from tests.support.postgres import postgres_server, postgres_url
from tests.support.spans import spans

__all__ = ["llama", "postgres_server", "postgres_url", "spans"]

settings.register_profile(
    "check",
    derandomize=True,  # the same examples in every run; soak looks for new ones
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("quick", settings.get_profile("check"), max_examples=10)
settings.register_profile("soak", settings.get_profile("check"), derandomize=False, max_examples=3_000)
settings.load_profile(os.environ.get("FOLDLINE_HYPOTHESIS", "check"))

# an HTTP client loads the system certificates, which takes 60 ms: do it once for each worker
httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)

LONG_MARKS = {"corpus", "soak"}
USER_VARIABLES = (
    "FORCE_COLOR", "COLUMNS", "NO_COLOR",
    "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_SESSION_ID", "CODEX_HOME", "PI_CODING_AGENT_DIR", "COPILOT_HOME",
)  # fmt: skip
collect_ignore = ["adapters"]  # `make adapters` runs them where the frameworks are


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long runs out unless they are asked for by their marker; check that `make slow` finds its tests."""
    requested = set((config.getoption("-m") or "").split())
    marks = {item: {mark.name for mark in item.iter_markers()} for item in items}
    slow = {item.path for item in items if "slow" in marks[item] and not marks[item] & LONG_MARKS}
    if unmarked := [str(path) for path in slow if "mark.slow" not in path.read_text("utf-8")]:
        raise pytest.UsageError(
            f"`make slow` only runs files that contain mark.slow, and these do not: {unmarked}"
        )
    deselected = [item for item in items if marks[item] & (LONG_MARKS - requested)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not marks[item] & (LONG_MARKS - requested)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """After a failure print the seed of the random order, which `-q` omits at the start."""
    seed = terminalreporter.config.getoption("randomly_seed", None)
    if exitstatus and seed is not None:
        terminalreporter.write_line(f"to repeat this order: --randomly-seed={seed}")


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let Ctrl-C raise even if the shell started the tests in the background and ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def clean_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty home, work in the folder `here` beside it, and unset every variable that changes a command."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    for name in [name for name in os.environ if name.startswith("FOLDLINE_") or name in USER_VARIABLES]:
        monkeypatch.delenv(name)
    return home


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The folder of recorded sessions beside the checkout; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("FOLDLINE_CORPUS") or Path(__file__).parents[2] / "shared" / "data")
    if not (folder / "sessions").is_dir():
        pytest.skip("no recorded sessions beside the checkout (../shared/data, or FOLDLINE_CORPUS)")
    return folder
