"""Who writes the summaries of a session whose model may change: its model, where that can be asked, else code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from foldline.catalogue import ModelInfo
from foldline.session.economy import Asking, asking_in, window_in
from foldline.summarizers import ModelSummarizer, Summarizer, summarizer_for


class Writing(Asking, Protocol):
    """What is needed of a session to have its summaries written by its model."""

    @property
    def summarizer(self) -> Summarizer:
        """Who writes its summaries."""
        ...

    @summarizer.setter
    def summarizer(self, summarizer: Summarizer) -> None: ...

    def at_close(self, closing: Callable[[], Awaitable[None]]) -> None:
        """Await this when it is let go of."""
        ...


class SummarizerChoice:
    """The choice of one session's summariser; one that was set by hand since (`chosen` is another) stays."""

    def __init__(self, chosen: Summarizer | None = None) -> None:
        self.chosen = chosen

    def use_model(self, session: Writing, info: ModelInfo) -> None:
        """Have the summaries written by this model from now on."""
        if self.chosen is not None and session.summarizer is not self.chosen:
            return
        setup = session.setup
        written = summarizer_for(
            info,
            setup.policy,
            catalogue=setup.catalogue,
            counter=setup.counter,
            dialect=setup.dialect,
        )
        self.chosen = session.summarizer = written
        if isinstance(written, ModelSummarizer):
            asked_in(session, written)
            session.at_close(written.close)


def asked_in(session: Asking, written: ModelSummarizer) -> None:
    """Have a summariser ask in this session where that is cheapest, within the window that it has learnt."""
    written.prefix = partial(asking_in, session, written.name, written.dialect)
    written.limits = partial(window_in, session, written.name)
