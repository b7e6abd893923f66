"""The service as an ASGI application: the API, the gateway, health and figures."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from foldline import providers
from foldline.config import ServeSettings, Settings, settings
from foldline.core.log.codec import prepared
from foldline.errors import FoldlineError, StoreError
from foldline.service import metrics as figures
from foldline.service.access_log import AccessLog
from foldline.service.admission import AdmissionLimit, OriginGuard
from foldline.service.api.administration import delete_idle
from foldline.service.api.api import Api
from foldline.service.at_hand import at_hand, require
from foldline.service.gateway.endpoint import ENDPOINTS, RESPONSES
from foldline.service.gateway.gateway import Gateway
from foldline.service.metrics import Metrics
from foldline.service.models import BY_RULE
from foldline.service.problems import problem, problem_of
from foldline.service.tenants import Denied, Tenants
from foldline.service.tokens import follows_file
from foldline.service.web.site import Site
from foldline.tracing import span

log = logging.getLogger("foldline")

PASSED_ON: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")  # by the gateway, under any other path
RETENTION_SECONDS: Final = 3_600.0  # between two looks for sessions that are too old
PRIVATE: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

Handler = Callable[[Request], Awaitable[Response]]
Counted = Callable[[Request], Awaitable[ASGIApp]]


class Service:
    """What the application is made of."""

    def __init__(self, serve: ServeSettings, known: Settings, *, follows: bool = False) -> None:
        _learn_structs()
        self.serve = serve
        self.known = known
        known.find_policy(serve.policy)  # what is set wrongly is told at the start, not at each request
        if serve.summaries not in BY_RULE:
            providers.get(serve.summaries)
        self.metrics = Metrics()
        self.tenants = Tenants(serve, serve.store or known.store, self.metrics, follows=follows)
        self.gateway = Gateway(serve, known, self.tenants, self.metrics)
        self.api = Api(serve, known, self.tenants, self.metrics)
        self._site = Site(self.api, self.tenants)
        self.ready = False

    def app(self) -> Starlette:
        """Return the application."""
        made = Starlette(
            routes=[
                Route("/health", self._health),
                Route("/ready", self._ready),
                Route("/metrics", self._metrics),
                Mount("/v1", _as_named(self._gateway_routes())),
                Mount("/v1beta", _as_named(self._gemini_routes())),
                Route("/api", self._counted("api", "/api", self.api.index)),
                Mount("/api", _as_named(self._api_routes())),
                Route("/", _to_the_page),
                Route("/web", _to_the_page),
                Mount("/web", GZipMiddleware(_as_named(self._site.routes()), 1_000, 5)),  # streams pass
            ],
            middleware=[
                Middleware(AccessLog, secret=self.tenants.holds_token),
                Middleware(AdmissionLimit, most=self.serve.at_once, metrics=self.metrics),
                Middleware(OriginGuard, host=self.serve.host, tokens=self.tenants.closed),
            ],
            exception_handlers={
                FoldlineError: _failed,
                ClientDisconnect: _left,
                404: _unknown,
                405: _not_allowed,
            },
            lifespan=self._lifespan,
        )
        made.router.redirect_slashes = False
        return made

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        del app
        beside = [asyncio.create_task(self._forget_old())] if self.serve.keep_days else []
        self.ready = True
        try:
            yield
        finally:
            self.ready = False
            for task in beside:
                task.cancel()
            await self._site.close()
            await asyncio.gather(self.api.finish(), self.tenants.finish(self.serve.drain))
            await self.tenants.close()
            await self.api.close()
            await self.gateway.close()

    async def _forget_old(self) -> None:
        """Delete the sessions of all tenants to which nothing was added for long."""
        while True:
            before = time.time() - self.serve.keep_days * 86_400
            for tenant in self.tenants.every():
                try:
                    await delete_idle(self.api.state, tenant, before)
                except StoreError as error:
                    log.warning("old sessions are deleted later: %s", error)
            await asyncio.sleep(RETENTION_SECONDS)

    def _gateway_routes(self) -> list[Route]:
        gateway = self.gateway

        def route(path: str, handler: Handler, methods: Sequence[str] = ("POST",)) -> Route:
            counted = self._counted("gateway", f"/v1{path.replace(':path', '')}", handler)
            return Route(path, counted, methods=methods)

        return [
            *(route(one.path, partial(gateway.ask, endpoint=one)) for one in ENDPOINTS),
            route("/responses/compact", partial(gateway.ask, endpoint=RESPONSES, compact=True)),
            Route("/responses", _no_socket),  # by GET: a WebSocket is asked for
            route("/{path:path}", gateway.relay, PASSED_ON),
        ]

    def _gemini_routes(self) -> list[Route]:
        relay = partial(self.gateway.relay, vendor="google")
        generate = self._counted("gateway", "/v1beta/models/{named}", self.gateway.generate)
        return [
            Route("/models/{named}", generate, methods=["POST"]),
            Route("/{path:path}", self._counted("gateway", "/v1beta/{path}", relay), methods=PASSED_ON),
        ]

    def _api_routes(self) -> list[Route]:
        """Return one route a path, so that a method that is not there is told with those that are."""
        found: dict[str, dict[str, Counted]] = {}
        for one in self.api.routes():
            for method in one.methods or ():
                handler = self._counted("api", f"/api{one.path}", one.endpoint)
                found.setdefault(one.path, {})[method] = handler
        return [Route(path, _by_method(those), methods=list(those)) for path, those in found.items()]

    def _counted(self, face: str, route: str, handler: Handler) -> Counted:
        """Count the answers of a handler, each in a span that lasts until the answer has gone."""

        async def counted(request: Request) -> ASGIApp:
            values = {"http.request.method": request.method, "http.route": route, "foldline.face": face}
            with ExitStack() as ends:
                opened = ends.enter_context(span(f"{request.method} {route}", values))
                response = await handler(request)
                opened.put({"http.response.status_code": response.status_code})
                open_span = ends.pop_all()
            if face == "api":
                for name, value in PRIVATE.items():
                    response.headers.setdefault(name, value)
            self.metrics.answered(face, response.status_code)

            async def answer(scope: Scope, receive: Receive, send: Send) -> None:
                with open_span:
                    await response(scope, receive, send)

            return answer

        return counted

    # ---- whether it works

    async def _health(self, request: Request) -> Response:
        del request
        return PlainTextResponse("ok\n")

    async def _ready(self, request: Request) -> Response:
        del request
        if not self.ready:
            return problem(503, "not ready")
        if any(tenant.presence.lapsed for tenant in self.tenants.all()):
            return problem(503, "not ready", "the store has not answered for a while")
        return PlainTextResponse("ready\n")

    async def _metrics(self, request: Request) -> Response:
        found = self.tenants.find(request)
        if isinstance(found, Denied):
            return found.problem()
        tenant = None
        if self.tenants.closed and "metrics" not in at_hand().scopes:
            require("read")
            tenant = found.name
        self.metrics.sessions.set(sum(len(one.sessions) for one in self.tenants.all()))
        return Response(self.metrics.text(tenant), media_type=figures.MEDIA)


def make_app(serve: ServeSettings | None = None, *, follows: bool | None = None) -> Starlette:
    """Make the application; `serve` defaults to what is set under `[serve]`.

    `follows` says whether its tokens are those of the settings file (None: whether they are now).
    """
    known = settings()
    wanted = serve or known.serve
    return Service(wanted, known, follows=follows_file(wanted.tokens) if follows is None else follows).app()


def _as_named(routes: list[Route]) -> Router:
    """Return routes that are found by their names alone: Starlette would lead to the `Host` it was given."""
    return Router(routes, redirect_slashes=False)


def _by_method(handlers: dict[str, Counted]) -> Counted:
    async def handle(request: Request) -> ASGIApp:
        return await handlers[request.method](request)

    return handle


async def _no_socket(request: Request) -> Response:
    """Say that there are no WebSockets here: Codex then goes on over HTTP at once."""
    del request
    return problem(426, "no WebSocket", "send a POST")


async def _to_the_page(request: Request) -> Response:
    del request
    return RedirectResponse("/web/", 307)


async def _failed(request: Request, error: Exception) -> Response:
    del request
    if isinstance(error, FoldlineError):
        return problem_of(error)
    raise error


async def _left(request: Request, error: Exception) -> Response:
    del request, error
    return problem(400, "the client has left")


async def _unknown(request: Request, error: Exception) -> Response:
    del error
    return problem(404, "not found", f"there is nothing at {request.url.path}")


async def _not_allowed(request: Request, error: Exception) -> Response:
    refused = problem(405, "method not allowed", f"{request.method} is not possible at {request.url.path}")
    refused.headers.update(getattr(error, "headers", None) or {})  # Allow
    return refused


def _learn_structs() -> None:
    """Have msgspec learn every struct of the service before its threads read one (`codec.prepared`)."""
    kinds = list(msgspec.Struct.__subclasses__())
    for kind in kinds:
        kinds += kind.__subclasses__()
        if kind.__module__.startswith("foldline."):
            with suppress(TypeError, NameError):  # one that is never read
                prepared(kind)
