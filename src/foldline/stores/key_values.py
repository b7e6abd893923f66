"""Small values by key, each with an expiry: what processes over one store tell each other.

Leases, idempotency keys and previews are such values. They are no part of a session's log; a value that
belongs to a session goes when that is purged.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from foldline.errors import StoreError

S = TypeVar("S", bound=msgspec.Struct)
LARGEST: Final = 950_000  # bytes of a value: distributed databases want rows under 1 MB


class KeyValues(Protocol):
    """Values by key in a space of their own. Each call is one atomic step, durable on return.

    `seconds` is how long a value is kept from its last write on, by the store's clock; an expired one is not
    there, and is removed with the next write. Any method may raise StoreError.
    """

    async def add(
        self, space: str, key: str, value: bytes, *, seconds: float, session: str | None = None
    ) -> bytes | None:
        """Put a value where none is; return the one that is there instead, None where this one was put.

        `session` is the session that it belongs to. Raises StoreError for one over `LARGEST`.
        """
        ...

    async def get(self, space: str, key: str) -> bytes | None:
        """Return the value of a key; None where none is."""
        ...

    async def replace(self, space: str, key: str, old: bytes, new: bytes, *, seconds: float) -> bool:
        """Put a value in the place of an old one, if that is still there; return whether the new one is.

        It is also where it was put before: a step whose answer was lost can be made again.
        """
        ...

    async def delete(self, space: str, key: str, old: bytes | None = None) -> bool:
        """Delete a value (if it is still the `old` one); return whether it was there."""
        ...

    async def keys(self, space: str) -> list[str]:
        """Return the keys of a space that have a value, in any order."""
        ...

    async def trim(self, space: str, most: int) -> None:
        """Delete all but the `most` values of a space that were written last."""
        ...


class _Value(NamedTuple):
    value: bytes
    session: str | None
    expires: float


class MemoryKeyValues:
    """Values that live as long as the process: the reference for databases."""

    def __init__(self) -> None:
        self._spaces: dict[str, dict[str, _Value]] = {}  # in the order of their writes

    async def add(
        self, space: str, key: str, value: bytes, *, seconds: float, session: str | None = None
    ) -> bytes | None:
        """Put a value where none is."""
        check_size(value)
        self._expire()
        known = self._spaces.setdefault(space, {})
        if key in known:
            return known[key].value
        known[key] = _Value(value, session, time.time() + seconds)
        return None

    async def get(self, space: str, key: str) -> bytes | None:
        """Return a value."""
        found = self._spaces.get(space, {}).get(key)
        return found.value if found is not None and found.expires > time.time() else None

    async def replace(self, space: str, key: str, old: bytes, new: bytes, *, seconds: float) -> bool:
        """Compare and swap."""
        check_size(new)
        self._expire()
        known = self._spaces.get(space, {})
        if key not in known or known[key].value != old:
            return key in known and known[key].value == new
        known[key] = _Value(new, known.pop(key).session, time.time() + seconds)
        return True

    async def delete(self, space: str, key: str, old: bytes | None = None) -> bool:
        """Delete a value."""
        self._expire()
        known = self._spaces.get(space, {})
        if key not in known or old not in {None, known[key].value}:
            return False
        del known[key]
        return True

    async def keys(self, space: str) -> list[str]:
        """Return the keys of a space."""
        self._expire()
        return list(self._spaces.get(space, {}))

    async def trim(self, space: str, most: int) -> None:
        """Keep the newest of a space."""
        self._expire()
        known = self._spaces.get(space, {})
        for key in list(known)[: max(0, len(known) - most)]:
            del known[key]

    def forget(self, session: str) -> None:
        """Delete all that belongs to a session."""
        self._keep(lambda one: one.session != session)

    def _expire(self) -> None:
        now = time.time()
        self._keep(lambda one: one.expires > now)

    def _keep(self, wanted: Callable[[_Value], bool]) -> None:
        for space, known in self._spaces.items():
            self._spaces[space] = {key: one for key, one in known.items() if wanted(one)}


def check_size(value: bytes) -> None:
    """Raise StoreError for a value that is too large."""
    if len(value) > LARGEST:
        raise StoreError(f"a value of {len(value):,} bytes is too large: {LARGEST:,} may be kept")


def pack(value: msgspec.Struct) -> bytes:
    """Return a struct as a value."""
    return zlib.compress(msgspec.msgpack.encode(value), 1)


def unpack(raw: bytes, kind: type[S]) -> S | None:
    """Return the struct that a value holds; None for one that another version has written."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(raw), type=kind)
    except (msgspec.DecodeError, zlib.error):
        return None
