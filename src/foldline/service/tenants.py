"""Who may ask, and what is theirs: each tenant has a store of its own, so that none can see another's."""

from __future__ import annotations

import asyncio
import base64
import hmac
import re
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import unquote, unquote_plus

from starlette.requests import HTTPConnection

from foldline.config import ServeSettings
from foldline.errors import InputError
from foldline.service.guesses import Denied, Guesses
from foldline.service.jobs.drafts import DraftLimit, StoredDrafts
from foldline.service.open_sessions import OpenSessions
from foldline.service.presence import Presence
from foldline.service.rate import RateLimit
from foldline.stores import MemoryStore, Store, find_store
from foldline.stores.key_values import KeyValues
from foldline.stores.urls import url_beside

HEADER: Final = "foldline-token"  # stands for the client's own key, which then goes on to the model
MAIN: Final = "default"  # the tenant where there are no others
SHORTEST: Final = 16  # characters of a token
_TOKEN: Final = re.compile(rf"[!-~]{{{SHORTEST},}}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}")
_URL_SAFE: Final = str.maketrans("-_", "+/")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class Tenant:
    """One of those who ask: a store, the sessions that are open, and how much may still be asked."""

    def __init__(
        self, name: str, store: Store, settings: ServeSettings, values: KeyValues, limit: DraftLimit
    ) -> None:
        self.name = name
        self.store = store
        self.values = values
        self.presence = Presence(values)
        self.drafts = StoredDrafts(self.presence, limit)
        self.sessions = OpenSessions(store, settings.open_sessions)
        self.rate = RateLimit(values, "requests", settings.rate)


class Tenants:
    """Finds the tenant of a request."""

    def __init__(self, settings: ServeSettings, store: str | None) -> None:
        for token, name in settings.tokens.items():
            if not _NAME.fullmatch(name):
                raise InputError(f"[serve] tokens: {name!r} is no name of a tenant: use a-z, 0-9, - and _")
            if not _TOKEN.fullmatch(token):
                raise InputError(
                    f"[serve] tokens: the token of {name!r} can be guessed or not be sent: use {SHORTEST} or "
                    "more letters, digits and signs without a blank, as `openssl rand -hex 24` prints"
                )
        self._folded = [token.casefold() for token in settings.tokens]
        self._settings = settings
        self._store = store
        main = find_store(store)
        values = _values_of(main)
        at_once = max(1, settings.summaries_at_once // settings.workers)
        self._limit = DraftLimit(values, at_once, settings.summary_rate)  # of all tenants
        self._tenants = {MAIN: Tenant(MAIN, main, settings, values, self._limit)}
        for name in settings.tokens.values():
            find_store(self._url(name))  # what no tenant can have is told at the start
        self._guesses = Guesses()

    @property
    def closed(self) -> bool:
        """Whether a token is needed."""
        return bool(self._settings.tokens)

    def all(self) -> list[Tenant]:
        """Return the tenants that have asked since the start, and the main one."""
        return list(self._tenants.values())

    def find(self, request: HTTPConnection, typed: str | None = None) -> Tenant | Denied:
        """Return the tenant of a request, or of a token that was typed in it.

        A right token is never denied; a wrong one is counted. Without tokens there is one tenant.
        """
        if not self.closed:
            return self._tenant(MAIN)
        given = _given(request.headers) if typed is None else [typed]
        for token in given:
            if (found := self._of_token(token)) is not None:
                return found
        address = request.client.host if request.client else ""
        wait = self._guesses.wait(address)
        if any(given) and not wait:
            self._guesses.add(address)
        return Denied(wait)

    def holds_token(self, text: str) -> bool:
        """Return whether a text is a token of the service, or holds one, as it is or encoded."""
        return self.closed and any(token in form for form in _forms(text) for token in self._folded)

    def _of_token(self, given: str) -> Tenant | None:
        name = None
        for token, tenant in self._settings.tokens.items():  # all of them: the time tells nothing
            if hmac.compare_digest(token.encode(), given.encode("utf-8", "replace")):
                name = tenant
        return None if name is None else self._tenant(name)

    def _tenant(self, name: str) -> Tenant:
        known = self._tenants.get(name)
        if known is None:
            store = find_store(self._url(name))
            known = Tenant(name, store, self._settings, _values_of(store), self._limit)
            self._tenants[name] = known
        return known

    def _url(self, name: str) -> str | None:
        return self._store if name == MAIN else url_beside(self._store, name)

    async def finish(self, seconds: float) -> None:
        """Close every session; what goes on in the background may take that long to end."""
        await asyncio.gather(*(tenant.sessions.close(seconds) for tenant in self.all()))
        for tenant in self.all():
            await tenant.drafts.close()

    async def close(self) -> None:
        """Close every store."""
        for tenant in self.all():
            await tenant.presence.close()
            await tenant.store.close()


def _values_of(store: Store) -> KeyValues:
    """Return the values of a store; one of another kind may have none: then this process is the only one."""
    return getattr(store, "key_values", None) or MemoryStore().key_values


def bearer(value: str) -> str:
    """Return the key in a value of Authorization, whatever the letters of `Bearer`; else the whole value."""
    scheme, _, key = value.strip().partition(" ")
    return key.strip() if scheme.lower() == "bearer" else value.strip()


def _forms(text: str) -> list[str]:
    """Return a text as it is, percent-decoded once and twice, and its words of base64 decoded."""
    once = unquote_plus(text)
    plain = [text, unquote(text), once, unquote_plus(once)]
    coded = [_decoded(word) for one in dict.fromkeys(plain) for word in _BASE64.findall(one)]
    return [one.casefold() for one in dict.fromkeys([*plain, *coded])]


def _decoded(word: str) -> str:
    whole = word.translate(_URL_SAFE)[: len(word) // 4 * 4 if len(word) % 4 == 1 else None]
    return base64.b64decode(whole + "=" * (-len(whole) % 4)).decode("latin-1")


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
