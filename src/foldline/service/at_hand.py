"""The current request: its tenant, token and scopes. Background work of a request has it too."""

from __future__ import annotations

from contextvars import ContextVar

import msgspec

from foldline.config import EVERYTHING, Scope
from foldline.service.problems import Refused


class RequestAtHand(msgspec.Struct):
    """A request: its id, tenant, token name and scopes; `headers` are added to its response."""

    id: str = ""
    tenant: str = ""
    token: str = ""
    scopes: tuple[Scope, ...] = EVERYTHING
    headers: dict[str, str] = {}


_CURRENT: ContextVar[RequestAtHand | None] = ContextVar("at_hand", default=None)


def at_hand() -> RequestAtHand:
    """Return the current request; outside of requests, an empty one with all scopes."""
    return _CURRENT.get() or RequestAtHand()


def begin(request: RequestAtHand) -> None:
    """Make a request the current one until its task ends."""
    _CURRENT.set(request)


def require(scope: Scope) -> None:
    """Raise Refused (403) unless the request's token has the scope."""
    if scope not in at_hand().scopes:
        raise Refused(403, "the token does not allow this", f"this needs the scope {scope!r}")
