"""The size of what a view would answer open calls with, followed from message to message."""

from __future__ import annotations

from collections.abc import Callable

from foldline.core.cut.pairing import Batch
from foldline.core.log.messages import Message


class Owed:
    """Adds up the tokens of the answers to open calls; the work grows with a message, not with the batch."""

    def __init__(self, size: Callable[[str], int]) -> None:
        self._size = size
        self._sizes: dict[str, int] = {}  # open call -> tokens of the note that would answer it
        self._start: int | None = None  # the batch that is followed
        self.tokens = 0

    def follow(self, batch: Batch | None, message: Message) -> None:
        """Take the newest message and the batch that is open behind it."""
        if batch is None or batch.start != self._start:
            self._sizes, self.tokens = {}, 0
            self._start = batch.start if batch is not None else None
        if batch is None:
            return
        for result in message.results:
            if result.call_id not in batch.open:
                self.tokens -= self._sizes.pop(result.call_id, 0)
        for call in message.calls:
            if call.id in batch.open and call.id not in self._sizes:
                self._sizes[call.id] = self._size(call.id)
                self.tokens += self._sizes[call.id]
