"""Google's Agent Development Kit: one plugin.

    App(name="app", root_agent=agent, plugins=[FoldlinePlugin("sqlite:///sessions.db")])

Each agent has its own history, and ids are unique per user of an app, so the session is named
APP-USER-ID-AGENT. ADK keeps every event; the model is sent the view.
"""

from __future__ import annotations

from typing import Unpack

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from foldline.adapters.forms import native_form
from foldline.adapters.histories import AdapterOptions, FrameworkHistories, RequestSetup
from foldline.stores import Store

FORM = native_form("gemini", types.Content.model_validate)


class FoldlinePlugin(BasePlugin):
    """Sends the model the view of a session instead of the whole history, before every call.

    `store` is a URL or a Store (default: that of the settings); the options are
    those of `foldline.open`. Without `window` the window is that of the agent's model.
    """

    def __init__(self, store: str | Store | None = None, **options: Unpack[AdapterOptions]) -> None:
        super().__init__(name="foldline")
        self.histories = FrameworkHistories(store, FORM, **options)

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Replace the history of a request by the view."""
        adk = callback_context.session
        session = f"{adk.app_name}-{adk.user_id}-{adk.id}-{callback_context.agent_name}"
        llm_request.contents = await self.histories.aview(
            session, llm_request.contents, lambda: _setup(llm_request)
        )
        return None


def _setup(request: LlmRequest) -> RequestSetup:
    """Return the system prompt, the tools and the model of a request."""
    config = request.config.model_dump(
        mode="json", exclude_none=True, include={"system_instruction", "tools"}
    )
    return RequestSetup(config.get("system_instruction"), config.get("tools"), request.model)
