"""Previews of compactions that wait in the store to be committed or dropped: bounded in number and age."""

from __future__ import annotations

import secrets
import time
import zlib
from typing import Final

import msgspec

from foldline.session.preview import Preview
from foldline.stores.key_values import KeyValues

SPACE: Final = "preview"
MOST: Final = 64  # previews of a tenant; the oldest leaves
SECONDS: Final = 3_600.0  # that a preview is kept


class KeptPreview(msgspec.Struct, frozen=True):
    """A preview of a session, and until when it is kept, Unix time."""

    id: str
    session: str
    preview: Preview
    until: float


class KeptPreviews:
    """The previews of one tenant."""

    def __init__(self, values: KeyValues, most: int = MOST, seconds: float = SECONDS) -> None:
        self._values = values
        self._most = most
        self._seconds = seconds

    async def keep(self, session: str, preview: Preview) -> KeptPreview:
        """Keep a preview under a new id."""
        one = KeptPreview(secrets.token_hex(12), session, preview, time.time() + self._seconds)
        raw = zlib.compress(msgspec.msgpack.encode(one), 1)
        await self._values.add(SPACE, one.id, raw, seconds=self._seconds, session=session)
        await self._values.trim(SPACE, self._most)
        return one

    async def find(self, session: str, name: str) -> KeptPreview | None:
        """Return a session's preview; None where it is not, or no more, there."""
        raw = await self._values.get(SPACE, name)
        if raw is None:
            return None
        try:
            found = msgspec.msgpack.decode(zlib.decompress(raw), type=KeptPreview)
        except (msgspec.DecodeError, zlib.error):  # another version of this service made it
            return None
        return found if found.session == session else None

    async def drop(self, name: str) -> None:
        """Forget a preview."""
        await self._values.delete(SPACE, name)
