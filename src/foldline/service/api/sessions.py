"""Sessions themselves: made, listed, searched, renamed, cleared, deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

import msgspec
from starlette.responses import Response

from foldline.core.log.log import chained
from foldline.errors import LeafMoved, SessionNotFound
from foldline.service.api.inputs import etag
from foldline.service.api.operation import ApiCall, ApiResult, NewId, Offset, Operation, Page, Title, Words
from foldline.service.api.options import SessionOptions, stored_options
from foldline.service.problems import problem
from foldline.session.links import Link
from foldline.stores.base import Hit, SessionInfo, Store


class NewSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session to begin; its id is made up where none is given.

    `model` is one of those that are configured, `policy` a preset or one of the settings. `messages` are of
    any dialect.
    """

    id: NewId | None = None
    title: Title | None = None
    model: Title | None = None
    policy: Title | None = None
    system: Words | None = None
    messages: list[Any] = []


class SessionList(msgspec.Struct, frozen=True):
    """Sessions, the last updated first; `total` is how many there are in all."""

    sessions: list[SessionInfo]
    total: int


class SessionPage(msgspec.Struct, frozen=True):
    """Which of the sessions to list; `title` are words that a title holds."""

    limit: Page = 50
    offset: Offset = 0
    title: str = ""


class SearchQuery(msgspec.Struct, frozen=True):
    """What to search for; every word begins a word of the message."""

    q: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
    limit: Page = 20


class HitList(msgspec.Struct, frozen=True):
    """Messages that match, the best first."""

    hits: list[Hit]


class SessionDetail(msgspec.Struct, frozen=True):
    """A session: its figures in the list, how it is kept, and the sessions that it came from or led to."""

    info: SessionInfo
    model: str | None
    policy: str
    dialect: str
    links: list[Link]
    verified: list[str] | None = None


class DetailQuery(msgspec.Struct, frozen=True):
    """Whether the session is proved whole: then `verified` lists what is wrong with it."""

    verify: bool = False


class NewTitle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The title to give to a session."""

    title: Title


class LeafResult(msgspec.Struct, frozen=True):
    """The leaf of the session; null where its path is empty."""

    leaf: str | None


async def create(call: ApiCall) -> ApiResult | Response:
    """Begin a session."""
    given: NewSession = call.body
    state, store = call.state, call.tenant.store
    if given.model is not None:
        state.models.chosen(given.model)
    state.check_policy(given.policy)
    name = given.id or f"s-{call.token}"
    async with state.of(call.tenant).lock(name):
        if call.again and await _exists(store, name):
            if given.id is not None:
                told = f"{name!r} exists, from an earlier try or not: look at it, and use another key"
                return problem(409, "it is not known whether it was done", told)
            await store.purge(name)  # nobody was told of it
        options = SessionOptions(given.model, given.policy, given.system)
        if await _exists(store, name) or not await _begun(store, name, options):
            return problem(409, "there is such a session", f"{name!r} exists already: give another id")
        try:
            with state.use(call.tenant, name, options) as session:
                if given.title:
                    await session.note("title", title=given.title)
                if given.messages:
                    await session.append(*given.messages)
                leaf = session.leaf
        except BaseException:
            call.tenant.sessions.forget(name)
            await store.purge(name)
            raise
    headers = {"location": f"/api/sessions/{name}", "etag": etag(leaf)}
    return ApiResult(await info_of(store, name), headers=headers)


async def _exists(store: Store, name: str) -> bool:
    return await store.info(name) is not None


async def _begun(store: Store, name: str, options: SessionOptions) -> bool:
    try:
        await store.append(name, [chained(options.noted(), None)], seen=None)
    except LeafMoved:
        return False
    return True


async def info_of(store: Store, name: str) -> SessionInfo:
    """Return a session as the list shows it."""
    found = await store.info(name)
    if found is None:
        raise SessionNotFound(f"there is no session {name!r}")
    return found


async def list_all(call: ApiCall) -> ApiResult:
    """List sessions."""
    asked: SessionPage = call.query
    words = asked.title.casefold().split()
    store = call.tenant.store
    if not words:
        page = await store.sessions(limit=asked.limit, offset=asked.offset)
        return ApiResult(SessionList(page, await store.count()))
    every = await store.sessions()
    found = [info for info in every if all(word in info.title.casefold() for word in words)]
    return ApiResult(SessionList(found[asked.offset : asked.offset + asked.limit], len(found)))


async def search(call: ApiCall) -> ApiResult:
    """Search all sessions."""
    asked: SearchQuery = call.query
    return ApiResult(HitList(await call.tenant.store.search(asked.q, None, asked.limit)))


async def show(call: ApiCall) -> ApiResult:
    """Show a session."""
    asked: DetailQuery = call.query
    session = call.session
    detail = SessionDetail(
        info=await info_of(call.tenant.store, session.id),
        model=session.setup.info.name,
        policy=session.policy.name,
        dialect=session.dialect,
        links=await session.links(),
        verified=await session.verify() if asked.verify else None,
    )
    return ApiResult(detail)


async def rename(call: ApiCall) -> ApiResult:
    """Give a session a title."""
    await call.session.note("title", title=call.body.title)
    return ApiResult(LeafResult(call.session.leaf))


async def clear(call: ApiCall) -> ApiResult | Response:
    """Empty the path of a session: its options and title begin a new one, and what was said is a branch."""
    return await _without_a_turn(call, _cleared)


async def _without_a_turn(
    call: ApiCall, work: Callable[[ApiCall], Awaitable[ApiResult]]
) -> ApiResult | Response:
    """Do what no turn may go on beside."""
    turns = call.state.of(call.tenant).turns
    if not await turns.take(call.session.id):
        return busy(call.session.id)
    try:
        return await work(call)
    finally:
        await turns.release(call.session.id)


async def _cleared(call: ApiCall) -> ApiResult:
    session, store = call.session, call.tenant.store
    title = (await info_of(store, session.id)).title
    options = await stored_options(store, session.id)
    await store.move(session.id, None, seen=session.leaf)
    await store.append(session.id, [chained(options.noted(), None)], seen=None)
    await session.follow()
    if title:
        await session.note("title", title=title)
    return ApiResult(LeafResult(session.leaf))


def busy(session: str) -> Response:
    """Tell that a turn is under way, which cannot go on beside what was asked."""
    return problem(409, "a turn is under way", f"wait for the turn of {session!r}, or close its stream")


async def delete(call: ApiCall) -> ApiResult | Response:
    """Delete a session, all of its branches, for good."""
    return await _without_a_turn(call, _deleted)


async def _deleted(call: ApiCall) -> ApiResult:
    call.tenant.sessions.forget(call.session.id)
    await call.tenant.store.purge(call.session.id)
    return ApiResult()


AT: Final = "/sessions/{session}"
OPERATIONS: Final = (
    Operation(
        name="createSession",
        method="POST",
        path="/sessions",
        about="Begin a session",
        run=create,
        body=NewSession,
        result=SessionInfo,
        status=201,
        keyed=True,
    ),
    Operation(
        name="listSessions",
        method="GET",
        path="/sessions",
        about="List sessions, the last updated first",
        run=list_all,
        query=SessionPage,
        result=SessionList,
    ),
    Operation(
        name="searchSessions",
        method="GET",
        path="/search",
        about="Search what was said in all sessions",
        run=search,
        query=SearchQuery,
        result=HitList,
    ),
    Operation(
        name="showSession",
        method="GET",
        path=AT,
        about="Show a session: title, counts, model, policy, links",
        run=show,
        query=DetailQuery,
        result=SessionDetail,
    ),
    Operation(
        name="renameSession",
        method="PATCH",
        path=AT,
        about="Give a session a title",
        run=rename,
        body=NewTitle,
        result=LeafResult,
        changes=True,
    ),
    Operation(
        name="deleteSession",
        method="DELETE",
        path=AT,
        about="Delete a session with all of its branches, for good",
        run=delete,
        status=204,
        changes=True,
    ),
    Operation(
        name="clearSession",
        method="POST",
        path=f"{AT}/clear",
        about="Begin again with an empty path; what was said stays as a branch",
        run=clear,
        result=LeafResult,
        changes=True,
        keyed=True,
    ),
)
