"""A plugin for pytest: one test for each recorded session and policy.

    pytest --foldline-sessions recordings --foldline-window 60000 --foldline-policy foldline,pi

A test fails if a rule of the user is missing from a view, a view is invalid or the window is exceeded.
Without `--foldline-sessions` the plugin does nothing and imports no other module of Foldline.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MARK = "foldline"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("foldline", "recorded sessions of an agent")
    group.addoption(
        "--foldline-sessions",
        action="append",
        default=[],
        metavar="PATH",
        help="Test the recorded sessions of a file, a folder or a pattern; may be repeated.",
    )
    group.addoption(
        "--foldline-window",
        type=int,
        metavar="N",
        help="The context window in tokens (default: the settings', else the file's or its model's).",
    )
    group.addoption(
        "--foldline-policy",
        default="foldline",
        metavar="NAME,...",
        help="The policies, each tested with every session (default: foldline).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, so that `-m foldline` selects these tests."""
    config.addinivalue_line("markers", f"{MARK}: a recorded session under a policy, by --foldline-sessions")

    window = config.getoption("--foldline-window")
    if window is not None and window < 1:
        raise pytest.UsageError(f"--foldline-window {window}: give at least 1 token")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> RecordedSession | None:
    """Collect a session file that was passed to pytest, as in a test id: `pytest FILE::foldline`."""
    if file_path.suffix not in (".json", ".jsonl") or not parent.session.isinitpath(file_path):
        return None
    return RecordedSession.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add a test for each session and policy, before -k and -m select tests."""
    names = config.getoption("--foldline-sessions")
    if not names or any(isinstance(item, SessionTest) for item in items):  # session files passed to pytest
        return
    from foldline.errors import FoldlineError  # noqa: PLC0415  not without --foldline-sessions
    from foldline.lab.sources import session_files  # noqa: PLC0415

    try:
        files = dict.fromkeys(session_files(names))
    except FoldlineError as error:
        raise pytest.UsageError(f"--foldline-sessions {error}") from error
    for file in files:
        path = Path(file).absolute()
        recorded = RecordedSession.from_parent(session, path=path)  # pyright: ignore[reportUnknownMemberType]
        items.extend(session.genitems(recorded))


class RecordedSession(pytest.File):
    """A session file, with a test for each policy."""

    def collect(self) -> Iterator[SessionTest]:
        """Yield a test for each policy."""
        policies = str(self.config.getoption("--foldline-policy"))
        for name in policies.split(","):
            test: SessionTest = SessionTest.from_parent(self, name=name.strip())  # pyright: ignore[reportUnknownMemberType]
            test.add_marker(MARK)
            yield test


class SessionTest(pytest.Item):
    """A session under the policy with the test's name."""

    def runtest(self) -> None:
        """Replay the session; raises AssertionError with its problems."""
        from foldline.testing import check_session  # noqa: PLC0415  not without --foldline-sessions

        window = self.config.getoption("--foldline-window")
        problems = check_session(self.path, window=window, policy=self.name)
        if problems:
            raise AssertionError("\n".join(problem.told for problem in problems))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the problems, or the error of a file that could not be replayed, without a traceback."""
        from foldline.errors import FoldlineError  # noqa: PLC0415

        if isinstance(excinfo.value, AssertionError | FoldlineError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the file, and the heading of a failure."""
        return self.path, None, f"{self.parent.name if self.parent else ''} under {self.name}"
