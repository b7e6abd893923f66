"""The tenants of the service and their tokens; each has a separate store, so that none sees another's data.

Wrong tokens are counted by client address; too many of them are refused for a while.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from http.cookies import CookieError, SimpleCookie
from typing import Final
from weakref import WeakValueDictionary

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import Response

from foldline.config import ServeSettings, TokenGrant
from foldline.loading.restore import note_agent
from foldline.service.at_hand import at_hand, begin
from foldline.service.feed import Feed, Webhooks
from foldline.service.idempotency import IdempotencyKeys
from foldline.service.jobs.drafts import DraftLimit, StoredDrafts
from foldline.service.metrics import Metrics
from foldline.service.open_sessions import OpenSessions
from foldline.service.presence import Leases, Presence
from foldline.service.problems import Refused, needs_token, too_many
from foldline.service.rate import RateLimit
from foldline.service.tokens import CurrentTokens
from foldline.stores import MemoryStore, Store, find_store
from foldline.stores.key_values import KeyValues
from foldline.stores.urls import url_beside

HEADER: Final = "foldline-token"  # used instead of the client's key, which then is sent to the model
MAIN: Final = "default"  # the tenant if there are no others
GUESS_SECONDS: Final = 60.0  # wrong tokens are counted, from the first one on
MOST_GUESSES: Final = 10  # wrong tokens of one address in that time
ADDRESSES: Final = 10_000  # remembered; the longest inactive one is dropped first
TOO_MANY: Final = "too many wrong tokens came from this address; a valid token still works"


class Tenant:
    """One tenant: its store, its open sessions and their turns, its idempotency keys, its rate limit."""

    def __init__(
        self, name: str, store: Store, settings: ServeSettings, limit: DraftLimit, feed: Feed
    ) -> None:
        self.name = name
        self.store = store
        self.values = values = _key_values(store)
        self.feed = feed
        self.presence = Presence(values)
        self.drafts = StoredDrafts(self.presence, limit)
        self.keys = IdempotencyKeys(self.presence)
        self.sessions = OpenSessions(store, settings.open_sessions)
        self.turns = Leases(self.presence, "turn")
        self.rate = RateLimit(values, "requests", settings.rate, told=True)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, session: str) -> asyncio.Lock:
        """Return the lock that a change of a session holds; changes of other processes show in the leaf."""
        return self._locks.setdefault(session, asyncio.Lock())

    @asynccontextmanager
    async def without_a_turn(self, session: str) -> AsyncGenerator[None]:
        """Keep turns of a session out while the block runs; raises Refused if one is under way."""
        if not await self.turns.take(session):
            raise busy(session)
        try:
            yield
        finally:
            await self.turns.release(session)

    async def check_no_turn(self, session: str) -> None:
        """Raise Refused if a turn of a session is under way."""
        if await self.turns.held(session):
            raise busy(session)

    async def note_agent(self, session: str, agent: str) -> None:
        """Store the name of a session's program; a store that cannot is ignored."""
        await note_agent(self.values, session, agent)


class Tenants:
    """Finds the tenant of a request; with `follows` changes in the settings file apply to the tokens."""

    def __init__(
        self,
        settings: ServeSettings,
        store: str | None,
        metrics: Metrics | None = None,
        *,
        follows: bool = False,
    ) -> None:
        self._store = store
        self._tokens = CurrentTokens(settings.tokens, self._check, follows=follows)
        self.closed = bool(settings.tokens)  # a token is needed, even after the last one was removed
        self._metrics = metrics or Metrics()
        self._webhooks = Webhooks(settings.webhooks, self.holds_token)
        self._settings = settings
        main = find_store(store)
        at_once = max(1, settings.summaries_at_once // settings.workers)
        self._limit = DraftLimit(_key_values(main), at_once, settings.summary_rate)  # of all tenants
        self._tenants = {MAIN: self._make_tenant(MAIN, main)}
        self._guesses = Guesses()

    def all(self) -> list[Tenant]:
        """Return the main tenant and those that sent a request since the start."""
        return list(self._tenants.values())

    @property
    def several(self) -> bool:
        """Whether more than one tenant has a token now."""
        return len({grant.tenant for grant in self._tokens.now.grants}) > 1

    def every(self) -> list[Tenant]:
        """Return all tenants, including those that sent no request yet."""
        for grant in self._tokens.now.grants:
            self._tenant(grant.tenant)
        return self.all()

    def find(self, request: HTTPConnection, typed: str | None = None) -> Tenant | Denied:
        """Return the tenant of a request, or of a token `typed` into a form.

        A valid token is never denied; a wrong one is counted. Without tokens there is one tenant.
        """
        if not self.closed:
            _set_grant(TokenGrant(MAIN))
            return self._tenant(MAIN)
        tokens = _sent_tokens(request.headers) if typed is None else [typed]
        for token in tokens:
            if (grant := self._tokens.now.find(token)) is not None:
                _set_grant(grant)
                return self._tenant(grant.tenant)
        address = request.client.host if request.client else ""
        wait = self._guesses.wait(address)
        if any(tokens) and not wait:
            self._guesses.add(address)
        return Denied(wait)

    def holds_token(self, text: str) -> bool:
        """Return whether a text is or contains a token of the service, plain or encoded."""
        return self._tokens.now.in_text(text)

    def _tenant(self, name: str) -> Tenant:
        tenant = self._tenants.get(name)
        if tenant is None:
            store = find_store(self._url(name))
            tenant = self._tenants[name] = self._make_tenant(name, store)
        return tenant

    def _make_tenant(self, name: str, store: Store) -> Tenant:
        feed = Feed(name, store, self._metrics, self._webhooks)
        return Tenant(name, store, self._settings, self._limit, feed)

    def _check(self, grant: TokenGrant) -> None:
        """Raise InputError if a tenant cannot have a store."""
        find_store(self._url(grant.tenant))

    def _url(self, name: str) -> str | None:
        return self._store if name == MAIN else url_beside(self._store, name)

    async def finish(self, seconds: float) -> None:
        """Close all sessions; their background work has `seconds` to end."""
        await asyncio.gather(*(tenant.sessions.close(seconds) for tenant in self.all()))
        for tenant in self.all():
            await tenant.drafts.close()
        await self._webhooks.close(seconds)

    async def close(self) -> None:
        """Close every store."""
        for tenant in self.all():
            await tenant.presence.close()
            await tenant.store.close()


def busy(session: str) -> Refused:
    """Return the error for a request that has to wait for a turn."""
    return Refused(
        409, "a turn is under way", f"wait for the turn of {session!r} to end, or close its stream"
    )


def _set_grant(grant: TokenGrant) -> None:
    """Set the tenant, token and scopes of the current request."""
    request = at_hand()
    request.tenant, request.token, request.scopes = grant.tenant, grant.name, grant.scopes
    begin(request)


def _key_values(store: Store) -> KeyValues:
    """Return a store's key values; for a third-party store without them, values of this process."""
    return getattr(store, "key_values", None) or MemoryStore().key_values


def bearer(value: str) -> str:
    """Return the key after `Bearer` (in any case) in an Authorization header, or the whole header."""
    scheme, _, key = value.strip().partition(" ")
    return key.strip() if scheme.lower() == "bearer" else value.strip()


def _sent_tokens(headers: Mapping[str, str]) -> list[str]:
    """Return the tokens a request may mean: the service's header or cookie, else the client's keys."""
    own_token = headers.get(HEADER) or _cookie(headers)
    if own_token is not None:
        return [own_token]
    keys = (headers.get(name) for name in ("x-api-key", "x-goog-api-key"))
    return [key for key in (bearer(headers.get("authorization", "")), *keys) if key]


def _cookie(headers: Mapping[str, str]) -> str | None:
    """Return the token in the cookie that the sign-in page sets."""
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(headers.get("cookie", ""))
    except CookieError:
        return None
    return cookies[HEADER].value if HEADER in cookies else None


# ---- wrong tokens


class Denied(msgspec.Struct, frozen=True):
    """A request without a valid token; `wait` is the time in seconds after too many wrong ones."""

    wait: float = 0.0

    def problem(self) -> Response:
        """Return it as problem details."""
        return too_many(self.wait, TOO_MANY) if self.wait else needs_token()


class Guesses:
    """Counts wrong tokens in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}  # start and count; the latest address is last

    def __len__(self) -> int:
        """Return how many addresses are remembered."""
        return len(self._counts)

    def wait(self, address: str) -> float:
        """Return how many seconds an address must wait before another token, 0 if it need not."""
        since, count = self._counts.get(_address_key(address), (0.0, 0))
        return max(0.0, since + GUESS_SECONDS - self._clock()) if count >= MOST_GUESSES else 0.0

    def add(self, address: str) -> None:
        """Count a wrong token."""
        name, now = _address_key(address), self._clock()
        since, count = self._counts.pop(name, (now, 0))
        if now >= since + GUESS_SECONDS:
            since, count = now, 0
        if len(self._counts) >= ADDRESSES:
            del self._counts[next(iter(self._counts))]
        self._counts[name] = (since, count + 1)


def _address_key(address: str) -> str:
    """Return an IPv4 address, the /64 network of an IPv6 address (one client's), or "" for other text."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or f"{int(parsed) >> 64:x}/64")
    return str(parsed)
