"""Checkpoints without a model, a key or a network: the default, the fallback, and the baseline."""

from __future__ import annotations

from foldline.core.checkpoint.page import Composed, compose
from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.checkpoint.state import two_sentences
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.secrets.derived import redact_facts
from foldline.core.secrets.redact import redact

NAME = "offline"
ATTEMPTS = 3  # to write a shorter text after redacting made it longer


class OfflineSummarizer:
    """Write every summary from the ledger, by rules. It never fails and costs nothing.

    `notes` go into each receipt and say why no model is used.
    """

    name = NAME

    def __init__(self, counter: Counter = OFFLINE, *, notes: tuple[str, ...] = ()) -> None:
        self.counter = counter
        self.notes = notes

    async def summarize(self, request: SummaryRequest) -> SummaryReply:
        """Write the requested summary; the same request gives the same text."""
        return self.write(request)

    def write(self, request: SummaryRequest) -> SummaryReply:
        """Write the requested summary in at most `request.tokens` tokens of this counter.

        The text holds no secret. The reply has the request's ledger reduced to what the next fold needs.
        """
        if request.kind == "display":
            ledger = redact_facts(request.ledger)
            return SummaryReply(two_sentences(ledger), NAME, ledger=request.ledger, notes=self.notes)
        focus = " ".join(words for words in (request.instructions, request.goal) if words)
        goal = redact(request.goal or "") if request.kind == "handoff" else ""
        page = self._compose(request.ledger, request.page_tokens, redact(focus) or None, goal)
        return SummaryReply(page.text, NAME, ledger=page.ledger, notes=self.notes)

    def _compose(self, ledger: Ledger, most: int, focus: str | None, goal: str) -> Composed:
        """Compose and redact: adjacent lines could spell a secret that no single fact contains."""
        budget = max(most, 1)
        page = Composed("", ledger)
        for _ in range(ATTEMPTS):
            draft = compose(ledger, max(budget, 1), self.counter.count, instructions=focus, goal=goal)
            page = Composed(redact(draft.text), draft.ledger)
            over = self.counter.count(page.text) - most
            if page.text == draft.text or over <= 0:
                break
            draft_size = self.counter.count(draft.text)
            budget = min(budget - over - 8, draft_size * most // (most + over))
        return page
