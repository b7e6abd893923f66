"""The model of a log: an append-only tree of entries and a leaf, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from foldline.core.log.entries import Entry
from foldline.core.log.log import verify
from foldline.errors import LeafMoved, StoreCorrupt, StoreError


class Log:
    """An append-only tree of entries and a leaf, in memory."""

    def __init__(self, entries: Iterable[Entry] = (), leaf: str | None = None) -> None:
        self._entries: dict[str, Entry] = {}
        self.leaf: str | None = None
        for entry in entries:
            self._add(entry)
        if leaf is not None:
            self.move(leaf)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, entry: object) -> bool:
        return entry in self._entries

    def __getitem__(self, entry: str) -> Entry:
        return self._entries[entry]

    def append(self, entries: Iterable[Entry], *, seen: str | None) -> None:
        """Append a chain of entries after the leaf that the writer saw, all or none.

        Raises LeafMoved if the leaf is another one; the same entries, times included, that already follow
        `seen` on the path are left as they are.
        """
        new = list(entries)
        if self._already_there(new, seen):
            return
        if seen != self.leaf:
            raise LeafMoved("another writer appended first", leaf=self.leaf)
        before = seen
        for entry in new:
            if entry.parent != before:
                raise StoreError(f"entry {entry.id} does not follow {before}")
            before = entry.id
        for entry in new:
            self._add(entry)

    def _already_there(self, new: list[Entry], seen: str | None) -> bool:
        if not new or new[-1].id not in self._entries:
            return not new
        times = {entry.id: entry.at for entry in self.path()}
        return new[0].parent == seen and all(
            entry.id in times and times[entry.id] == entry.at for entry in new
        )

    def _add(self, entry: Entry) -> None:
        if entry.parent is not None and entry.parent not in self._entries:
            raise StoreCorrupt(f"entry {entry.id} follows {entry.parent}, which is not in the log")
        self._entries[entry.id] = entry
        self.leaf = entry.id

    def move(self, leaf: str | None) -> None:
        """Move the leaf to an entry of the log, or before the first (None). Nothing is removed."""
        if leaf is not None and leaf not in self._entries:
            raise StoreError(f"no entry {leaf} in this session")
        self.leaf = leaf

    def path(self, leaf: str | None = None) -> list[Entry]:
        """Return the entries from the root to `leaf` (default: the log's leaf)."""
        found: list[Entry] = []
        at = self.leaf if leaf is None else leaf
        while at is not None:
            found.append(self._entries[at])
            at = found[-1].parent
        return found[::-1]

    def entries(self) -> Iterator[Entry]:
        """Yield every entry of every branch, in the order of appending."""
        yield from self._entries.values()

    def verify(self) -> list[str]:
        """Return what is wrong with the log; an empty list proves it intact."""
        return verify(self._entries.values())
