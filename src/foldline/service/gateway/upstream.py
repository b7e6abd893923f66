"""The providers behind the gateway: requests go to the configured URLs alone, bytes as they are.

A summary is paid by the request at hand, or by the one that began the draft. No session keeps its key.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final
from urllib.parse import parse_qs

import httpx2

from foldline import providers
from foldline.catalogue import ModelInfo
from foldline.errors import ProviderError
from foldline.providers import Call, Delta, Provider, Reply
from foldline.service.gateway.endpoint import Endpoint, Vendor
from foldline.service.gateway.stream import IDENTITY
from foldline.service.tenants import bearer

Headers = list[tuple[str, str]]

# RFC 9110, 7.6.1: what is said to the next hop alone
HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
OURS: Final = "foldline-"  # headers for the gateway itself
# of this connection; a proxy's in front say who the client is, which is none of the provider's business
OF_THIS_HOP: Final = frozenset(
    {
        "host",
        "content-length",
        "accept-encoding",
        "forwarded",
        "via",
        "x-real-ip",
        "x-client-ip",
        "true-client-ip",
        "cf-connecting-ip",
    }
)
FORWARDED: Final = "x-forwarded-"
KEYS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
Secret = Callable[[str], bool]  # whether a text holds what must not leave the service
_VARIABLES: Final[dict[Vendor, str]] = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
}
_KEEPS_NOTHING: Final = re.compile(
    r"(?:GET|HEAD) /models(?:/[A-Za-z0-9._:@-]+)?"
    r"|POST /(?:completions|embeddings|moderations|messages/count_tokens|responses/input_tokens)"
    r"|POST /models/[A-Za-z0-9._-]+:(?:countTokens|embedContent|batchEmbedContents)"
)
ROOTS: Final[dict[Vendor, str]] = {"openai": "/v1", "anthropic": "/v1", "google": "/v1beta"}
_OWN: Final[dict[Vendor, str]] = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
_INERT: Final = [("content-security-policy", "sandbox"), ("x-content-type-options", "nosniff")]
CONNECT_SECONDS: Final = 10.0
CLOSED: Final = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
ON_ITS_WAY_SECONDS: Final = 2.0  # that a request takes to its server at most
SILENCE_SECONDS: Final = 600.0  # the SDKs' own patience
# Each request is a task of its own, and a draft a task that it begins: both find here what came with it.
_at_hand: ContextVar[Headers | None] = ContextVar("foldline_headers_at_hand", default=None)


class Opened:
    """Whether a connection was opened for a request, as its transport's trace tells."""

    def __init__(self) -> None:
        self._told = False

    def __bool__(self) -> bool:
        return self._told

    async def __call__(self, name: str, _info: Mapping[str, Any]) -> None:
        """Take an event of the trace."""
        self._told = self._told or name.startswith("connection.connect")


class Upstreams:
    """The connections to the providers."""

    def __init__(self, urls: Mapping[Vendor, str]) -> None:
        self._urls = {vendor: url.rstrip("/").removesuffix(ROOTS[vendor]) for vendor, url in urls.items()}
        timeout = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=256)
        self._client = httpx2.AsyncClient(
            timeout=timeout, limits=limits, follow_redirects=False, trust_env=False
        )
        self._client.headers.clear()  # nothing but what the client sent

    def is_vendors(self, vendor: Vendor) -> bool:
        """Return whether requests go to the vendor's own server."""
        return self._urls[vendor] == _OWN[vendor]

    def url(self, vendor: Vendor) -> str:
        """Return the base URL of a provider, with the version of its API."""
        return f"{self._urls[vendor]}{ROOTS[vendor]}"

    async def send(
        self,
        vendor: Vendor,
        method: str,
        address: str,
        headers: Headers,
        body: bytes | AsyncIterable[bytes] | None,
    ) -> httpx2.Response:
        """Send a request and return the response, its body unread; raises httpx2.HTTPError.

        `address` is what stands behind the version: the path and the query. A kept connection that its server
        closes while the request is on its way has answered nothing: the request goes over another one. Where
        it is closed later the model may have worked on it, and that is paid: it is not sent again.
        """
        url = f"{self.url(vendor)}{address}"
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        while True:
            opened = Opened()
            request = self._client.build_request(
                method, url, headers=raw, content=body or None, extensions={"trace": opened}
            )
            sent = time.monotonic()
            try:
                return await self._client.send(request, stream=True)
            except CLOSED:
                late = time.monotonic() - sent > ON_ITS_WAY_SECONDS
                if late or opened or not isinstance(body, bytes | None):
                    raise

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def vendor_of(headers: Mapping[str, str]) -> Vendor:
    """Return whose API a request is for, where its path does not say so: Anthropic's clients say it."""
    return "anthropic" if "anthropic-version" in headers or "x-api-key" in headers else "openai"


def sent_on(headers: Sequence[tuple[str, str]], *, secret: Secret) -> Headers:
    """Return the headers of a request as they go on, but for those, and the cookies, that hold a `secret`."""
    named = {
        name.strip().lower() for key, value in headers if key == "connection" for name in value.split(",")
    }
    changed = [
        (name, _cookies(value, secret) if name == "cookie" else value)
        for name, value in headers
        if name not in HOP_BY_HOP
        and name not in named
        and name not in OF_THIS_HOP
        and not name.startswith((OURS, FORWARDED))
    ]
    kept = [
        (name, value)
        for name, value in changed
        if not secret(name) and not secret(value) and (value or name != "cookie")
    ]
    return [*kept, ("accept-encoding", IDENTITY)]


def lent_key(vendor: Vendor, query: str, headers: Headers) -> Headers:
    """Return the service's own key, where it has one, for a request that is sent on without any."""
    key = os.environ.get(_VARIABLES[vendor])
    asks_with_one = vendor == "google" and "key" in parse_qs(query.removeprefix("?"))
    if not key or asks_with_one or any(name in KEYS for name, _ in headers):
        return []
    named = {"anthropic": ("x-api-key", key), "google": ("x-goog-api-key", key)}
    return [named.get(vendor, ("authorization", f"Bearer {key}"))]


def keeps_nothing(method: str, path: str) -> bool:
    """Return whether a provider keeps nothing of a request, nor shows what it has kept of others."""
    return _KEEPS_NOTHING.fullmatch(f"{method} {path}") is not None


def asked_on(query: str, *, secret: Secret) -> str:
    """Return a query as it goes on, with its `?`, but for the parameters that hold a `secret`."""
    kept = "&".join(one for one in query.split("&") if not secret(one))
    return f"?{kept}" if kept else ""


def passed_back(response: httpx2.Response) -> Headers:
    """Return the headers of a response as they go back to the client, each byte as it came.

    The pages of the service have the same origin: no cookie is set there, and nothing shown in a frame of it.
    """
    told = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw]
    left_out = (*HOP_BY_HOP, "content-length", "set-cookie", "set-cookie2", "clear-site-data")
    kept = [(name, value) for name, value in told if name.lower() not in left_out]
    kind = next((value.lower() for name, value in kept if name.lower() == "content-type"), "html")
    return [*kept, *_INERT] if any(word in kind for word in ("html", "xml", "svg")) else kept


def _cookies(value: str, secret: Secret) -> str:
    """Return the cookies of a client, but for the gateway's own and those that hold a `secret`."""
    kept = [one for one in value.split(";") if not one.strip().startswith(OURS) and not secret(one)]
    return ";".join(kept).strip()


# ---- who pays for a summary


def pays(headers: Headers) -> None:
    """Have the summaries of this task, and of the drafts that it begins, asked for with these headers."""
    _at_hand.set(headers)


class PaidByRequest:
    """A model that is asked with the key of the request at hand; it holds none itself.

    A task that no request of the gateway began has no key here: it is refused, and code writes the summary.
    """

    def __init__(self, model: str, endpoint: Endpoint, url: str, info: ModelInfo | None) -> None:
        self.name: Final = f"{endpoint.vendor}-compatible:{model}"
        self.dialect: Final = endpoint.dialect
        self._url = url
        self._info = info

    def _provider(self) -> Provider:
        headers = _at_hand.get()
        if headers is None:
            raise ProviderError("no request with a key is at hand", kind="auth", provider=self.name)
        sent = dict(headers)
        key = sent.get("x-api-key") or bearer(sent.get("authorization", "")) or None
        return providers.get(
            self.name, base_url=self._url, api_key=key, dialect=self.dialect, info=self._info
        )

    async def complete(self, call: Call) -> Reply:
        """Ask for a whole reply; see `Provider`."""
        provider = self._provider()
        try:
            return await provider.complete(call)
        finally:
            await provider.close()

    async def stream(self, call: Call) -> AsyncGenerator[Delta | Reply]:
        """Yield the whole reply at once: nobody reads a summary while it is written."""
        yield await self.complete(call)

    async def close(self) -> None:
        """Do nothing: each call closes its own connection."""
