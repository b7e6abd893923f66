"""Convert our count to the model's tokens, calibrated by the usage in a recording."""

from __future__ import annotations

import msgspec

from foldline.core.log.messages import Message
from foldline.core.measure.accounting import Calibration, real_usage, scaled, update
from foldline.core.measure.window import Floor

UNSEEN_MOST = (
    60_000  # the most tokens of a system prompt and tools that a file leaves out; more would be history
)


class Scale(msgspec.Struct, frozen=True):
    """Converts our count to the model's tokens: the overhead beside the messages (our count), and a ratio."""

    overhead: Floor = Floor()
    ratio: float = 1.0

    @property
    def overhead_tokens(self) -> int:
        """The tokens of the system prompt and tools, in our count."""
        return self.overhead.system + self.overhead.tools

    def of(self, tokens: int) -> int:
        """Return a count of ours in tokens of the model."""
        return scaled(tokens, self.ratio)


class Learner:
    """Learns the scale of a recording, message by message.

    A recorded usage is the size of the recorded context. Up to the recording's first compaction the context
    is all messages so far, so both sizes can be compared; after it the context is unknown. The excess of the
    first request over its messages is taken as the system prompt and tools that the file leaves out.
    """

    def __init__(self, overhead: Floor) -> None:
        self._overhead = overhead
        self._message_tokens = 0
        self._hidden_overhead: int | None = None
        self._calibration = Calibration()
        self._learning = True
        self._replying = False

    @property
    def scale(self) -> Scale:
        """The scale learnt so far."""
        overhead = Floor(
            system=self._overhead.system, tools=self._overhead.tools + (self._hidden_overhead or 0)
        )
        return Scale(overhead, self._calibration.ratio)

    def folded(self) -> None:
        """Stop learning, because the recording was compacted here."""
        self._learning = False

    def hear(self, message: Message, tokens: int) -> None:
        """Learn from the next message, which has `tokens` in our count."""
        usage = real_usage(message)
        if usage is not None and self._learning and not self._replying:
            self._learn(usage.total - usage.output)
        self._replying = message.role == "assistant"
        self._message_tokens += tokens

    def _learn(self, actual: int) -> None:
        counted = self._overhead.system + self._overhead.tools + self._message_tokens
        if self._hidden_overhead is None:
            self._hidden_overhead = min(max(0, actual - counted), UNSEEN_MOST)
        self._calibration = update(self._calibration, counted + self._hidden_overhead, actual)
