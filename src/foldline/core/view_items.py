"""The messages of a view, placed one by one so that a provider accepts them.

A message goes to the end of the view as received, except for the edits that boundaries list and these
repairs:

- empty texts and duplicate calls are left out
- a call id that is used again is changed
- a late result becomes a quoted note
- calls that stay unanswered get a result that says so

What may not stand between a call and its result (reminders, notes, the quotes of pins) waits until the open
calls have their results.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from foldline.core.cut.edits import Edits, ViewRepairs, flat, is_folded
from foldline.core.cut.notes import LATE, UNANSWERED
from foldline.core.cut.pairing import Pairing, waits
from foldline.core.cut.repair import CallIds
from foldline.core.log.entries import EXCLUDED, Edit, Said
from foldline.core.log.messages import Message, Part, Text, ToolCall, ToolResult
from foldline.core.measure.tokens import Counter, message_tokens, part_tokens
from foldline.core.secrets.redact import redact

LATE_CAP = 2_000  # characters of a late result that a note quotes; the rest stays in the history


class MessageItem(msgspec.Struct, frozen=True):
    """A message of the log, as received except for the edits that a boundary listed."""

    entry: Said
    edits: tuple[Edit, ...] = ()

    @property
    def message(self) -> Message:
        """The message as received."""
        return self.entry.message

    @property
    def kind(self) -> str:
        """The category under which a receipt counts it."""
        return category(self.message)

    @property
    def tokens(self) -> int:
        """Its tokens, edits applied."""
        return max(0, self.entry.tokens - sum(edit.saved for edit in self.edits))


AddedKind = Literal["checkpoint", "ack", "unanswered", "late", "pin", "summary"]


class AddedItem(msgspec.Struct, frozen=True):
    """A message that the view adds; `source` is the id of the entry that it was made for."""

    kind: AddedKind
    message: Message
    source: str
    tokens: int

    @property
    def edits(self) -> tuple[Edit, ...]:
        """None: it was made as it is."""
        return ()


Item = MessageItem | AddedItem


def category(message: Message) -> str:
    """Return the category under which a receipt counts a message of the log."""
    if message.results:
        return "tool results"
    if message.role in ("system", "developer"):
        return "system"
    return "assistant" if message.role == "assistant" else "user"


def item_parts(item: Item) -> list[Part]:
    """Return the parts of one item of a view as the model reads them, its edits applied."""
    edited = {edit.part: edit.replacement for edit in item.edits}
    parts = (edited.get(index, part) for index, part in enumerate(item.message.parts))
    return [part for part in parts if part is not None]


def sizes_of(items: Iterable[Item]) -> dict[str, int]:
    """Return the tokens of a view by category."""
    sizes: dict[str, int] = {}
    for item in items:
        sizes[item.kind] = sizes.get(item.kind, 0) + item.tokens
    return sizes


def native_items(items: Sequence[Item]) -> list[tuple[Message, tuple[Edit, ...]]]:
    """Return what a dialect renders: each message with its edits."""
    return [(item.message, item.edits) for item in items]


class ViewItems:
    """The items of a view in order, and the repairs that a provider needs.

    `edits` are those that boundaries list; `repairs` may hold those of an earlier list of the same view.
    """

    def __init__(self, counter: Counter, edits: Edits, repairs: Edits) -> None:
        self.kept: list[Said] = []
        self.repairs = repairs
        self.pairing = Pairing()
        self._counter = counter
        self._edits = edits
        error = Message("tool", (ToolResult("", (Text(UNANSWERED),), is_error=True),))
        self._error_tokens = message_tokens(error, counter)
        self._items: list[Item] = []
        self._tokens = 0
        self._added_tokens = 0
        self._ack: AddedItem | None = None  # of a checkpoint that nothing follows yet
        self._waiting: list[Item] = []  # for the results of the open calls
        self._hidden: dict[str, int] = {}  # kept messages of which nothing is shown, with their tokens
        self._note_tokens = Counts[str]()  # of the notes that stay as long as a kept message does
        self._call_ids = CallIds()

    # ---- reading

    def __len__(self) -> int:
        return len(self._items) + len(self._waiting) + bool(self.open_calls)

    @property
    def open_calls(self) -> Mapping[str, str]:
        """The calls without a result so far: id -> tool name."""
        batch = self.pairing.current
        return batch.open if batch else {}

    @property
    def open_call_tokens(self) -> int:
        """The tokens of the note that answers the open calls."""
        return len(self.open_calls) * self._error_tokens

    @property
    def tokens(self) -> int:
        """The tokens of all items."""
        return self._tokens + self.open_call_tokens + sum(item.tokens for item in self._waiting)

    @property
    def added_tokens(self) -> int:
        """The tokens of the messages that the view adds."""
        waiting = sum(item.tokens for item in self._waiting if isinstance(item, AddedItem))
        return self._added_tokens + self.open_call_tokens + waiting

    def items(self) -> Sequence[Item]:
        """Return the items: the list itself, or a copy while calls are open or items wait."""
        batch = self.pairing.current
        if batch is None or not batch.open:
            return [*self._items, *self._waiting] if self._waiting else self._items
        note = self._unanswered(tuple(batch.open), self.kept[batch.start].id)
        return [*self._items, note, *self._waiting]

    def view_repairs(self) -> ViewRepairs:
        """Return what is left out of the kept messages, and the notes that stay as long as a message does."""
        removed = [edit for edit in flat(self.repairs) if edit.replacement is None]
        tokens = Counts(self._note_tokens)
        tokens.subtract(self._hidden)
        for edit in removed:
            if edit.entry not in self._hidden:
                tokens[edit.entry] -= edit.saved
        return ViewRepairs(frozenset((edit.entry, edit.part) for edit in removed), tokens)

    # ---- adding

    def keep(self, entries: Iterable[Said]) -> None:
        """Add messages that need no pairing: leading and quoted ones."""
        for entry in entries:
            if blank := self._removals(entry, _blank_texts(entry.message)):
                self.repairs[entry.id] = tuple(blank)
            self._emit(self._message_item(entry))

    def place(self, entry: Said, hidden: Sequence[int], range_text: str | None) -> None:
        """Add the next kept message at the end, or behind the results of the open calls.

        The parts in `hidden` are left out. A message of a folded range shows nothing but `range_text`: the
        summary at the first message of the range, "" at the others; None outside a range.
        """
        index, message = len(self.kept), entry.message
        self.kept.append(entry)
        if waits(message, self.pairing.current):
            if range_text is None:
                self._waiting.append(self._message_item(entry))
            self.pairing.say(index, message)
            return
        late, duplicates = self._pair(entry, index)
        removed = sorted({*hidden, *late, *duplicates, *_blank_texts(message)})
        new_ids = self._call_ids.take(message, set(removed))
        if range_text is None:
            self._place_message(entry, removed, new_ids)
            for part in (message.parts[at] for at in late):
                if isinstance(part, ToolResult):
                    note = self._late_note(part, entry.id)
                    self._note_tokens[entry.id] += note.tokens
                    self._waiting.append(note)
        elif range_text:
            self.wait("summary", range_text, entry.id, injected=True)
        self.release()

    def add_checkpoint(self, message: Message, ack: str | None, source: str, tokens: int) -> None:
        """Add a checkpoint; its acknowledgement waits until a message follows that is not the model's own."""
        self._emit(AddedItem("checkpoint", message, source, tokens))
        self._ack = self._added("ack", Message("assistant", (Text(ack),)), source) if ack else None

    def wait(self, kind: AddedKind, text: str, source: str, *, injected: bool = False) -> None:
        """Add a user message that waits for the results of the open calls."""
        message = Message("user", (Text(text),), injected=injected)
        self._waiting.append(self._added(kind, message, source))

    def release(self) -> None:
        """Add what waited, unless calls are still open."""
        if not self.open_calls:
            self._flush()

    def set_source(self, source: str) -> None:
        """Give the items of a boundary its id, which it gets when it is appended."""
        for index, item in enumerate(self._items):
            if isinstance(item, AddedItem) and not item.source:
                self._items[index] = msgspec.structs.replace(item, source=source)
        if self._ack is not None:
            self._ack = msgspec.structs.replace(self._ack, source=source)

    # ---- one message

    def _pair(self, entry: Said, index: int) -> tuple[list[int], list[int]]:
        """Pair the parts of a message; return its late results and its duplicate calls.

        Calls that the message leaves unanswered get their note before it.
        """
        late, duplicates = len(self.pairing.late), len(self.pairing.doubled)
        batch = self.pairing.current
        unanswered = self.pairing.say(index, entry.message)
        if unanswered and batch is not None:
            caller = self.kept[batch.start]
            if not is_folded(self._edits.get(caller.id, ())):
                note = self._unanswered(unanswered, entry.id)
                self._note_tokens[caller.id] += note.tokens  # no cut separates the calls from their note
                self._emit(note)
            if not entry.message.results or entry.message.calls:
                self._flush()
        return (
            [part for at, part in self.pairing.late[late:] if at == index],
            [part for at, part in self.pairing.doubled[duplicates:] if at == index],
        )

    def _place_message(self, entry: Said, removed: Sequence[int], new_ids: Mapping[int, str]) -> None:
        renamed = (self._renaming(entry, part, new) for part, new in new_ids.items())
        if repairs := (*self._removals(entry, removed), *renamed):
            self.repairs[entry.id] = repairs
        if len(removed) < len(entry.message.parts):
            self._emit(self._message_item(entry))
        else:
            self._hidden[entry.id] = entry.tokens

    def _removals(self, entry: Said, parts: Iterable[int]) -> list[Edit]:
        """Return the edits that leave parts out; those that the user took out have theirs already."""
        listed = self._edits.get(entry.id, ())
        excluded = {edit.part for edit in listed if edit.kind == EXCLUDED and edit.replacement is None}
        return [
            Edit(entry.id, part, "repaired", None, part_tokens(entry.message.parts[part], self._counter))
            for part in parts
            if part not in excluded
        ]

    def _renaming(self, entry: Said, index: int, new_id: str) -> Edit:
        """Return the edit that gives a call or a result, as boundaries left it, another id."""
        older = next((edit for edit in self._edits.get(entry.id, ()) if edit.part == index), None)
        part = (older.replacement if older else None) or entry.message.parts[index]
        field = "id" if isinstance(part, ToolCall) else "call_id"
        saved = older.saved if older else 0
        return Edit(entry.id, index, "repaired", msgspec.structs.replace(part, **{field: new_id}), saved)

    def _message_item(self, entry: Said) -> MessageItem:
        repairs = self.repairs.get(entry.id, ())
        repaired = {edit.part for edit in repairs}
        listed = (edit for edit in self._edits.get(entry.id, ()) if edit.part not in repaired)
        return MessageItem(entry, (*listed, *repairs))

    def _emit(self, item: Item) -> None:
        ack, self._ack = self._ack, None
        if ack is not None and item.message.role != "assistant":
            self._emit(ack)
        self._items.append(item)
        self._tokens += item.tokens
        self._added_tokens += item.tokens if isinstance(item, AddedItem) else 0

    def _flush(self) -> None:
        for item in self._waiting:
            self._emit(item)
        self._waiting.clear()

    # ---- messages that the view adds

    def _added(self, kind: AddedKind, message: Message, source: str) -> AddedItem:
        return AddedItem(kind, message, source, message_tokens(message, self._counter))

    def _unanswered(self, call_ids: Sequence[str], source: str) -> AddedItem:
        """Answer calls with errors that say that no result was recorded."""
        ids = map(self._call_ids.in_view, call_ids)
        parts = tuple(ToolResult(call_id, (Text(UNANSWERED),), is_error=True) for call_id in ids)
        return AddedItem("unanswered", Message("tool", parts), source, len(parts) * self._error_tokens)

    def _late_note(self, result: ToolResult, source: str) -> AddedItem:
        """Quote a result that came too late for its call."""
        text = redact(result.text)
        over = len(text) - LATE_CAP
        rest = f"\n[{over:,} more characters in entry {source}]" if over > 0 else ""
        quote = f"{LATE.format(result.call_id)}\n{text[:LATE_CAP]}{rest}"
        return self._added("late", Message("user", (Text(quote),), injected=True), source)


def _blank_texts(message: Message) -> list[int]:
    """Return the indices of the text parts without a word: no provider accepts them."""
    return [i for i, part in enumerate(message.parts) if isinstance(part, Text) and not part.text.strip()]
