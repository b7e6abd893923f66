"""What the gateway itself refuses, in the form of the API that was asked, so that its SDK understands."""

from __future__ import annotations

import math

from starlette.responses import JSONResponse, Response

from foldline.service.gateway.endpoint import Vendor
from foldline.service.guesses import TOO_MANY, Denied

_KINDS = {401: "authentication_error", 413: "request_too_large", 429: "rate_limit_error", 502: "api_error"}


def refusal(vendor: Vendor, status: int, text: str, *, wait: float | None = None) -> Response:
    """Return an error of the gateway's own."""
    kind = _KINDS.get(status, "invalid_request_error")
    told = f"foldline: {text}"
    if vendor == "anthropic":
        body = {"type": "error", "error": {"type": kind, "message": told}}
    else:
        body = {"error": {"message": told, "type": kind, "param": None, "code": None}}
    headers = {"retry-after": str(math.ceil(wait))} if wait is not None else None
    return JSONResponse(body, status_code=status, headers=headers)


def denial(vendor: Vendor, denied: Denied) -> Response:
    """Return why nobody is found for a request."""
    if denied.wait:
        return refusal(vendor, denied.status, TOO_MANY, wait=denied.wait)
    return refusal(vendor, denied.status, "a token is needed: send it as the key, or as foldline-token")
