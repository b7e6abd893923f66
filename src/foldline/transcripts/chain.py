"""What stands behind a damaged line of our own form, chained anew to what is left.

Ids chain to their parents, so an entry whose parent is lost gets another parent and with it another id. What
names an entry (a boundary, a pin, an undo, a ledger, a handle to recall) then names it by its new id.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar, cast

import msgspec

from foldline.core.log.entries import Compacted, Entry, Lifted, Pruned, Said
from foldline.core.log.log import chained, next_said_key

E = TypeVar("E", bound=Entry)

_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")


class Unplaceable(Exception):
    """Why an intact entry says nothing where what it names is lost."""


class Chain:
    """The ids of a file -> the ids of what was read of it, and the entries so far.

    An id that is lost stands for the entry before it: what follows the one now follows the other.
    """

    def __init__(self) -> None:
        self._links: dict[str, tuple[str | None, str]] = {}  # new id -> its parent and its kind
        self._ids: dict[str, str] = {}  # the id in the file -> the new one
        self._keys: dict[str | None, str] = {
            None: ""
        }  # new id -> the said-key of the newest message up to it
        self._lost: dict[str, str | None] = {}  # an id that is lost -> the entry before it
        self._above: dict[str, str | None] = {}  # an id that is lost -> its parent in the file
        self._behind: dict[str, str] = {}  # an id that is lost -> the first entry that follows it
        self._unnamed: list[str | None] = []  # lost entries without an id: the entries before them
        self._newest: str | None = None

    def __contains__(self, entry: str) -> bool:
        return entry in self._ids

    def knows(self, parent: str | None) -> bool:
        """Return whether an entry with that parent can be placed: it is here, or it is known to be lost."""
        return parent is None or parent in self._ids or parent in self._lost

    def lose(self, entry: str | None, parent: str | None) -> str | None:
        """Note an entry that cannot be read, by what is known of it; return the entry before it.

        `parent` "" is the start.
        """
        before = self.now(parent) if parent == "" or (parent and self.knows(parent)) else self._newest
        if entry is None:
            self._unnamed.append(before)
        elif entry not in self._ids:
            self._lost[entry], self._above[entry] = before, parent
        return before

    def miss(self, parent: str) -> bool:
        """Note a parent that is not here; return whether a damaged line before accounts for it."""
        known = bool(self._unnamed)
        self._lost[parent] = self._unnamed.pop() if known else self._newest
        return known

    def now(self, entry: str | None) -> str | None:
        """Return the new id of an entry; of a lost one, that of the entry before it (None: the start)."""
        if entry is None or entry in self._ids:
            return self._ids.get(entry or "")
        return self._lost.get(entry)

    def place(self, entry: Entry) -> Entry:
        """Return an entry as it stands behind what is left; raises Unplaceable."""
        parent = self.now(entry.parent)
        placed = self._placed(entry, parent)
        if isinstance(placed, Said):
            key = next_said_key(self._keys[parent], placed.message)
            placed = msgspec.structs.replace(placed, said_key=key)
        lost = entry.parent
        while lost in self._lost and lost not in self._behind:
            self._behind[lost] = placed.id
            lost = self._above.get(lost)
        self._ids[entry.id] = self._newest = placed.id
        self._links[placed.id] = (parent, kind_of(placed))
        self._keys[placed.id] = placed.said_key if isinstance(placed, Said) else self._keys[parent]
        return placed

    def newest_compaction(self, leaf: str | None) -> str | None:
        """Return the newest compaction on the path to an entry, by its new id."""
        path = self._path(leaf)
        return next((id_ for id_ in reversed(path) if self._links[id_][1] == "compacted"), None)

    def _path(self, leaf: str | None) -> list[str]:
        path: list[str] = []
        while leaf is not None:
            path.append(leaf)
            leaf = self._links[leaf][0]
        return path[::-1]

    def _placed(self, entry: Entry, parent: str | None) -> Entry:
        if isinstance(entry, Said):
            return entry if entry.parent == parent else chained(entry, parent)
        if not self._lost:
            return entry
        if isinstance(entry, Lifted) and entry.target in self._lost:
            raise Unplaceable("what it undoes or redoes is lost")
        return chained(self._renamed(self._without_lost(entry, parent)), parent)

    def _without_lost(self, entry: Entry, parent: str | None) -> Entry:
        """Leave out what a boundary says of lost messages."""
        if not isinstance(entry, Compacted | Pruned):
            return entry
        edits = tuple(edit for edit in entry.edits if edit.entry in self._ids)
        seen = entry.seen if entry.seen in self._ids else self.now(entry.seen)
        entry = msgspec.structs.replace(entry, edits=edits, seen=seen)
        if isinstance(entry, Pruned):
            return entry
        first = entry.first_kept
        return msgspec.structs.replace(
            entry,
            first_kept=first if first is None or first in self._ids else self._first_behind(first, parent),
            leading=tuple(id_ for id_ in entry.leading if id_ in self._ids),
            quoted=tuple(id_ for id_ in entry.quoted if id_ in self._ids),
        )

    def _first_behind(self, lost: str, parent: str | None) -> str:
        """Return the first message behind a lost one on the path to `parent`; raises Unplaceable."""
        path, behind = self._path(parent), self._behind.get(lost)
        for id_ in path[path.index(behind) if behind in path else len(path) :]:
            if self._links[id_][1] == "said":
                return id_
        raise Unplaceable("the messages that it kept are lost")

    def _renamed(self, entry: E) -> E:
        """Name entries by their new ids, wherever an entry says an id."""
        renamed = self._walk(msgspec.to_builtins(entry))
        return msgspec.convert(renamed, type(entry))

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return _ID.sub(lambda found: self._ids.get(found[0], found[0]), value)
        if isinstance(value, dict):
            return {key: self._walk(item) for key, item in cast("dict[str, Any]", value).items()}
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in cast("list[Any]", value)]
        return value


class LostHead(msgspec.Struct, frozen=True):
    """What can still be read of a damaged line: its kind, its id and its parent ("": it is the first)."""

    kind: str = ""
    entry: str | None = None
    parent: str | None = None


_HEAD = re.compile(
    rb'\{"type":"([a-z]+)"(?:,"id":"([0-9a-f]{32})"(?:,"parent":(?:(null)|"([0-9a-f]{32})"))?)?'
)


def head_of(raw: bytes) -> LostHead:
    """Read the head of a damaged line, as far as it goes."""
    found = _HEAD.match(raw)
    if found is None:
        return LostHead()
    kind, entry, start, parent = (piece.decode() if piece else None for piece in found.groups())
    return LostHead(kind or "", entry, "" if start else parent)


def head_of_entry(entry: Entry) -> LostHead:
    """Return what is known of an entry that can be read, but not used."""
    return LostHead(kind_of(entry), entry.id, entry.parent or "")


def kind_of(entry: Entry) -> str:
    """Return the kind of an entry as the file writes it."""
    return str(entry.__struct_config__.tag)
