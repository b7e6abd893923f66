"""The model and window stored with a session, used when it is opened without them."""

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

MODEL: Final = "model"  # kind of the note that stores them

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
