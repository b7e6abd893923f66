"""Turn exceptions of the SDKs and error bodies of servers into a ProviderError of some kind."""

from __future__ import annotations

import json
import math
import re
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from foldline.core.measure.overflow import overflow, refuses_roles
from foldline.core.secrets.redact import redact
from foldline.errors import DialectError, ProviderError, ProviderKind

# Types of errors without a status: in a stream, or in a reply with status 200.
_TYPES: Final[dict[str, ProviderKind]] = {
    "rate_limit_error": "rate", "rate_limit_exceeded": "rate", "requests": "rate", "tokens": "rate",
    "overloaded_error": "overloaded", "slow_down": "overloaded", "server_is_overloaded": "overloaded",
    "api_error": "server", "server_error": "server", "internal_error": "server",
    "vector_store_timeout": "timeout", "timeout_error": "timeout",
    "authentication_error": "auth", "permission_error": "auth", "billing_error": "auth",
    "invalid_api_key": "auth", "insufficient_quota": "auth", "invalid_request_error": "bad_request",
    "not_found_error": "bad_request", "invalid_prompt": "bad_request", "request_cancelled": "cancelled",
}  # fmt: skip
_STATUSES: Final[dict[int, ProviderKind]] = {
    401: "auth", 402: "auth", 403: "auth", 408: "timeout", 409: "server", 425: "server", 429: "rate",
    499: "cancelled", 503: "overloaded", 504: "timeout", 524: "timeout", 529: "overloaded",
}  # fmt: skip
# A 429, or a 400 of Anthropic, for which a retry is useless: the account has no credit left.
_NO_CREDIT: Final = re.compile(
    r"insufficient[ _]quota|exceeded your current quota|credit balance|billing", re.IGNORECASE
)
_ECHOED: Final = frozenset({"input", "instructions", "output", "loc"})  # fields that repeat the request
_LONGEST_TEXT: Final = 2_000  # characters of a server's message that are quoted

_PAGE: Final = "this address answers with a web page: does the base URL end in /v1?"
_NOTHING: Final = "nothing is at this address: does the base URL end in /v1?"

Scrub = Callable[[str], str]


class WebPage(ValueError):
    """A server answered with a web page instead of a reply."""


def scrub_with(secrets: tuple[str, ...]) -> Scrub:
    """Return a function that removes these secrets, and anything like a secret, from a text."""

    def scrub(text: str) -> str:
        for secret in secrets:
            if secret:
                text = text.replace(secret, "[key]")
        return redact(text)

    return scrub


def from_sdk(error: Exception, provider: str, scrub: Scrub) -> ProviderError | None:
    """Translate an error of an SDK, its HTTP client or a reply's parser; None for a bug of ours."""

    def failure(kind: ProviderKind, text: str) -> ProviderError:
        return ProviderError(scrub(_clip(text)), kind=kind, provider=provider)

    if isinstance(error, ProviderError):
        return error
    body, status = getattr(error, "body", None), getattr(error, "status_code", None)
    response, unreadable = getattr(error, "response", None), _is(error, "ResponseValidation")
    if isinstance(status, int) and response is not None and not unreadable:
        fallback = str(error) if body else ""
        return from_body(body, provider, scrub, status=status, headers=response.headers, fallback=fallback)
    if isinstance(error, TimeoutError) or _is(error, "Timeout"):
        return failure("timeout", "no answer within the timeout: raise the timeout, or try again")
    if _is(error, "APIConnection", "httpx"):
        cause = error.__cause__ or error
        if _has_cause(error, socket.gaierror):
            text = "the host name cannot be resolved: is it spelled correctly, and is the network up?"
            return failure("connection", text)
        if _is(cause, "ConnectError"):
            return failure("connection", "no server answers there: is it running, and is the address right?")
        return failure("connection", f"the connection failed: {cause or type(cause).__name__}")
    if isinstance(error, UnicodeEncodeError):
        return failure(
            "bad_request", "the messages contain half a surrogate pair, which cannot be encoded as UTF-8"
        )
    if isinstance(error, WebPage):
        return failure("bad_request", _PAGE)
    if isinstance(error, DialectError | ValueError | RecursionError) or unreadable:
        return failure("malformed", f"the reply cannot be read: {error}")
    if body is not None or _is(error, "APIError"):
        return from_body(body, provider, scrub, fallback=str(error))
    return None


def from_body(
    body: Any,
    provider: str,
    scrub: Scrub,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    fallback: str = "",
) -> ProviderError:
    """Read an error that a server sent: the body of a response, an event of a stream, or part of a reply.

    Its kind is overflow if its text says so, without fields that repeat the request
    (`core/measure/overflow.py`); else it follows from the status, then from the error's type.
    """
    code = status if status is not None and status >= 400 else None
    inner = _inner(body)
    text = body if isinstance(body, str) else ""
    if body and not text:
        text = json.dumps(_without_echo(inner or body), ensure_ascii=False)
    default = _NOTHING if code == 404 else "no message"
    message = _PAGE if code == 404 and is_page(text) else _message(inner) or text or fallback or default
    shown = scrub(_clip(message))
    sizes = overflow(text or fallback, code)
    if sizes is not None:
        return ProviderError(shown, kind="overflow", status=code, overflow=sizes, provider=provider)
    kind = "bad_request" if refuses_roles(text or fallback) else _kind(inner, code, text)
    wait = retry_after(headers) if headers is not None else None
    return ProviderError(shown, kind=kind, status=code, retry_after=wait, provider=provider)


def refused(error: BaseException | None) -> bool:
    """Return whether a host refused the connection or has no address: a retry seldom helps."""
    return _has_cause(error, ConnectionRefusedError, socket.gaierror)


def _has_cause(error: BaseException | None, *kinds: type[BaseException]) -> bool:
    """Return whether an error was caused by one of these kinds; of a group, every member must be."""
    while error is not None and not isinstance(error, kinds):
        if isinstance(error, BaseExceptionGroup):
            members = cast("BaseExceptionGroup[BaseException]", error).exceptions
            return all(_has_cause(member, *kinds) for member in members)
        error = error.__cause__ or error.__context__
    return error is not None


def is_page(text: str) -> bool:
    """Return whether a text is a web page instead of an API's answer."""
    return text.lstrip().startswith("<")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server asks to wait, from `retry-after-ms` or `retry-after` (or its date)."""
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            seconds = _until(value)
        if seconds is not None and math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _until(date: str) -> float | None:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - most servers send seconds, or nothing

    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return None


def _kind(inner: dict[str, Any], status: int | None, text: str) -> ProviderKind:
    if (status == 429 and _NO_CREDIT.search(text)) or (status == 400 and "credit balance is too low" in text):
        return "auth"
    if status is not None:
        return _STATUSES.get(status) or ("server" if status >= 500 else "bad_request")
    for key in ("code", "type"):
        value = inner.get(key)
        if isinstance(value, int) and value >= 400:  # OpenRouter puts the status there
            return _kind(inner, value, text)
        if isinstance(value, str) and value in _TYPES:
            return _TYPES[value]
    return "server"


def _inner(body: Any) -> dict[str, Any]:
    """Return the object that describes the error: under `error`, or the body itself; Gemini sends a list."""
    if isinstance(body, list) and body:
        return _inner(cast("list[Any]", body)[0])
    fields = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    inner = fields.get("error")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else fields


def _without_echo(value: Any) -> Any:
    """Return an error without fields that repeat the request."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: _without_echo(inner) for key, inner in fields.items() if key not in _ECHOED}
    return [_without_echo(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _message(inner: dict[str, Any]) -> str:
    for key in ("message", "detail", "error"):
        value = inner.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def _clip(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " ..."


def _is(error: BaseException, *words: str) -> bool:
    """Return whether an exception's class, or a base of it, has such a name: the SDK may not be installed."""
    names = [f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__]
    return any(word in name for word in words for name in names)
