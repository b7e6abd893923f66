"""Sessions: create, list, search, rename, clear, delete."""

from __future__ import annotations

import base64
import logging
from functools import partial
from typing import Annotated, Any, Final, TypeAlias, cast

import msgspec

from foldline.core.log.codec import encode_utf8
from foldline.core.log.log import chained
from foldline.errors import InputError, LeafMoved, SessionNotFound, StoreError
from foldline.service.api.operation import ApiCall, Cursor, NewId, Page, Title, Words, etag, operation
from foldline.service.api.state import SessionOptions, stored_options
from foldline.service.problems import Refused
from foldline.service.tenants import Tenant
from foldline.session.links import Link
from foldline.stores.base import FIRST, Hit, Listed, SessionInfo, Store
from foldline.stores.database_store import DatabaseStore
from foldline.stores.tree import SERVED, USER

log = logging.getLogger("foldline")

AT: Final = "/sessions/{session}"
User: TypeAlias = Annotated[str, msgspec.Meta(pattern=USER, description="A user, as the client calls them")]
_Key: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
_Value: TypeAlias = Annotated[str, msgspec.Meta(max_length=512)]
Metadata: TypeAlias = Annotated[dict[_Key, _Value], msgspec.Meta(max_length=16)]


class NewSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session to create; without an id it gets a random one.

    `model` is a configured one, `policy` a preset or a policy of the settings. `messages` are of any dialect.
    `user` is the client's user that the session belongs to, `metadata` is the client's own.
    """

    id: NewId | None = None
    title: Title | None = None
    model: Title | None = None
    policy: Title | None = None
    system: Words | None = None
    messages: list[Any] = []
    user: User | None = None
    metadata: Metadata = {}


class SessionList(msgspec.Struct, frozen=True):
    """Sessions, the last updated first; `total` is their number, `next` the cursor of the next page."""

    sessions: list[SessionInfo]
    total: int
    next: str | None = None


class SessionPage(msgspec.Struct, frozen=True):
    """Which sessions to list: those of a user, or with some words in their title.

    `cursor` is the `next` of the page before. Sessions created or updated meanwhile are on the first page.
    """

    limit: Page = 50
    cursor: Cursor | None = None
    title: str = ""
    user: User | None = None


class SearchQuery(msgspec.Struct, frozen=True):
    """What to search for: each word is the beginning of a word in the message."""

    q: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
    limit: Page = 20


class HitList(msgspec.Struct, frozen=True):
    """Matching messages, the best first."""

    hits: list[Hit]


class SessionDetail(msgspec.Struct, frozen=True):
    """A session: its figures, its settings, and the sessions that it came from or led to."""

    info: SessionInfo
    model: str | None
    policy: str
    dialect: str
    links: list[Link]
    metadata: dict[str, str] = {}
    verified: list[str] | None = None


class DetailQuery(msgspec.Struct, frozen=True):
    """Whether to check the integrity of the log: then `verified` lists what is wrong."""

    verify: bool = False


class SessionChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to change in a session; fields left out stay. New `metadata` replaces all of the old."""

    title: Title | None = None
    user: User | None = None
    metadata: Metadata | None = None


class LeafResult(msgspec.Struct, frozen=True):
    """The leaf of the session; null if its path is empty."""

    leaf: str | None


EXAMPLE: Final = {"title": "The parser", "user": "ada", "metadata": {"project": "compiler"}}


@operation("POST", "/sessions", status=201, keyed=True, example=EXAMPLE)
async def create_session(call: ApiCall, body: NewSession) -> SessionInfo:
    """Create a session."""
    state, store = call.state, call.tenant.store
    if body.model is not None:
        state.models.chosen(body.model)
    state.check_policy(body.policy)
    name = body.id or f"s-{call.token}"
    async with call.tenant.lock(name):
        existing = await store.info(name)
        if existing is not None and call.is_retry:
            if body.id is not None:
                detail = f"{name!r} exists, perhaps from an earlier attempt: check it and use a new key"
                raise Refused(409, "it is not known whether it was done", detail)
            if existing.messages:  # they are stored last
                return await _created(call, name, await store.leaf(name))
            await purge_stored(store, name)  # incomplete, and no client has its id
            existing = None
        options = SessionOptions(body.model, body.policy, body.system, body.user, body.metadata)
        if existing is not None:
            raise taken(name)
        try:
            await store.append(name, [chained(options.note(), None)], seen=None)
        except LeafMoved as error:
            raise taken(name) from error
        try:
            with state.use(call.tenant, name, await state.opening(call.tenant, name)) as session:
                if body.title:
                    await session.note("title", title=body.title)
                if body.messages:
                    await session.append(*body.messages)
                leaf = session.leaf
        except BaseException:
            call.tenant.sessions.forget(name)
            await purge_stored(store, name)
            raise
    return await _created(call, name, leaf)


async def _created(call: ApiCall, name: str, leaf: str | None) -> SessionInfo:
    call.headers |= {"location": f"/api/sessions/{name}", "etag": etag(leaf)}
    return await info_of(call.tenant.store, name)


async def info_of(store: Store, name: str) -> SessionInfo:
    """Return the list's row of a session; raises SessionNotFound."""
    info = await store.info(name)
    if info is None:
        raise SessionNotFound(f"there is no session {name!r}")
    return info


@operation("GET", "/sessions")
async def list_sessions(call: ApiCall, query: SessionPage) -> SessionList:
    """List sessions, the last updated first."""
    words, after = query.title.casefold().split(), _read_cursor(query.cursor)
    store, user = call.tenant.store, query.user
    list_all = store.sessions if user is None else partial(database_of(store).sessions_of, user)
    if words:
        matching = [info for info in await list_all() if all(word in info.title.casefold() for word in words)]
        infos = [info for info in matching if (info.updated, info.id) < after][: query.limit + 1]
        total = len(matching)
    else:
        infos = await list_all(limit=query.limit + 1, after=after)
        total = await (store.count() if user is None else database_of(store).count_of(user))
    page = infos[: query.limit]
    return SessionList(page, total, _cursor(page[-1]) if len(infos) > len(page) else None)


def _cursor(last: SessionInfo) -> str:
    """Return the end of a page as an opaque string."""
    return base64.urlsafe_b64encode(encode_utf8((last.updated, last.id))).decode()


def _read_cursor(cursor: str | None) -> Listed:
    """Return the end of the page before; raises InputError unless `_cursor` made the cursor."""
    if cursor is None:
        return FIRST
    try:
        raw = base64.b64decode(cursor, altchars=b"-_", validate=True)
        return msgspec.json.decode(raw, type=Listed)
    except (ValueError, msgspec.DecodeError) as error:
        raise InputError("the cursor is not the `next` of a page") from error


@operation("GET", "/search")
async def search_sessions(call: ApiCall, query: SearchQuery) -> HitList:
    """Search the messages of all sessions."""
    return HitList(await call.tenant.store.search(query.q, None, query.limit))


@operation("GET", AT)
async def show_session(call: ApiCall, query: DetailQuery) -> SessionDetail:
    """Show a session: title, counts, model, policy, links."""
    session = call.session
    return SessionDetail(
        info=await info_of(call.tenant.store, session.id),
        model=session.setup.info.name,
        policy=session.policy.name,
        dialect=session.dialect,
        links=await session.links(),
        metadata=(await stored_options(call.tenant.store, session.id)).metadata,
        verified=await session.verify() if query.verify else None,
    )


@operation("PATCH", AT, changes=True, example=EXAMPLE)
async def change_session(call: ApiCall, body: SessionChange) -> LeafResult:
    """Change the title, user or metadata of a session."""
    session, changes = call.session, msgspec.to_builtins(body)
    if about := {name: value for name, value in changes.items() if name != "title"}:
        database_of(call.tenant.store)
        await session.note(SERVED, **about)
    if body.title is not None:
        await session.note("title", title=body.title)
    if changes:
        await call.tenant.feed.tell("changed", session.id, fields=list(changes))
    return LeafResult(session.leaf)


@operation("DELETE", AT, status=204, changes=True, scope="admin")
async def delete_session(call: ApiCall) -> None:
    """Delete a session and all of its branches for good."""
    async with call.tenant.without_a_turn(call.session.id):
        await purge(call.tenant, call.session.id)


async def purge(tenant: Tenant, name: str, why: str = "asked") -> None:
    """Delete a session for good, and record it in the audit log and webhooks."""
    tenant.sessions.forget(name)
    await purge_stored(tenant.store, name)
    await tenant.feed.tell("deleted", name, why=why)


async def purge_stored(store: Store, name: str) -> None:
    """Delete a session from the store; an error after the deletion is only logged."""
    try:
        await store.purge(name)
    except StoreError as error:
        if await store.info(name) is not None:
            raise
        log.warning("%s", error)


@operation("POST", f"{AT}/clear", changes=True, keyed=True)
async def clear_session(call: ApiCall) -> LeafResult:
    """Start over with an empty path; the old messages stay as a branch."""
    session, store = call.session, call.tenant.store
    async with call.tenant.without_a_turn(session.id):
        title = (await info_of(store, session.id)).title
        options = await stored_options(store, session.id)
        await store.move(session.id, None, seen=session.leaf)
        await store.append(session.id, [chained(options.note(), None)], seen=None)
        await session.follow()
        if title:
            await session.note("title", title=title)
    return LeafResult(session.leaf)


def database_of(store: Store) -> DatabaseStore[Any]:
    """Return a store that knows the users of sessions; raises Refused for any other store."""
    if not isinstance(store, DatabaseStore):
        raise Refused(
            501,
            "the store cannot do it",
            "it does not record the users of sessions: use SQLite or PostgreSQL",
        )
    return cast("DatabaseStore[Any]", store)


def taken(session: str) -> Refused:
    """Return the error for an id that another session has."""
    return Refused(409, "there is such a session", f"{session!r} already exists: use another id")
