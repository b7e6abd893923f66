"""What a provider answers instead of a reply: its status, and a JSON body in its own form."""

from __future__ import annotations

from typing import Any, Final

from foldline.dialects.values import ANTHROPIC

# What each provider says for a status if a test gives no text: (error type, code, message).
_ANTHROPIC: Final[dict[int, tuple[str, str]]] = {
    400: ("invalid_request_error", "Invalid request"),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "Not Found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: (
        "rate_limit_error",
        (
            "This request would exceed your organization's rate limit of 50,000 input tokens per minute. For "
            "details, refer to: https://docs.claude.com/en/api/rate-limits."
        ),
    ),
    500: ("api_error", "Internal server error"),
    503: ("overloaded_error", "Overloaded"),
    504: ("timeout_error", "Request timed out"),
    529: ("overloaded_error", "Overloaded"),
}
_OPENAI: Final[dict[int, tuple[str, str | None, str]]] = {
    400: ("invalid_request_error", None, "Invalid request"),
    401: (
        "invalid_request_error",
        "invalid_api_key",
        (
            "Incorrect API key provided. You can find your API key at "
            "https://platform.openai.com/account/api-keys."
        ),
    ),
    403: ("invalid_request_error", "unsupported_country_region_territory", "Country not supported"),
    404: ("invalid_request_error", None, "Not Found"),
    413: ("invalid_request_error", None, "Request too large"),
    429: (
        "tokens",
        "rate_limit_exceeded",
        (
            "Rate limit reached for this model on tokens per min (TPM): Limit 30000, Used 29000, Requested "
            "2500. "
            "Please try again in 3s. Visit https://platform.openai.com/account/rate-limits to learn more."
        ),
    ),
    500: (
        "server_error",
        None,
        "The server had an error while processing your request. Sorry about that!",
    ),
    503: (
        "server_error",
        None,
        (
            "The server is currently overloaded with other requests. Sorry about that! Please retry your "
            "request."
        ),
    ),
}


class Refusal(Exception):
    """An error of a provider, raised by the rules or given in a script.

    `status` is HTTP's. Without `text` (and `kind`, the error's type) the words are the provider's own for
    that status. `code` and `param` are OpenAI's fields, `retry_after` (seconds) becomes the header.
    """

    def __init__(
        self,
        status: int,
        text: str = "",
        *,
        kind: str | None = None,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(text or f"status {status}")
        self.status = status
        self.text = text
        self.kind = kind
        self.code = code
        self.param = param
        self.retry_after = retry_after

    def status_for(self, dialect: str) -> int:
        """Return the status as the provider sends it: 529 is Anthropic's, elsewhere it is 503."""
        return 503 if self.status == 529 and dialect != ANTHROPIC else self.status

    def body(self, dialect: str, request_id: str = "req_0") -> dict[str, Any]:
        """Return the JSON body of the error in the form of the dialect's provider."""
        error = self.error(dialect)
        if dialect == ANTHROPIC:
            return {"type": "error", "error": error, "request_id": request_id}
        return {"error": error}

    def error(self, dialect: str) -> dict[str, Any]:
        """Return the inner object of the body, which streams also send by itself."""
        status = self.status_for(dialect)
        if dialect == ANTHROPIC:
            kind, text = _ANTHROPIC.get(status, _ANTHROPIC[500 if status >= 500 else 400])
            return {"type": self.kind or kind, "message": self.text or text}
        kind, code, text = _OPENAI.get(status, _OPENAI[500 if status >= 500 else 400])
        code = self.code if self.text else self.code or code
        return {
            "message": self.text or text,
            "type": self.kind or kind,
            "param": self.param,
            "code": code,
        }

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers of the error."""
        if self.retry_after is None:
            return []
        return [("retry-after", f"{self.retry_after:g}")]
