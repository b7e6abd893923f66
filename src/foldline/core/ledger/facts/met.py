"""Names that calls used or results showed: what a later call may need though no prose mentions it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from foldline.core.ledger.facts.actions import Stretch
from foldline.core.ledger.facts.commands import strings
from foldline.core.ledger.facts.kinds import Ledger, MetName
from foldline.core.ledger.text import names
from foldline.core.ledger.text.names import Name
from foldline.core.log.messages import Text

CARRIED = 600  # names from fold to fold: those of the greatest weight
HEAD = 3_000  # characters of a result that are read
BODY = 4_000  # characters of what a call writes that are read
TALK = 20_000  # characters of a message that are read
ARGUMENT, SPOKEN, SHOWN = 3.0, 2.0, 0.5  # weights: addressed by a call, said, shown by a result
USED_KINDS = frozenset(("path", "identifier", "id", "url"))
SHOWN_KINDS = frozenset(("path", "id"))
FADES = 0.7  # what a name weighs after one more fold


def collect(found: Stretch) -> tuple[MetName, ...]:
    """Weigh the names of calls, prose and results; later ones weigh up to three times as much."""
    weight: dict[str, float] = {}
    files: dict[str, str] = {}
    place = {entry.id: at for at, entry in enumerate(found.entries)}
    whole = max(1, len(place))
    for entry, each, file, text in _texts(found):
        late = 0.5 + place.get(entry, 0) / whole
        kinds = SHOWN_KINDS if each == SHOWN else USED_KINDS
        for name in {one.text: one for one in names.find(text)}.values():
            if name.kind in kinds and _tells(name):
                weight[name.text] = weight.get(name.text, 0) + each * late
            if file:
                files.setdefault(name.text, file)
    return _heaviest(weight, files)


def _tells(name: Name) -> bool:
    """Whether a name says what it is: a path that ends in a file, not two words with a slash between."""
    return name.kind != "path" or "." in name.text.rpartition("/")[2].lstrip(".")


def _heaviest(weight: Mapping[str, float], files: Mapping[str, str]) -> tuple[MetName, ...]:
    """Return the names of the greatest weight, these first."""
    best = sorted(weight, key=lambda name: -weight[name])[:CARRIED]
    return tuple(MetName(name, round(weight[name], 2), files.get(name, "")) for name in best)


def _texts(found: Stretch) -> Iterator[tuple[str, float, str, str]]:
    """Yield what is read for names: its entry, what a name in it weighs, its file, and the text."""
    for use in found.calls:
        file = use.done.file if use.done is not None else ""
        for text in strings(use.call.arguments):
            yield use.entry, ARGUMENT, file, text[:BODY]
        yield use.entry, SHOWN, file, use.output[:HEAD]
    for entry in found.entries:
        if entry.message.role in ("user", "assistant"):
            said = (part.text[:TALK] for part in entry.message.parts if isinstance(part, Text))
            yield from ((entry.id, SPOKEN, "", text) for text in said)


def merge(old: Sequence[MetName], new: Sequence[MetName], _later: Ledger) -> tuple[MetName, ...]:
    """Add the weights of two ranges, the older ones faded."""
    weight = {fact.text: fact.weight * FADES for fact in old}
    for fact in new:
        weight[fact.text] = weight.get(fact.text, 0) + fact.weight
    return _heaviest(weight, {fact.text: fact.file for fact in (*new, *old) if fact.file})
