"""What a session without a title is called: by the words with which its user began it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from foldline.core.ledger.text.origin import prompts
from foldline.core.log.entries import Said
from foldline.service.tenants import Tenant
from foldline.service.web.shown import line
from foldline.stores.base import SessionInfo, Store

FIRST: Final = 20  # entries in which the user's first words are looked for
SHOWN: Final = 80  # characters of them
KNOWN: Final = 10_000  # sessions whose beginning is remembered

Begun = tuple[str, str, float]


class Beginnings:
    """How sessions began: what was found is remembered, also where the session begins anew."""

    def __init__(self) -> None:
        self._known: dict[Begun, str] = {}

    async def names(self, tenant: Tenant, sessions: Iterable[SessionInfo]) -> dict[str, str]:
        """Return what each session is called, by its id: its title, else how it began, else its id."""
        return {info.id: info.title or await self._found(tenant, info) or info.id for info in sessions}

    async def _found(self, tenant: Tenant, info: SessionInfo) -> str:
        key = (tenant.name, info.id, info.created)
        found = self._known.get(key, "")
        if not found and info.messages:
            found = await beginning(tenant.store, info.id)
        if found:
            self._known[key] = found
            if len(self._known) > KNOWN:
                self._known.pop(next(iter(self._known)))
        return found


async def beginning(store: Store, session: str) -> str:
    """Return the first words of the user's in a session; "" where it begins with none."""
    first: list[Said] = []
    async for entry in store.path(session):
        if isinstance(entry, Said):
            first.append(entry)
        if len(first) == FIRST:
            break
    return next((line(span, SHOWN) for _, spans in prompts(first) for span in spans), "")
