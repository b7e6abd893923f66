"""How often each tool was used, and its three most notable uses."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.ledger.facts.actions import Stretch
from foldline.core.ledger.facts.calls import Use, arguments, strings
from foldline.core.ledger.facts.commands import command_in, is_notable
from foldline.core.ledger.facts.kinds import Ledger, ToolFact
from foldline.core.ledger.facts.touches import touches
from foldline.core.ledger.text.sentences import clip

NOTABLE = 3
SHOWN = 100  # characters of a use
CARRIED = 60  # tools from fold to fold


def collect(found: Stretch) -> tuple[ToolFact, ...]:
    """Count the calls by tool, in the order of first use."""
    tools: dict[str, list[tuple[int, str]]] = {}
    for use in found.calls:
        rank, text = _shown(use)
        tools.setdefault(use.call.name, []).append((rank - 4 if use.passed is False else rank, text))
    return tuple(ToolFact(name, len(ranks), _ranked(ranks)) for name, ranks in tools.items())


def _shown(use: Use) -> tuple[int, str]:
    """Return how notable a use is and the one argument that shows it best."""
    command = command_in(use)
    if command:
        return (2 if is_notable(command) else 0), clip(command, SHOWN)
    touched = next(iter(touches(use)), None)
    if touched:
        return (1 if touched.status == "read" else 3), clip(touched.path, SHOWN)
    texts = [text for text in strings(arguments(use.call)) if text.strip()]
    return 1, clip(texts[0], SHOWN) if texts else ""


def _ranked(found: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """Return the most notable texts, the newest of equals first chosen, in their order of use."""
    best: dict[str, tuple[int, int]] = {}
    for index, (rank, text) in enumerate(found):
        if text:
            best[text] = (rank, index)
    chosen = sorted(best, key=lambda text: best[text], reverse=True)[:NOTABLE]
    return tuple(sorted(chosen, key=lambda text: best[text][1]))


def merge(old: Sequence[ToolFact], new: Sequence[ToolFact], _later: Ledger) -> tuple[ToolFact, ...]:
    """Add the counts of two ranges; the notable uses of the newer come first."""
    found = {fact.name: fact for fact in old}
    for fact in new:
        known = found.get(fact.name)
        if known:
            notable = tuple(dict.fromkeys((*known.notable, *fact.notable)))[-NOTABLE:]
            found[fact.name] = ToolFact(fact.name, known.uses + fact.uses, notable)
        else:
            found[fact.name] = fact
    return tuple(found.values())


def bound(facts: Sequence[ToolFact]) -> tuple[ToolFact, ...]:
    """Return the tools that are carried to the next fold."""
    return tuple(facts[-CARRIED:])
