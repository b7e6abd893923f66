"""The view: what the model is sent, folded from the entries of a path.

    path    s1  s2 | s3  s4  C  s5  P  s6  s7       s: Said, C: Compacted, P: Pruned
            folded | kept from here on (C says so); P lists an edit of s3

    view    [leading]  checkpoint  [ack]  [quoted]  s3*  s4  s5  s6  s7  [notes that wait]
                       `--- made for C ----------'  `------- kept ----'

An acknowledgement waits until something follows that is not the model's own.

Only a boundary changes what is older than itself: the newest `Compacted` that is not lifted says where the
kept messages begin and what stands before them, and every `Pruned` behind it edits some of them. Between two
boundaries a view only grows at its end.

Entries are taken one by one (`push`), so that a turn costs what the turn adds; a boundary builds the view
anew. A message is placed in one of three ways:

- at the head, with the other system messages, while nothing else was said;
- at the end, as received, but for the edits of boundaries and the repairs without which a provider refuses
  it: empty texts and doubled calls are left out, ids that are used again are changed, a late result becomes
  a quoted note, and calls that nobody answered are answered by a note that says so;
- behind the results of the open calls, if it may not stand between a call and its result: it waits, and so
  do the notes and the quotes of pins.

Of a range that a boundary folded in the middle of what is kept, the summary alone is shown.

So a view is a list of messages of the log (`MessageItem`) and of messages that it adds (`AddedItem`). A
reply that holds a compaction by the provider's own server begins the view anew, as a boundary does, unless
that was undone: then it is left out of the reply.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from foldline.core.carried.instructions import kind_of
from foldline.core.carried.select import newest_messages
from foldline.core.carried.summaries import place_of, places_of, said_before, sealed_place, text_of
from foldline.core.checkpoint.untold import untold, untold_range
from foldline.core.cut.edits import (
    Edits,
    ViewRepairs,
    edited_parts,
    flat,
    is_folded,
    merged,
    range_summary,
)
from foldline.core.cut.exclude import is_excluded, left_of
from foldline.core.cut.notes import LATE, UNANSWERED
from foldline.core.cut.pairing import Pairing, waits
from foldline.core.cut.repair import CallIds
from foldline.core.ledger.facts.constraints import standing
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.text.marks import marked
from foldline.core.log.entries import (
    EXCLUDED,
    Compacted,
    Edit,
    Entry,
    Noted,
    Pin,
    Pinned,
    Pruned,
    Said,
)
from foldline.core.log.log import read_boundaries
from foldline.core.log.messages import Message, Part, Role, Text, ToolCall, ToolResult
from foldline.core.measure.accounting import context_size, real_usage, scaled
from foldline.core.measure.tokens import Counter, message_tokens, part_tokens
from foldline.core.secrets.entries import CleanEntries
from foldline.core.secrets.redact import redact

LATE_CAP = 2_000  # characters of a late result that a note quotes; the rest stays in the history


class MessageItem(msgspec.Struct, frozen=True):
    """An entry's message, as received but for the edits that a boundary listed."""

    entry: Said
    edits: tuple[Edit, ...] = ()


AddedKind = Literal["checkpoint", "ack", "unanswered", "late", "pin", "summary"]


class AddedItem(msgspec.Struct, frozen=True):
    """A message that the view adds; `source` is the id of the entry that it was made for."""

    kind: AddedKind
    message: Message
    source: str
    tokens: int


Item = MessageItem | AddedItem


class ViewState:
    """The view of a path, or of the part of a path that its view needs, and what the view was made from."""

    def __init__(
        self, entries: Iterable[Entry] = (), *, counter: Counter, clean: CleanEntries | None = None
    ) -> None:
        self._counter = counter
        answer = Message("tool", (ToolResult("", (Text(UNANSWERED),), is_error=True),))
        self._answer_tokens = message_tokens(answer, counter)  # of the note on a call without a result
        # What anything new is made from: the entries of the path without secrets. Another state of the same
        # path may have looked at them already.
        self.clean = CleanEntries() if clean is None else clean
        self._entries: list[Entry] = list(entries)
        self._rebuild()

    def _reset(self) -> None:
        self.boundary: Compacted | None = None
        self.boundaries: tuple[str, ...] = ()  # all of the path, undone ones and liftings included
        self.leading: list[Said] = []
        self.quoted: list[Said] = []
        self.kept: list[Said] = []  # what was said and is in the view, from the first kept on
        self.edits: Edits = {}  # those that boundaries list
        self.repairs: Edits = {}  # those that make this view sendable
        self.server: Said | None = None  # the reply with which a server's compaction began the view anew
        self.past: list[Said] = []  # what was said before it, since the newest fold
        self.undone = frozenset[str]()  # the ids of what is lifted
        self.pins: dict[str, Pin] = {}
        self.marks: dict[str, Pin] = {}  # what the user marked in a message, by its id
        self.notes: list[Noted] = []
        self.fresh_from = 0  # index in `kept` of the first message that the newest boundary did not know
        self.usage_from = 0  # index in `kept` from which usage was measured on this very view
        self.anchor: int | None = None  # index in `kept` of the newest reply whose usage counts
        self.pairing = Pairing()
        self._items: list[Item] = []
        self._tokens = 0
        self._added = 0  # those of `_tokens` that stand in messages which the view adds
        self._ack: AddedItem | None = None  # the acknowledgement of a checkpoint that nothing follows yet
        self._waiting: list[Item] = []  # what stands behind the results of the open calls
        self._unshown: dict[str, int] = {}  # kept messages of which nothing can be sent, with their tokens
        self._notes = Counts[str]()  # by kept message: tokens of the notes that stay as long as it does
        self._quoted_pins: set[str] = set()  # pinned entries whose words a message of the view quotes
        self._call_ids = CallIds()

    # ---- reading

    @property
    def open_calls(self) -> Mapping[str, str]:
        """The calls that still wait for results, as of now: their ids, each with the name of its tool."""
        batch = self.pairing.current
        return batch.open if batch else {}

    @property
    def tokens(self) -> int:
        """The size of the view by Foldline's own count, without a system prompt or tools given apart."""
        return self._tokens + self.open_call_tokens + sum(item_tokens(item) for item in self._waiting)

    @property
    def messages(self) -> int:
        """The number of messages in the view."""
        return len(self._items) + len(self._waiting) + bool(self.open_calls)

    @property
    def open_call_tokens(self) -> int:
        """The tokens of the note that answers the calls still open."""
        return len(self.open_calls) * self._answer_tokens

    @property
    def made(self) -> int:
        """The tokens of the messages that the view adds."""
        return (
            self._added
            + self.open_call_tokens
            + sum(item.tokens for item in self._waiting if isinstance(item, AddedItem))
        )

    def context_size(self, overhead: int = 0, ratio: float = 1.0) -> int:
        """Return the context size in tokens: the newest usage since the boundary and estimates of the rest.

        `overhead` is a system prompt and tools given apart. Takes the same time however long the view is.
        """
        if self.anchor is None:
            return scaled(overhead + self.tokens - self.open_call_tokens, ratio)
        return context_size(self.kept[self.anchor :], ratio=ratio)

    def view(self) -> list[Item]:
        """Return the view; calls still open are answered by a note that says so."""
        return [*self._items, *self._tail()]

    def items(self) -> Sequence[Item]:
        """Return the view, where no call is open without a copy: the same list until a boundary."""
        return self.view() if self._waiting or self.open_calls else self._items

    def view_repairs(self) -> ViewRepairs:
        """Return what is left out of the kept messages, and the notes that stay as long as a message does."""
        out = [edit for edit in flat(self.repairs) if edit.replacement is None]
        more = Counts(self._notes)
        more.subtract(self._unshown)
        for edit in out:
            if edit.entry not in self._unshown:
                more[edit.entry] -= edit.saved
        return ViewRepairs(frozenset((edit.entry, edit.part) for edit in out), more)

    def entries(self) -> list[Entry]:
        """Return the entries that the view was made from, in order."""
        return list(self._entries)

    def with_boundary(self, boundary: Compacted | Pruned) -> ViewState:
        """Return the state of the path with a new boundary behind it, of the entries that its view needs."""
        path: list[Entry] = [*self._entries, boundary]
        if isinstance(boundary, Compacted):
            named = {*boundary.leading, *boundary.quoted}
            first = boundary.first_kept or boundary.id
            start = next(index for index, entry in enumerate(path) if entry.id == first)
            path = [*(entry for entry in path[:start] if entry.id in named), *path[start:]]
        return ViewState(path, counter=self._counter, clean=self.clean.of(path))

    # ---- growing

    def push(self, entry: Entry) -> None:
        """Take the next entry of the path; a boundary alone takes longer than the entry itself."""
        self._entries.append(entry)
        if isinstance(entry, Said):
            self._say(entry)
            self._mark(entry)
        elif isinstance(entry, Pinned):
            self._pin(entry)
        elif isinstance(entry, Noted):
            self.notes.append(entry)
        else:
            self._rebuild()

    def set_id(self, boundary: Compacted | Pruned) -> None:
        """Take the newest entry, a boundary without an id, as it was appended: the view says the same."""
        self._entries[-1] = boundary
        self.boundaries = (*self.boundaries[:-1], boundary.id)
        if isinstance(boundary, Compacted):
            self.boundary = boundary
            for index, item in enumerate(self._items):
                if isinstance(item, AddedItem) and not item.source:
                    self._items[index] = msgspec.structs.replace(item, source=boundary.id)
            if self._ack is not None:
                self._ack = msgspec.structs.replace(self._ack, source=boundary.id)

    # ---- boundaries

    def _rebuild(self) -> None:
        """Build the view anew: what the newest boundaries leave of the path, then each entry that is kept."""
        self._reset()
        found = read_boundaries(self._entries)
        self.boundaries, self.undone = found.ids, found.undone
        fold = self._entries[found.fold] if found.fold is not None else None
        made = fold.edits if isinstance(fold, Compacted) else ()
        self.edits = merged({}, (*made, *(edit for prune in found.prunes for edit in prune.edits)))
        start = self._begin(found.fold)
        ours = self.boundary is not None and self.boundary.receipt.reason != "imported"
        known = found.fold if found.fold is not None and ours else -1  # the checkpoint has the marks before
        for index in range(start, len(self._entries)):
            if index == found.newest:
                self.fresh_from = self._first_new(self._entries[index])
            if index in found.changes:
                self.usage_from = len(self.kept)
                self.anchor = None
            entry = self._entries[index]
            if isinstance(entry, Said):
                self._say(entry)
                left = left_of(entry, self.edits)
                if left is not None and (index > known or left is not entry):
                    self._mark(left)
            elif isinstance(entry, Pinned) and (found.fold is None or index > found.fold):
                self._pin(entry)
        self.notes = [entry for entry in self._entries if isinstance(entry, Noted)]

    def _first_new(self, boundary: Entry) -> int:
        """Return the index in `kept` of the first message that a boundary was made without knowing."""
        seen = boundary.seen if isinstance(boundary, Compacted | Pruned) else None
        if seen is None:
            return len(self.kept)
        return next((index for index, entry in enumerate(self.kept, 1) if entry.id == seen), 0)

    def _begin(self, fold: int | None) -> int:
        """Place what the fold at this index puts before the kept messages; return where those begin."""
        boundary = self._entries[fold] if fold is not None else None
        if fold is None or not isinstance(boundary, Compacted):
            return 0
        places = {entry.id: index for index, entry in enumerate(self._entries)}
        self.leading = self._named_messages(boundary.leading, places)
        self.quoted = self._named_messages(boundary.quoted, places)
        self.boundary = boundary = self._as_told_now(boundary)
        self.pins = {pin.entry: pin for pin in boundary.checkpoint.pins}
        self.marks = {mark.entry: mark for mark in boundary.checkpoint.marks}
        self._quoted_pins = set(self.pins)
        # not by "": that is the id of a boundary which is not appended yet
        start = places.get(boundary.first_kept, fold) if boundary.first_kept else fold
        self._keep_older(self.leading)
        self._place_checkpoint(boundary)
        return start

    def _named_messages(self, ids: Sequence[str], places: Mapping[str, int]) -> list[Said]:
        return list(self._left(self._entries[places[entry]] for entry in ids if entry in places))

    def _left(self, entries: Iterable[Entry]) -> Iterator[Said]:
        """Yield messages as the user has left them; those that were taken out whole are none any more."""
        for entry in entries:
            left = left_of(entry, self.edits) if isinstance(entry, Said) else None
            if left is not None:
                yield left

    def _as_told_now(self, boundary: Compacted) -> Compacted:
        """Return a fold without what its checkpoint tells of parts that the user took out since."""
        known = edited_parts({"": tuple(edit for edit in boundary.edits if edit.kind == EXCLUDED)})
        since = [edit for edit in flat(self.edits) if edit.kind == EXCLUDED]
        new = {edit.entry for edit in since if (edit.entry, edit.part) not in known}
        whole = [one for one in self._entries if isinstance(one, Said) and one.id in new]
        if not whole:
            return boundary
        left = self.clean(self._left(whole))
        return untold(boundary, self.clean(whole), left, self._counter, quoted=len(self.quoted))

    def _place_checkpoint(self, boundary: Compacted) -> None:
        """Emit the checkpoint before or after the quoted messages; its acknowledgement waits behind it."""
        point = boundary.checkpoint
        behind_quotes = point.position == "after"
        role: Role = "system" if point.role == "system" else "user"
        if behind_quotes:
            self._keep_older(self.quoted)
        self._emit(AddedItem("checkpoint", Message(role, (Text(point.text),)), boundary.id, point.tokens))
        if point.ack:
            self._ack = self._made("ack", Message("assistant", (Text(point.ack),)), boundary.id)
        if not behind_quotes:
            self._keep_older(self.quoted)

    # ---- one message

    def _say(self, entry: Said) -> None:
        """Take a message: into the head of the view, behind the open calls' results, or at its end."""
        left = left_of(entry, self.edits)
        if left is None:
            return
        entry, message, batch = left, left.message, self.pairing.current
        if self.boundary is None and not self.kept and message.role in ("system", "developer"):
            self.leading.append(entry)
            self._keep_older([entry])
            return
        if self._begins_anew(entry):
            self._begin_with(entry)
        index = len(self.kept)
        self.kept.append(entry)
        if real_usage(message) is not None and entry is not self.server:  # its usage may be of both views
            self.anchor = index
        if waits(message, batch):
            if not self._is_folded(entry):
                self._waiting.append(self._as_kept(entry))
            self.pairing.say(index, message)
            return
        self._place(entry, index)
        if not self.open_calls:
            self._release()

    def _begins_anew(self, entry: Said) -> bool:
        """Whether a reply holds a server's compaction, which stands for all that came before it.

        Behind user messages alone a sealed one does not: its server keeps those beside it.
        """
        place = place_of(entry.message) if entry.id not in self.undone else None
        if place is None or any(edit.part == place for edit in self.edits.get(entry.id, ())):
            return False
        before = (*self.leading, *self.quoted, *self.kept)
        return bool(text_of(entry.message.parts[place])) or any(
            one.message.role in ("assistant", "tool") for one in before
        )

    def _begin_with(self, entry: Said) -> None:
        """Begin the view anew: instructions stay; pins, marks and rules are quoted behind the reply."""
        past = [*self.past, *self.quoted, *self.kept]
        newest = newest_messages([one for one in past if one.message.role != "assistant"])
        leading = [one for one in self.leading if sealed_place(one.message) is None]
        leading = [one for one in leading if kind_of(one.message) not in newest]
        boundary, boundaries, pins, marks = self.boundary, self.boundaries, self.pins, self.marks
        edits, repairs, notes, undone = self.edits, self.repairs, self.notes, self.undone
        self._reset()
        self.boundary, self.boundaries, self.pins, self.marks = boundary, boundaries, pins, marks
        self.edits, self.repairs, self.notes, self.undone = edits, repairs, notes, undone
        self.server, self.past = entry, past
        self.leading = [*leading, *reversed(newest.values())]
        self._keep_older(self.leading)
        shown = {one.id for one in self.leading}
        for pin in (*pins.values(), *(mark for mark in marks.values() if mark.entry not in pins)):
            if pin.entry not in shown:
                self._quote(pin)
        if rules := self._rules():
            text = "\n".join(("[The user's standing rules, from earlier in this conversation]", *rules))
            self._waiting.append(self._made("pin", Message("user", (Text(text),)), entry.id))

    def _rules(self) -> list[str]:
        """Return the user's standing rules of what was said before a server's compaction, as lines."""
        older = msgspec.convert(self.boundary.ledger, Ledger).constraints if self.boundary else ()
        return [f"- {fact.text}" for fact in standing(self.clean(self.past), older)]

    def _place(self, entry: Said, index: int) -> None:
        """Put a message at the end of the view, mended so that a provider takes it.

        Calls that it leaves unanswered are answered by a note before it, late results become notes behind it.
        """
        message, late, doubled = entry.message, len(self.pairing.late), len(self.pairing.doubled)
        batch = self.pairing.current
        left = self.pairing.say(index, message)
        if left and batch is not None:
            asked = self.kept[batch.start]
            if not self._is_folded(asked):
                note = self._unanswered(left, entry.id)
                self._notes[asked.id] += note.tokens  # no cut falls between the calls and it
                self._emit(note)
            if not message.results or message.calls:
                self._release()
        late_parts = [part for at, part in self.pairing.late[late:] if at == index]
        doubled_parts = [part for at, part in self.pairing.doubled[doubled:] if at == index]
        gone = [*doubled_parts, *blank_texts(message), *late_parts]
        if entry is self.server:
            gone = sorted({*gone, *said_before(message)})
        elif entry.id in self.undone:
            gone = sorted({*gone, *places_of(message)})
        if self._is_folded(entry):
            self._place_summary(entry, gone)
            return
        self._repair(entry, gone)
        if len(gone) < len(message.parts):
            self._keep(entry)
        else:
            self._unshown[entry.id] = entry.tokens
        for part in (message.parts[place] for place in late_parts):
            if isinstance(part, ToolResult):
                note = self._late(part, entry.id)
                self._notes[entry.id] += note.tokens
                self._waiting.append(note)

    def _is_folded(self, entry: Said) -> bool:
        return is_folded(self.edits.get(entry.id, ()))

    def _place_summary(self, entry: Said, gone: Sequence[int]) -> None:
        """Show the summary of the range that begins with a message; of the others nothing is shown.

        It stands behind the note on calls that nobody answered. What follows keeps the ids of its calls.
        """
        self._call_ids.take(entry.message, set(gone))
        if text := range_summary(self.edits[entry.id]):
            out = [one for one in self._entries if isinstance(one, Said) and is_excluded(one.id, self.edits)]
            text = untold_range(text, self.clean(out), self.clean(self._left(out))) if out else text
            message = Message("user", (Text(text),), injected=True)
            self._waiting.append(self._made("summary", message, entry.id))
        if not self.open_calls:
            self._release()

    def _repair(self, entry: Said, gone: Sequence[int]) -> None:
        """List the repairs of a message: parts that no provider takes go, ids that are used again change."""
        new_ids = self._call_ids.take(entry.message, set(gone))
        out = self._without(entry, gone)
        if repairs := (*out, *(self._renaming(entry, part, new) for part, new in new_ids.items())):
            self.repairs[entry.id] = repairs

    def _without(self, entry: Said, gone: Iterable[int]) -> list[Edit]:
        """Leave parts out; those that the user took out have their edits."""
        listed = self.edits.get(entry.id, ())
        excluded = {edit.part for edit in listed if edit.kind == EXCLUDED and edit.replacement is None}
        return [
            Edit(entry.id, part, "repaired", None, part_tokens(entry.message.parts[part], self._counter))
            for part in gone
            if part not in excluded
        ]

    def _renaming(self, entry: Said, index: int, new_id: str) -> Edit:
        """Give a call or a result, as a boundary left it, another id."""
        older = next((edit for edit in self.edits.get(entry.id, ()) if edit.part == index), None)
        part = (older.replacement if older else None) or entry.message.parts[index]
        field = "id" if isinstance(part, ToolCall) else "call_id"
        saved = older.saved if older else 0
        return Edit(entry.id, index, "repaired", msgspec.structs.replace(part, **{field: new_id}), saved)

    # ---- pins

    def _mark(self, entry: Said) -> None:
        """Take the words that the user marked in a message, the newest."""
        if words := marked(entry, self.kept):
            self.marks[entry.id] = Pin(entry.id, words)

    def _pin(self, entry: Pinned) -> None:
        """Take a pin; the words of an entry that the view does not show are quoted once."""
        if not entry.on:
            self.pins.pop(entry.target, None)
            self.marks.pop(entry.target, None)
            return
        if is_excluded(entry.target, self.edits):
            return
        self.pins[entry.target] = Pin(entry.target, entry.text)
        shown = {e.id for e in (*self.leading, *self.quoted, *self.kept)} - set(self.edits)
        if entry.target in shown | self._quoted_pins:
            return
        self._quote(self.pins[entry.target], entry.id)
        if not self.open_calls:
            self._release()

    def _quote(self, pin: Pin, source: str = "") -> None:
        """Have the words of a pin wait to be quoted."""
        self._quoted_pins.add(pin.entry)
        quote = Text(f"[Pinned by the user, from earlier in this conversation]\n{redact(pin.text)}")
        self._waiting.append(self._made("pin", Message("user", (quote,)), source or pin.entry))

    # ---- items

    def _keep_older(self, entries: Sequence[Said]) -> None:
        """Keep messages that pair with nothing: leading ones, and those that are quoted."""
        for entry in entries:
            if blank := self._without(entry, blank_texts(entry.message)):
                self.repairs[entry.id] = tuple(blank)
            self._keep(entry)

    def _as_kept(self, entry: Said) -> MessageItem:
        repairs = self.repairs.get(entry.id, ())
        mended = {edit.part for edit in repairs}
        listed = (edit for edit in self.edits.get(entry.id, ()) if edit.part not in mended)
        return MessageItem(entry, (*listed, *repairs))

    def _keep(self, entry: Said) -> None:
        self._emit(self._as_kept(entry))

    def _emit(self, item: Item) -> None:
        ack, self._ack = self._ack, None
        message = item.message if isinstance(item, AddedItem) else item.entry.message
        if ack is not None and message.role != "assistant":
            self._emit(ack)
        self._items.append(item)
        self._tokens += item_tokens(item)
        self._added += item.tokens if isinstance(item, AddedItem) else 0

    def _release(self) -> None:
        """Emit what waited for the results of open calls."""
        for item in self._waiting:
            self._emit(item)
        self._waiting.clear()

    def _tail(self) -> list[Item]:
        """What a view at a leaf with open calls needs to be valid, and what waits for their results."""
        batch = self.pairing.current
        if batch is None or not batch.open:
            return list(self._waiting)
        source = self.kept[batch.start].id
        return [self._unanswered(tuple(batch.open), source), *self._waiting]

    # ---- messages that the view adds

    def _made(self, kind: AddedKind, message: Message, source: str) -> AddedItem:
        return AddedItem(kind, message, source, message_tokens(message, self._counter))

    def _unanswered(self, call_ids: Sequence[str], source: str) -> AddedItem:
        """Answer calls that have no result by a note that says so."""
        own = (self._call_ids.in_view(call_id) for call_id in call_ids)
        parts = tuple(ToolResult(call_id, (Text(UNANSWERED),), is_error=True) for call_id in own)
        return AddedItem("unanswered", Message("tool", parts), source, len(parts) * self._answer_tokens)

    def _late(self, result: ToolResult, source: str) -> AddedItem:
        """Quote a result that came too late for its call."""
        text = redact(result.text)
        over = len(text) - LATE_CAP
        more = f"\n[{over:,} more characters in entry {source}]" if over > 0 else ""
        quote = f"{LATE.format(result.call_id)}\n{text[:LATE_CAP]}{more}"
        return self._made("late", Message("user", (Text(quote),), injected=True), source)


def blank_texts(message: Message) -> list[int]:
    """Return the parts of a message that are texts without a word: no provider takes them."""
    return [i for i, part in enumerate(message.parts) if isinstance(part, Text) and not part.text.strip()]


def item_parts(item: Item) -> list[Part]:
    """Return the parts of one item of a view as the model reads them, its edits applied."""
    if isinstance(item, AddedItem):
        return list(item.message.parts)
    edited = {edit.part: edit.replacement for edit in item.edits}
    found = (edited.get(index, part) for index, part in enumerate(item.entry.message.parts))
    return [part for part in found if part is not None]


def item_tokens(item: Item) -> int:
    """Return the tokens of one item of a view."""
    if isinstance(item, AddedItem):
        return item.tokens
    return max(0, item.entry.tokens - sum(edit.saved for edit in item.edits))


def category(entry: Said) -> str:
    """Return what a message counts as, in a receipt."""
    message = entry.message
    if message.results:
        return "tool results"
    if message.role in ("system", "developer"):
        return "system"
    return "assistant" if message.role == "assistant" else "user"


def sized(items: Sequence[Item]) -> list[tuple[str, int]]:
    """Return what each item of a view counts as, and its tokens."""
    return [(i.kind if isinstance(i, AddedItem) else category(i.entry), item_tokens(i)) for i in items]


def native_items(items: Sequence[Item]) -> list[tuple[Message, tuple[Edit, ...]]]:
    """Return what a dialect renders: each message with its edits."""
    return [(i.entry.message, i.edits) if isinstance(i, MessageItem) else (i.message, ()) for i in items]
