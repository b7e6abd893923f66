"""Which requests are admitted: none from foreign web pages, and only as many at once as a worker can serve.

A browser sends the page's `Origin` and the `Host` it connects to. A foreign page has another origin; a page
whose name resolves to this machine (DNS rebinding) has another host.
"""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from foldline.service.metrics import Metrics
from foldline.service.problems import problem

ALWAYS: Final = ("/health", "/ready", "/metrics")


class AdmissionLimit:
    """Refuses requests (503, Retry-After) while `most` are running; health checks always pass."""

    def __init__(self, app: ASGIApp, *, most: int, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._limit = most
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] in ALWAYS:
            await self._app(scope, receive, send)
            return
        if self._under_way >= self._limit:
            self._metrics.refused()
            response = problem(503, "too much at once", f"{self._limit} requests are running: try again soon")
            response.headers["retry-after"] = "1"  # seconds
            await response(scope, receive, send)
            return
        self._under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1


# ---- requests that another web page makes a browser send


class OriginGuard:
    """Refuses requests from pages of another origin and, without tokens, under a foreign host name."""

    def __init__(self, app: ASGIApp, *, host: str, tokens: bool) -> None:
        self._app = app
        self._host = host
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            refusal = self._refusal(Headers(scope=scope))
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if _netloc(f"//{host}") is None:
            return problem(400, "the request is wrong", "the Host header is not a valid host name")
        if origin is not None and _netloc(origin) != host:
            return problem(403, "another page asks", f"pages of {origin} may not use this service")
        if not self._tokens and not self._is_local(host):
            detail = f"the service does not answer as {host!r}: use its address, or set a token"
            return problem(403, "another name", detail)
        return None

    def _is_local(self, host: str) -> bool:
        """Return whether a Host header names this machine in a way that no DNS server can forge."""
        name = urlsplit(f"//{host}").hostname or ""
        if name in ("localhost", self._host):
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False


def _netloc(url: str) -> str | None:
    """Return the host and port of a URL; None if they are invalid."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts.netloc
