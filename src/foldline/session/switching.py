"""Change the model and the policy of a session, and with them who writes its summaries."""

from __future__ import annotations

import logging
from typing import Any

from foldline.arguments import check
from foldline.catalogue import ModelInfo
from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.measure.window import Window
from foldline.session.drafts import Drafts
from foldline.session.shared import Shared
from foldline.summarizers import ModelSummarizer, Summarizer, summarizer_for, unasked_warning

log = logging.getLogger("foldline")


class Switching:
    """Switches one session to other models and policies.

    With `summary_model`, that model writes the summaries, then each model that the session changes to; with a
    `summarizer` as well, that one writes them until the first change.
    """

    def __init__(
        self, shared: Shared, drafts: Drafts, summarizer: Summarizer | None, summary_model: ModelInfo | None
    ) -> None:
        self._shared = shared
        self._drafts = drafts
        self._chosen = summarizer
        self._may_choose = summary_model is not None
        self._info: ModelInfo | None = None  # of the model that was chosen last
        if summary_model is not None and summarizer is None:
            self._choose_summarizer(summary_model)

    @property
    def chooses(self) -> bool:
        """Whether the summariser follows the model, and was not set manually."""
        chosen = self._chosen is None or self._shared.own_summarizer is self._chosen
        return self._may_choose and chosen

    async def use_model(
        self,
        model: str | None,
        *,
        window: int | Window | None = None,
        dialect: str | None = None,
        tools: Any = None,
    ) -> None:
        """Switch to another model; the view is compacted for a smaller window before the first request.

        `dialect` is what `context` returns from now on, `tools` their definitions (default: unchanged).
        """
        check(model=model, window=window, dialect=dialect, tools=tools)
        shared = self._shared
        if model is not None:
            shared.model.setup.catalogue.check(model)
        async with shared.locked():
            await self._drafts.stop()  # it was made for the previous model
            await shared.model.change(model, window, dialect, tools)
            shared.reply.forget()
            self._choose_summarizer(shared.model.setup.info)

    async def use_policy(self, policy: str | Policy) -> None:
        """Use another policy from the next request on; drops a draft of the previous one.

        `policy` is a preset, a policy of the settings, a `.toml` file or a `Policy`. Raises PolicyError for
        anything else.
        """
        rules = settings().find_policy(policy)
        async with self._shared.locked():
            model = self._shared.model
            previous_model = model.setup.policy.summary_model
            await self._drafts.stop()
            model.follow(rules)
            if self._info is not None and model.setup.policy.summary_model != previous_model:
                self._choose_summarizer(self._info)

    def _choose_summarizer(self, info: ModelInfo) -> None:
        """Write summaries with this model from now on, unless a summariser was set manually."""
        if not self._may_choose:
            return
        self._info = info
        if not self.chooses:
            return
        shared, setup = self._shared, self._shared.model.setup
        chosen = summarizer_for(
            info, setup.policy, catalogue=setup.catalogue, counter=setup.counter, dialect=setup.dialect
        )
        self._chosen = shared.own_summarizer = chosen
        if isinstance(chosen, ModelSummarizer):
            shared.at_close.append(chosen.close)
        text = unasked_warning(info, setup.policy, catalogue=setup.catalogue)
        shared.pending_warning = text  # emitted as soon as a callback listens
        if text:
            log.warning("session %s: %s", shared.id, text)
