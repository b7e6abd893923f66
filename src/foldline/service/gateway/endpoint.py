"""The APIs that the gateway speaks: where messages stand, how a stream becomes a reply, errors."""

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
    """One API: its path, the names of its request's fields, and whose it is.

    `opening` are the kinds of the events that a stream begins with before it is known whether the model
    answers: an error may still follow them. `closing` are those behind which nothing of the reply comes, as
    `is_last` says where events have no kind. `model` and `streamed` are what the path says instead of the
    body. `comments`: its SDK takes comments in a stream.
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


def generating(named: str) -> Endpoint | None:
    """Return the API of a Gemini model and its method, as in `NAME:generateContent`; None for another one."""
    model, _, method = named.rpartition(":")
    if not model or method not in _METHODS or set(model) & set("?#"):  # it would lead to another address
        return None
    streamed = method != _METHODS[0]
    return msgspec.structs.replace(_GENERATE, path=f"/models/{named}", model=model, streamed=streamed)


def refusal(vendor: Vendor, status: int, text: str, *, wait: float | None = None) -> Response:
    """Return an error of the gateway's own, in the form of the API that was asked: its SDK understands it."""
    kind = _KINDS.get(status, "invalid_request_error")
    told = f"foldline: {text}"
    if vendor == "anthropic":
        body = {"type": "error", "error": {"type": kind, "message": told}}
    elif vendor == "google":
        named = _STATUSES.get(status, "INVALID_ARGUMENT")
        body = {"error": {"code": status, "message": told, "status": named}}
    else:
        body = {"error": {"message": told, "type": kind, "param": None, "code": None}}
    headers = {"retry-after": str(math.ceil(wait))} if wait is not None else None
    return JSONResponse(body, status_code=status, headers=headers)
