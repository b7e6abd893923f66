"""LiteLLM, the library and the proxy: one callback.

    litellm.callbacks = [FoldlineLogger("sqlite:///sessions.db")]
    await litellm.acompletion(model=..., messages=messages, litellm_session_id="my-session")

A caller's messages stay whole; each deployment is sent the view. In the proxy's configuration write
`callbacks: my_module.logger`; clients name their session in LiteLLM's usual way.
"""

from __future__ import annotations

from typing import Any, Unpack, cast

from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import CallTypes  # pyright: ignore[reportMissingTypeStubs]

from foldline.adapters.forms import native_form
from foldline.adapters.histories import AdapterOptions, FrameworkHistories, RequestSetup
from foldline.dialects import OPENAI_CHAT
from foldline.stores import Store

ChatMessage = dict[str, Any]

_CHAT = (CallTypes.completion, CallTypes.acompletion)
_METADATA = ("metadata", "litellm_metadata")  # where the proxy stores a client's metadata


def _from_chat(payload: ChatMessage) -> ChatMessage:
    """Return a message without the name of a tool, which LiteLLM does not take."""
    return {key: value for key, value in payload.items() if key != "name" or payload["role"] != "tool"}


FORM = native_form(OPENAI_CHAT, _from_chat)


class FoldlineLogger(CustomLogger):
    """Sends deployments the view of a session instead of the whole history, before every async call.

    `store` is a URL or a Store (default: that of the settings), `session` that of
    calls that name none: without one they are left as they are. The options are those of `foldline.open`.
    Without `window` the window is that of the model that is called.
    """

    def __init__(
        self, store: str | Store | None = None, *, session: str = "", **options: Unpack[AdapterOptions]
    ) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.session = session
        self.histories = FrameworkHistories(store, FORM, **options)

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, object], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        """Replace the history of a call by the view."""
        session = session_of(kwargs) or self.session
        messages = kwargs.get("messages")
        if call_type not in _CHAT or not session or not isinstance(messages, list):
            return None
        whole = cast("list[ChatMessage]", messages)
        return {**kwargs, "messages": await self.histories.aview(session, whole, lambda: _setup(kwargs))}


def session_of(kwargs: dict[str, object]) -> str:
    """Return the session that a call names, in any place that LiteLLM allows; "" for none."""
    holders = [kwargs.get(key) for key in _METADATA]
    ids = [cast("dict[str, Any]", holder).get("session_id") for holder in holders if isinstance(holder, dict)]
    return next((name for name in (kwargs.get("litellm_session_id"), *ids) if isinstance(name, str)), "")


def _setup(kwargs: dict[str, object]) -> RequestSetup:
    """Return the tools and the model of a call."""
    name = str(kwargs.get("model") or "").replace("/", ":", 1)
    return RequestSetup(None, kwargs.get("tools") or None, name or None)
