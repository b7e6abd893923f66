"""The APIs of a served model: the refusals of each, in its own words, and the format of its replies."""

from __future__ import annotations

from typing import Final

from foldline.testing.apis.anthropic import AnthropicApi
from foldline.testing.apis.base import ModelApi
from foldline.testing.apis.chat import ChatApi
from foldline.testing.apis.gemini import GeminiApi
from foldline.testing.apis.responses import ResponsesApi

_APIS: Final[dict[str, ModelApi]] = {
    api.dialect: api for api in (AnthropicApi(), ChatApi(), GeminiApi(), ResponsesApi())
}


def api_of(dialect: str) -> ModelApi:
    """Return the API that takes messages of a dialect."""
    return _APIS[dialect]
