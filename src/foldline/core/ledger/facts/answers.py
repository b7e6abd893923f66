"""What the assistant answered in plain words: sentences that name nothing, which no excerpt carries.

They are the last to get room in a checkpoint; in a talk without paths, ids and numbers they are most of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip, sentences
from foldline.core.log.entries import Said
from foldline.core.log.steps import finishes

KIND = "answer"
LONGEST = 400  # characters of one answer
SCANNED = 20_000  # characters of one message that are read
MOST = 40  # answers of one range, and of what is carried from fold to fold: the newest
LEAST = 24  # characters of a sentence that says something; a third of it where letters are words
SUMMED_UP = 0.15  # worth of a sentence of an earlier summary, 0 to 1
WEIGHT = 1e-05  # below every excerpt that names something


def collect(entries: Sequence[Said], gone: AbstractSet[str] = frozenset()) -> tuple[Excerpt, ...]:
    """Take from each message that ended a turn what it says beside names, oldest first.

    `gone` are the openings of sentences that hold no more.
    """
    found: list[Excerpt] = []
    for entry in reversed(entries):
        message = entry.message
        if message.role != "assistant" or not message.text.strip() or not finishes(message):
            continue
        said = list(_plain(message.text[:SCANNED], gone))
        if not entry.id:
            found.extend(_summed_up(reversed(said)))
        elif said:
            found.append(Excerpt(clip(" ".join(said), LONGEST), "", WEIGHT, entry.id, KIND))
        if len(found) >= MOST:
            break
    return tuple(reversed(found))


def newest(excerpts: Iterable[Excerpt]) -> list[Excerpt]:
    """Return the excerpts without all answers but the newest; their order is that in which they were said."""
    found = list(excerpts)
    over = sum(fact.kind == KIND for fact in found) - MOST
    kept: list[Excerpt] = []
    for fact in found:
        if fact.kind == KIND and over > 0:
            over -= 1
        else:
            kept.append(fact)
    return kept


def _summed_up(said: Iterable[str]) -> Iterator[Excerpt]:
    """Yield the sentences of another system's summary, an entry without an id: each competes with names."""
    for text in said:
        yield Excerpt(clip(text, LONGEST), "", SUMMED_UP / 10, "", "said", {f"summary: {text}": SUMMED_UP})


def _plain(text: str, gone: AbstractSet[str]) -> Iterator[str]:
    """Yield the sentences that name nothing; questions were for that moment."""
    prose = "\n".join(line for line in text.split("\n") if not line.startswith(("#", "|")))
    for sentence in sentences(prose):
        short = sentence.replace("**", "")
        says = len(short) >= (LEAST if short.isascii() else LEAST // 3)
        if says and short[-1] not in "?？:：" and not names.find(short) and not _is_gone(short, gone):
            yield short


def _is_gone(sentence: str, gone: AbstractSet[str]) -> bool:
    return any(opening in sentence for opening in gone)
