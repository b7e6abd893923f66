"""Checkpoints without a model, a key or a network: the default, the fallback, and the baseline."""

from __future__ import annotations

from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.page.display import two_sentences
from foldline.core.ledger.page.page import Composed, compose
from foldline.core.ledger.page.sheet import GOAL
from foldline.core.ledger.text.sentences import clip
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.secrets.facts import redact_facts
from foldline.core.secrets.redact import redact

NAME = "offline"
HANDED_OVER = "Handed over for: "
LONGEST_GOAL = 300  # characters of a hand-off's goal
LEAST = 200  # tokens of a checkpoint that has room for it
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
        goal = _goal_of(request)
        room = request.tokens - self.counter.count(goal)
        done = self._composed(request.ledger, room, redact(focus) or None)
        text = _with_goal(done.text, goal) if goal else done.text
        return SummaryReply(text, NAME, ledger=redact_facts(done.ledger), notes=self.notes)

    def _composed(self, ledger: Ledger, most: int, focus: str | None) -> Composed:
        """Compose and redact: lines put side by side could spell a secret that no fact held alone."""
        budget = max(most, 1)
        done = Composed("", ledger)
        for _ in range(ATTEMPTS):
            written = compose(ledger, max(budget, 1), self.counter.count, instructions=focus)
            done = Composed(redact(written.text), written.ledger)
            over = self.counter.count(done.text) - most
            if done.text == written.text or over <= 0:
                break
            budget -= over + 8
        return done


def _goal_of(request: SummaryRequest) -> str:
    """Return the line that says what a hand-off is for; "" where there is no goal or hardly any room."""
    if request.kind != "handoff" or not request.goal or request.tokens < LEAST:
        return ""
    return f"{HANDED_OVER}{clip(redact(request.goal), LONGEST_GOAL)}\n"


def _with_goal(text: str, goal: str) -> str:
    """Put the line first under the heading of goals."""
    heading = f"{GOAL}\n"
    before, found, after = text.partition(heading)
    return f"{before}{heading}{goal}{after}" if found else f"{heading}{goal}\n{text}"
