"""A model's summary checked against what code knows, and completed.

Names that stand in no entry are marked where they stand; nothing that a model wrote is taken away. Behind it
code puts what no model may lose: the user's standing rules in the block that code alone writes, the user's
words, and the lists of files. Grounding a grounded summary changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from foldline.core.checkpoint import conversation, listing, rules
from foldline.core.checkpoint.marks import Evidence, marked
from foldline.core.checkpoint.page import USERS_RULES, WORDS
from foldline.core.ledger.facts.kinds import LEVELS, USER, Ledger
from foldline.core.log.messages import Message
from foldline.core.secrets.facts import redact_facts

LISTED = 800  # tokens that the lists of files may take
_OURS = re.compile(rf"^(?:{WORDS}|{USERS_RULES}\n{rules.OPEN})\n(?:(?!## ).*\n?)*", re.MULTILINE)


class Grounded(msgspec.Struct, frozen=True):
    """A grounded summary, and the names in it that stand nowhere."""

    text: str
    unverified: tuple[str, ...] = ()


def ground(
    text: str,
    ledger: Ledger,
    said: Iterable[Message | str],
    previous: str | None = None,
    *,
    room: int = 0,
    count: Callable[[str], int] = len,
) -> Grounded:
    """Mark what stands nowhere in a summary, and put rules, the user's words and file lists behind it.

    `said` are the folded messages (or their texts), `previous` the summary that they follow; the user's words
    may take `room` tokens, as `count` counts them.
    """
    ledger = redact_facts(ledger)
    written = rules.without_blocks(_OURS.sub("", listing.without(text) + "\n")).rstrip()
    quoted = [fact.text for fact in ledger.constraints]
    body, unverified = marked(written, quoted, Evidence(list(said), ledger, previous))
    lines = rules.lines_of(ledger.constraints)
    block = rules.block(lines)
    words = users_words(ledger, room, count)
    parts = (
        _without(body, lines),
        "\n".join((USERS_RULES, *block)) if block else "",
        f"{WORDS}\n{words}" if words else "",
        "\n".join(listing.write(ledger.files, ledger.base, count, LISTED)),
    )
    return Grounded("\n\n".join(part for part in parts if part), unverified)


def users_words(ledger: Ledger, room: int, count: Callable[[str], int]) -> str:
    """Write what the user said, word for word, the first and the newest in any case, in `room` tokens."""
    items = [item for item in ledger.items if LEVELS.get(item.kind) == USER and item.kind != "summary"]
    if not items or room <= 0:
        return ""
    return "\n".join(conversation.write(items, conversation.fill(items, room, count)))


def _without(body: str, lines: Iterable[str]) -> str:
    """Take out the lines that the block of rules says."""
    gone = {row for line in lines for row in line.split("\n")}
    return "\n".join(row for row in body.split("\n") if row not in gone).rstrip()
