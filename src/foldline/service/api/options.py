"""How a session that was made over HTTP is opened: noted in it when it is created, so that it lasts."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import Any, Final, cast

import msgspec

from foldline.core.log.entries import Entry, Noted
from foldline.errors import SessionNotFound
from foldline.stores import Store

NOTE: Final = "served"  # the kind of the note that holds them
HEAD: Final = 64  # entries at the beginning of a session among which it stands


class SessionOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a session was created with; what is not given is the service's."""

    model: str | None = None
    policy: str | None = None
    system: str | None = None

    def noted(self) -> Noted:
        """Return the note of these options, not chained yet."""
        return Noted("", None, NOTE, cast("dict[str, Any]", msgspec.to_builtins(self)), at=time.time())


async def stored_options(store: Store, session: str) -> SessionOptions:
    """Return what a session was created with; raises SessionNotFound where there is no such session."""
    count = 0
    async with aclosing(cast("Any", store.all(session))) as entries:
        async for entry in entries:
            found = _options(entry)
            if found is not None:
                return found
            count += 1
            if count >= HEAD:
                break
    if not count:
        raise SessionNotFound(f"there is no session {session!r}")
    return SessionOptions()


def _options(entry: Entry) -> SessionOptions | None:
    if not isinstance(entry, Noted) or entry.kind != NOTE:
        return None
    try:
        return msgspec.convert(entry.data, SessionOptions)
    except msgspec.ValidationError:  # an imported log may say anything
        return None
