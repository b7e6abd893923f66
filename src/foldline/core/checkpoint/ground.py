"""A model's summary checked against what code knows, and mended.

Three things happen to it, in this order:

1. marks: names that stand nowhere, values that were replaced since, claims that the last run contradicts, and
   rules that the user never said are marked where they stand; nothing that a model wrote is taken away;
2. repairs: what must survive and does not (the newest request, open errors, open work, the newest named
   values) is put back under its heading, from the ledger; standing constraints always stand there, word for
   word, in the block that code alone writes;
3. lists: the files that were read and changed, from the ledger.

Lines that quote the ledger are never marked, so grounding a grounded summary changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from foldline.core.checkpoint.essentials import UNDER, essentials, missing_in, without_repeats
from foldline.core.checkpoint.evidence import Evidence
from foldline.core.checkpoint.files import file_lists, without_file_lists
from foldline.core.checkpoint.marks import marked
from foldline.core.checkpoint.origin_check import OriginCheck
from foldline.core.checkpoint.sections import put_under
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.page.constraints import block, without_blocks
from foldline.core.log.messages import Message
from foldline.core.secrets.facts import redact_facts


class Grounded(msgspec.Struct, frozen=True):
    """A grounded summary, what was put back into it, and the names in it that stand nowhere."""

    text: str
    repaired: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()


def ground(text: str, ledger: Ledger, said: Iterable[Message | str], previous: str | None = None) -> Grounded:
    """Mend a summary from the ledger and mark what stands nowhere.

    `said` are the folded messages (or their texts), `previous` the summary that they follow: what either says
    counts as known. Grounding the result again changes nothing.
    """
    ledger = redact_facts(ledger)
    said = list(said)
    evidence = Evidence(said, ledger, previous)
    facts = essentials(ledger)
    origins = OriginCheck(said, ledger, previous)
    written = without_blocks(without_file_lists(text))
    body, unverified = marked(written, ledger, facts, evidence, origins)
    missing = missing_in(facts, body, written)
    rules = [fact.line for fact in facts if fact.kind == "constraint"]
    body = without_repeats(body, rules)
    for kind, headings in UNDER.items():
        lines = block(rules) if kind == "constraint" else [fact.line for fact in missing if fact.kind == kind]
        body = put_under(body, lines, headings)
    lists = file_lists(ledger.files)
    lost = [
        fact.path
        for fact in ledger.files
        if fact.status != "read" and fact.path.rsplit("/", 1)[-1] not in text
    ]
    return Grounded(
        text=f"{body.rstrip()}\n\n{lists}" if lists else body.rstrip(),
        repaired=(*(fact.text for fact in missing), *lost),
        unverified=unverified,
    )
