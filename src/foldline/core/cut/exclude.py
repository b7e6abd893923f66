"""What the user takes out of the context: messages or parts that no later view or fold may show.

An exclusion is a `Pruned` with edits of the kind `excluded`: it can be undone like any boundary, and a fold
passes its edits on. The log keeps everything. All code that reads a path reads its entries through `left_of`.

    [call] [result]        the call is taken out: its result goes with it
    [call] [note]          the result alone: a note takes its place, because the call needs a result
    [thinking] [text]      the text is taken out: the thinking that led to it goes with it
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from foldline.core.cut.edits import Edits, EditsOf, merged
from foldline.core.cut.legal import provider_runs
from foldline.core.cut.notes import TAKEN_OUT
from foldline.core.cut.pairing import Place, calls_answered, continues, pair
from foldline.core.log.entries import EXCLUDED, Edit, Entry, Pruned, Said
from foldline.core.log.log import undone
from foldline.core.log.messages import Opaque, Part, Text, Thinking, ToolResult
from foldline.core.log.opaque import THOUGHTS
from foldline.core.log.steps import STEP, is_step
from foldline.core.measure.tokens import Counter, part_tokens

_GONE: Final = Text("")  # keeps the indices of the parts after it


def excluded(path: Iterable[Entry]) -> Edits:
    """Return what the user took out on a path and did not bring back; reads only prunes and undos."""
    entries = list(path)
    lifted = undone(entries)
    prunes = (entry for entry in entries if isinstance(entry, Pruned) and entry.id not in lifted)
    return merged({}, (edit for prune in prunes for edit in prune.edits if edit.kind == EXCLUDED))


def is_excluded(entry: str, edits: EditsOf) -> bool:
    """Whether an entry, or a part of it, was taken out."""
    return any(edit.kind == EXCLUDED for edit in edits.get(entry, ()))


def left_of(entry: Said, edits: EditsOf) -> Said | None:
    """Return what is left of an entry: the same object if nothing was taken out, None if everything was.

    An empty text replaces each part that was taken out, so that the others keep their indices.
    """
    replaced = {
        edit.part: edit.replacement or _GONE for edit in edits.get(entry.id, ()) if edit.kind == EXCLUDED
    }
    if not replaced:
        return entry
    parts = tuple(replaced.get(place, part) for place, part in enumerate(entry.message.parts))
    if all(map(is_blank, parts)):
        return None
    return msgspec.structs.replace(entry, message=msgspec.structs.replace(entry.message, parts=parts))


def is_blank(part: Part) -> bool:
    """Whether a part is empty: a text without a word, or the mark of a step."""
    return (isinstance(part, Text) and not part.text.strip()) or is_step(part)


def exclusion(said: Sequence[Said], chosen: Iterable[Place], edits: EditsOf, counter: Counter) -> list[Edit]:
    """Return the edits that take parts of messages out, and those for the parts that go with them.

    `said` are the messages of a view as `left_of` returns them, `edits` the earlier ones.
    """
    calls = calls_answered([entry.message for entry in said])
    taken = _with_partners(said, calls, set(chosen))
    late = set(pair([entry.message for entry in said]).late)
    result: list[Edit] = []
    for at, place in sorted(taken):
        entry = said[at]
        part, note = entry.message.parts[place], None
        if isinstance(part, ToolResult) and (at, place) not in late and calls.get((at, place)) not in taken:
            note = ToolResult(part.call_id, (Text(f"{TAKEN_OUT}{entry.id}]"),), is_error=part.is_error)
        earlier = (edit for edit in edits.get(entry.id, ()) if edit.part == place and edit.kind == EXCLUDED)
        saved = sum(edit.saved for edit in earlier) + part_tokens(part, counter)
        saved -= part_tokens(note, counter) if note is not None else 0
        result.append(Edit(entry.id, place, EXCLUDED, note, saved))
    return result


def _with_partners(said: Sequence[Said], calls: Mapping[Place, Place], chosen: set[Place]) -> set[Place]:
    """Return the chosen places and those that must go with them."""
    links = [(call, result) for result, call in calls.items()]
    for call, result in provider_runs(said):
        links += [(call, result), (result, call)]
    places: set[Place] = set()
    while places != chosen:
        places, chosen = chosen, chosen | {partner for place, partner in links if place in chosen}
    return places.union(*(_thoughts(said, at, places) for at in {at for at, _ in places}))


def _thoughts(said: Sequence[Said], at: int, taken: Container[Place]) -> set[Place]:
    """Return the places of the thinking in a reply that led only to parts taken out."""
    first = last = at
    while first and continues(said[first].message, said[first - 1].message):
        first -= 1
    while last + 1 < len(said) and continues(said[last + 1].message, said[last].message):
        last += 1
    thoughts: set[Place] = set()
    leads_on = False
    for index in range(last, first - 1, -1):
        for place, part in reversed(list(enumerate(said[index].message.parts))):
            if (index, place) in taken:
                leads_on = False
            elif isinstance(part, Thinking) or (isinstance(part, Opaque) and part.kind in (*THOUGHTS, STEP)):
                thoughts |= set() if leads_on else {(index, place)}
            elif not is_blank(part):
                leads_on = True
    return thoughts
