"""What a summary says that another system wrote before this range: its sentences, each worth little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip, sentences
from foldline.core.log.entries import Said
from foldline.core.log.steps import finishes

LONGEST = 400  # characters of one sentence
SCANNED = 20_000  # characters of one summary that are read
MOST = 40  # sentences
LEAST = 24  # characters of a sentence that says something; a third of it where letters are words
SUMMED_UP = 0.15  # worth of a sentence, 0 to 1: it competes with names


def collect(entries: Sequence[Said], gone: AbstractSet[str] = frozenset()) -> tuple[Excerpt, ...]:
    """Take the sentences that name nothing (the others are excerpts anyway), oldest first.

    Such a summary is an entry without an id. `gone` are the openings of what holds no more.
    """
    found: list[Excerpt] = []
    for entry in entries:
        message = entry.message
        if not entry.id and message.role == "assistant" and message.text.strip() and finishes(message):
            for text in _plain(message.text[:SCANNED], gone):
                worth = {f"summary: {text}": SUMMED_UP}
                found.append(Excerpt(clip(text, LONGEST), "", SUMMED_UP / 10, "", "said", worth))
    return tuple(found[-MOST:])


def _plain(text: str, gone: AbstractSet[str]) -> Iterator[str]:
    """Yield the sentences that name nothing; questions were for that moment."""
    prose = "\n".join(line for line in text.split("\n") if not line.startswith(("#", "|")))
    for sentence in sentences(prose):
        short = sentence.replace("**", "")
        says = len(short) >= (LEAST if short.isascii() else LEAST // 3)
        is_gone = any(opening in short for opening in gone)
        if says and short[-1] not in "?？:：" and not names.find(short) and not is_gone:
            yield short
