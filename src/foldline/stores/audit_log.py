"""An append-only log of the folds, undos and deletions of a store, and who made them.

It holds ids and figures, no message text, and survives the purge of a session.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from foldline.core.log.codec import prepared
from foldline.stores.database import Database


class AuditRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The details of a line: the entry, the names of token and request, and figures (`data`)."""

    entry: str | None = None
    token: str = ""
    request: str = ""
    data: dict[str, Any] = {}


prepared(AuditRecord)


class AuditLine(msgspec.Struct, frozen=True):
    """One line of the log; `at` is Unix time, `token` the name of the token used."""

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

    def __init__(self, run: Callable[[Callable[[Database], Any]], Awaitable[Any]]) -> None:
        self._run = run

    async def add(self, action: str, session: str, record: AuditRecord) -> None:
        """Add a line; it is durable on return."""
        values = {"action": action, "session": session, "record": msgspec.json.encode(record)}

        def work(database: Database) -> None:
            with database.transaction():
                database.change("add_audit", at=time.time(), **values)

        await self._run(work)

    async def page(
        self, limit: int, *, before: int | None = None, session: str | None = None
    ) -> list[AuditLine]:
        """Return the newest lines, newest first; optionally of one session, or `before` a line number."""
        values: dict[str, Any] = {"limit": limit, "before": before, "session": session}
        rows = await self._run(lambda database: database.rows("audit_page", **values))
        return [_line(*row) for row in rows]


def _line(no: int, at: float, action: str, session: str, record: bytes) -> AuditLine:
    details = msgspec.structs.asdict(msgspec.json.decode(record, type=AuditRecord))
    return AuditLine(no, at, action, session, **details)
