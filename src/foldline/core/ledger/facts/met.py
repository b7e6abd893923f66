"""Names that calls used or results showed: what a later call may need though nobody said it in prose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from foldline.core.ledger.facts.calls import Use, strings
from foldline.core.ledger.facts.kinds import Ledger, MetName
from foldline.core.ledger.text import names
from foldline.core.ledger.text.names import Name
from foldline.core.log.entries import Said
from foldline.core.log.messages import Text

CARRIED = 600  # names from fold to fold: those of the greatest weight
HEAD = 3_000  # characters of a result that are read
BODY = 4_000  # characters of what a call writes that are read
TALK = 20_000  # characters of a message that are read
ARGUMENT, SPOKEN, SHOWN = 3.0, 2.0, 0.5  # weights: addressed by a call, said, shown by a result
USED_KINDS = frozenset(("path", "identifier", "id", "url"))
SHOWN_KINDS = frozenset(("path", "id"))
FADES = 0.7  # what a name weighs after one more fold


def weigh(entries: Sequence[Said], calls: Sequence[Use]) -> dict[str, float]:
    """Weigh the names of calls, prose and results; later ones weigh up to three times as much."""
    weight: dict[str, float] = {}
    place = {entry.id: at for at, entry in enumerate(entries)}
    whole = max(1, len(place))
    for entry, each, text in _texts(entries, calls):
        late = 0.5 + place.get(entry, 0) / whole
        kinds = SHOWN_KINDS if each == SHOWN else USED_KINDS
        for name in dict.fromkeys(one.text for one in names.find(text) if one.kind in kinds and _tells(one)):
            weight[name] = weight.get(name, 0) + each * late
    return weight


def _tells(name: Name) -> bool:
    """Whether a name says what it is: a path that ends in a file, not two words with a slash between."""
    return name.kind != "path" or "." in name.text.rpartition("/")[2].lstrip(".")


def heaviest(weight: Mapping[str, float]) -> tuple[MetName, ...]:
    """Return the names of the greatest weight, these first."""
    best = sorted(weight, key=lambda name: -weight[name])[:CARRIED]
    return tuple(MetName(name, round(weight[name], 2)) for name in best)


def _texts(entries: Sequence[Said], calls: Sequence[Use]) -> Iterator[tuple[str, float, str]]:
    for use in calls:
        for text in strings(use.call.arguments):
            yield use.entry, ARGUMENT, text[:BODY]
        if use.result is not None:
            yield use.entry, SHOWN, use.result.text[:HEAD]
    for entry in entries:
        if entry.message.role in ("user", "assistant"):
            yield from (
                (entry.id, SPOKEN, part.text[:TALK]) for part in entry.message.parts if isinstance(part, Text)
            )


def merge(old: Sequence[MetName], new: Sequence[MetName], _later: Ledger) -> tuple[MetName, ...]:
    """Add the weights of two ranges, the older ones faded."""
    weight = {fact.text: fact.weight * FADES for fact in old}
    for fact in new:
        weight[fact.text] = weight.get(fact.text, 0) + fact.weight
    return heaviest(weight)
