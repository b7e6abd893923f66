"""Errors as the service tells them: problem details (RFC 9457), or the form of the API that was asked."""

from __future__ import annotations

import logging
import math
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from foldline.errors import (
    CallsOpen,
    FloorExceeded,
    FoldlineError,
    InputError,
    LeafMoved,
    ProviderError,
    SessionDiverged,
    SessionNotFound,
    StoreError,
)

log = logging.getLogger("foldline")

MEDIA: Final = "application/problem+json"


class Refused(FoldlineError):
    """A request that is refused with a status and a title of its own; `more` stands in the problem, too."""

    def __init__(self, status: int, title: str, detail: str = "", **more: Any) -> None:
        super().__init__(detail or title)
        self.status = status
        self.title = title
        self.detail = detail
        self.more = more


_STATUSES: Final[dict[type[FoldlineError], tuple[int, str]]] = {
    SessionNotFound: (404, "no such session"),
    SessionDiverged: (409, "the session went on differently"),
    LeafMoved: (412, "the session has moved on"),
    CallsOpen: (409, "tool calls wait for their results"),
    FloorExceeded: (422, "it cannot be made to fit"),
    ProviderError: (502, "the model could not answer"),
    InputError: (400, "the request is wrong"),
    StoreError: (503, "the store cannot do it"),
    FoldlineError: (422, "it cannot be done"),
}


def words_of(error: Exception) -> str:
    """Return what a client is told of an error; of a store that fails, neither its place nor its words."""
    if not isinstance(error, StoreError) or isinstance(error, LeafMoved):
        return str(error)
    log.warning("the store failed: %s", error)
    return "the store does not answer as it should: try again; the service's log says more"


def problem(status: int, title: str, detail: str = "", **more: Any) -> Response:
    """Return an error as problem details."""
    body = {"type": "about:blank", "title": title, "status": status}
    body |= {"detail": detail} if detail else {}
    return JSONResponse(body | more, status_code=status, media_type=MEDIA)


def status_of(error: FoldlineError) -> int:
    """Return the status of an answer that tells of an error."""
    return _kind(error)[0]


def _kind(error: FoldlineError) -> tuple[int, str]:
    if isinstance(error, Refused):
        return error.status, error.title
    return next(_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES)


def problem_of(error: FoldlineError) -> Response:
    """Return the problem that an error is."""
    if isinstance(error, Refused):
        return problem(error.status, error.title, error.detail, **error.more)
    more = {"leaf": error.leaf} if isinstance(error, LeafMoved) else {}
    return problem(*_kind(error), words_of(error), **more)


def needs_token() -> Response:
    """Return the answer to a request without a right token."""
    refused = problem(
        401, "a token is needed", "send it as Authorization: Bearer TOKEN, or as foldline-token"
    )
    refused.headers["www-authenticate"] = "Bearer"
    return refused


def too_many(seconds: float, why: str = "") -> Response:
    """Return the answer to a request that came so many seconds too early."""
    refused = problem(429, "too many requests", why or f"try again in {seconds:.0f} s")
    refused.headers["retry-after"] = str(math.ceil(seconds))
    return refused
