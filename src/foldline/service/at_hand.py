"""The request that is being answered: who asks, and what they may do. Whoever learns more of it puts it here.

Work that goes on in the background of a request has it too; what the service does of its own accord has none.
"""

from __future__ import annotations

from contextvars import ContextVar

import msgspec

from foldline.config import EVERYTHING, Scope
from foldline.service.problems import Refused


class RequestAtHand(msgspec.Struct):
    """A request: its id, tenant, the name of its token, what that allows; `headers` are for its answer."""

    id: str = ""
    tenant: str = ""
    token: str = ""
    scopes: tuple[Scope, ...] = EVERYTHING
    headers: dict[str, str] = {}


_CURRENT: ContextVar[RequestAtHand | None] = ContextVar("at_hand", default=None)


def at_hand() -> RequestAtHand:
    """Return the request that is being answered; without one, that of nobody, who may do everything."""
    return _CURRENT.get() or RequestAtHand()


def begin(request: RequestAtHand) -> None:
    """Have a request be the one that is being answered, up to the end of its task."""
    _CURRENT.set(request)


def require(scope: Scope) -> None:
    """Raise Refused (403) unless the token of the request allows this."""
    if scope not in at_hand().scopes:
        raise Refused(403, "the token does not allow this", f"it needs the scope {scope!r}")
