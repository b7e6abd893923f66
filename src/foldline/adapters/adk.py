"""Google's Agent Development Kit: one plugin.

    App(name="app", root_agent=agent, plugins=[FoldlinePlugin("sqlite:///sessions.db")])

Each agent sees a history of its own, so the session is named ID-AGENT. ADK keeps every event; the model is
sent the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from foldline.adapters.history import AdapterOptions, FrameworkHistories, RequestSetup, read_list
from foldline.core.log.messages import Message
from foldline.stores import Store


class ContentsForm:
    """Gemini's contents, as the SDK has them."""

    dialect = "gemini"

    def decode(self, messages: Sequence[types.Content]) -> list[list[Message]]:
        """Read contents."""
        return read_list(messages, self.dialect)

    def encode(self, payloads: Sequence[dict[str, Any]]) -> list[types.Content]:
        """Return contents as the SDK's objects."""
        return [types.Content.model_validate(payload) for payload in payloads]


class FoldlinePlugin(BasePlugin):
    """Sends the model the view of a session instead of the whole history, before every call.

    `store` is where sessions are kept (a URL or a Store; default: that of the settings); the options are
    those of `foldline.open`. Without `window` and `model` the window is that of the agent's model.
    """

    def __init__(self, store: str | Store | None = None, **options: Unpack[AdapterOptions]) -> None:
        super().__init__(name="foldline")
        self.histories = FrameworkHistories(store, ContentsForm(), **options)

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Give a request the view in place of the history."""
        session = f"{callback_context.session.id}-{callback_context.agent_name}"
        llm_request.contents = await self.histories.aview(
            session, llm_request.contents, lambda: _setup(llm_request)
        )
        return None


def _setup(request: LlmRequest) -> RequestSetup:
    """Return what is sent beside the contents, and the name of the model that they are sent to."""
    config = request.config.model_dump(
        mode="json", exclude_none=True, include={"system_instruction", "tools"}
    )
    return RequestSetup(config.get("system_instruction"), config.get("tools"), request.model)
