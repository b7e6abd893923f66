"""Bulk deletion, by user or by age, and the audit log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from foldline.errors import SessionNotFound
from foldline.service.api.operation import ApiCall, Offset, Page, operation
from foldline.service.api.sessions import User, database_of, purge
from foldline.service.api.state import IMPORTED
from foldline.service.problems import Refused
from foldline.service.tenants import Tenant
from foldline.stores.audit_log import AuditLine

STEP: Final = 100  # sessions looked up at a time


class OfUser(msgspec.Struct, frozen=True):
    """The user whose sessions are deleted."""

    user: User


class DeletedSessions(msgspec.Struct, frozen=True):
    """How many sessions were deleted; `busy` lists those kept because a turn is under way."""

    deleted: int
    busy: list[str]


class AuditPage(msgspec.Struct, frozen=True):
    """Which lines to return: those of a session, those before a line (`next` of the last page)."""

    limit: Page = 100
    before: Offset | None = None
    session: str | None = None


class AuditLines(msgspec.Struct, frozen=True):
    """Lines of the audit log, newest first; pass `next` as `before` for older ones, null at the end."""

    lines: list[AuditLine]
    next: int | None


@operation("DELETE", "/sessions", scope="admin")
async def delete_sessions(call: ApiCall, query: OfUser) -> DeletedSessions:
    """Delete all sessions of a user, for good."""
    store = database_of(call.tenant.store)

    async def is_theirs(name: str) -> bool:
        info = await store.info(name)
        return info is not None and info.user == query.user

    infos = await store.sessions_of(query.user)
    return await _delete(call.tenant, [info.id for info in infos], "user", is_theirs)


async def delete_idle(tenant: Tenant, before: float) -> None:
    """Delete the sessions of a tenant last updated before a Unix time."""
    try:
        store = database_of(tenant.store)
    except Refused:
        return

    async def is_idle(name: str) -> bool:
        info = await store.info(name)
        return info is not None and info.updated < before

    while True:
        idle = await store.idle(before, STEP + len(await tenant.values.keys(IMPORTED)))
        kept = set(await tenant.values.keys(IMPORTED))  # read again: an import may have ended meanwhile
        result = await _delete(tenant, [name for name in idle if name not in kept], "age", is_idle)
        if not result.deleted:
            return


async def _delete(
    tenant: Tenant, names: list[str], why: str, is_wanted: Callable[[str], Awaitable[bool]]
) -> DeletedSessions:
    """Delete sessions, unless they were used or changed since they were listed."""
    deleted, busy = 0, list[str]()
    for name in names:
        try:
            async with tenant.without_a_turn(name):
                if not await is_wanted(name):
                    continue
                await purge(tenant, name, why)
            deleted += 1
        except SessionNotFound:  # another request deleted it first
            continue
        except Refused:
            busy.append(name)
    return DeletedSessions(deleted, busy)


@operation("GET", "/audit", scope="admin")
async def read_audit_log(call: ApiCall, query: AuditPage) -> AuditLines:
    """List who folded, undid and deleted what, and when."""
    log = call.tenant.feed.audit_log
    if log is None:
        raise Refused(501, "the store cannot do it", "it has no audit log")
    lines = await log.page(query.limit, before=query.before, session=query.session)
    return AuditLines(lines, lines[-1].no if len(lines) == query.limit else None)
