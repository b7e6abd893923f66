"""Errors as problem details (RFC 9457)."""

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
    "the request is wrong": "The body, the query or a header is not valid; the detail says why.",
    "a token is needed": "No token was sent, or a wrong or expired one.",
    "the token does not allow this": "The token lacks a scope: read, write, admin or metrics.",
    "a key is needed": "With several tenants the service's key is used only for what providers do not store.",
    "another page asks": "A browser sent this from a page of another origin.",
    "another name": "Without tokens the service answers only to the local machine's names.",
    "not found": "There is nothing at this path.",
    "no such session": "It was deleted, never existed, or belongs to another tenant.",
    "no such preview": "A preview expires after an hour, or was committed or dropped.",
    "method not allowed": "The Allow header lists the methods of this path.",
    "the body came too slowly": "A body must arrive within two minutes.",
    "tool calls wait for their results": "Append the results of the open tool calls first.",
    "the session went on differently": "The history that was sent differs from the stored one.",
    "a turn is under way": "A session runs one turn at a time: wait for it, or close its stream.",
    "there is such a session": "Use another id.",
    "still under way": "The first request with this idempotency key is still running: try again later.",
    "it was done": "The first response was too large to store: read the result instead.",
    "it is not known whether it was done": "The worker died: check the session, and use another key.",
    "the session has moved on": "If-Match does not name the current leaf; `leaf` does.",
    "the body is too large": "The settings max_body and max_messages limit a request.",
    "it cannot be made to fit": "System prompt, tools, pins and the newest messages are too large.",
    "it cannot be done": "The session's state does not allow this; the detail says why.",
    "the idempotency key is taken": "It was used with another request.",
    "no WebSocket": "Send a POST.",
    "too many requests": "Over the tenant's rate limit, or too many wrong tokens: wait for Retry-After.",
    "the client has left": "The connection was closed before the request was read.",
    "it failed": "A bug in the service: see its log under the request's id.",
    "the store cannot do it": "The store does not answer, or does not support this; see the log.",
    "the model could not answer": "The provider refused the request or could not be reached.",
    "too much at once": "The worker is at its limit of requests: try again after Retry-After.",
    "not ready": "The service is starting or stopping, or its store does not answer.",
}
"""Explanations of the problems by title; the type of each links to its explanation."""


class Refused(FoldlineError):
    """A refused request: the status, title and detail of its problem; `more` are further fields."""

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
    """Return an error's message for clients; a store's own, which may name its file, is only logged."""
    if not isinstance(error, StoreError) or isinstance(error, LeafMoved):
        return str(error)
    log.warning("the store failed: %s", error)
    return "the store failed: try again; see the service's log"


def problem(status: int, title: str, detail: str = "", **more: Any) -> Response:
    """Return an error as problem details."""
    kind = f"/api/problems#{slug(title)}" if title in PROBLEMS else "about:blank"
    body = {"type": kind, "title": title, "status": status}
    body |= {"detail": detail} if detail else {}
    return JSONResponse(body | more, status_code=status, media_type=MEDIA)


def slug(title: str) -> str:
    """Return the last part of a problem's type URL."""
    return title.replace(" ", "-").lower()


def status_of(error: FoldlineError) -> int:
    """Return the HTTP status for an error."""
    return _kind(error)[0]


def _kind(error: FoldlineError) -> tuple[int, str]:
    if isinstance(error, Refused):
        return error.status, error.title
    return next(_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES)


def problem_of(error: FoldlineError) -> Response:
    """Return an error as problem details."""
    if isinstance(error, Refused):
        return problem(error.status, error.title, error.detail, **error.more)
    more = {"leaf": error.leaf} if isinstance(error, LeafMoved) else {}
    return problem(*_kind(error), words_of(error), **more)


def needs_token() -> Response:
    """Return the response to a request without a valid token."""
    response = problem(
        401, "a token is needed", "send it as Authorization: Bearer TOKEN, or as foldline-token"
    )
    response.headers["www-authenticate"] = "Bearer"
    return response


def too_many(seconds: float, detail: str = "") -> Response:
    """Return the response to a request that came `seconds` too early."""
    response = problem(429, "too many requests", detail or f"try again in {seconds:.0f} s")
    response.headers["retry-after"] = str(math.ceil(seconds))
    return response
