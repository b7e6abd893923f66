"""How a model's own count differs from ours, learnt from the usage of its replies, kept as a note of the session.

One note is written with each boundary, in the same append; what came since is read from the replies that follow.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.log.entries import Entry, Noted, Said
from foldline.core.measure.accounting import real_usage
from foldline.core.measure.calibration import Calibration, update
from foldline.core.view import Kept, ViewState, item_tokens

NOTE = "calibration"


class Calibrator:
    """The calibration of the session's model; entries are taken as they come."""

    def __init__(self, model: str | None) -> None:
        self._model = model or ""
        self._entry: str | None = None  # the newest reply that was learnt from
        self.now = Calibration()

    @property
    def ratio(self) -> float:
        """Real tokens to an estimated one; 1 while nothing was learnt."""
        return self.now.ratio

    def load(self, fold: ViewState, apart: int) -> None:
        """Begin with the newest note, and learn from the replies behind it whose requests the view shows."""
        entries = fold.entries()
        found = _newest(entries, self._model)
        self.now = _read(entries[found]) if found is not None else Calibration()
        since = {entry.id for entry in entries[(found or 0) :]}
        fresh = {entry.id for entry in fold.kept[fold.usage_from :]} & since
        before = apart
        for item in fold.items():
            if isinstance(item, Kept) and item.entry.id in fresh:
                self._learn(item.entry, before)
            before += item_tokens(item)

    def said(self, fold: ViewState, apart: int) -> None:
        """Learn from the newest reply with usage, if it is one that was not learnt from."""
        if fold.anchor is None:
            return
        entry = fold.kept[fold.anchor]
        if entry.id != self._entry:
            behind = sum(later.tokens for later in fold.kept[fold.anchor :])
            self._learn(entry, apart + fold.tokens - fold.owed - behind)

    def refused(self, estimated: int, asked: int) -> None:
        """Learn from a request that did not fit: what the provider counted, and what we did."""
        self.now = update(self.now, estimated, asked)

    def note(self) -> list[Noted]:
        """Return the note that keeps what was learnt, if anything was."""
        data = {"model": self._model, **msgspec.to_builtins(self.now)}
        return [Noted("", None, NOTE, data)] if self.now.samples else []

    def _learn(self, entry: Said, estimated: int) -> None:
        """Compare the input that a provider counted for a reply with the estimate of the view before it."""
        usage = real_usage(entry.message)
        if usage is not None:
            self.now = update(self.now, estimated, usage.total - usage.output)
            self._entry = entry.id


def _newest(entries: Sequence[Entry], model: str) -> int | None:
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if isinstance(entry, Noted) and entry.kind == NOTE and entry.data.get("model") == model:
            return index
    return None


def _read(entry: Entry) -> Calibration:
    data = entry.data if isinstance(entry, Noted) else {}
    try:
        return msgspec.convert({key: data[key] for key in ("ratio", "samples") if key in data}, Calibration)
    except msgspec.ValidationError:
        return Calibration()
