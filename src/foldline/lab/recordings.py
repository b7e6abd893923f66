"""Recorded sessions as tests of an agent: the problems of each under a policy.

    assert check_session("recordings/login.jsonl", window=60_000) == []

`foldline check` and the plugin for pytest report the same problems.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from typing import Any, Final

import msgspec

from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.dialects import get
from foldline.lab.checks import ProblemKind
from foldline.lab.report import SessionReport
from foldline.lab.run import replay_file, replay_setup

_TEXTS: Final[dict[ProblemKind, str]] = {
    "invalid_view": "the view is invalid",
    "lost_rule": "a rule of the user is missing from the view",
    "window_exceeded": "the window is exceeded",
}


class SessionProblem(msgspec.Struct, frozen=True):
    """A problem of a session under a policy; `request` is the number of the first request with it, from 1.

    `kind` is invalid_view, lost_rule or window_exceeded; `text` is the validator's, the rule, or the size.
    """

    session: str
    policy: str
    request: int
    kind: ProblemKind
    text: str

    @property
    def told(self) -> str:
        """The problem as one line, without session and policy."""
        return f"request {self.request}: {_TEXTS[self.kind]}: {self.text}"

    def __str__(self) -> str:
        """Return the problem as one line, with session and policy."""
        return f"{self.session}: policy {self.policy}, {self.told}"


def check_session(
    path: str | PathLike[str],
    *,
    window: int | None = None,
    policy: str | Policy | None = None,
    model: str | None = None,
) -> list[SessionProblem]:
    """Replay a session file under a policy and return its problems; nothing is sent anywhere.

    `window` is in tokens. Defaults are those of the settings, then the policy `foldline` and the window of
    the file or its model. A request that fits after a fold is not a problem. Raises FormatError or InputError
    for a file that cannot be read, PolicyError for an unknown policy.
    """
    setup = replay_setup((settings().find_policy(policy),), window, model, checks=True)
    return list(problems_of(replay_file(fspath(path), setup)))


def problems_of(report: SessionReport) -> Iterator[SessionProblem]:
    """Yield the problems that a replay with checks found, policy by policy."""
    for policy in report.policies:
        for problem in policy.problems:
            yield SessionProblem(report.session, policy.policy, problem.request, problem.kind, problem.text)


def assert_view_valid(messages: Sequence[Any], dialect: str, *, system: Any = None) -> None:
    """Raise AssertionError with all documented rules of a dialect that messages break."""
    problems = get(dialect).validate(messages, system)
    lines = [f"message {problem.index}: {problem.text} ({problem.rule})" for problem in problems]
    if lines:
        raise AssertionError("\n".join([f"invalid for {dialect}:", *lines]))
