"""Edits by the entry that they change, and the tokens of entries with their edits.

A boundary lists edits (a result blanked, a middle elided, thinking stripped). The view itself repairs what no
provider accepts: it leaves out empty texts, duplicate calls and late results, and adds notes for late results
and unanswered calls. An edit's `saved` is counted from the part as it was received. Compactions measure
messages by `tokens_of` alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeGuard

import msgspec

from foldline.core.log.entries import EXCLUDED, Compacted, Edit, Pruned, Said
from foldline.core.log.messages import Text

PartAt = tuple[str, int]  # (entry id, part index)
EditsOf = Mapping[str, Sequence[Edit]]  # by entry id
Edits = dict[str, tuple[Edit, ...]]


class ViewRepairs(msgspec.Struct, frozen=True):
    """The parts that a view leaves `out`, and by how many tokens that changes each entry.

    `more` maps an entry id to the tokens of the notes that stay in the view as long as the entry, less those
    of the parts left out.
    """

    out: AbstractSet[PartAt] = frozenset()
    more: Mapping[str, int] = {}


NO_REPAIRS = ViewRepairs()


def tokens_of(entries: Iterable[Said], edits: EditsOf, repairs: ViewRepairs = NO_REPAIRS) -> int:
    """Return the tokens that entries take in a view with their edits, and the notes made for them."""
    return sum(_tokens(entry, edits.get(entry.id, ()), repairs) for entry in entries)


def _tokens(entry: Said, edits: Sequence[Edit], repairs: ViewRepairs) -> int:
    saved = sum(edit.saved for edit in edits if (edit.entry, edit.part) not in repairs.out)
    return max(0, entry.tokens + repairs.more.get(entry.id, 0) - saved)


def merged(edits: EditsOf, new: Iterable[Edit]) -> Edits:
    """Return edits with new ones added; each replaces an older one of the same part."""
    result: Edits = {entry: tuple(edits_of) for entry, edits_of in edits.items()}
    for edit in new:
        older = (old for old in result.get(edit.entry, ()) if old.part != edit.part)
        result[edit.entry] = (*older, edit)
    return result


def flat(edits: EditsOf) -> list[Edit]:
    """Return all edits in one list."""
    return [edit for entry_edits in edits.values() for edit in entry_edits]


def saved_by(edits: EditsOf) -> int:
    """Return the tokens that edits save."""
    return sum(edit.saved for edit in flat(edits))


def is_folded(edits: Iterable[Edit]) -> bool:
    """Whether a message with these edits is in a range that a summary replaces."""
    return any(edit.kind == "folded" for edit in edits)


def range_summary(edits: Iterable[Edit]) -> str:
    """Return the summary of the folded range that begins at the message of these edits, or ""."""
    texts = (edit.replacement for edit in edits if edit.kind == "folded")
    return next((part.text for part in texts if isinstance(part, Text)), "")


def folds(entry: object) -> TypeGuard[Compacted | Pruned]:
    """Whether an entry of the log folds messages into a summary."""
    return isinstance(entry, Compacted) or (isinstance(entry, Pruned) and bool(range_summary(entry.edits)))


def summary_of(boundary: Compacted | Pruned) -> str:
    """Return the summary that a boundary adds to the view; "" if it only edits messages."""
    return boundary.checkpoint.summary if isinstance(boundary, Compacted) else range_summary(boundary.edits)


def unfolded(edits: EditsOf, entries: Iterable[Said]) -> Edits:
    """Return edits without those of entries in a folded range; exclusions by the user stay."""
    return edits_of(edits, edits.keys() - {one.id for one in entries if is_folded(edits.get(one.id, ()))})


def edits_of(edits: EditsOf, ids: Container[str]) -> Edits:
    """Return the edits of the entries with these ids, and the exclusions by the user in all others."""
    kept = {
        entry: tuple(edit for edit in entry_edits if entry in ids or edit.kind == EXCLUDED)
        for entry, entry_edits in edits.items()
    }
    return {entry: entry_edits for entry, entry_edits in kept.items() if entry_edits}


def edited_parts(edits: EditsOf) -> set[PartAt]:
    """Return the parts that edits change."""
    return {(edit.entry, edit.part) for edit in flat(edits)}
