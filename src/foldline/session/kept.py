"""What the notes of a session tell of its model: which one, the window, what was learnt of both.

A session that is opened without a model or a window uses the stored ones.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foldline.core.log.codec import prepared
from foldline.core.log.entries import Entry, Noted, Said
from foldline.core.measure.accounting import Calibration, real_usage, update
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.core.view_items import MessageItem
from foldline.stores.base import Store

MODEL: Final = "model"  # kind of the note with the model and its window
CALIBRATION: Final = "calibration"  # kind of the note with the ratio of the model's token count to ours
WINDOW: Final = "window"  # kind of the note with a context window learnt from an overflow
IN_TURN: Final = "in_turn"  # kind of the note that a model rejects two messages of one role in a row

log = logging.getLogger("foldline")


class KeptModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's name ("" for none), and its window if one was given: context tokens, or all limits."""

    model: str = ""
    window: int | Window | None = None

    def noted(self) -> Noted:
        """Return it as a note, not chained yet."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return Noted("", None, MODEL, {"model": self.model, **data}, at=time.time())


prepared(KeptModel)


def kept_in(entries: Sequence[Entry]) -> KeptModel | None:
    """Return the model and window of the newest note; None without one."""
    newest = next((e for e in reversed(entries) if isinstance(e, Noted) and e.kind == MODEL), None)
    if newest is None:
        return None
    try:
        return msgspec.convert(newest.data, KeptModel)
    except msgspec.ValidationError:  # an imported log may hold anything
        log.warning("a note of the session's model cannot be read: %s", newest.data)
        return None


async def kept_of(store: Store, session: str) -> KeptModel:
    """Return the stored model and window of a session; empty for an unknown session."""
    return kept_in(await store.active(session)) or KeptModel()


def kept_with(given: KeptModel, kept: KeptModel) -> KeptModel:
    """Return the given model and window, with the stored ones as defaults.

    The stored window applies to the stored model only.
    """
    model = given.model or kept.model
    stored = kept.window if model == kept.model else None
    return KeptModel(model, stored if given.window is None else given.window)


def replies_before(state: ViewState, model: str) -> frozenset[str]:
    """Return the replies of a view from before its session used the noted `model`.

    What another model counted and cached says nothing of this one.
    """
    before, since, noted = set[str](), set[str](), None
    for entry in state.entries():
        if isinstance(entry, Noted) and entry.kind == MODEL:
            if entry.data.get("model") != noted:
                before, since = before | since, set[str]()
            noted = entry.data.get("model")
        elif isinstance(entry, Said) and entry.message.role == "assistant":
            since.add(entry.id)
    return frozenset(before if noted in (None, model) else before | since)


# ---- what was learnt


def newest_note(entries: Sequence[Entry], kind: str, model: str) -> tuple[int, Noted] | None:
    """Return the newest note of a kind about a model, and its index."""
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if isinstance(entry, Noted) and entry.kind == kind and entry.data.get("model") == model:
            return index, entry
    return None


def learnt_window(entries: Sequence[Entry], model: str | None) -> int | None:
    """Return the context in tokens learnt from an overflow of this model; None if not learnt."""
    newest = newest_note(entries, WINDOW, model or "")
    context = newest[1].data.get("context") if newest is not None else None
    return context if isinstance(context, int) and context > 0 else None


class Calibrator:
    """The calibration of one model, updated as replies arrive."""

    def __init__(self, model: str | None) -> None:
        self._model = model or ""
        self._entry: str | None = None  # the newest reply used
        self.now = Calibration()

    @property
    def ratio(self) -> float:
        """Real tokens per estimated token; 1 while nothing was learnt."""
        return self.now.ratio

    def load(self, state: ViewState, overhead: int, others: frozenset[str]) -> None:
        """Start from the newest note, and learn from later replies whose requests the view shows.

        `others` are replies of other models.
        """
        entries = state.entries()
        newest = newest_note(entries, CALIBRATION, self._model)
        self.now = _calibration(newest[1]) if newest is not None else Calibration()
        since = {entry.id for entry in entries[(newest[0] if newest is not None else 0) :]}
        fresh = {entry.id for entry in state.kept[state.usage_from :]} & since - others
        before = overhead
        for item in state.items():
            if isinstance(item, MessageItem) and item.entry.id in fresh:
                self._learn(item.entry, before)
            before += item.tokens
        if state.anchor is not None:  # `said` learns from later ones only
            self._entry = state.kept[state.anchor].id

    def said(self, state: ViewState, overhead: int) -> None:
        """Learn from the newest reply with usage, once."""
        if state.anchor is None:
            return
        entry = state.kept[state.anchor]
        if entry.id != self._entry:
            after = sum(later.tokens for later in state.kept[state.anchor :])
            self._learn(entry, overhead + state.tokens - state.open_call_tokens - after)

    def refused(self, estimated: int, asked: int) -> None:
        """Learn from a request that did not fit: our estimate and the provider's count."""
        self.now = update(self.now, estimated, asked)

    def _learn(self, entry: Said, estimated: int) -> None:
        """Compare the provider's input count of a reply with our estimate of the view before it."""
        usage = real_usage(entry.message)
        if usage is not None:
            self.now = update(self.now, estimated, usage.total - usage.output)
            self._entry = entry.id


def _calibration(note: Noted) -> Calibration:
    try:
        return msgspec.convert(note.data, Calibration)
    except msgspec.ValidationError:
        return Calibration()
