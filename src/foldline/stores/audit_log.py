"""Who folded, undid or deleted what: lines that are only ever added, and stay when a session is purged.

They hold ids and figures, nothing that was said.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from foldline.core.log.codec import prepared
from foldline.stores.tables import Tables


class AuditRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a line tells beside its time, action and session: the entry, who asked, with which request."""

    entry: str | None = None
    token: str = ""
    request: str = ""
    data: dict[str, Any] = {}


prepared(AuditRecord)


class AuditLine(msgspec.Struct, frozen=True):
    """One line of the log; `at` is Unix time, `token` the name of the token that was used."""

    no: int
    at: float
    action: str
    session: str
    entry: str | None = None
    token: str = ""
    request: str = ""
    data: dict[str, Any] = {}


class AuditLog:
    """The audit log of one store; any method may raise StoreError."""

    def __init__(self, run: Callable[[Callable[[Tables], Any]], Awaitable[Any]]) -> None:
        self._run = run

    async def add(self, action: str, session: str, record: AuditRecord) -> None:
        """Add a line; it is durable on return."""
        values = {"action": action, "session": session, "record": msgspec.json.encode(record)}

        def work(tables: Tables) -> None:
            with tables.database.transaction():
                tables.database.change("add_audit", at=time.time(), **values)

        await self._run(work)

    async def page(
        self, limit: int, *, before: int | None = None, session: str | None = None
    ) -> list[AuditLine]:
        """Return the newest lines, of one session where it is named; those `before` a line where that is."""
        given: dict[str, Any] = {"limit": limit, "before": before, "session": session}
        rows = await self._run(lambda tables: tables.database.rows("audit_page", **given))
        return [_line(*row) for row in rows]


def _line(no: int, at: float, action: str, session: str, record: bytes) -> AuditLine:
    known = msgspec.json.decode(record, type=AuditRecord)
    return AuditLine(no, at, action, session, known.entry, known.token, known.request, known.data)
