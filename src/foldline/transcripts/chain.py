"""Rechain the entries of our own form after a damaged line.

Ids depend on parents, so an entry whose parent is lost gets another parent and a new id. References to it (in
a boundary, a pin, an undo, a ledger, a recall handle) are changed to the new id.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeVar

import msgspec

from foldline.core.log.codec import decode, encode
from foldline.core.log.entries import Compacted, Entry, Lifted, Pruned, Said
from foldline.core.log.log import chained, next_said_key

E = TypeVar("E", bound=Entry)

_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_HEAD = re.compile(
    rb'\{"type":"([a-z]+)"(?:,"id":"([0-9a-f]{32})"(?:,"parent":(?:(null)|"([0-9a-f]{32})"))?)?'
)


class Unplaceable(Exception):
    """Raised for an intact entry that is useless because what it refers to is lost."""


class LostHead(NamedTuple):
    """The readable start of a damaged line: its kind, id and parent ("" for the first entry)."""

    kind: str = ""
    entry: str | None = None
    parent: str | None = None


def head_of(raw: bytes) -> LostHead:
    """Read the head of a damaged line, as far as it is intact."""
    found = _HEAD.match(raw)
    if found is None:
        return LostHead()
    kind, entry, is_first, parent = (piece.decode() if piece else None for piece in found.groups())
    return LostHead(kind or "", entry, "" if is_first else parent)


def head_of_entry(entry: Entry) -> LostHead:
    """Return the head of an entry that can be read, but not used."""
    return LostHead(str(entry.__struct_config__.tag), entry.id, entry.parent or "")


class _Link(NamedTuple):
    """A placed entry: its parent, the said-key of the newest message up to it, and its kind."""

    parent: str | None
    key: str
    said: bool
    compacted: bool


class Chain:
    """Maps ids in the file to new ids, and links the entries placed so far.

    A lost id maps to the entry before it: children of the lost entry become children of that one.
    """

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}  # by new id
        self._ids: dict[str, str] = {}  # the id in the file -> the new one
        self._lost: dict[str, str | None] = {}  # lost id -> the entry before it
        self._unnamed = 0  # lost entries without an id
        self._newest: str | None = None

    def __contains__(self, entry: str) -> bool:
        return entry in self._ids

    def knows(self, parent: str | None) -> bool:
        """Return whether an entry with that parent can be placed: the parent was read or is known as lost."""
        return parent is None or parent in self._ids or parent in self._lost

    def lose(self, head: LostHead) -> str | None:
        """Note a lost entry by its head; return the entry before it."""
        before = self._newest
        if head.parent == "" or (head.parent is not None and self.knows(head.parent)):
            before = self.new_id(head.parent)
        if head.entry is None:
            self._unnamed += 1
        elif head.entry not in self._ids:
            self._lost[head.entry] = before
        return before

    def lose_parent(self, parent: str) -> bool:
        """Note a parent that was not read; return whether an earlier damaged line accounts for it."""
        self._lost[parent] = self._newest
        self._unnamed -= 1
        return self._unnamed >= 0

    def new_id(self, entry: str | None) -> str | None:
        """Return the new id of an entry; for a lost one, of the entry before it (None: the start)."""
        return self._ids.get(entry or "") or self._lost.get(entry or "")

    def place(self, entry: Entry) -> Entry:
        """Return an entry chained to the entries placed before it; raises Unplaceable."""
        parent = self.new_id(entry.parent)
        placed = entry
        if isinstance(entry, Said):
            key = next_said_key(self._key(parent), entry.message)
            moved = entry if entry.parent == parent else chained(entry, parent)
            placed = msgspec.structs.replace(moved, said_key=key)
        elif self._lost:
            if isinstance(entry, Lifted) and entry.target in self._lost:
                raise Unplaceable("the boundary that it undoes or redoes is lost")
            placed = chained(self._with_new_ids(self._without_lost(entry, parent)), parent)
        key = placed.said_key if isinstance(placed, Said) else self._key(parent)
        said, compacted = isinstance(placed, Said), isinstance(placed, Compacted)
        self._links[placed.id] = _Link(parent, key, said, compacted)
        self._ids[entry.id] = self._newest = placed.id
        return placed

    def _key(self, entry: str | None) -> str:
        return self._links[entry].key if entry is not None else ""

    def newest_compaction(self, leaf: str | None) -> str | None:
        """Return the newest compaction on the path to an entry, by its new id."""
        return next((id_ for id_ in reversed(self._path(leaf)) if self._links[id_].compacted), None)

    def _path(self, leaf: str | None) -> list[str]:
        path: list[str] = []
        while leaf is not None:
            path.append(leaf)
            leaf = self._links[leaf].parent
        return path[::-1]

    def _without_lost(self, entry: Entry, parent: str | None) -> Entry:
        """Remove references to lost messages from a boundary."""
        if not isinstance(entry, Compacted | Pruned):
            return entry
        edits = tuple(edit for edit in entry.edits if edit.entry in self._ids)
        seen = entry.seen if entry.seen in self._ids else self.new_id(entry.seen)
        entry = msgspec.structs.replace(entry, edits=edits, seen=seen)
        if isinstance(entry, Pruned):
            return entry
        first = entry.first_kept
        return msgspec.structs.replace(
            entry,
            first_kept=first if first is None or first in self._ids else self._first_after(first, parent),
            leading=tuple(id_ for id_ in entry.leading if id_ in self._ids),
            quoted=tuple(id_ for id_ in entry.quoted if id_ in self._ids),
        )

    def _first_after(self, lost: str, parent: str | None) -> str:
        """Return the first message after a lost one on the path to `parent`; raises Unplaceable."""
        path, before = self._path(parent), self._lost.get(lost)
        start = path.index(before) + 1 if before in path else 0 if lost in self._lost else len(path)
        for id_ in path[start:]:
            if self._links[id_].said:
                return id_
        raise Unplaceable("the messages that it kept are lost")

    def _with_new_ids(self, entry: E) -> E:
        """Replace ids in an entry by the new ones, wherever they occur."""
        new_ids = {old.encode(): id_.encode() for old, id_ in self._ids.items()}
        raw = _ID.sub(lambda found: new_ids.get(found[0], found[0]), encode(entry))
        return msgspec.convert(decode(raw), type(entry))
