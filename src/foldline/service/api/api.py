"""The API: every operation behind one gate, which knows who asks, reads, checks, and tells of errors."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from foldline.config import ServeSettings, Settings
from foldline.core.log.codec import encode_utf8
from foldline.errors import FoldlineError, InputError, LeafMoved, StoreError, StoreVersion
from foldline.service.api import (
    administration,
    boundaries,
    compaction,
    events,
    history,
    messages,
    sessions,
    stateless,
    transfers,
    tree,
    turns,
)
from foldline.service.api.idempotency import LONGEST, Given, KeyBusy
from foldline.service.api.openapi import document, index, pages
from foldline.service.api.operation import (
    BYTES,
    JSON,
    ApiCall,
    Operation,
    decoded_query,
    etag,
    matches,
    operations_of,
)
from foldline.service.api.state import ApiState
from foldline.service.at_hand import at_hand, require
from foldline.service.bodies import decoded, decoded_json, read_body, while_there
from foldline.service.metrics import Metrics
from foldline.service.problems import Refused, problem, problem_of, too_many
from foldline.service.tenants import Denied, Tenant, Tenants, bearer

log = logging.getLogger("foldline")
T = TypeVar("T")

TOPICS: Final = (
    sessions,
    administration,
    history,
    boundaries,
    events,
    messages,
    turns,
    compaction,
    tree,
    transfers,
    stateless,
)
OPERATIONS: Final = tuple(one for topic in TOPICS for one in operations_of(topic))
KEY: Final = "idempotency-key"
Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """Answers the requests under `/api`."""

    def __init__(self, serve: ServeSettings, known: Settings, tenants: Tenants, metrics: Metrics) -> None:
        self._serve = serve
        self._tenants = tenants
        self.state = ApiState(serve, known, metrics)
        self.index = _answer(lambda: _json(index(OPERATIONS)))

    def routes(self) -> list[Route]:
        """Return the routes below `/api`."""
        tokens = self._tenants.closed
        return [
            Route("/", self.index),
            Route("/openapi.json", _answer(lambda: _described(tokens)[0])),
            Route("/docs", _answer(lambda: _described(tokens)[1])),
            Route("/problems", _answer(lambda: _described(tokens)[2])),
            *(Route(one.path, self._handler(one), methods=[one.method]) for one in OPERATIONS),
        ]

    async def finish(self) -> None:
        """Let turns that were left come to their end."""
        await self.state.finish(self._serve.drain)

    async def close(self) -> None:
        """Close the connections to the models."""
        await self.state.close()

    def _handler(self, operation: Operation[Any]) -> Handler:
        async def handle(request: Request) -> Response:
            try:
                return await self._answered(operation, request)
            except FoldlineError as error:
                refused = problem_of(error)
                if isinstance(error, LeafMoved):
                    refused.headers["etag"] = etag(error.leaf)
                return refused
            except RecursionError:
                return problem(400, "the request is wrong", "it is nested too deep")
            except ClientDisconnect:
                return problem(400, "the client has left")
            except Exception:
                log.exception("%s %s failed", request.method, operation.path)
                return problem(500, "it failed", "a defect of the service: its log says more")

        return handle

    async def _answered(self, operation: Operation[Any], request: Request) -> Response:
        tenant = self._tenants.find(request)
        if isinstance(tenant, Denied):
            return tenant.problem()
        require(operation.needs)
        if seconds := await tenant.rate.wait():
            return too_many(seconds)
        raw, kind = await read_body(request, self._serve, json=operation.takes != BYTES), operation.body
        names = {name: str(value) for name, value in request.path_params.items()}
        given: dict[str, Any] = {}
        if operation.query is not None:
            given["query"] = decoded_query(request.query_params, operation.query)
        if kind is not None:
            given["body"] = await decoded(raw, operation.read or partial(decoded_json, kind=kind))
        own = None if self._tenants.closed else bearer(request.headers.get("authorization", "")) or None
        call = ApiCall(self.state, tenant, names, given, raw, own, request.headers)
        call.is_allowed = partial(self._is_allowed, request, tenant, operation)
        key = request.headers.get(KEY)
        if key is None or not operation.keyed:
            return await self._run(operation, call, request)
        return await self._once(key, operation, call, request)

    def _is_allowed(self, request: Request, tenant: Tenant, operation: Operation[Any]) -> bool:
        """Return whether the token of a request that is being answered still allows it."""
        return self._tenants.find(request) is tenant and operation.needs in at_hand().scopes

    async def _once(self, key: str, operation: Operation[Any], call: ApiCall, request: Request) -> Response:
        """Run an operation unless its key was answered before: then that answer is given again."""
        if not key or len(key) > LONGEST:
            raise InputError(f"an idempotency key has 1 to {LONGEST} characters")
        name, leaf = call.names.get("session"), None
        if name is not None:  # a session that is not there, or no more, is not answered from memory
            await self.state.opening(call.tenant, name)
            leaf = await call.tenant.store.leaf(name)
        keys = self.state.of(call.tenant).keys
        request_line = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
        known, new = await keys.take(key, request_line + call.raw, session=name, leaf=leaf)
        if not new and known.given is not None:
            return Response(known.given.body, known.given.status, known.given.headers)
        if not new and known.turn is None:
            raise KeyBusy
        call.remembered = known
        try:
            response = await self._run(operation, call, request)
        except BaseException as error:
            if new:
                await (keys.settle(known, None) if _nothing_done(error) else keys.leave(known))
            raise
        if new:
            done = response.status_code < 400 and known.turn is None
            body = bytes(response.body) if done else b""
            given = Given(response.status_code, body, dict(response.headers)) if done else None
            await keys.settle(known, given)
        return response

    async def _run(self, operation: Operation[Any], call: ApiCall, request: Request) -> Response:
        doing = self._done(operation, call, request.headers.get("if-match"))
        found = await (doing if operation.held else while_there(request, doing))
        if not isinstance(found, Response):
            empty = operation.status == 204
            media = None if empty else operation.media
            found = Response(b"" if empty else encode_utf8(found), operation.status, media_type=media)
        for name, value in call.headers.items():
            found.headers.setdefault(name, value)
        return found

    async def ask(
        self,
        tenant: Tenant,
        operation: Operation[T],
        *,
        names: dict[str, str] | None = None,
        raw: bytes = b"",
        **given: Any,
    ) -> T:
        """Run an operation for another face, `given` what it takes; raises FoldlineError."""
        require(operation.needs)
        return await self._done(operation, ApiCall(self.state, tenant, names or {}, given, raw), None)

    async def _done(self, operation: Operation[T], call: ApiCall, condition: str | None) -> T:
        """Run an operation with the session that its path names, and say which leaf that has now."""
        if not operation.of_session:
            return await operation.run(call, **call.given)
        state, name = self.state, call.names["session"]
        opening = await state.opening(call.tenant, name)
        with state.use(call.tenant, name, opening) as session:
            call.found = session
            async with AsyncExitStack() as others_wait:
                if operation.changes:
                    await others_wait.enter_async_context(state.of(call.tenant).lock(name))
                leaf = await session.follow()
                if operation.changes:
                    _check_leaf(operation, call, leaf, condition)
                if not operation.held:
                    await others_wait.aclose()
                found = await operation.run(call, **call.given)
            if operation.method != "DELETE":
                call.headers.setdefault("etag", etag(session.leaf))
            return found


def _answer(make: Callable[[], Response]) -> Handler:
    """Return a handler that gives one answer at all times, made when somebody asks."""

    async def answer(request: Request) -> Response:
        del request
        made = make()
        return Response(made.body, headers=dict(made.headers))

    return answer


def _json(value: object) -> Response:
    return Response(encode_utf8(value), media_type=JSON)


@functools.cache  # made when somebody first asks: a service starts in half the time
def _described(tokens: bool) -> tuple[Response, Response, Response]:
    described = document(OPERATIONS, tokens=tokens)
    return _json(described), *pages(described)


def _nothing_done(error: BaseException) -> bool:
    """Whether an error says that nothing was done; after others, the store's above all, something may be."""
    if isinstance(error, StoreError):
        return isinstance(error, LeafMoved | StoreVersion)
    return isinstance(error, FoldlineError)


def _check_leaf(operation: Operation[Any], call: ApiCall, leaf: str | None, condition: str | None) -> None:
    """Refuse a change that was asked of another leaf, or that an earlier try may have made already."""
    if not matches(condition, leaf):
        raise LeafMoved("its leaf is another one: read it again", leaf=leaf)
    known = call.remembered
    if known is None or not operation.held or operation.resumes:
        return
    if known.again and known.record.leaf != leaf:
        told = "an earlier try did not end, and the session has moved on: look at it, and use another key"
        raise Refused(409, "it is not known whether it was done", told, leaf=leaf)
