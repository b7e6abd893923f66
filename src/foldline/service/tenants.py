"""Who may ask, and what is theirs: each tenant has a store of its own, so that none can see another's.

Wrong tokens are counted by the address that they come from: who sends many is told to wait.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import Response

from foldline.config import ServeSettings, TokenGrant
from foldline.loading.restore import note_agent
from foldline.service.at_hand import at_hand, begin
from foldline.service.feed import Feed, Webhooks
from foldline.service.jobs.drafts import DraftLimit, StoredDrafts
from foldline.service.metrics import Metrics
from foldline.service.open_sessions import OpenSessions
from foldline.service.presence import Presence
from foldline.service.problems import needs_token, too_many
from foldline.service.rate import RateLimit
from foldline.service.tokens import CurrentTokens
from foldline.stores import MemoryStore, Store, find_store
from foldline.stores.key_values import KeyValues
from foldline.stores.urls import url_beside

HEADER: Final = "foldline-token"  # stands for the client's own key, which then goes on to the model
MAIN: Final = "default"  # the tenant where there are no others
GUESS_SECONDS: Final = 60.0  # over which wrong tokens are counted, from the first one on
MOST_GUESSES: Final = 10  # wrong tokens of one address in that time
ADDRESSES: Final = 10_000  # that are remembered; the one that was quiet for longest is forgotten first
TOO_MANY: Final = "too many wrong tokens came from this address: a right one is answered at any time"


class Tenant:
    """One of those who ask: a store, the sessions that are open, and how much may still be asked."""

    def __init__(
        self, name: str, store: Store, settings: ServeSettings, limit: DraftLimit, feed: Feed
    ) -> None:
        self.name = name
        self.store = store
        self.values = values = _values_of(store)
        self.feed = feed
        self.presence = Presence(values)
        self.drafts = StoredDrafts(self.presence, limit)
        self.sessions = OpenSessions(store, settings.open_sessions)
        self.rate = RateLimit(values, "requests", settings.rate, told=True)

    async def note_agent(self, session: str, agent: str) -> None:
        """Keep which program a session is of, beside its log; a store that refuses that has no agent."""
        await note_agent(self.values, session, agent)


class Tenants:
    """Finds the tenant of a request; with `follows` the tokens are those of the settings file."""

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
        self.closed = bool(settings.tokens)  # whether a token is needed, also when the last one is taken out
        self._metrics = metrics or Metrics()
        self._webhooks = Webhooks(settings.webhooks, self.holds_token)
        self._settings = settings
        main = find_store(store)
        at_once = max(1, settings.summaries_at_once // settings.workers)
        self._limit = DraftLimit(_values_of(main), at_once, settings.summary_rate)  # of all tenants
        self._tenants = {MAIN: self._made(MAIN, main)}
        self._guesses = Guesses()

    def all(self) -> list[Tenant]:
        """Return the tenants that have asked since the start, and the main one."""
        return list(self._tenants.values())

    @property
    def several(self) -> bool:
        """Whether more than one tenant has a token now."""
        return len({grant.tenant for grant in self._tokens.now.grants}) > 1

    def every(self) -> list[Tenant]:
        """Return all tenants, those that have not asked yet included."""
        for grant in self._tokens.now.grants:
            self._tenant(grant.tenant)
        return self.all()

    def find(self, request: HTTPConnection, typed: str | None = None) -> Tenant | Denied:
        """Return the tenant of a request, or of a token that was typed in it.

        A right token is never denied; a wrong one is counted. Without tokens there is one tenant.
        """
        if not self.closed:
            _asks(TokenGrant(MAIN))
            return self._tenant(MAIN)
        given = _given(request.headers) if typed is None else [typed]
        for token in given:
            if (grant := self._tokens.now.find(token)) is not None:
                _asks(grant)
                return self._tenant(grant.tenant)
        address = request.client.host if request.client else ""
        wait = self._guesses.wait(address)
        if any(given) and not wait:
            self._guesses.add(address)
        return Denied(wait)

    def holds_token(self, text: str) -> bool:
        """Return whether a text is a token of the service, or holds one, as it is or encoded."""
        return self._tokens.now.in_text(text)

    def _tenant(self, name: str) -> Tenant:
        known = self._tenants.get(name)
        if known is None:
            store = find_store(self._url(name))
            known = self._tenants[name] = self._made(name, store)
        return known

    def _made(self, name: str, store: Store) -> Tenant:
        feed = Feed(name, store, self._metrics, self._webhooks)
        return Tenant(name, store, self._settings, self._limit, feed)

    def _check(self, grant: TokenGrant) -> None:
        """Raise InputError where a tenant cannot have a store."""
        find_store(self._url(grant.tenant))

    def _url(self, name: str) -> str | None:
        return self._store if name == MAIN else url_beside(self._store, name)

    async def finish(self, seconds: float) -> None:
        """Close every session; what goes on in the background may take that long to end."""
        await asyncio.gather(*(tenant.sessions.close(seconds) for tenant in self.all()))
        for tenant in self.all():
            await tenant.drafts.close()
        await self._webhooks.close(seconds)

    async def close(self) -> None:
        """Close every store."""
        for tenant in self.all():
            await tenant.presence.close()
            await tenant.store.close()


def _asks(grant: TokenGrant) -> None:
    """Say of the request that is answered who asks."""
    known = at_hand()
    known.tenant, known.token, known.scopes = grant.tenant, grant.name, grant.scopes
    begin(known)


def _values_of(store: Store) -> KeyValues:
    """Return the values of a store; one of another kind may have none: then this process is the only one."""
    return getattr(store, "key_values", None) or MemoryStore().key_values


def bearer(value: str) -> str:
    """Return the key in a value of Authorization, whatever the letters of `Bearer`; else the whole value."""
    scheme, _, key = value.strip().partition(" ")
    return key.strip() if scheme.lower() == "bearer" else value.strip()


def _given(headers: Mapping[str, str]) -> list[str]:
    """Return what a request holds in the places of a token: those of the service alone, else a client's."""
    apart = headers.get(HEADER) or _cookie(headers)
    if apart is not None:
        return [apart]
    keys = (headers.get(name) for name in ("x-api-key", "x-goog-api-key"))
    return [one for one in (bearer(headers.get("authorization", "")), *keys) if one]


def _cookie(headers: Mapping[str, str]) -> str | None:
    """Return the token that a browser was given when somebody typed it into the page."""
    found: SimpleCookie = SimpleCookie()
    try:
        found.load(headers.get("cookie", ""))
    except CookieError:
        return None
    return found[HEADER].value if HEADER in found else None


# ---- wrong tokens


class Denied(msgspec.Struct, frozen=True):
    """Why nobody is found for a request: no right token, or (`wait`, in seconds) too many wrong ones."""

    wait: float = 0.0

    def problem(self) -> Response:
        """Return it as problem details."""
        return too_many(self.wait, TOO_MANY) if self.wait else needs_token()


class Guesses:
    """Counts wrong tokens in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}  # since when, how many; the latest one is the last

    def __len__(self) -> int:
        """Return how many addresses are remembered."""
        return len(self._counts)

    def wait(self, address: str) -> float:
        """Return for how many seconds an address is to send no other token, 0 where it may."""
        since, count = self._counts.get(_counted_as(address), (0.0, 0))
        return max(0.0, since + GUESS_SECONDS - self._clock()) if count >= MOST_GUESSES else 0.0

    def add(self, address: str) -> None:
        """Count a wrong token."""
        name, now = _counted_as(address), self._clock()
        since, count = self._counts.pop(name, (now, 0))
        if now >= since + GUESS_SECONDS:
            since, count = now, 0
        if len(self._counts) >= ADDRESSES:
            del self._counts[next(iter(self._counts))]
        self._counts[name] = (since, count + 1)


def _counted_as(address: str) -> str:
    """Return an IPv4 address, the network of an IPv6 one (/64: one client has it), "" for any other."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(known, ipaddress.IPv6Address):
        return str(known.ipv4_mapped or f"{int(known) >> 64:x}/64")
    return str(known)
