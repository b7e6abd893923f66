"""The folds of one measure: their views, the sizes of these, and the sessions of a user's files.

A fold that raises has an empty view; only if all raise is there an error in place of figures.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foldline.bench.corpus import Messages
from foldline.bench.system import System, message_texts, size
from foldline.core.log.entries import Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import native_items
from foldline.dialects import get
from foldline.lab.sources import session_files, steps
from foldline.transcripts import read

Figure = float | int | str | None
Figures = dict[str, Figure]

OVER = 1.1  # times the budget that a view may take: token counts differ a little


class Folds:
    """The folds of one measure, and the sizes of their views."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._ratios: list[float] = []
        self._raised: list[Exception] = []

    def text(self, messages: Messages, budget: int) -> str:
        """Return the text of the view of one fold; "" if it raises."""
        return "\n".join(message_texts(self.view(messages, budget)))

    def view(self, messages: Messages, budget: int) -> Sequence[Any]:
        """Return the view of one fold; an empty one if it raises."""
        try:
            view = self._system.make(budget)(messages)
            self._ratios.append(sum(map(size, message_texts(view))) / budget)
        except Exception as error:
            self._raised.append(error)
            return ()
        return view

    @property
    def sizes(self) -> Figures:
        """The figures of `FOLD_COLUMNS`; raises the system's error if no fold succeeded."""
        if not self._ratios and self._raised:
            raise self._raised[0]
        return {
            "view": statistics.fmean(self._ratios),
            "over": sum(ratio > OVER for ratio in self._ratios),
            "raised": len(self._raised),
        }


def tokens(messages: Messages) -> int:
    """Return the size of a session."""
    return sum(map(size, message_texts(messages)))


def budget_of(messages: Messages, share: float) -> int:
    """Return a share of a session's size."""
    return int(share * tokens(messages))


def means(values: Mapping[str, Sequence[float]]) -> Figures:
    """Return the mean of each figure."""
    return {name: statistics.fmean(numbers) for name, numbers in values.items()}


def plain(text: str) -> str:
    """Normalise text for comparisons: without line breaks and JSON escapes."""
    return " ".join(text.replace('\\"', '"').split())


def read_sessions(names: Sequence[str]) -> Iterable[Messages]:
    """Yield the sessions of files, as messages of Chat Completions."""
    for file in session_files(names):
        entries = [step for step in steps(read(file)) if isinstance(step, Said)]
        view = ViewState(entries, counter=OFFLINE).view()
        yield get("openai-chat").render(native_items(view), whole=True).messages
