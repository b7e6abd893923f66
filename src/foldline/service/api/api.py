"""The API: one gate authenticates requests, reads and checks their input, and reports errors."""

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
from foldline.service.idempotency import LONGEST, KeyBusy, StoredResponse
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
OPERATIONS: Final = tuple(operation for topic in TOPICS for operation in operations_of(topic))
KEY: Final = "idempotency-key"
Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """Answers the requests under `/api`."""

    def __init__(self, serve: ServeSettings, settings: Settings, tenants: Tenants, metrics: Metrics) -> None:
        self._serve = serve
        self._tenants = tenants
        self.state = ApiState(serve, settings, metrics)
        self.index = _constant(lambda: _json(index(OPERATIONS)))

    def routes(self) -> list[Route]:
        """Return the routes below `/api`."""
        tokens = self._tenants.closed
        return [
            Route("/", self.index),
            Route("/openapi.json", _constant(lambda: _documents(tokens)[0])),
            Route("/docs", _constant(lambda: _documents(tokens)[1])),
            Route("/problems", _constant(lambda: _documents(tokens)[2])),
            *(Route(item.path, self._handler(item), methods=[item.method]) for item in OPERATIONS),
        ]

    def _handler(self, operation: Operation[Any]) -> Handler:
        async def handle(request: Request) -> Response:
            try:
                return await self._answer(operation, request)
            except FoldlineError as error:
                response = problem_of(error)
                if isinstance(error, LeafMoved):
                    response.headers["etag"] = etag(error.leaf)
                return response
            except RecursionError:
                return problem(400, "the request is wrong", "the JSON is nested too deeply")
            except ClientDisconnect:
                return problem(400, "the client has left")
            except Exception:
                log.exception("%s %s failed", request.method, operation.path)
                return problem(500, "it failed", "this is a bug in the service: see its log")

        return handle

    async def _answer(self, operation: Operation[Any], request: Request) -> Response:
        tenant = self._tenants.find(request)
        if isinstance(tenant, Denied):
            return tenant.problem()
        require(operation.needs)
        if seconds := await tenant.rate.wait():
            return too_many(seconds)
        raw = await read_body(request, self._serve, json=operation.takes != BYTES)
        names = {name: str(value) for name, value in request.path_params.items()}
        arguments: dict[str, Any] = {}
        if operation.query is not None:
            arguments["query"] = decoded_query(request.query_params, operation.query)
        if operation.body is not None:
            read = operation.read or partial(decoded_json, kind=operation.body)
            arguments["body"] = await decoded(raw, read)
        key = None if self._tenants.closed else bearer(request.headers.get("authorization", "")) or None
        call = ApiCall(self.state, tenant, names, arguments, raw, key, request.headers)
        call.is_allowed = partial(self._is_allowed, request, tenant, operation)
        idempotency_key = request.headers.get(KEY)
        if idempotency_key is None or not operation.keyed:
            return await self._respond(operation, call, request)
        return await self._respond_once(idempotency_key, operation, call, request)

    def _is_allowed(self, request: Request, tenant: Tenant, operation: Operation[Any]) -> bool:
        """Whether the token of a request has neither expired nor been revoked since it arrived."""
        return self._tenants.find(request) is tenant and operation.needs in at_hand().scopes

    async def _respond_once(
        self, key: str, operation: Operation[Any], call: ApiCall, request: Request
    ) -> Response:
        """Run an operation, or replay the stored response if the key was used before."""
        if not key or len(key) > LONGEST:
            raise InputError(f"an idempotency key has 1 to {LONGEST} characters")
        name, leaf = call.names.get("session"), None
        if name is not None:  # a deleted session gets 404, not a stored response
            await self.state.opening(call.tenant, name)
            leaf = await call.tenant.store.leaf(name)
        keys = call.tenant.keys
        request_line = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
        entry, new = await keys.take(key, request_line + call.raw, session=name, leaf=leaf)
        if not new and (stored := entry.record.response) is not None:
            return Response(stored.body, stored.status, stored.headers)
        if not new and entry.record.turn is None:
            raise KeyBusy
        call.key_entry = entry
        try:
            response = await self._respond(operation, call, request)
        except BaseException as error:
            if new:
                await (keys.settle(entry, None) if _changed_nothing(error) else keys.leave(entry))
            raise
        if new:
            stored = None
            if response.status_code < 400 and entry.record.turn is None:
                headers = dict(response.headers)
                stored = StoredResponse(response.status_code, bytes(response.body), headers)
            await keys.settle(entry, stored)
        return response

    async def _respond(self, operation: Operation[Any], call: ApiCall, request: Request) -> Response:
        work = self._run(operation, call, request.headers.get("if-match"))
        result = await (work if operation.held else while_there(request, work))
        if isinstance(result, Response):
            response = result
        elif operation.status == 204:
            response = Response(status_code=204)
        else:
            response = Response(encode_utf8(result), operation.status, media_type=operation.media)
        for name, value in call.headers.items():
            response.headers.setdefault(name, value)
        return response

    async def ask(
        self,
        tenant: Tenant,
        operation: Operation[T],
        *,
        names: dict[str, str] | None = None,
        raw: bytes = b"",
        **arguments: Any,
    ) -> T:
        """Run an operation for the web pages; raises FoldlineError."""
        require(operation.needs)
        return await self._run(operation, ApiCall(self.state, tenant, names or {}, arguments, raw), None)

    async def _run(self, operation: Operation[T], call: ApiCall, if_match: str | None) -> T:
        """Run an operation with the session named in its path, and set the ETag to the session's leaf."""
        if not operation.of_session:
            return await operation.run(call, **call.arguments)
        state, name = self.state, call.names["session"]
        opening = await state.opening(call.tenant, name)
        with state.use(call.tenant, name, opening) as session:
            call.opened = session
            async with AsyncExitStack() as lock:
                if operation.changes:
                    await lock.enter_async_context(call.tenant.lock(name))
                leaf = await session.follow()
                if operation.method == "GET":  # what is appended meanwhile may not be in the response
                    call.headers["etag"] = etag(leaf)
                if operation.changes:
                    _check_leaf(operation, call, leaf, if_match)
                if not operation.held:
                    await lock.aclose()
                result = await operation.run(call, **call.arguments)
            if operation.method != "DELETE":
                call.headers.setdefault("etag", etag(session.leaf))
            return result


def _constant(make: Callable[[], Response]) -> Handler:
    """Return a handler that always sends a copy of the same response."""

    async def handle(request: Request) -> Response:
        del request
        response = make()
        return Response(response.body, headers=dict(response.headers))

    return handle


def _json(value: object) -> Response:
    return Response(encode_utf8(value), media_type=JSON)


@functools.cache  # built on the first request: the service starts in half the time
def _documents(tokens: bool) -> tuple[Response, Response, Response]:
    openapi = document(OPERATIONS, tokens=tokens)
    return _json(openapi), *pages(openapi)


def _changed_nothing(error: BaseException) -> bool:
    """Whether nothing was changed before an error; after a store's error something may be."""
    if isinstance(error, StoreError):
        return isinstance(error, LeafMoved | StoreVersion)
    return isinstance(error, FoldlineError)


def _check_leaf(operation: Operation[Any], call: ApiCall, leaf: str | None, if_match: str | None) -> None:
    """Refuse a change if `If-Match` names another leaf, or if an earlier attempt may have made it."""
    if not matches(if_match, leaf):
        raise LeafMoved("the leaf does not match If-Match: read the session again", leaf=leaf)
    entry = call.key_entry
    if entry is None or not operation.held or operation.resumes:
        return
    if entry.is_retry and entry.record.leaf != leaf:
        detail = "an earlier attempt did not finish, and the session has changed: check it and use a new key"
        raise Refused(409, "it is not known whether it was done", detail, leaf=leaf)
