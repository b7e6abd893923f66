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
ATTEMPTS = 3  # times that a text is written shorter because redacting made it longer


class OfflineSummarizer:
    """Write every summary from the ledger, by rule. It never fails, and costs nothing.

    `notes` go into each receipt and say why no model is asked.
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

        The reply carries the ledger reduced to what the next fold should know. Neither holds a secret.
        """
        if request.kind == "display":
            ledger = redact_facts(request.ledger)
            return SummaryReply(two_sentences(ledger), NAME, ledger=ledger, notes=self.notes)
        focus = " ".join(words for words in (request.instructions, request.goal) if words)
        goal = redact(request.goal or "") if request.kind == "handoff" else ""
        done = self._composed(request.ledger, request.page_tokens, redact(focus) or None, goal)
        return SummaryReply(done.text, NAME, ledger=redact_facts(done.ledger), notes=self.notes)

    def _composed(self, ledger: Ledger, most: int, focus: str | None, goal: str) -> Composed:
        """Compose and redact: lines put side by side could spell a secret that no fact held alone."""
        budget = max(most, 1)
        done = Composed("", ledger)
        for _ in range(ATTEMPTS):
            written = compose(ledger, max(budget, 1), self.counter.count, instructions=focus, goal=goal)
            done = Composed(redact(written.text), written.ledger)
            over = self.counter.count(done.text) - most
            if done.text == written.text or over <= 0:
                break
            written_size = self.counter.count(written.text)
            budget = min(budget - over - 8, written_size * most // (most + over))
        return done
