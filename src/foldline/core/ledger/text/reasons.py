"""Why something was done, from the sentence in which it was announced."""

from __future__ import annotations

import re

from foldline.core.ledger.text import names
from foldline.core.ledger.text.words import words

LEAST = 3  # plain words of an announcement that says why, or a name

_LEAD = re.compile(
    r"(?:(?:now|ok|okay|good|great|perfect|excellent|alright|right|first|next|then|finally|also|so|hmm|i see|"
    r"got it|sure|thanks)\b[\s,.!:–-]*){0,3}"
    r"(?:(?:now )?(?:let me|let's|i'll|i will|i need to|i should|i'm going to|i'm|i am|we need to|we should|"
    r"time to)\b\s*)(?:(?:now|also|first|just|quickly|next|then)\s+)?",
    re.IGNORECASE,
)


_MIDDLE = re.compile(r"(?:are|is|was|were|and|or|but|that|which|of|to|in|with|then|as|than|for)\b|[,;.)]")
"""How the rest of a sentence begins whose head is missing."""


_AFTER = re.compile(r",? (?:(?:and )?then|so) (?:i|we)(?:'ll| will| can|'m)? .*$", re.IGNORECASE)
"""What an announcement says of the step after this one."""


def announces(sentence: str) -> bool:
    """Whether a sentence says what its speaker is about to do, or introduces what follows it."""
    lead = _LEAD.match(sentence.replace("\u2019", "'"))
    return lead is not None or sentence.rstrip("* ")[-1:] in (":", "：")


def reason(announced: str) -> str:
    """Return what an announcement says beside announcing; "" where that is too little to tell anything.

    "Now let me check what borderColor expects:" is "check what borderColor expects".
    """
    lead = _LEAD.match(announced.replace("\u2019", "'"))
    told = (announced[lead.end() :] if lead else announced).strip().rstrip(" :")
    told = told[: after.start()] if (after := _AFTER.search(told.replace("\u2019", "'"))) else told
    if not lead and _MIDDLE.match(told):
        return ""
    if lead and len(words(told)) < LEAST and "`" not in told and not names.find(told):
        return ""
    return told
