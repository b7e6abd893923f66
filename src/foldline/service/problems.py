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
PROBLEMS: Final = {
    "the request is wrong": "The body, the query or a header is not what is taken; the detail says what.",
    "a token is needed": "No token was sent, or a wrong or expired one.",
    "the token does not allow this": "The token lacks a scope: read, write, admin or metrics.",
    "a key is needed": "The service lends its key to several tenants only for what a provider does not keep.",
    "another page asks": "A browser sent this for a page of another origin.",
    "another name": "Without tokens the service answers only under the names of this machine.",
    "not found": "There is nothing at this path.",
    "no such session": "The session was deleted, or never was; those of other tenants are not found either.",
    "no such preview": "A preview is kept for an hour, until it is committed or dropped.",
    "method not allowed": "The header Allow names the methods of this path.",
    "the body came too slowly": "A body has to come within two minutes.",
    "tool calls wait for their results": "Append the results of the open calls first.",
    "the session went on differently": "The history that was sent is not the one that is stored.",
    "a turn is under way": "A session has one turn at a time: wait for it, or close its stream.",
    "there is such a session": "Give another id.",
    "still under way": "The first request with this idempotency key has not ended: send it again later.",
    "it was done": "The first answer is too large to be given again: read what it has changed.",
    "it is not known whether it was done": "The worker died: look at the session, and use another key.",
    "the session has moved on": "The leaf is not the one of If-Match; `leaf` is the current one.",
    "the body is too large": "The settings max_body and max_messages bound a request.",
    "it cannot be made to fit": "System prompt, tools, pins and the newest messages are too large.",
    "it cannot be done": "The session is not in the state for this; the detail says why.",
    "the idempotency key is taken": "It was sent with another request.",
    "no WebSocket": "Send a POST.",
    "too many requests": "The tenant's rate is used up, or many wrong tokens came: wait for Retry-After.",
    "the client has left": "The connection was closed before the request was read.",
    "it failed": "A defect of the service: its log says more, under the request's id.",
    "the store cannot do it": "The store does not answer, or lacks what is asked; the log says more.",
    "the model could not answer": "The provider refused, or could not be reached.",
    "too much at once": "The worker has as many requests as it takes: try again after Retry-After.",
    "not ready": "The service is starting or stopping, or its store does not answer.",
}
"""What can go wrong, by its title: each has a type of its own, which leads to these words."""


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
    kind = f"/api/problems#{slug(title)}" if title in PROBLEMS else "about:blank"
    body = {"type": kind, "title": title, "status": status}
    body |= {"detail": detail} if detail else {}
    return JSONResponse(body | more, status_code=status, media_type=MEDIA)


def slug(title: str) -> str:
    """Return the end of a problem's type."""
    return title.replace(" ", "-").lower()


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
