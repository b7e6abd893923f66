"""The view: what the model is sent, folded from the entries of a path.

    path    s1  s2 | s3  s4  C  s5  P  s6  s7       s: Said, C: Compacted, P: Pruned
            folded | kept from here on (C says so); P lists an edit of s3

    view    [leading]  checkpoint  [ack]  [quoted]  s3*  s4  s5  s6  s7  [waiting notes]
                       `--- made for C ----------'  `------- kept ----'

Only a boundary changes what is older than itself: the newest `Compacted` that is not undone says where the
kept messages begin and what comes before them, and every `Pruned` after it edits some of them. Between two
boundaries a view only grows at its end.

Entries are pushed one by one, so that a turn costs what the turn adds; a boundary rebuilds the view.
System messages go to the head while nothing else was said; `ViewItems` places all other messages. Of a range
that a boundary folded among the kept messages, only the summary is shown.

A reply that holds a compaction by the provider's own server restarts the view, as a boundary does. If that
compaction was undone, it is left out of the reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from foldline.core.carried.instructions import kind_of
from foldline.core.carried.select import newest_messages
from foldline.core.carried.summaries import place_of, places_of, said_before, sealed_place, text_of
from foldline.core.checkpoint.untold import untold, untold_range
from foldline.core.cut.edits import Edits, ViewRepairs, edited_parts, flat, is_folded, merged, range_summary
from foldline.core.cut.exclude import is_excluded, left_of
from foldline.core.ledger.facts.constraints import standing
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.text.marks import marked
from foldline.core.log.entries import EXCLUDED, Compacted, Entry, Noted, Pin, Pinned, Pruned, Said
from foldline.core.log.log import read_boundaries
from foldline.core.log.messages import Message, Role, Text
from foldline.core.measure.accounting import context_size, real_usage, scaled
from foldline.core.measure.tokens import Counter
from foldline.core.secrets.entries import CleanEntries
from foldline.core.secrets.redact import redact
from foldline.core.view_items import Item, ViewItems


class ViewState:
    """The view of a path, or of the part of a path that its view needs, and what the view was made from."""

    def __init__(
        self, entries: Iterable[Entry] = (), *, counter: Counter, clean: CleanEntries | None = None
    ) -> None:
        self._counter = counter
        # The entries without secrets; another state of the same path may have cleaned them already.
        self.clean = CleanEntries() if clean is None else clean
        self._entries: list[Entry] = list(entries)
        self._rebuild()

    # ---- reading

    @property
    def open_calls(self) -> Mapping[str, str]:
        """The calls without a result so far: id -> tool name."""
        return self._items.open_calls

    @property
    def open_call_tokens(self) -> int:
        """The tokens of the note that answers the open calls."""
        return self._items.open_call_tokens

    @property
    def tokens(self) -> int:
        """The size of the view by Foldline's own count, without a separate system prompt or tools."""
        return self._items.tokens

    @property
    def added_tokens(self) -> int:
        """The tokens of the messages that the view adds."""
        return self._items.added_tokens

    @property
    def messages(self) -> int:
        """The number of messages in the view."""
        return len(self._items)

    def context_size(self, overhead: int = 0, ratio: float = 1.0) -> int:
        """Return the context size in tokens: the newest usage since the boundary plus estimates of the rest.

        `overhead` is a separate system prompt and tools. Takes the same time for a view of any length.
        """
        if self.anchor is None:
            return scaled(overhead + self.tokens - self.open_call_tokens, ratio)
        return context_size(self.kept[self.anchor :], ratio=ratio)

    def view(self) -> list[Item]:
        """Return the view; open calls are answered by a note."""
        return list(self._items.items())

    def items(self) -> Sequence[Item]:
        """Return the view without a copy where no call is open: the same list until the next boundary."""
        return self._items.items()

    def view_repairs(self) -> ViewRepairs:
        """Return what is left out of the kept messages, and the notes that stay as long as a message does."""
        return self._items.view_repairs()

    def entries(self) -> list[Entry]:
        """Return the entries that the view was made from, in order."""
        return list(self._entries)

    def with_boundary(self, boundary: Compacted | Pruned) -> ViewState:
        """Return the state with a new boundary appended, made from only the entries that its view needs."""
        path: list[Entry] = [*self._entries, boundary]
        if isinstance(boundary, Compacted):
            named = {*boundary.leading, *boundary.quoted}
            first = boundary.first_kept or boundary.id
            start = next(index for index, entry in enumerate(path) if entry.id == first)
            path = [*(entry for entry in path[:start] if entry.id in named), *path[start:]]
        return ViewState(path, counter=self._counter, clean=self.clean.of(path))

    # ---- growing

    def push(self, entry: Entry) -> None:
        """Add the next entry of the path; only a boundary rebuilds the view."""
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
        """Replace the newest entry, a boundary without an id, by the same boundary as it was appended."""
        self._entries[-1] = boundary
        self.boundaries = (*self.boundaries[:-1], boundary.id)
        if isinstance(boundary, Compacted):
            self.boundary = boundary
            self._items.set_source(boundary.id)

    # ---- boundaries

    def _rebuild(self) -> None:
        """Build the view from what the newest boundaries leave of the path."""
        found = read_boundaries(self._entries)
        fold = self._entries[found.fold] if found.fold is not None else None
        fold_edits = fold.edits if isinstance(fold, Compacted) else ()
        self.boundary: Compacted | None = None
        self.boundaries: tuple[str, ...] = found.ids  # all of the path, undone ones and liftings included
        self.undone = found.undone  # the ids of what is lifted
        self.edits: Edits = merged(  # those that boundaries list
            {}, (*fold_edits, *(edit for prune in found.prunes for edit in prune.edits))
        )
        self.pins: dict[str, Pin] = {}
        self.marks: dict[str, Pin] = {}  # what the user marked in a message, by its id
        self.notes: list[Noted] = [entry for entry in self._entries if isinstance(entry, Noted)]
        self._clear({})
        start = self._begin(found.fold)
        own = self.boundary is not None and self.boundary.receipt.reason != "imported"
        marks_known = found.fold if found.fold is not None and own else -1  # older ones are in the checkpoint
        for index in range(start, len(self._entries)):
            entry = self._entries[index]
            if index == found.newest:
                self.fresh_from = self._first_new(entry)
            if index in found.changes:
                self.usage_from = len(self.kept)
                self.anchor = None
            if isinstance(entry, Said):
                self._say(entry)
                left = left_of(entry, self.edits)
                if left is not None and (index > marks_known or left is not entry):
                    self._mark(left)
            elif isinstance(entry, Pinned) and (found.fold is None or index > found.fold):
                self._pin(entry)

    def _clear(self, repairs: Edits) -> None:
        """Empty the view of all messages."""
        self._items = ViewItems(self._counter, self.edits, repairs)
        self.kept: list[Said] = self._items.kept  # the messages in the view, from the first kept one on
        self.repairs: Edits = self._items.repairs  # those that make this view sendable
        self.pairing = self._items.pairing
        self.leading: list[Said] = []
        self.quoted: list[Said] = []
        self.server: Said | None = None  # the reply whose server-side compaction restarted the view
        self.past: list[Said] = []  # what was said before it, since the newest fold
        self.fresh_from = 0  # index in `kept` of the first message that the newest boundary did not know
        self.usage_from = 0  # index in `kept` from which usage was measured on this very view
        self.anchor: int | None = None  # index in `kept` of the newest reply whose usage counts
        self._quoted_pins: set[str] = set()  # pinned entries whose words a message of the view quotes

    def _first_new(self, boundary: Entry) -> int:
        """Return the index in `kept` of the first message that a boundary did not know."""
        seen = boundary.seen if isinstance(boundary, Compacted | Pruned) else None
        if seen is None:
            return len(self.kept)
        return next((index for index, entry in enumerate(self.kept, 1) if entry.id == seen), 0)

    def _begin(self, fold: int | None) -> int:
        """Add what a fold puts before the kept messages; return the index of the first kept entry."""
        boundary = self._entries[fold] if fold is not None else None
        if fold is None or not isinstance(boundary, Compacted):
            return 0
        places = {entry.id: index for index, entry in enumerate(self._entries)}
        by_id = {entry.id: entry for entry in self._entries}
        self.leading = list(self._left(by_id[entry] for entry in boundary.leading if entry in by_id))
        self.quoted = list(self._left(by_id[entry] for entry in boundary.quoted if entry in by_id))
        self.boundary = boundary = self._without_excluded(boundary)
        self.pins = {pin.entry: pin for pin in boundary.checkpoint.pins}
        self.marks = {mark.entry: mark for mark in boundary.checkpoint.marks}
        self._quoted_pins = set(self.pins)
        self._items.keep(self.leading)
        self._add_checkpoint(boundary)
        # "" is the id of a boundary that is not appended yet: never look it up
        return places.get(boundary.first_kept, fold) if boundary.first_kept else fold

    def _left(self, entries: Iterable[Entry]) -> Iterator[Said]:
        """Yield messages without the parts that the user took out; skip those of which nothing is left."""
        for entry in entries:
            left = left_of(entry, self.edits) if isinstance(entry, Said) else None
            if left is not None:
                yield left

    def _without_excluded(self, boundary: Compacted) -> Compacted:
        """Return a fold whose checkpoint says nothing of the parts that the user took out since."""
        known = edited_parts({"": tuple(edit for edit in boundary.edits if edit.kind == EXCLUDED)})
        excluded = [edit for edit in flat(self.edits) if edit.kind == EXCLUDED]
        ids = {edit.entry for edit in excluded if (edit.entry, edit.part) not in known}
        entries = [entry for entry in self._entries if isinstance(entry, Said) and entry.id in ids]
        if not entries:
            return boundary
        left = self.clean(self._left(entries))
        return untold(boundary, self.clean(entries), left, self._counter, quoted=len(self.quoted))

    def _add_checkpoint(self, boundary: Compacted) -> None:
        """Add the checkpoint before or after the quoted messages; its acknowledgement waits after it."""
        checkpoint = boundary.checkpoint
        after_quotes = checkpoint.position == "after"
        role: Role = "system" if checkpoint.role == "system" else "user"
        message = Message(role, (Text(checkpoint.text),))
        if after_quotes:
            self._items.keep(self.quoted)
        self._items.add_checkpoint(message, checkpoint.ack, boundary.id, checkpoint.tokens)
        if not after_quotes:
            self._items.keep(self.quoted)

    # ---- one message

    def _say(self, entry: Said) -> None:
        """Add a message to the head of the view or to its kept messages."""
        left = left_of(entry, self.edits)
        if left is None:
            return
        message = left.message
        if self.boundary is None and not self.kept and message.role in ("system", "developer"):
            self.leading.append(left)
            self._items.keep([left])
            return
        hidden = places_of(message) if left.id in self.undone else []
        if self._restarts(left):
            self._restart(left)
            hidden = said_before(message)
        elif real_usage(message) is not None:  # a server's compaction may report usage of both views
            self.anchor = len(self.kept)
        self._items.place(left, hidden, self._range_text(left))

    def _restarts(self, entry: Said) -> bool:
        """Whether a reply holds a server's compaction that replaces all that came before it.

        A sealed one after only user messages does not: its server keeps those beside it.
        """
        place = place_of(entry.message) if entry.id not in self.undone else None
        if place is None or any(edit.part == place for edit in self.edits.get(entry.id, ())):
            return False
        before = (*self.leading, *self.quoted, *self.kept)
        return bool(text_of(entry.message.parts[place])) or any(
            older.message.role in ("assistant", "tool") for older in before
        )

    def _restart(self, reply: Said) -> None:
        """Restart the view at a reply: keep instructions; quote pins, marks and rules after the reply."""
        past = [*self.past, *self.quoted, *self.kept]
        newest = newest_messages([entry for entry in past if entry.message.role != "assistant"])
        leading = [entry for entry in self.leading if sealed_place(entry.message) is None]
        leading = [entry for entry in leading if kind_of(entry.message) not in newest]
        self._clear(self.repairs)
        self.server, self.past = reply, past
        self.leading = [*leading, *reversed(newest.values())]
        self._items.keep(self.leading)
        shown = {entry.id for entry in self.leading}
        marks = (mark for mark in self.marks.values() if mark.entry not in self.pins)
        for pin in (*self.pins.values(), *marks):
            if pin.entry not in shown:
                self._quote(pin)
        older = msgspec.convert(self.boundary.ledger, Ledger).constraints if self.boundary else ()
        if rules := [f"- {fact.text}" for fact in standing(self.clean(past), older)]:
            title = "[The user's standing rules, from earlier in this conversation]"
            self._items.wait("pin", "\n".join((title, *rules)), reply.id)

    def _range_text(self, entry: Said) -> str | None:
        """Return the summary of the folded range that a message begins, "" within one, None outside."""
        edits = self.edits.get(entry.id, ())
        if not is_folded(edits):
            return None
        text = range_summary(edits)
        excluded = [one for one in self._entries if isinstance(one, Said) and is_excluded(one.id, self.edits)]
        if not text or not excluded:
            return text
        return untold_range(text, self.clean(excluded), self.clean(self._left(excluded)))

    # ---- pins

    def _mark(self, entry: Said) -> None:
        """Remember the words that the user marked in a message."""
        if words := marked(entry, self.kept):
            self.marks[entry.id] = Pin(entry.id, words)

    def _pin(self, entry: Pinned) -> None:
        """Pin or unpin an entry; if the view does not show a pinned entry, quote its words once."""
        if not entry.on:
            self.pins.pop(entry.target, None)
            self.marks.pop(entry.target, None)
            return
        if is_excluded(entry.target, self.edits):
            return
        self.pins[entry.target] = Pin(entry.target, entry.text)
        shown = {e.id for e in (*self.leading, *self.quoted, *self.kept)} - set(self.edits)
        if entry.target not in shown | self._quoted_pins:
            self._quote(self.pins[entry.target], entry.id)
            self._items.release()

    def _quote(self, pin: Pin, source: str = "") -> None:
        """Quote the words of a pin once no call is open."""
        self._quoted_pins.add(pin.entry)
        text = f"[Pinned by the user, from earlier in this conversation]\n{redact(pin.text)}"
        self._items.wait("pin", text, source or pin.entry)
