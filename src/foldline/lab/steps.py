"""Read a session file as a stream of entries, in constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from foldline.core.cut.repair import repair
from foldline.core.log.entries import Said
from foldline.core.log.log import said
from foldline.core.log.messages import Message
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.transcripts import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord

MAX_HELD = 256  # messages that wait for the result of a call

Step = Said | CompactionRecord | FactRecord | WarningRecord


def steps(records: Iterable[Record]) -> Iterator[Step]:
    """Yield the entries of a transcript in their order, and the file's other records.

    As when a file is loaded, results move to their calls if they follow within `MAX_HELD` messages; a later
    result is left out with a warning.
    """
    chain = _Chain()
    held: list[MessageRecord] = []
    waiting: set[str] = set()
    for record in records:
        if not isinstance(record, MessageRecord):
            yield record
            continue
        held.append(record)
        waiting |= {call.id for call in record.message.calls}
        waiting -= {result.call_id for result in record.message.results}
        if not waiting or len(held) >= MAX_HELD:
            yield from chain.ordered(held)
            held, waiting = [], set[str]()
    yield from chain.ordered(held)


class _Chain:
    """Makes entries, each linked to the previous one as in a log."""

    def __init__(self) -> None:
        self._parent: str | None = None
        self._key = ""

    def ordered(self, held: list[MessageRecord]) -> Iterator[Step]:
        """Yield the entries of some messages, with every result after its call."""
        repaired = repair([record.message for record in held])
        for index, call in repaired.orphans:
            yield WarningRecord(held[index].line, f"a result without a call: {call} (left out)")
        for index, message in repaired.messages:
            yield self._append(message, held[index].at)

    def _append(self, message: Message, at: float | None) -> Said:
        tokens = message_tokens(message, OFFLINE)
        entry = said(message, parent=self._parent, said_key=self._key, tokens=tokens, at=at)
        self._parent, self._key = entry.id, entry.said_key
        return entry
