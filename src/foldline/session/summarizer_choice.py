"""Who writes the summaries of a session whose model may change: that model if it can be asked, else code."""

from __future__ import annotations

from foldline.catalogue import ModelInfo
from foldline.session.shared import Shared
from foldline.summarizers import ModelSummarizer, Summarizer, summarizer_for


class SummarizerChoice:
    """Has a session's model write its summaries, until another summariser is set by hand."""

    def __init__(self, shared: Shared, chosen: Summarizer | None = None) -> None:
        self._shared = shared
        self._chosen = chosen

    @property
    def stands(self) -> bool:
        """Whether the session's summariser is the one that was chosen here."""
        return self._chosen is None or self._shared.summarizer is self._chosen

    def use_model(self, info: ModelInfo) -> None:
        """Have the summaries written by this model from now on; a summariser that was set by hand stays."""
        if not self.stands:
            return
        setup = self._shared.model.setup
        chosen = summarizer_for(
            info,
            setup.policy,
            catalogue=setup.catalogue,
            counter=setup.counter,
            dialect=setup.dialect,
        )
        self._chosen = self._shared.summarizer = chosen
        if isinstance(chosen, ModelSummarizer):
            self._shared.at_close.append(chosen.close)
