"""The view: what the model is sent, folded from the entries of a path.

`ViewState` takes entries one by one, so that a turn costs what the turn adds; a boundary is the only entry that
makes it look at older ones again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from foldline.core.checkpoint.receipt import category
from foldline.core.cut.notes import UNANSWERED
from foldline.core.cut.pairing import Pairing, waits
from foldline.core.log.entries import (
    Compacted,
    Edit,
    Entry,
    Lifted,
    Noted,
    Pin,
    Pinned,
    Pruned,
    Said,
)
from foldline.core.log.messages import Message, Role, Text, ToolCall, ToolResult
from foldline.core.measure.accounting import Size, context_size, real_usage, scaled
from foldline.core.measure.tokens import Counter, message_tokens, part_tokens

UNIQUE_IDS = ("anthropic", "openai-responses")  # dialects that want a call's id once in the whole list
LATE_CAP = 2_000  # characters of a late result that a note quotes; the rest stays in the history


class Kept(msgspec.Struct, frozen=True):
    """An entry's message, as received but for the edits that a boundary listed."""

    entry: Said
    edits: tuple[Edit, ...] = ()


class Made(msgspec.Struct, frozen=True):
    """A message that the view adds: `kind` is checkpoint, ack, unanswered, late or pin; `source` its entry."""

    kind: str
    message: Message
    source: str
    tokens: int


Item = Kept | Made


class ViewState:
    """The fold of a path, or of the part of a path that its view needs."""

    def __init__(self, entries: Iterable[Entry] = (), *, counter: Counter) -> None:
        self._counter = counter
        self._entries: list[Entry] = list(entries)
        self._refold()

    def _reset(self) -> None:
        self.boundary: Compacted | None = None
        self.leading: list[Said] = []
        self.quoted: list[Said] = []
        self.kept: list[Said] = []  # what was said and is in the view, from the first kept on
        self.edits: dict[str, tuple[Edit, ...]] = {}  # those that boundaries list
        self.repairs: dict[str, tuple[Edit, ...]] = {}  # those that make this view sendable
        self.pins: dict[str, Pin] = {}
        self.notes: list[Noted] = []
        self.fresh_from = 0  # index in `kept` of the first message said after the newest boundary
        self.usage_from = 0  # index in `kept` from which usage was measured on this very view
        self.anchor: int | None = None  # index in `kept` of the newest reply whose usage counts
        self.pairing = Pairing()
        self._items: list[Item] = []
        self._tokens = 0
        self._added = 0  # those of `_tokens` that stand in messages which the view adds
        self._waiting: list[Item] = []
        self._told: set[str] = set()  # pinned entries whose words a message of the view quotes
        self._used: dict[str, int] = {}  # call id -> how many calls of the view had it
        self._renamed: dict[str, str] = {}  # in the newest batch

    # ---- reading

    @property
    def open_calls(self) -> tuple[str, ...]:
        """The ids of calls that still wait for their results."""
        batch = self.pairing.current
        return tuple(batch.open) if batch else ()

    @property
    def tokens(self) -> int:
        """The size of the view by Foldline's own count, without a system prompt or tools given apart."""
        return self._tokens + sum(item_tokens(item) for item in self._tail())

    @property
    def messages(self) -> int:
        """The number of messages in the view."""
        return len(self._items) + len(self._tail())

    @property
    def owed(self) -> int:
        """The tokens of the note that answers the calls still open."""
        return sum(i.tokens for i in self._tail() if isinstance(i, Made) and i.kind == "unanswered")

    @property
    def made(self) -> int:
        """The tokens of the messages that the view adds."""
        return self._added + sum(item.tokens for item in self._tail() if isinstance(item, Made))

    def context_size(self, apart: int = 0, ratio: float = 1.0) -> Size:
        """Return the context size in tokens: the newest usage since the boundary and estimates of the rest.

        `apart` is a system prompt and tools given apart. Takes the same time however long the view is.
        """
        if self.anchor is None:
            estimated = scaled(apart + self.tokens - self.owed, ratio)
            return Size(estimated, measured=0, estimated=estimated)
        return context_size(self.kept[self.anchor :], ratio=ratio)

    def view(self) -> list[Item]:
        """Return the view; calls still open are answered by a note that says so."""
        return [*self._items, *self._tail()]

    def items(self) -> Sequence[Item]:
        """Return the view without a copy where no call is open: the same list until a boundary, only extended."""
        return self.view() if self._waiting or self.open_calls else self._items

    def entries(self) -> list[Entry]:
        """Return the entries that were folded, in order."""
        return list(self._entries)

    def with_boundary(self, boundary: Compacted | Pruned) -> ViewState:
        """Return the view state of the path and a new boundary behind it; it holds the entries that its view needs."""
        path: list[Entry] = [*self._entries, boundary]
        if isinstance(boundary, Compacted):
            named = {*boundary.leading, *boundary.quoted}
            first = boundary.first_kept or boundary.id
            start = next(index for index, entry in enumerate(path) if entry.id == first)
            path = [*(entry for entry in path[:start] if entry.id in named), *path[start:]]
        return ViewState(path, counter=self._counter)

    # ---- folding

    def named(self, boundary: Compacted | Pruned) -> None:
        """Take the newest entry, a boundary that had no id yet, as it was appended: the view says the same."""
        self._entries[-1] = boundary
        self.boundaries = (*self.boundaries[:-1], boundary.id)
        if isinstance(boundary, Compacted):
            self.boundary = boundary
            for index, item in enumerate(self._items):
                if isinstance(item, Made) and not item.source:
                    self._items[index] = msgspec.structs.replace(item, source=boundary.id)

    def push(self, entry: Entry) -> None:
        """Take the next entry of the path."""
        self._entries.append(entry)
        if isinstance(entry, Said):
            self._say(entry)
        elif isinstance(entry, Pinned):
            self._pin(entry)
        elif isinstance(entry, Noted):
            self.notes.append(entry)
        else:
            self._refold()

    def _refold(self) -> None:
        self._reset()
        # of the path, lifted ones and their lifting included: what the view changes with, but for growing
        self.boundaries = tuple(e.id for e in self._entries if isinstance(e, Compacted | Pruned | Lifted))
        lifted = {e.target: e.lifted for e in self._entries if isinstance(e, Lifted)}
        boundaries = [
            (i, e)
            for i, e in enumerate(self._entries)
            if isinstance(e, Compacted | Pruned) and not lifted.get(e.id, False)
        ]
        start = self._start([(i, e) for i, e in boundaries if isinstance(e, Compacted)])
        newest = boundaries[-1][0] if boundaries else -1
        lift = max((i for i, e in enumerate(self._entries) if isinstance(e, Lifted)), default=-1)
        said_at = next((i for i, e in boundaries if e is self.boundary), -1)
        self._collect_edits([e for i, e in boundaries if i >= said_at])
        for index in range(start, len(self._entries)):
            entry = self._entries[index]
            if index == newest:
                self.fresh_from = len(self.kept)
            if index in (newest, lift):
                self.usage_from = len(self.kept)
                self.anchor = None
            if isinstance(entry, Said):
                self._say(entry)
            elif isinstance(entry, Pinned) and index > said_at:
                self._pin(entry)
        self.notes = [e for e in self._entries if isinstance(e, Noted)]

    def _start(self, compacted: list[tuple[int, Compacted]]) -> int:
        """Place what stands before the kept messages; return the index of the first kept entry."""
        if not compacted:
            return 0
        index, boundary = compacted[-1]
        by_id, self.boundary = {entry.id: (i, entry) for i, entry in enumerate(self._entries)}, boundary
        self.pins = {pin.entry: pin for pin in boundary.checkpoint.pins}
        self._told = set(self.pins)
        for edit in boundary.edits:
            self.edits[edit.entry] = (*self.edits.get(edit.entry, ()), edit)
        self.leading = self._said(by_id, boundary.leading)
        self.quoted = self._said(by_id, boundary.quoted)
        start = by_id[boundary.first_kept][0] if boundary.first_kept in by_id else index
        self._keep_all(self.leading)
        made = self._checkpoint(boundary, first=self._first_kept(start))
        if boundary.checkpoint.position == "after":
            self._keep_all(self.quoted)
        for item in made:
            self._emit(item)
        if boundary.checkpoint.position != "after":
            self._keep_all(self.quoted)
        return start

    def _said(self, by_id: dict[str, tuple[int, Entry]], ids: tuple[str, ...]) -> list[Said]:
        return [e for e in (by_id[i][1] for i in ids if i in by_id) if isinstance(e, Said)]

    def _first_kept(self, start: int) -> Message | None:
        return next((e.message for e in self._entries[start:] if isinstance(e, Said)), None)

    def _checkpoint(self, boundary: Compacted, first: Message | None) -> list[Made]:
        point = boundary.checkpoint
        role: Role = "system" if point.role == "system" else "user"
        made = [Made("checkpoint", Message(role, (Text(point.text),)), boundary.id, point.tokens)]
        before = self.quoted if point.position != "after" else ()
        if point.ack and (before or first is None or first.role != "assistant"):
            made.append(self._made("ack", Message("assistant", (Text(point.ack),)), boundary.id))
        return made

    def _collect_edits(self, boundaries: list[Compacted | Pruned]) -> None:
        for boundary in boundaries:
            if isinstance(boundary, Pruned):
                for edit in boundary.edits:
                    older = tuple(e for e in self.edits.get(edit.entry, ()) if e.part != edit.part)
                    self.edits[edit.entry] = (*older, edit)

    # ---- one message

    def _say(self, entry: Said) -> None:
        message = entry.message
        if self.boundary is None and not self.kept and message.role in ("system", "developer"):
            self.leading.append(entry)
            self._keep_all([entry])
            return
        index = len(self.kept)
        self.kept.append(entry)
        if real_usage(message) is not None:
            self.anchor = index
        batch = self.pairing.current
        if waits(message, batch):
            self._waiting.append(self._as_kept(entry))
            self.pairing.say(index, message)
            return
        late, doubled = len(self.pairing.late), len(self.pairing.doubled)
        left = self.pairing.say(index, message)
        if left and batch is not None:
            self._emit(self._unanswered(left, entry.id))
            if not message.results or message.calls:
                self._release()
        strange = [part for at, part in self.pairing.late[late:] if at == index]
        twice = [part for at, part in self.pairing.doubled[doubled:] if at == index]
        blank = [i for i, p in enumerate(message.parts) if isinstance(p, Text) and not p.text.strip()]
        out = [self._without(entry, part) for part in (*twice, *blank, *strange)]
        if repairs := (*out, *self._own_ids(entry, {edit.part for edit in out})):
            self.repairs[entry.id] = repairs
        self._keep_but(entry, strange, len(out))
        if not self.open_calls:
            self._release()

    def _without(self, entry: Said, part: int) -> Edit:
        """Take out what no provider takes: a late result, a blank text, a call whose id is taken."""
        return Edit(entry.id, part, "repaired", None, part_tokens(entry.message.parts[part], self._counter))

    def _own_ids(self, entry: Said, gone: set[int]) -> list[Edit]:
        """Give calls an id of their own where one is used again and the dialect forbids that."""
        native = entry.message.native
        edits: list[Edit] = []
        for index, part in enumerate(entry.message.parts):
            if index in gone:
                continue
            if isinstance(part, ToolCall):
                times = self._used[part.id] = self._used.get(part.id, 0) + 1
                self._renamed.pop(part.id, None)
                if times > 1 and (native is None or native.dialect in UNIQUE_IDS):
                    self._renamed[part.id] = self._free_id(part.id, times, entry.message)
                    edits.append(self._renaming(entry, index, id=self._renamed[part.id]))
            elif isinstance(part, ToolResult) and part.call_id in self._renamed:
                edits.append(self._renaming(entry, index, call_id=self._renamed[part.call_id]))
        return edits

    def _free_id(self, call_id: str, number: int, message: Message) -> str:
        """Return an id that no call of the view has so far, nor another call of the message."""
        taken = {call.id for call in message.calls}
        while (new := f"{call_id}_{number}") in self._used or new in taken:
            number += 1
        self._used[new] = 1
        return new

    def _renaming(self, entry: Said, index: int, **new_id: str) -> Edit:
        """Give a part, as a boundary left it, another id."""
        older = next((edit for edit in self.edits.get(entry.id, ()) if edit.part == index), None)
        part = (older.replacement if older else None) or entry.message.parts[index]
        saved = older.saved if older else 0
        return Edit(entry.id, index, "repaired", msgspec.structs.replace(part, **new_id), saved)

    def _keep_but(self, entry: Said, strange: list[int], gone: int) -> None:
        """Keep a message unless nothing of it is left; late results become notes behind it."""
        if gone < len(entry.message.parts):
            self._keep(entry)
        for part in strange:
            result = entry.message.parts[part]
            if isinstance(result, ToolResult):
                self._waiting.append(self._late(result, entry.id))

    def _pin(self, entry: Pinned) -> None:
        if not entry.on:
            self.pins.pop(entry.target, None)
            return
        self.pins[entry.target] = Pin(entry.target, entry.text)
        shown = {e.id for e in (*self.leading, *self.quoted, *self.kept)} - set(self.edits)
        if entry.target in shown | self._told:
            return
        self._told.add(entry.target)
        quote = Text(f"[Pinned by the user, from earlier in this conversation]\n{entry.text}")
        self._waiting.append(self._made("pin", Message("user", (quote,)), entry.id))
        if not self.open_calls:
            self._release()

    # ---- items

    def _keep_all(self, entries: list[Said]) -> None:
        for entry in entries:
            self._mend_blanks(entry)
            self._keep(entry)

    def _mend_blanks(self, entry: Said) -> None:
        parts = entry.message.parts
        blank = [i for i, part in enumerate(parts) if isinstance(part, Text) and not part.text.strip()]
        if blank:
            self.repairs[entry.id] = tuple(self._without(entry, part) for part in blank)

    def _as_kept(self, entry: Said) -> Kept:
        repairs = self.repairs.get(entry.id, ())
        mended = {edit.part for edit in repairs}
        listed = (edit for edit in self.edits.get(entry.id, ()) if edit.part not in mended)
        return Kept(entry, (*listed, *repairs))

    def _keep(self, entry: Said) -> None:
        self._emit(self._as_kept(entry))

    def _emit(self, item: Item) -> None:
        self._items.append(item)
        self._tokens += item_tokens(item)
        self._added += item.tokens if isinstance(item, Made) else 0

    def _release(self) -> None:
        for item in self._waiting:
            self._emit(item)
        self._waiting.clear()

    def _made(self, kind: str, message: Message, source: str) -> Made:
        return Made(kind, message, source, message_tokens(message, self._counter))

    def _unanswered(self, call_ids: tuple[str, ...], source: str) -> Made:
        own = (self._renamed.get(call_id, call_id) for call_id in call_ids)
        parts = tuple(ToolResult(call_id, (Text(UNANSWERED),), is_error=True) for call_id in own)
        each = (message_tokens(Message("tool", (part,)), self._counter) for part in parts)
        return Made("unanswered", Message("tool", parts), source, sum(each))

    def _late(self, result: ToolResult, source: str) -> Made:
        text = result.text
        more = (
            f"\n[{len(text) - LATE_CAP:,} more characters in entry {source}]" if len(text) > LATE_CAP else ""
        )
        quote = f"[Late result of tool call {result.call_id}, quoted as data]\n{text[:LATE_CAP]}{more}"
        return self._made("late", Message("user", (Text(quote),), injected=True), source)

    def _tail(self) -> list[Item]:
        """What a view at a leaf with open calls needs to be valid, and what waits for their results."""
        batch = self.pairing.current
        if batch is None:
            return list(self._waiting)
        source = self.kept[batch.start].id
        return [self._unanswered(tuple(batch.open), source), *self._waiting]


def item_tokens(item: Item) -> int:
    """Return the tokens of one item of a view."""
    if isinstance(item, Made):
        return item.tokens
    return max(0, item.entry.tokens - sum(edit.saved for edit in item.edits))


def sized(items: Sequence[Item]) -> list[tuple[str, int]]:
    """Return what each item of a view counts as, and its tokens."""
    return [(i.kind if isinstance(i, Made) else category(i.entry), item_tokens(i)) for i in items]


def view(path: Iterable[Entry], *, counter: Counter) -> list[Item]:
    """Return the view of a path (root to leaf, or the part that `Store.active` returns)."""
    return ViewState(path, counter=counter).view()


def native_items(items: Sequence[Item]) -> list[tuple[Message, tuple[Edit, ...]]]:
    """Return what a dialect renders: each message with its edits."""
    return [(i.entry.message, i.edits) if isinstance(i, Kept) else (i.message, ()) for i in items]
