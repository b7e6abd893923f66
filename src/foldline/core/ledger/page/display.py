"""A ledger in two sentences."""

from __future__ import annotations

from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.facts.open_work import is_done
from foldline.core.ledger.text.sentences import clip

WORDS = 160  # characters of a request or of open work that is quoted


def two_sentences(ledger: Ledger) -> str:
    """Say what was worked on, and what is open."""
    asked = clip(ledger.requests[-1].text, WORDS).rstrip(".") if ledger.requests else "Nothing was asked yet"
    changed = sum(fact.status != "read" for fact in ledger.files)
    files = f" ({changed} file{'s' if changed != 1 else ''} changed)" if changed else ""
    waiting = [fact.text for fact in ledger.open if not is_done(fact)]
    blocked = [fact.text for fact in ledger.errors if not fact.fixed]
    still = (waiting or blocked or ["nothing that is known"])[-1]
    return f"{asked}{files}. Open: {clip(still, WORDS).rstrip('.')}."
