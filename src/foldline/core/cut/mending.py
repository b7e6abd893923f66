"""What a view leaves out of messages and adds beside them, so that a provider takes them; and their sizes.

Empty texts, calls whose id stands twice and late results are left out; a late result is quoted by a note,
and so is that a call has none. `tokens_of` is the one size of messages that a compaction reckons with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from foldline.core.log.entries import Edit, Said

PartAt = tuple[str, int]  # (entry id, part index)


class Mending(msgspec.Struct, frozen=True):
    """The parts that a view leaves `out`, and by how many tokens each entry is larger or smaller for it.

    `more` is by entry id: the tokens of the notes that stand in the view as long as the entry does, less
    those of what is left out.
    """

    out: AbstractSet[PartAt] = frozenset()
    more: Mapping[str, int] = {}


UNMENDED = Mending()


def tokens_of(
    entries: Iterable[Said], edits: Mapping[str, Sequence[Edit]], mending: Mending = UNMENDED
) -> int:
    """Return the tokens that entries take in a view, with their edits, and with the notes made for them."""
    return sum(_tokens(entry, edits.get(entry.id, ()), mending) for entry in entries)


def _tokens(entry: Said, edits: Sequence[Edit], mending: Mending) -> int:
    saved = sum(edit.saved for edit in edits if (edit.entry, edit.part) not in mending.out)
    return max(0, entry.tokens + mending.more.get(entry.id, 0) - saved)
