"""Strands Agents: one call.

    use_foldline(agent, "sqlite:///sessions.db", session="my-session")

`agent.messages` stays whole; the model is sent the view at every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack, cast

from strands import Agent
from strands.middleware import InvokeModelStage
from strands.middleware.stages import InvokeModelContext
from strands.types.content import Message as StrandsMessage

from foldline.adapters.forms import native_form
from foldline.adapters.histories import AdapterOptions, FrameworkHistories, RequestSetup
from foldline.dialects import BEDROCK_CONVERSE, get
from foldline.dialects.cache_marks import within_marks
from foldline.stores import Store

FORM = native_form(BEDROCK_CONVERSE, lambda payload: cast("StrandsMessage", payload))


def requested(messages: Sequence[StrandsMessage], system: Any = None) -> list[StrandsMessage]:
    """Return a view in the form of a request: alternating roles, only the newest cache points."""
    return within_marks(get(BEDROCK_CONVERSE).more(list(messages)), system)


def use_foldline(
    agent: Agent,
    store: str | Store | None = None,
    *,
    session: str = "default",
    **options: Unpack[AdapterOptions],
) -> FrameworkHistories[StrandsMessage]:
    """Send an agent's model the view of a session instead of the whole history; return the sessions.

    `store` is a URL or a Store (default: that of the settings); the options are
    those of `foldline.open`. Without `window` the window is that of the agent's model. The agent must
    not have a context manager of its own.
    """
    histories = FrameworkHistories(store, FORM, **options)

    async def view(context: InvokeModelContext) -> InvokeModelContext:
        shown = await histories.aview(session, context.messages, lambda: _setup(context))
        return context.replace(messages=requested(shown, context.system_prompt))

    agent.add_middleware(InvokeModelStage.Input, view)
    return histories


def _setup(context: InvokeModelContext) -> RequestSetup:
    """Return the system prompt, the tools and the model of a request."""
    config = cast("dict[str, Any]", context.model.get_config() or {})
    tools = [dict(spec) for spec in context.tool_specs]
    window = config.get("context_window_limit")
    return RequestSetup(context.system_prompt or None, tools or None, config.get("model_id"), window)
