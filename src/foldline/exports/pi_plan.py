"""pi's session files as its plan for compaction describes them: lines in order, without ids.

A compaction says how many of the messages right before it were kept (`keepLastMessages`); it never counts
across an earlier compaction. pi itself settled on ids instead: `foldline.exports.pi`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foldline.exports.base import FoldStep, Origin, iso, line
from foldline.exports.pi import PiWriter


class PiPlanWriter(PiWriter):
    """Write a header, messages and compactions; a line follows the one before it."""

    def __init__(self, origin: Origin, session: str) -> None:
        super().__init__(origin, session)
        self._since = 0  # messages since the newest compaction

    def begin(self) -> Iterator[bytes]:
        """Yield the header."""
        at = iso(self.origin.started)
        yield line({"type": "session", "id": self.session, "timestamp": at, "cwd": self.origin.cwd})
        if self.origin.title:
            self.losses.add("title left out")

    def end(self) -> Iterator[bytes]:
        """Yield nothing more."""
        yield from ()

    def fold(self, step: FoldStep) -> Iterator[bytes]:
        """Yield a compaction; what it kept from before an earlier one was folded there."""
        place = self.place(step.first_kept)
        from_start = step.first_kept is not None and place is None
        kept = self._since if from_start else self._since - int(place) if place is not None else 0
        text = step.summary if step.imported else step.text
        at = self.clock.at(None if self.origin.view else step.at)
        yield self._entry(
            "compaction", step.key, at, summary=text, keepLastMessages=kept, tokensBefore=step.tokens_before
        )
        self._since = 0
        self.forget_places()

    def wrote(self, place: str) -> None:
        """Note a message by the number of messages since the newest compaction that stand before it."""
        del place  # lines have no ids
        super().wrote(str(self._since))
        self._since += 1

    def _entry(self, kind: str, key: str, at: float, **fields: Any) -> bytes:
        del key  # lines have no ids
        if kind == "custom_message":
            said = {"role": "user", "content": fields["content"], "timestamp": round(at * 1000)}
            kind, fields = "message", {"message": said}
        if kind not in ("message", "compaction"):
            return b""  # a reply names its model itself
        return line({"type": kind, "timestamp": iso(at), **fields})
