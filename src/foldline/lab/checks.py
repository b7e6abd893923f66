"""What is looked for in the views of a replay: what no provider takes, rules that are gone, too many tokens.

Between two boundaries a view only grows. So a view that is whole, and says every rule, right before and after
each boundary and at the end, does so always; only the sizes are looked at before every request.
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
from foldline.core.view import MessageItem, native_items
from foldline.dialects import get

ProblemKind = Literal["invalid_view", "lost_rule", "window_exceeded"]


class ViewProblem(msgspec.Struct, frozen=True):
    """What is wrong with the view of a request (from 1); of each problem the first request that has it."""

    request: int
    kind: ProblemKind
    text: str


class StandingRules:
    """The user's rules that stand, as the messages of a recording are heard; without secrets."""

    def __init__(self) -> None:
        self._history = ConstraintHistory()

    def hear(self, entry: Said) -> None:
        """Take the next message."""
        if entry.message.role == "user":
            entry = msgspec.structs.replace(entry, message=clean_message(entry.message, {}))
        self._history.read([entry])

    @property
    def now(self) -> Sequence[ConstraintFact]:
        """Those that stand."""
        return self._history.standing


class ViewChecks:
    """Looks at the views of one replay; without the `rules` of its recording at their form alone.

    `invalid` counts the views that were refused, at every look; `problems` has each problem once.
    """

    def __init__(self, dialect: str, rules: StandingRules | None = None) -> None:
        self.invalid = 0
        self.problems: list[ViewProblem] = []
        self._codec = get(dialect)
        self._rules = rules
        self._boundaries: tuple[str, ...] = ()  # of the view whose rules were looked at
        self._told: set[str] = set()
        self._exceeded = False

    def form(self, replay: Replay) -> None:
        """Look whether the strict validator of the dialect takes the view."""
        view = replay.state.view()
        if not view:
            return
        rendered = self._codec.render(native_items(view), whole=True)
        found = self._codec.validate(rendered.messages, rendered.system)
        self.invalid += bool(found)
        for problem in found[:1]:
            place = f"message {problem.index}: " if problem.index >= 0 else ""
            self._tell(replay, "invalid_view", f"{problem.text} ({problem.rule})", place)

    def request(self, replay: Replay) -> None:
        """Look at a view that is about to be sent: its size, and the rules since the newest boundary."""
        if self._rules is None:
            return
        if not replay.fits:
            if not self._exceeded:
                limit = replay.window.input_limit
                text = f"{replay.size:,} tokens, and the window takes {limit:,}"
                self._tell(replay, "window_exceeded", text)
            self._exceeded = True
        elif replay.state.boundaries != self._boundaries:
            self._boundaries = replay.state.boundaries
            self._look_for(self._rules.now, replay)

    def _look_for(self, rules: Sequence[ConstraintFact], replay: Replay) -> None:
        view = replay.state.view()
        whole = {item.entry.id for item in view if isinstance(item, MessageItem) and not item.edits}
        _, lost = standing_in([rule for rule in rules if rule.entry not in whole], view)
        for text in lost:
            self._tell(replay, "lost_rule", text)

    def _tell(self, replay: Replay, kind: ProblemKind, text: str, place: str = "") -> None:
        """Keep a problem, unless it was told before: its place in a view may be another by now."""
        if text not in self._told:
            self._told.add(text)
            self.problems.append(ViewProblem(replay.next_request, kind, f"{place}{text}"))
