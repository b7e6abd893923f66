"""The access log: one line per request, and a request id that is in every log line.

The id is the client's `X-Request-ID`, or a new one. It is sent to the model, logged with every line of the
request, and returned to the client unless the model's response has an id.
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
CLOSED: Final = 499  # nginx's status for a client that disconnected before the response
_ID: Final = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


class AccessLog:
    """Gives each request an id and logs it after its response; `secret` detects text not to be logged."""

    def __init__(self, app: ASGIApp, *, secret: Callable[[str], bool]) -> None:
        self._app = app
        self._secret = secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = RequestAtHand(self._id(Headers(scope=scope).get(REQUEST_ID, "")))
        begin(request)
        started, status, size = time.perf_counter(), CLOSED, 0

        async def send_logged(message: Message) -> None:
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
            await self._app(scope, receive, send_logged)
        finally:
            if log.isEnabledFor(logging.INFO):
                milliseconds = round((time.perf_counter() - started) * 1_000, 1)
                self._write(scope, status, {"milliseconds": milliseconds, "bytes": size})

    def _id(self, client_id: str) -> str:
        return client_id if _ID.fullmatch(client_id) and not self._secret(client_id) else uuid.uuid4().hex

    def _write(self, scope: Scope, status: int, figures: dict[str, Any]) -> None:
        """Log a request without its query, which may contain a key."""
        path = scope["path"]
        path = "[a token]" if self._secret(path) else redact(path)
        client = scope["client"][0] if scope.get("client") else None
        fields = {"method": scope["method"], "path": path, "status": status, "client": client, **figures}
        log.info("%s %s %s", scope["method"], path, status, extra={"fields": fields})


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of ASCII JSON, with the current request."""

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
"""The logging configuration for `[serve] log = "json"`."""
