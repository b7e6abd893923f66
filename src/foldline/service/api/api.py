"""The API: every operation behind one gate, which knows who asks, reads, checks, and tells of errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from foldline.config import ServeSettings, Settings
from foldline.core.log.codec import encode_utf8
from foldline.errors import FoldlineError, InputError, LeafMoved, StoreError, StoreVersion
from foldline.service.api import (
    boundaries,
    compaction,
    exports,
    history,
    imports,
    messages,
    sessions,
    tree,
    turns,
)
from foldline.service.api.idempotency import LONGEST, Given, KeyBusy, KeyReused
from foldline.service.api.inputs import decoded_body, decoded_query, etag, matches
from foldline.service.api.openapi import document, index
from foldline.service.api.operation import JSON, ApiCall, ApiResult, Operation
from foldline.service.api.state import ApiState
from foldline.service.bodies import BodyError, read_body
from foldline.service.guesses import Denied
from foldline.service.metrics import Metrics
from foldline.service.problems import problem, problem_of
from foldline.service.tenants import Tenant, Tenants

log = logging.getLogger("foldline")
T = TypeVar("T")

OPERATIONS: Final[tuple[Operation, ...]] = (
    *sessions.OPERATIONS,
    *history.OPERATIONS,
    *boundaries.OPERATIONS,
    *messages.OPERATIONS,
    *turns.OPERATIONS,
    *compaction.OPERATIONS,
    *tree.OPERATIONS,
    *exports.OPERATIONS,
    *imports.OPERATIONS,
)
KEY: Final = "idempotency-key"
Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """Answers the requests under `/api`."""

    def __init__(self, serve: ServeSettings, known: Settings, tenants: Tenants, metrics: Metrics) -> None:
        self._serve = serve
        self._tenants = tenants
        self.state = ApiState(serve, known, metrics)
        self.index = self._known(index(OPERATIONS))

    def routes(self) -> list[Route]:
        """Return the routes below `/api`."""
        described = document(OPERATIONS, tokens=self._tenants.closed)
        return [
            Route("/", self.index),
            Route("/openapi.json", self._known(described)),
            *(Route(one.path, self._handler(one), methods=[one.method]) for one in OPERATIONS),
        ]

    async def finish(self) -> None:
        """Let turns that were left come to their end."""
        await self.state.finish(self._serve.drain)

    async def close(self) -> None:
        """Close the connections to the models."""
        await self.state.close()

    def _known(self, value: object) -> Handler:
        body = encode_utf8(value)

        async def answer(request: Request) -> Response:
            del request
            return Response(body, media_type=JSON)

        return answer

    def _handler(self, operation: Operation) -> Handler:
        async def handle(request: Request) -> Response:
            try:
                return await self._answered(operation, request)
            except FoldlineError as error:
                return problem_of(error)
            except BodyError as error:
                return problem(error.status, error.title, str(error))
            except KeyReused:
                return problem(422, "the idempotency key is taken", "it was sent with another request")
            except KeyBusy:
                return problem(409, "still under way", "the request with this idempotency key has not ended")
            except RecursionError:
                return problem(400, "the request is wrong", "it is nested too deep")
            except ClientDisconnect:
                return problem(400, "the client has left")
            except Exception:
                log.exception("%s %s failed", request.method, operation.path)
                return problem(500, "it failed", "a defect of the service: its log says more")

        return handle

    async def _answered(self, operation: Operation, request: Request) -> Response:
        tenant = self._tenants.find(request)
        if isinstance(tenant, Denied):
            return tenant.problem("send it as Authorization: Bearer TOKEN")
        if (seconds := await tenant.wait()) > 0:
            refused = problem(429, "too many requests", f"try again in {seconds:.0f} s")
            refused.headers["retry-after"] = str(max(1, round(seconds)))
            return refused
        raw = await read_body(request, self._serve.max_body)
        call = ApiCall(
            self.state,
            tenant,
            names={name: str(value) for name, value in request.path_params.items()},
            query=None if operation.query is None else decoded_query(request.query_params, operation.query),
            body=None if operation.body is None else decoded_body(raw, operation.body),
            raw=raw,
        )
        key = request.headers.get(KEY)
        if key is None or not operation.keyed:
            return await self._run(operation, call, request)
        return await self._once(key, operation, call, request)

    async def _once(self, key: str, operation: Operation, call: ApiCall, request: Request) -> Response:
        """Run an operation unless its key was answered before: then that answer is given again."""
        if not key or len(key) > LONGEST:
            raise InputError(f"an idempotency key has 1 to {LONGEST} characters")
        name, leaf = call.names.get("session"), None
        if name is not None:  # a session that is not there, or no more, is not answered from memory
            await self.state.options(call.tenant, name)
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

    async def _run(self, operation: Operation, call: ApiCall, request: Request) -> Response:
        doing = self._done(operation, call, request.headers.get("if-match"))
        found, leaf = await (doing if operation.held else _while_there(request, doing))
        return _response(operation, found, leaf)

    async def ask(
        self,
        tenant: Tenant,
        operation: Operation,
        *,
        names: dict[str, str] | None = None,
        query: Any = None,
        body: Any = None,
        raw: bytes = b"",
    ) -> ApiResult | Response:
        """Run an operation for another face: what it found, or a problem; raises FoldlineError."""
        found, _ = await self._done(
            operation, ApiCall(self.state, tenant, names or {}, query, body, raw), None
        )
        return found

    async def _done(
        self, operation: Operation, call: ApiCall, condition: str | None
    ) -> tuple[ApiResult | Response, str | None]:
        if not operation.of_session:
            return await operation.run(call), None
        state, name = self.state, call.names["session"]
        options = await state.options(call.tenant, name)
        with state.use(call.tenant, name, options) as session:
            call.found = session
            if not operation.changes:
                await session.follow()
                return await operation.run(call), session.leaf
            lock = state.of(call.tenant).lock(name)
            async with lock:
                leaf = await session.follow()
                if not matches(condition, leaf):
                    return _moved(leaf), leaf
                if operation.held and not operation.resumes and _uncertain(call, leaf):
                    return _unknown(leaf), leaf
                if operation.held:
                    found = await operation.run(call)
                    return found, session.leaf
            return await operation.run(call), session.leaf


async def _while_there(request: Request, doing: Coroutine[Any, Any, T]) -> T:
    """Do what takes long, and cancel it where the client leaves: nobody would know that it was done."""
    task, leaving = asyncio.ensure_future(doing), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return await task
    finally:
        leaving.cancel()
        task.cancel()
        await asyncio.wait({task, leaving})


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _moved(leaf: str | None) -> Response:
    refused = problem(412, "the session has moved on", "its leaf is another one: read it again", leaf=leaf)
    refused.headers["etag"] = etag(leaf)
    return refused


def _nothing_done(error: BaseException) -> bool:
    """Whether an error says that nothing was done; after others, the store's above all, something may be."""
    if isinstance(error, StoreError):
        return isinstance(error, LeafMoved | StoreVersion)
    return isinstance(error, FoldlineError | BodyError | KeyBusy)


def _uncertain(call: ApiCall, leaf: str | None) -> bool:
    """Whether an earlier try under the key of this request may have done it."""
    known = call.remembered
    return known is not None and known.again and known.record.leaf != leaf


def _unknown(leaf: str | None) -> Response:
    told = "an earlier try did not end, and the session has moved on: look at it, and use another key"
    return problem(409, "it is not known whether it was done", told, leaf=leaf)


def _response(operation: Operation, result: ApiResult | Response, leaf: str | None) -> Response:
    if isinstance(result, ApiResult):
        status = result.status or operation.status
        body = b"" if status == 204 else encode_utf8(result.value)
        result = Response(
            body, status, headers=result.headers, media_type=None if status == 204 else operation.media
        )
    if operation.of_session and operation.method != "DELETE":
        result.headers.setdefault("etag", etag(leaf))
    return result
