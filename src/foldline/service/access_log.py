"""The log of the service: a line for each request, and an id by which a request is found in every log.

The id is the client's `X-Request-ID`, or a new one. It goes to the model with the request, stands in each
line that is logged meanwhile, and goes back to the client, unless the model has sent an id of its own.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foldline.core.secrets.redact import redact
from foldline.service.at_hand import RequestAtHand, at_hand, begin

log = logging.getLogger("foldline.access")

REQUEST_ID: Final = "x-request-id"
CLOSED: Final = 499  # as nginx logs a client that has left before its answer began
_ID: Final = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


class AccessLog:
    """Gives each request its id, and logs it when its answer has gone; `secret` finds what is not logged."""

    def __init__(self, app: ASGIApp, *, secret: Callable[[str], bool]) -> None:
        self._app = app
        self._secret = secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = RequestAtHand(self._id(Headers(scope=scope).get(REQUEST_ID, "")))
        begin(request)
        started, status, size = time.perf_counter(), CLOSED, 0

        async def sent(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in ((REQUEST_ID, request.id), *request.headers.items()):
                    headers.setdefault(name, value)
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            if log.isEnabledFor(logging.INFO):
                took = round((time.perf_counter() - started) * 1_000, 1)
                self._write(scope, status, {"milliseconds": took, "bytes": size})

    def _id(self, given: str) -> str:
        return given if _ID.fullmatch(given) and not self._secret(given) else uuid.uuid4().hex

    def _write(self, scope: Scope, status: int, figures: dict[str, Any]) -> None:
        """Log a request: without its query, which may hold a key."""
        path = scope["path"]
        path = "[a token]" if self._secret(path) else redact(path)
        client = scope["client"][0] if scope.get("client") else None
        more = {"method": scope["method"], "path": path, "status": status, "client": client, **figures}
        log.info("%s %s %s", scope["method"], path, status, extra={"fields": more})


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON, with the request that it belongs to; plain ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        request = at_hand()
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request.id,
            "tenant": request.tenant,
            "token": request.token,
            **getattr(record, "fields", {}),
            "error": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json.dumps({key: value for key, value in line.items() if value not in (None, "")})


JSON_LOG: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": JsonFormatter}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {
        "foldline": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["stderr"], "propagate": False},
    },
}
"""How logging is set up where `[serve] log` is "json"."""
