"""The OpenAI SDK's client, for Chat Completions and Responses alike."""

from __future__ import annotations

from typing import Any

from foldline.providers.sdk import SDKProvider

NO_KEY = "none"  # the SDK wants one; servers that ask for none ignore it


class OpenAISDK(SDKProvider):
    """What both of OpenAI's APIs share."""

    package = "openai"

    @property
    def official(self) -> bool:
        """Whether it is OpenAI's own server, as far as the call says."""
        return self._access.base_url is None

    def _client(self, sdk: Any, key: str | None, variable: str) -> Any:
        del variable
        omitted = {} if self.official else {"OpenAI-Organization": sdk.Omit(), "OpenAI-Project": sdk.Omit()}
        return sdk.AsyncOpenAI(
            api_key=key or NO_KEY, base_url=self._access.base_url, max_retries=0, default_headers=omitted
        )
