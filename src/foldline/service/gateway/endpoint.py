"""The APIs of the gateway: the fields of their requests, how to assemble streams, and their errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec
from starlette.responses import JSONResponse, Response

from foldline.dialects import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES
from foldline.providers.anthropic import MessageAssembler
from foldline.providers.gemini import ContentAssembler, is_last
from foldline.providers.openai.chat import ChatAssembler
from foldline.providers.openai.responses import ResponseAssembler
from foldline.providers.sdk import Assembler

Vendor = Literal["openai", "anthropic", "google"]
_KINDS: Final = {
    401: "authentication_error",
    403: "permission_error",
    413: "request_too_large",
    429: "rate_limit_error",
    502: "api_error",
}
_STATUSES: Final = {  # Google's
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
}


class Endpoint(msgspec.Struct, frozen=True):
    """One API: its path, the names of its request's fields, and its vendor.

    `opening` are the types of a stream's first events, after which an error may still come. `closing` are
    the types of its last event; `is_last` detects it where events have no type. `model` and `streamed` are
    set where the path has them instead of the body. `comments`: its SDK accepts comments in a stream.
    """

    path: str
    dialect: str
    vendor: Vendor
    messages: str
    system: str | None
    limits: tuple[str, ...]
    assembler: Callable[[], Assembler]
    opening: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()
    is_last: Callable[[Any], bool] | None = None
    model: str = ""
    streamed: bool = False
    comments: bool = True


RESPONSES: Final = Endpoint(
    "/responses",
    OPENAI_RESPONSES,
    "openai",
    "input",
    "instructions",
    ("max_output_tokens",),
    ResponseAssembler,
    ("response.created", "response.queued", "response.in_progress"),
    ("response.completed", "response.incomplete"),
)
ENDPOINTS: Final = (
    Endpoint(
        "/chat/completions",
        OPENAI_CHAT,
        "openai",
        "messages",
        None,
        ("max_completion_tokens", "max_tokens"),
        ChatAssembler,
    ),
    RESPONSES,
    Endpoint(
        "/messages",
        ANTHROPIC,
        "anthropic",
        "messages",
        "system",
        ("max_tokens",),
        MessageAssembler,
        ("ping",),
        ("message_stop",),
    ),
)


_GENERATE: Final = Endpoint(
    "/models",
    GEMINI,
    "google",
    "contents",
    "systemInstruction",
    ("generationConfig.maxOutputTokens",),
    ContentAssembler,
    is_last=is_last,
    comments=False,
)
_METHODS: Final = ("generateContent", "streamGenerateContent")


def gemini_endpoint(model_method: str) -> Endpoint | None:
    """Return the endpoint of a Gemini model and method (`NAME:generateContent`); None for other methods."""
    model, _, method = model_method.rpartition(":")
    if not model or method not in _METHODS or set(model) & set("?#"):  # it would change the URL
        return None
    streamed = method != _METHODS[0]
    return msgspec.structs.replace(_GENERATE, path=f"/models/{model_method}", model=model, streamed=streamed)


def refusal(vendor: Vendor, status: int, text: str, *, wait: float | None = None) -> Response:
    """Return an error of the gateway in the format of the vendor's API, so that its SDK can read it."""
    kind = _KINDS.get(status, "invalid_request_error")
    message = f"foldline: {text}"
    if vendor == "anthropic":
        body = {"type": "error", "error": {"type": kind, "message": message}}
    elif vendor == "google":
        status_name = _STATUSES.get(status, "INVALID_ARGUMENT")
        body = {"error": {"code": status, "message": message, "status": status_name}}
    else:
        body = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    headers = {"retry-after": str(math.ceil(wait))} if wait is not None else None
    return JSONResponse(body, status_code=status, headers=headers)
