"""A provider that asks no model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from foldline.errors import ProviderError
from foldline.providers.base import Call, Delta, Reply

OFFLINE: Final = "offline"


class OfflineProvider:
    """Refuse every call permanently, so that callers fall back on what needs no model."""

    name = OFFLINE

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect

    async def complete(self, call: Call) -> Reply:
        """Raise ProviderError of kind `auth`, which no retry helps."""
        del call
        raise _refusal()

    async def stream(self, call: Call) -> AsyncIterator[Delta | Reply]:
        """Raise ProviderError of kind `auth`, which no retry helps."""
        del call
        raise _refusal()
        yield  # makes this a generator, as every stream is

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _refusal() -> ProviderError:
    return ProviderError("no model is asked", kind="auth", provider=OFFLINE)
