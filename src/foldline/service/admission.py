"""Which requests are taken at all: those of no other web page, and as many at once as a worker can answer.

A browser names the page that asks (`Origin`), and the host that it believes to ask (`Host`). A page elsewhere
has another origin; one that lets its name lead to this machine (DNS rebinding) has another host.
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
SECONDS: Final = 1  # after which a client that was refused may try again
LOCAL: Final = "localhost"


class AdmissionLimit:
    """Refuses requests (503, Retry-After) while `most` are under way; whether it lives is always told."""

    def __init__(self, app: ASGIApp, *, most: int, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._most = most
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] in ALWAYS:
            await self._app(scope, receive, send)
            return
        if self._under_way >= self._most:
            self._metrics.refused()
            refused = problem(503, "too much at once", f"{self._most} requests are under way: try again soon")
            refused.headers["retry-after"] = str(SECONDS)
            await refused(scope, receive, send)
            return
        self._under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1


# ---- requests that another web page makes a browser send


class OriginGuard:
    """Refuses what a browser sends for a page of another origin; without tokens also under a foreign name."""

    def __init__(self, app: ASGIApp, *, host: str, tokens: bool) -> None:
        self._app = app
        self._host = host
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            refused = self._refused(Headers(scope=scope))
            if refused is not None:
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refused(self, headers: Headers) -> Response | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if _netloc(f"//{host}") is None:
            return problem(400, "the request is wrong", "its Host header is no name of a host")
        if origin is not None and _netloc(origin) != host:
            return problem(403, "another page asks", f"{origin} may not ask this service")
        if not self._tokens and not self._is_here(host):
            detail = f"it does not answer as {host!r}: use its address, or set a token"
            return problem(403, "another name", detail)
        return None

    def _is_here(self, host: str) -> bool:
        """Return whether a Host header means this machine, by a name that nobody else can give out."""
        name = urlsplit(f"//{host}").hostname or ""
        if name in (LOCAL, self._host):
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False


def _netloc(url: str) -> str | None:
    """Return host and port of a URL; None where they are none."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts.netloc
