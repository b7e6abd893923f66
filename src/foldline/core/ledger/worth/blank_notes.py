"""The note that stands in place of a blanked result: the few lines of it that will most likely be needed.

A prune writes no checkpoint. What only the blanked results named would be gone from the view, although later
work goes on from it: the paths of a listing, the hits of a search, the definitions of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from foldline.core.ledger.facts.calls import uses
from foldline.core.ledger.facts.edits import edits
from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.text import paths
from foldline.core.ledger.worth import excerpts
from foldline.core.ledger.worth.selection import pick
from foldline.core.log.entries import Said
from foldline.core.log.messages import Text, ToolCall, ToolResult

OF_RESULTS = frozenset(
    ("hit", "line", "listing", "mention", "outline")
)  # kinds of excerpts that results alone have
ITEM = " | "
ATTEMPTS = 4  # times that the lines are written, shorter each time they came out too long

Place = tuple[str, int]  # (entry id, index of the part)


def notes_for(
    entries: Sequence[Said], blanked: AbstractSet[Place], budget: int, count: Callable[[str], int]
) -> dict[Place, str]:
    """Return one line for each blanked result with something worth carrying, within `budget` tokens in all.

    `entries` are those of the view, in order, `blanked` the results that are about to be blanked. What the
    messages that stay name themselves counts less.
    """
    by_entry: dict[str, list[Place]] = {}
    for place in sorted(blanked):
        by_entry.setdefault(place[0], []).append(place)
    shown = _shown(entries, blanked)
    pool = [
        _discounted(excerpt, shown)
        for excerpt in excerpts.collect(entries, edits=edits(uses(entries)), names_of_code=True)
        if excerpt.entry in by_entry and excerpt.kind in OF_RESULTS
    ]
    found: dict[Place, str] = {}
    room = budget
    for _ in range(ATTEMPTS):
        picked = [pool[index] for index in pick(pool, room, count)]
        found = _lines(entries, by_entry, picked)
        over = sum(count(line) for line in found.values()) - budget
        if over <= 0:
            return found
        room -= over + room // 20
    return {}


def _lines(
    entries: Sequence[Said], by_entry: Mapping[str, Sequence[Place]], picked: Sequence[Excerpt]
) -> dict[Place, str]:
    """Write the excerpts that were picked, each for the result that it is from."""
    texts = {
        (entry.id, index): _text(entry, index).lower()
        for entry in entries
        for _, index in by_entry.get(entry.id, ())
    }
    groups: dict[Place, list[Excerpt]] = {}
    for excerpt in picked:
        at = max(by_entry[excerpt.entry], key=lambda place: _holds(texts[place], excerpt))
        groups.setdefault(at, []).append(excerpt)
    return {place: _line(group) for place, group in groups.items()}


def _holds(text: str, excerpt: Excerpt) -> tuple[bool, int]:
    """Rate how surely an excerpt is from a text: word for word, or by the names in it."""
    said = excerpt.text.lower()
    return said in text, sum(key.lower() in text for key in excerpt.names if key.lower() in said)


def _text(entry: Said, index: int) -> str:
    part = entry.message.parts[index]
    return part.text if isinstance(part, ToolResult) else ""


def _shown(entries: Sequence[Said], blanked: AbstractSet[Place]) -> str:
    """Return the text that stays in the view."""
    pieces: list[str] = []
    for entry in entries:
        for index, part in enumerate(entry.message.parts):
            if isinstance(part, ToolCall):
                pieces.append(str(part.arguments))
            elif isinstance(part, Text | ToolResult) and (entry.id, index) not in blanked:
                pieces.append(part.text)
    return "\n".join(pieces).lower()


def _discounted(excerpt: Excerpt, shown: str) -> Excerpt:
    worths = {
        key: value * excerpts.SHOWN if key.lower() in shown else value for key, value in excerpt.names.items()
    }
    return msgspec.structs.replace(excerpt, names=worths)


def _line(group: Sequence[Excerpt]) -> str:
    """Write what one result held on one line: what concerns one topic together, in its order."""
    listed = dict.fromkeys(excerpt.text for excerpt in group if excerpt.kind == "listing")
    topics: dict[str, list[str]] = {}
    for excerpt in group:
        if excerpt.kind != "listing":
            topic = excerpt.topic if excerpt.kind == "hit" else ""
            topics.setdefault(topic, []).append(" ".join(excerpt.text.split()))
    lines = [f"{topic}: {ITEM.join(texts)}" if topic else ITEM.join(texts) for topic, texts in topics.items()]
    return ITEM.join([*paths.by_folder(listed), *lines])
