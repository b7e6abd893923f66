"""Checks of a replay's views: validity, the user's rules, the size.

Between two boundaries a view only grows. So it is enough to check validity and rules before and after each
boundary and at the end; the size is checked before every request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from foldline.core.compact.receipt import standing_in
from foldline.core.lab.replay import Replay
from foldline.core.ledger.facts.constraints import ConstraintHistory
from foldline.core.ledger.facts.kinds import ConstraintFact
from foldline.core.log.entries import Said
from foldline.core.secrets.entries import clean_message
from foldline.core.view_items import MessageItem, native_items
from foldline.dialects import get

ProblemKind = Literal["invalid_view", "lost_rule", "window_exceeded"]


class ViewProblem(msgspec.Struct, frozen=True):
    """A problem of a view, with the number (from 1) of the first request with it."""

    request: int
    kind: ProblemKind
    text: str


class StandingRules:
    """The user's rules in force after each message of a recording; without secrets."""

    def __init__(self) -> None:
        self._history = ConstraintHistory()

    def read(self, entry: Said) -> None:
        """Read the next message."""
        if entry.message.role == "user":
            entry = msgspec.structs.replace(entry, message=clean_message(entry.message, {}))
        self._history.read([entry])

    @property
    def in_force(self) -> Sequence[ConstraintFact]:
        """The rules in force."""
        return self._history.standing


class ViewChecks:
    """Checks of the views of one replay; without the `rules` of its recording only of their validity.

    `invalid` counts invalid views; `problems` has each problem once.
    """

    def __init__(self, dialect: str, rules: StandingRules | None = None) -> None:
        self.invalid = 0
        self.problems: list[ViewProblem] = []
        self._codec = get(dialect)
        self._rules = rules
        self._boundaries: tuple[str, ...] = ()  # of the view whose rules were checked last
        self._reported: set[str] = set()
        self._exceeded = False

    def check_validity(self, replay: Replay) -> None:
        """Check the view with the strict validator of the dialect."""
        view = replay.state.view()
        if not view:
            return
        rendered = self._codec.render(native_items(view), whole=True)
        problems = self._codec.validate(rendered.messages, rendered.system)
        self.invalid += bool(problems)
        for problem in problems[:1]:
            place = f"message {problem.index}: " if problem.index >= 0 else ""
            self._report(replay, "invalid_view", f"{problem.text} ({problem.rule})", place)

    def check_request(self, replay: Replay) -> None:
        """Check the view of the next request: its size, and after a boundary its rules."""
        if self._rules is None:
            return
        if not replay.fits:
            if not self._exceeded:
                limit = replay.window.input_limit
                text = f"{replay.size:,} tokens, the limit is {limit:,}"
                self._report(replay, "window_exceeded", text)
            self._exceeded = True
        elif replay.state.boundaries != self._boundaries:
            self._boundaries = replay.state.boundaries
            self._check_rules(self._rules.in_force, replay)

    def _check_rules(self, rules: Sequence[ConstraintFact], replay: Replay) -> None:
        view = replay.state.view()
        whole = {item.entry.id for item in view if isinstance(item, MessageItem) and not item.edits}
        _, lost = standing_in([rule for rule in rules if rule.entry not in whole], view)
        for text in lost:
            self._report(replay, "lost_rule", text)

    def _report(self, replay: Replay, kind: ProblemKind, text: str, place: str = "") -> None:
        """Add a problem that was not reported yet; `place` is where in the view it is."""
        if text not in self._reported:
            self._reported.add(text)
            self.problems.append(ViewProblem(replay.next_request, kind, f"{place}{text}"))
