"""The model and the window that a session was opened with: part of it, for who opens it without them."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foldline.core.log.codec import prepared
from foldline.core.log.entries import Entry, Noted
from foldline.core.measure.window import Window
from foldline.stores.base import Store

MODEL: Final = "model"  # the kind of note that keeps them

log = logging.getLogger("foldline")


class KeptModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's name ("": none was named), and its window where one was given: its context, or all of it."""

    model: str = ""
    window: int | Window | None = None

    def noted(self) -> Noted:
        """Return the note of it, not chained yet."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return Noted("", None, MODEL, {"model": self.model, **data}, at=time.time())


prepared(KeptModel)


def kept_in(entries: Sequence[Entry]) -> KeptModel | None:
    """Return what the newest note says; None where there is none."""
    newest = next((e for e in reversed(entries) if isinstance(e, Noted) and e.kind == MODEL), None)
    if newest is None:
        return None
    try:
        return msgspec.convert(newest.data, KeptModel)
    except msgspec.ValidationError:  # an imported log may say anything
        log.warning("a note of the session's model cannot be read: %s", newest.data)
        return None


async def kept_of(store: Store, session: str) -> KeptModel:
    """Return what is kept of a stored session; of one that does not exist, nothing."""
    return kept_in(await store.active(session)) or KeptModel()
