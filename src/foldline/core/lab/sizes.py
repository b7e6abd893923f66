"""From our own count to the model's tokens, learnt from what a recording says of its requests."""

from __future__ import annotations

import msgspec

from foldline.core.log.messages import Message
from foldline.core.measure.accounting import Calibration, real_usage, scaled, update
from foldline.core.measure.window import Floor

UNSEEN_MOST = 60_000  # tokens of a system prompt and tools that no file tells; more is no prompt, but history


class Scale(msgspec.Struct, frozen=True):
    """How our count becomes the model's tokens: what is sent beside the messages (our count), and a ratio."""

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

    A recorded usage says what the recorded context took. Up to the first compaction of the recording that
    context is all that was said, so the two can be compared; later it is not known, and nothing is learnt.
    What the first request took beyond its messages is the system prompt and the tools, where the file does
    not hold them.
    """

    def __init__(self, overhead: Floor) -> None:
        self._overhead = overhead
        self._said = 0
        self._unseen: int | None = None
        self._calibration = Calibration()
        self._known = True
        self._replying = False

    @property
    def scale(self) -> Scale:
        """What is known by now."""
        overhead = Floor(system=self._overhead.system, tools=self._overhead.tools + (self._unseen or 0))
        return Scale(overhead, self._calibration.ratio)

    def folded(self) -> None:
        """The recording was compacted here."""
        self._known = False

    def hear(self, message: Message, tokens: int) -> None:
        """Take the next message, of so many tokens in our count."""
        usage = real_usage(message)
        if usage is not None and self._known and not self._replying:
            self._learn(usage.total - usage.output)
        self._replying = message.role == "assistant"
        self._said += tokens

    def _learn(self, actual: int) -> None:
        counted = self._overhead.system + self._overhead.tools + self._said
        if self._unseen is None:
            self._unseen = min(max(0, actual - counted), UNSEEN_MOST)
        self._calibration = update(self._calibration, counted + self._unseen, actual)
