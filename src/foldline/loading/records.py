"""Turn the records of another agent's transcript into entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from foldline.core.checkpoint.checkpoint import Frame, make_checkpoint
from foldline.core.checkpoint.rules import without_blocks
from foldline.core.decide.presets import preset
from foldline.core.log.entries import Carried, Checkpoint, Receipt, Said
from foldline.core.log.log import said
from foldline.core.log.messages import Message
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.dialects import elements
from foldline.loading.chain import Loaded, PlacedBoundary, Source, chain
from foldline.loading.lists import ledger_in, through_another_tool, with_checkpoint
from foldline.transcripts import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord


def from_records(
    records: Iterable[Record], counter: Counter, *, from_start: bool = False, ledgers: bool = True
) -> Loaded:
    """Read the records of a transcript; its own compactions become boundaries unless `from_start` is set.

    `ledgers` False leaves out their facts, which only a fold needs.
    """
    collector = _RecordCollector(counter, from_start=from_start)
    for record in records:
        collector.take(record)
    return collector.loaded(ledgers=ledgers)


class _RecordCollector:
    """The messages, boundaries, facts and warnings of a file."""

    def __init__(self, counter: Counter, *, from_start: bool) -> None:
        self._counter = counter
        self._from_start = from_start
        self._messages: list[Message] = []
        self._times: list[float | None] = []
        self._index_of: dict[str, int] = {}  # the file's key of a message -> its index
        self._boundaries: list[PlacedBoundary] = []
        self._about: dict[str, dict[str, Any]] = {}
        self._warnings: list[str] = []

    def take(self, record: Record) -> None:
        """Take the next record."""
        if isinstance(record, MessageRecord):
            if record.key is not None:
                self._index_of.setdefault(record.key, len(self._messages))
            self._messages.append(record.message)
            self._times.append(record.at)
        elif isinstance(record, CompactionRecord):
            if not self._from_start:
                self._boundaries.append(self._boundary(record))
        elif isinstance(record, FactRecord):
            self._about[record.kind] = {**self._fact(record.kind), **record.data}
        else:
            self._warnings.append(warning_text(record))

    def loaded(self, *, ledgers: bool) -> Loaded:
        """Return the entries of all records taken."""
        source = Source(self._messages, self._dialect(), boundaries=self._boundaries, times=self._times)
        ours = with_checkpoint(source, self._counter) if not self._boundaries else None
        loaded = chain(ours or source, self._counter, ledgers=ledgers)
        loaded.number_by(_places(self._messages))
        loaded.warnings = self._warnings
        loaded.about = self._about
        loaded.format = self._fact("format").get("format", "")
        for name in ("system", "tools", "model", "title"):
            setattr(loaded, name, self._fact(name).get(name))
        return loaded

    def _fact(self, kind: str) -> dict[str, Any]:
        return self._about.get(kind, {})

    def _dialect(self) -> str:
        natives = (message.native.dialect for message in self._messages if message.native)
        return self._fact("format").get("dialect") or next(natives, "openai-chat")

    def _boundary(self, record: CompactionRecord) -> PlacedBoundary:
        """Return the boundary of a compaction that the file's agent made."""
        quoted = tuple(self._index_of[key] for key in record.quoted if key in self._index_of)
        ours = through_another_tool(record.summary, self._counter)
        frame = Frame(preset("foldline"), quoted=len(quoted), number=record.number or 1)
        if ours is not None:  # its text may lack the number
            ours = msgspec.structs.replace(ours, number=frame.number)
        return PlacedBoundary(
            at=len(self._messages),
            checkpoint=ours or _imported_checkpoint(record.summary, frame, self._counter),
            ledger=ledger_in(ours.summary, self._messages) if ours is not None else None,
            first_kept=None if record.first_kept is None else self._index_of.get(record.first_kept),
            quoted=quoted,
            receipt=Receipt(reason="imported", tokens_before=record.tokens_before or 0, origin=record.data),
            when=record.at,
        )


def _imported_checkpoint(summary: str, frame: Frame, counter: Counter) -> Checkpoint:
    """Return the checkpoint of another agent's summary, which the next fold carries over as text."""
    checkpoint = make_checkpoint(without_blocks(summary), frame, counter)
    return msgspec.structs.replace(
        checkpoint, carried=(Carried("summary", ("imported",), checkpoint.summary),)
    )


def warning_text(record: WarningRecord) -> str:
    """Return a warning of a file with its line."""
    return f"line {record.line}: {record.text}" if record.line else record.text


def as_recorded(records: Iterable[Record], counter: Counter) -> list[Said]:
    """Return the messages of a transcript in the order of the file, nothing repaired."""
    entries: list[Said] = []
    parent: str | None = None
    key = ""
    for record in records:
        if isinstance(record, MessageRecord):
            tokens = message_tokens(record.message, counter)
            entry = said(record.message, parent=parent, said_key=key, tokens=tokens, at=record.at)
            entries.append(entry)
            parent, key = entry.id, entry.said_key
    return entries


def index_of(entries: Sequence[Said]) -> dict[str, int]:
    """Return the place in the input of each entry, in file order, as `Loaded.index` counts them."""
    places = _places([entry.message for entry in entries])
    return {entry.id: place for entry, place in zip(entries, places, strict=False)}


def _places(messages: Sequence[Message]) -> list[int]:
    """Return the input index of each message's first item, then the number of items."""
    return list(accumulate(map(elements, messages), initial=0))
