"""Previews of compactions that wait to be committed or dropped: bounded in number and age."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from typing import Final

import msgspec

from foldline.session.preview import Preview

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

    def __init__(self, most: int = MOST, seconds: float = SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._kept: OrderedDict[str, KeptPreview] = OrderedDict()

    def keep(self, session: str, preview: Preview) -> KeptPreview:
        """Keep a preview under a new id."""
        one = KeptPreview(secrets.token_hex(12), session, preview, time.time() + self._seconds)
        self._kept[one.id] = one
        self._tidy()
        return one

    def find(self, session: str, name: str) -> KeptPreview | None:
        """Return a session's preview; None where it is not, or no more, there."""
        self._tidy()
        known = self._kept.get(name)
        return known if known is not None and known.session == session else None

    def drop(self, name: str) -> None:
        """Forget a preview."""
        self._kept.pop(name, None)

    def forget(self, session: str) -> None:
        """Forget all previews of a session."""
        for one in [one for one in self._kept.values() if one.session == session]:
            del self._kept[one.id]

    def _tidy(self) -> None:
        now = time.time()
        while self._kept:
            oldest = next(iter(self._kept.values()))
            if oldest.until > now and len(self._kept) <= self._most:
                break
            del self._kept[oldest.id]
