"""The gateway's providers: requests are sent only to the configured URLs, bytes unchanged.

Summaries use the key of the current request, or of the one that began the draft. No session keeps a key.
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

# RFC 9110, 7.6.1: headers for the next hop only
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
OWN_PREFIX: Final = "foldline-"  # prefix of headers for the gateway itself
# of this connection; a proxy's headers identify the client, which must not reach the provider
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
Secret = Callable[[str], bool]  # whether a text contains a secret of the service
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
_VENDOR_URLS: Final[dict[Vendor, str]] = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
_INERT: Final = [("content-security-policy", "sandbox"), ("x-content-type-options", "nosniff")]
CONNECT_SECONDS: Final = 10.0
CLOSED: Final = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
ON_ITS_WAY_SECONDS: Final = 2.0  # at most until a request has reached its server
SILENCE_SECONDS: Final = 600.0  # the SDKs' timeout
# Each request is a task, and so is each draft that it begins: both have the request's headers here.
_current_headers: ContextVar[Headers | None] = ContextVar("foldline_headers_at_hand", default=None)


class ConnectTrace:
    """Whether a new connection was opened for a request, by the transport's trace."""

    def __init__(self) -> None:
        self._connected = False

    def __bool__(self) -> bool:
        return self._connected

    async def __call__(self, name: str, _info: Mapping[str, Any]) -> None:
        """Handle an event of the trace."""
        self._connected = self._connected or name.startswith("connection.connect")


class Upstreams:
    """The connections to the providers."""

    def __init__(self, urls: Mapping[Vendor, str]) -> None:
        self._urls = {vendor: url.rstrip("/").removesuffix(ROOTS[vendor]) for vendor, url in urls.items()}
        timeout = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=256)
        self._client = httpx2.AsyncClient(
            timeout=timeout, limits=limits, follow_redirects=False, trust_env=False
        )
        self._client.headers.clear()  # only what the client sent

    def is_vendors(self, vendor: Vendor) -> bool:
        """Return whether requests are sent to the vendor's own server."""
        return self._urls[vendor] == _VENDOR_URLS[vendor]

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

        `address` is the path after the version, with the query. If the server closes a kept connection while
        the request is on its way, the request is sent again over another one. After that it is not: the
        model may have worked on it, which costs money.
        """
        url = f"{self.url(vendor)}{address}"
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        while True:
            opened = ConnectTrace()
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
    """Return the vendor of a request by its headers, for paths that vendors share."""
    return "anthropic" if "anthropic-version" in headers or "x-api-key" in headers else "openai"


def forwarded_headers(headers: Sequence[tuple[str, str]], *, secret: Secret) -> Headers:
    """Return a request's headers for the provider, without those and the cookies that contain a `secret`."""
    connection_headers = {
        name.strip().lower() for key, value in headers if key == "connection" for name in value.split(",")
    }
    changed = [
        (name, _forwarded_cookies(value, secret) if name == "cookie" else value)
        for name, value in headers
        if name not in HOP_BY_HOP
        and name not in connection_headers
        and name not in OF_THIS_HOP
        and not name.startswith((OWN_PREFIX, FORWARDED))
    ]
    kept = [
        (name, value)
        for name, value in changed
        if not secret(name) and not secret(value) and (value or name != "cookie")
    ]
    return [*kept, ("accept-encoding", IDENTITY)]


def lent_key(vendor: Vendor, query: str, headers: Headers) -> Headers:
    """Return a header with the service's key for a request that has no key."""
    key = os.environ.get(_VARIABLES[vendor])
    has_query_key = vendor == "google" and "key" in parse_qs(query.removeprefix("?"))
    if not key or has_query_key or any(name in KEYS for name, _ in headers):
        return []
    key_headers = {"anthropic": ("x-api-key", key), "google": ("x-goog-api-key", key)}
    return [key_headers.get(vendor, ("authorization", f"Bearer {key}"))]


def keeps_nothing(method: str, path: str) -> bool:
    """Return whether a provider stores nothing of a request and returns nothing stored of others."""
    return _KEEPS_NOTHING.fullmatch(f"{method} {path}") is not None


def forwarded_query(query: str, *, secret: Secret) -> str:
    """Return a query for the provider, with its `?`, without parameters that contain a `secret`."""
    kept = "&".join(parameter for parameter in query.split("&") if not secret(parameter))
    return f"?{kept}" if kept else ""


def returned_headers(response: httpx2.Response) -> Headers:
    """Return the headers of a response for the client.

    The service's pages have the same origin, so cookies are dropped and pages sandboxed.
    """
    received = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw]
    dropped = (*HOP_BY_HOP, "content-length", "set-cookie", "set-cookie2", "clear-site-data")
    kept = [(name, value) for name, value in received if name.lower() not in dropped]
    kind = next((value.lower() for name, value in kept if name.lower() == "content-type"), "html")
    return [*kept, *_INERT] if any(word in kind for word in ("html", "xml", "svg")) else kept


def _forwarded_cookies(value: str, secret: Secret) -> str:
    """Return a client's cookies without the gateway's and those that contain a `secret`."""
    cookies = [cookie for cookie in value.split(";") if not cookie.strip().startswith(OWN_PREFIX)]
    return ";".join(cookie for cookie in cookies if not secret(cookie)).strip()


# ---- the keys of summaries


def use_for_summaries(headers: Headers) -> None:
    """Use these headers for summaries of this task and of the drafts that it begins."""
    _current_headers.set(headers)


class RequestKeyProvider:
    """A model that is called with the key of the current request.

    In a task that no request of the gateway began there is no key: the call fails, and the summary is written
    by rule.
    """

    def __init__(self, model: str, endpoint: Endpoint, url: str, info: ModelInfo | None) -> None:
        self.name: Final = f"{endpoint.vendor}-compatible:{model}"
        self.dialect: Final = endpoint.dialect
        self._url = url
        self._info = info

    def _provider(self) -> Provider:
        headers = _current_headers.get()
        if headers is None:
            raise ProviderError("there is no current request with a key", kind="auth", provider=self.name)
        sent_headers = dict(headers)
        key = sent_headers.get("x-api-key") or bearer(sent_headers.get("authorization", "")) or None
        return providers.get(
            self.name, base_url=self._url, api_key=key, dialect=self.dialect, info=self._info
        )

    async def complete(self, call: Call) -> Reply:
        """Return a whole reply; see `Provider`."""
        provider = self._provider()
        try:
            return await provider.complete(call)
        finally:
            await provider.close()

    async def stream(self, call: Call) -> AsyncGenerator[Delta | Reply]:
        """Yield the whole reply at once: summaries are not shown while they are written."""
        yield await self.complete(call)

    async def close(self) -> None:
        """Do nothing: each call closes its own connection."""
