"""The refusals of both APIs of OpenAI.

Their texts are from error reports in public issue trackers (2024 to 2026). Where none was found, the text has
the form of the API's other messages.
"""

from __future__ import annotations

from typing import Final

from foldline.core.log.codec import encode
from foldline.core.log.messages import ToolCall
from foldline.testing.answers import Refusal
from foldline.testing.apis.base import ModelApi
from foldline.testing.request import CAP_KEYS, LIST_KEY, Asked

CREATED: Final = 1_767_225_600  # 2026-01-01: the same in every run
MISSING: Final = "Missing required parameter: '{param}'."
MISSING_CODE: Final = "missing_required_parameter"
EMPTY: Final = "empty array. Expected an array with minimum length 1, but got an empty array instead."
_STATUSES: Final[dict[int, tuple[str, str | None, str]]] = {
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
            "2500. Please try again in 3s. Visit https://platform.openai.com/account/rate-limits to learn "
            "more."
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


class OpenAIApi(ModelApi):
    """Chat Completions or Responses."""

    statuses = _STATUSES
    no_key = (
        "You didn't provide an API key. You need to provide your API key in an Authorization header using "
        "Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
    )
    no_model = "you must provide a model parameter"
    bad_json = (
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your "
        "HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid "
        "JSON.)"
    )

    def unknown_model(self, model: str) -> Refusal:
        """Return the refusal of a model that the server does not have."""
        text = f"The model `{model}` does not exist or you do not have access to it."
        return Refusal(404, text, code="model_not_found")

    def too_large(self, request: Asked, cap: int, limit: int) -> Refusal:
        """Return the refusal of a `max_tokens` above the model's limit."""
        key = next(key for key in CAP_KEYS[self.dialect] if key in request.body)
        return bad(
            f"{key} is too large: {cap}. This model supports at most {limit} completion tokens, whereas you "
            f"provided {cap}.",
            key,
            "invalid_value",
        )


def bad(text: str, param: str | None = None, code: str | None = None) -> Refusal:
    """Return the refusal of a bad request."""
    return Refusal(400, text, param=param, code=code)


def require_list(request: Asked) -> None:
    """Refuse a request without its list of messages or items."""
    key = LIST_KEY[request.dialect]
    if request.body.get(key) is None:
        raise bad(MISSING.format(param=key), key, MISSING_CODE)
    if not isinstance(request.body[key], list):
        raise bad(f"Invalid type for '{key}': expected an array of objects.", key, "invalid_type")


def require_cap(request: Asked, minimum: int = 1) -> None:
    """Refuse a `max_tokens` that is not an integer, or below `minimum`."""
    for key in CAP_KEYS[request.dialect]:
        cap = request.body.get(key)
        if cap is not None and (not isinstance(cap, int) or isinstance(cap, bool)):
            raise bad(f"Invalid type for '{key}': expected an integer.", key, "invalid_type")
        if cap is not None and cap < minimum:
            text = f"Invalid '{key}': integer below minimum value. Expected a value >= {minimum}, "
            raise bad(f"{text}but got {cap} instead.", key, "integer_below_min_value")


def arguments_json(call: ToolCall) -> str:
    """Return a call's arguments as the JSON text that OpenAI sends; broken JSON unchanged."""
    return call.arguments if isinstance(call.arguments, str) else encode(call.arguments).decode()
