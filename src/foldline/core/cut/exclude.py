"""What the user takes out of the context: messages, or parts of them, that no view and no fold tells again.

An exclusion is a `Pruned` with edits of the kind `excluded`: it can be undone like any boundary, and a fold
hands its edits on. The log keeps all. Whatever is made of a path reads its entries as `left_of` gives them.

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

_GONE: Final = Text("")  # keeps the places of the parts behind it


def excluded(path: Iterable[Entry]) -> Edits:
    """Return what the user took out on a path and did not bring back; its prunes and undos are enough."""
    entries = list(path)
    out = undone(entries)
    prunes = (one for one in entries if isinstance(one, Pruned) and one.id not in out)
    return merged({}, (edit for prune in prunes for edit in prune.edits if edit.kind == EXCLUDED))


def is_excluded(entry: str, edits: EditsOf) -> bool:
    """Whether an entry, or a part of it, was taken out."""
    return any(edit.kind == EXCLUDED for edit in edits.get(entry, ()))


def left_of(entry: Said, edits: EditsOf) -> Said | None:
    """Return what is left of an entry, the same object where nothing was taken out; None for nothing.

    A part that was taken out is an empty text, so that the others keep their places.
    """
    out = {edit.part: edit.replacement or _GONE for edit in edits.get(entry.id, ()) if edit.kind == EXCLUDED}
    if not out:
        return entry
    parts = tuple(out.get(place, part) for place, part in enumerate(entry.message.parts))
    if all(map(is_blank, parts)):
        return None
    return msgspec.structs.replace(entry, message=msgspec.structs.replace(entry.message, parts=parts))


def is_blank(part: Part) -> bool:
    """Whether a part says nothing: an empty text, or the mark of a step."""
    return (isinstance(part, Text) and not part.text.strip()) or is_step(part)


def exclusion(said: Sequence[Said], chosen: Iterable[Place], edits: EditsOf, counter: Counter) -> list[Edit]:
    """Return the edits that take parts of messages out, and what goes with them.

    `said` are the messages of a view as they are left, `edits` those made before.
    """
    calls = calls_answered([entry.message for entry in said])
    out = _with_partners(said, calls, set(chosen))
    late = set(pair([entry.message for entry in said]).late)
    found: list[Edit] = []
    for at, place in sorted(out):
        entry = said[at]
        old, new = entry.message.parts[place], None
        if isinstance(old, ToolResult) and (at, place) not in late and calls.get((at, place)) not in out:
            new = _note(old, entry.id)
        before = (one for one in edits.get(entry.id, ()) if one.part == place and one.kind == EXCLUDED)
        saved = sum(one.saved for one in before) + part_tokens(old, counter)
        found.append(
            Edit(
                entry.id, place, EXCLUDED, new, saved - (part_tokens(new, counter) if new is not None else 0)
            )
        )
    return found


def _note(result: ToolResult, entry: str) -> ToolResult:
    text = Text(f"{TAKEN_OUT}{entry}]")
    return ToolResult(result.call_id, (text,), is_error=result.is_error)


def _with_partners(said: Sequence[Said], calls: Mapping[Place, Place], chosen: set[Place]) -> set[Place]:
    """Return places with those that go with them."""
    links = [(call, result) for result, call in calls.items()]
    for call, result in provider_runs(said):
        links += [(call, result), (result, call)]
    out: set[Place] = set()
    while out != chosen:
        out, chosen = chosen, chosen | {then for one, then in links if one in chosen}
    return out.union(*(_thoughts(said, at, out) for at in {at for at, _ in out}))


def _thoughts(said: Sequence[Said], at: int, out: Container[Place]) -> set[Place]:
    """Return the thinking of a reply that led to what is taken out of it, or to nothing that is left."""
    first = last = at
    while first and continues(said[first].message, said[first - 1].message):
        first -= 1
    while last + 1 < len(said) and continues(said[last + 1].message, said[last].message):
        last += 1
    found: set[Place] = set()
    leads_on = False
    for here in range(last, first - 1, -1):
        for place, part in reversed(list(enumerate(said[here].message.parts))):
            if (here, place) in out:
                leads_on = False
            elif isinstance(part, Thinking) or (isinstance(part, Opaque) and part.kind in (*THOUGHTS, STEP)):
                found |= set() if leads_on else {(here, place)}
            elif not is_blank(part):
                leads_on = True
    return found
