"""The service as an ASGI application: API, gateway, web pages, health and metrics."""

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
from foldline.service.access_log import AccessLog
from foldline.service.admission import AdmissionLimit, OriginGuard
from foldline.service.api.administration import delete_idle
from foldline.service.api.api import Api
from foldline.service.at_hand import at_hand, require
from foldline.service.gateway.endpoint import ENDPOINTS, RESPONSES
from foldline.service.gateway.gateway import Gateway
from foldline.service.metrics import MEDIA, Metrics
from foldline.service.models import BY_RULE
from foldline.service.problems import problem, problem_of
from foldline.service.tenants import Denied, Tenants
from foldline.service.tokens import follows_file
from foldline.service.web.site import Site
from foldline.tracing import span

log = logging.getLogger("foldline")

# of requests under any path that has no route of its own
RELAYED_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
RETENTION_SECONDS: Final = 3_600.0  # between two checks for sessions to delete
PRIVATE: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

Handler = Callable[[Request], Awaitable[Response]]
CountedHandler = Callable[[Request], Awaitable[ASGIApp]]


class Service:
    """The parts of the application."""

    def __init__(self, serve: ServeSettings, settings: Settings, *, follows: bool = False) -> None:
        _prepare_structs()
        self.serve = serve
        settings.find_policy(serve.policy)  # fail at the start, not at each request
        general = None if settings.model_info(None, serve.window).known else settings.model
        if model := serve.model or general:  # one for all commands may be bare if its window is known
            providers.get(model)
        if serve.summaries not in BY_RULE:
            providers.get(serve.summaries)
        self.metrics = Metrics()
        self.tenants = Tenants(serve, serve.store or settings.store, self.metrics, follows=follows)
        self.gateway = Gateway(serve, settings, self.tenants, self.metrics)
        self.api = Api(serve, settings, self.tenants, self.metrics)
        self._site = Site(self.api, self.tenants)
        self.ready = False

    def app(self) -> Starlette:
        """Return the application."""
        app = Starlette(
            routes=[
                Route("/health", self._health),
                Route("/ready", self._ready),
                Route("/metrics", self._metrics),
                Mount("/v1", _router(self._gateway_routes())),
                Mount("/v1beta", _router(self._gemini_routes())),
                Route("/api", self._counted("api", "/api", self.api.index)),
                Mount("/api", _router(self._api_routes())),
                Route("/", _redirect_to_page),
                Route("/web", _redirect_to_page),
                Mount("/web", GZipMiddleware(_router(self._site.routes()), 1_000, 5)),  # except streams
            ],
            middleware=[
                Middleware(AccessLog, secret=self.tenants.holds_token),
                Middleware(AdmissionLimit, most=self.serve.at_once, metrics=self.metrics),
                Middleware(OriginGuard, host=self.serve.host, tokens=self.tenants.closed),
            ],
            exception_handlers={
                FoldlineError: _on_error,
                ClientDisconnect: _on_disconnect,
                404: _on_not_found,
                405: _on_not_allowed,
            },
            lifespan=self._lifespan,
        )
        app.router.redirect_slashes = False
        return app

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        del app
        tasks = [asyncio.create_task(self._delete_old())] if self.serve.keep_days else []
        self.ready = True
        try:
            yield
        finally:
            self.ready = False
            for task in tasks:
                task.cancel()
            await self._site.close()
            drain = self.serve.drain
            await asyncio.gather(self.api.state.finish(drain), self.tenants.finish(drain))
            await self.tenants.close()
            await self.api.state.models.close()
            await self.gateway.close()

    async def _delete_old(self) -> None:
        """Delete the sessions of all tenants that were not updated for `keep_days`."""
        while True:
            before = time.time() - self.serve.keep_days * 86_400
            for tenant in self.tenants.every():
                try:
                    await delete_idle(tenant, before)
                except StoreError as error:
                    log.warning("old sessions could not be deleted and will be tried again later: %s", error)
            await asyncio.sleep(RETENTION_SECONDS)

    def _gateway_routes(self) -> list[Route]:
        gateway = self.gateway

        def route(path: str, handler: Handler, methods: Sequence[str] = ("POST",)) -> Route:
            counted = self._counted("gateway", f"/v1{path.replace(':path', '')}", handler)
            return Route(path, counted, methods=methods)

        return [
            *(route(endpoint.path, partial(gateway.ask, endpoint=endpoint)) for endpoint in ENDPOINTS),
            route("/responses/compact", partial(gateway.ask, endpoint=RESPONSES, compact=True)),
            Route("/responses", _refuse_websocket),  # by GET: an attempt to open a WebSocket
            route("/{path:path}", gateway.relay, RELAYED_METHODS),
        ]

    def _gemini_routes(self) -> list[Route]:
        relay = partial(self.gateway.relay, vendor="google")
        generate = self._counted("gateway", "/v1beta/models/{named}", self.gateway.generate)
        return [
            Route("/models/{named}", generate, methods=["POST"]),
            Route("/{path:path}", self._counted("gateway", "/v1beta/{path}", relay), methods=RELAYED_METHODS),
        ]

    def _api_routes(self) -> list[Route]:
        """Return one route per path, so that the answer to another method lists those allowed."""
        handlers: dict[str, dict[str, CountedHandler]] = {}
        for route in self.api.routes():
            for method in route.methods or ():
                handler = self._counted("api", f"/api{route.path}", route.endpoint)
                handlers.setdefault(route.path, {})[method] = handler
        return [Route(path, _by_method(methods), methods=list(methods)) for path, methods in handlers.items()]

    def _counted(self, face: str, route: str, handler: Handler) -> CountedHandler:
        """Count a handler's responses; the span of each lasts until the response is sent."""

        async def counted(request: Request) -> ASGIApp:
            values = {"http.request.method": request.method, "http.route": route, "foldline.face": face}
            with ExitStack() as stack:
                request_span = stack.enter_context(span(f"{request.method} {route}", values))
                response = await handler(request)
                request_span.put({"http.response.status_code": response.status_code})
                open_span = stack.pop_all()
            if face == "api":
                for name, value in PRIVATE.items():
                    response.headers.setdefault(name, value)
            self.metrics.answered(face, response.status_code)

            async def send_response(scope: Scope, receive: Receive, send: Send) -> None:
                with open_span:
                    await response(scope, receive, send)

            return send_response

        return counted

    # ---- health

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
        tenant = self.tenants.find(request)
        if isinstance(tenant, Denied):
            return tenant.problem()
        only = None
        if self.tenants.closed and "metrics" not in at_hand().scopes:
            require("read")
            only = tenant.name
        self.metrics.sessions.set(sum(len(other.sessions) for other in self.tenants.all()))
        return Response(self.metrics.text(only), media_type=MEDIA)


def make_app(serve: ServeSettings | None = None, *, follows: bool | None = None) -> Starlette:
    """Make the application; `serve` defaults to the settings under `[serve]`.

    `follows`: whether changes to the tokens in the settings file apply (None: if they are from there).
    """
    current = settings()
    serve = serve or current.serve
    return Service(serve, current, follows=follows_file(serve.tokens) if follows is None else follows).app()


def _router(routes: list[Route]) -> Router:
    """Return a router without Starlette's slash redirects, which would use the `Host` header."""
    return Router(routes, redirect_slashes=False)


def _by_method(handlers: dict[str, CountedHandler]) -> CountedHandler:
    async def handle(request: Request) -> ASGIApp:
        return await handlers[request.method](request)

    return handle


async def _refuse_websocket(request: Request) -> Response:
    """Refuse a WebSocket: Codex then continues over HTTP at once."""
    del request
    return problem(426, "no WebSocket", "WebSockets are not supported: send a POST")


async def _redirect_to_page(request: Request) -> Response:
    del request
    return RedirectResponse("/web/", 307)


async def _on_error(request: Request, error: Exception) -> Response:
    del request
    if isinstance(error, FoldlineError):
        return problem_of(error)
    raise error


async def _on_disconnect(request: Request, error: Exception) -> Response:
    del request, error
    return problem(400, "the client has left")


async def _on_not_found(request: Request, error: Exception) -> Response:
    del error
    return problem(404, "not found", f"there is nothing at {request.url.path}")


async def _on_not_allowed(request: Request, error: Exception) -> Response:
    response = problem(405, "method not allowed", f"{request.method} is not possible at {request.url.path}")
    response.headers.update(getattr(error, "headers", None) or {})  # Allow
    return response


def _prepare_structs() -> None:
    """Let msgspec prepare every struct of the service before threads decode one (`codec.prepared`)."""
    kinds = list(msgspec.Struct.__subclasses__())
    for kind in kinds:
        kinds += kind.__subclasses__()
        if kind.__module__.startswith("foldline."):
            with suppress(TypeError, NameError):  # a struct that is never decoded
                prepared(kind)
