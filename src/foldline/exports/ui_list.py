"""UI messages as the AI SDK takes them: no system messages among them, every call with a result."""

from __future__ import annotations

from typing import Any

import msgspec

from foldline.core.cut.notes import UNANSWERED
from foldline.dialects.ui_message.tools import is_tool, sdk4_call, with_result
from foldline.dialects.values import Losses, Rendered

_OPEN = ("input-available", "approval-requested", "input-streaming", "call")

Native = dict[str, Any]


def for_ai_sdk(rendered: Rendered, losses: Losses) -> Rendered:
    """Return the list with its system messages in the system prompt and its open calls answered by a note.

    The SDK refuses both: a system message among the others, and a call without a result.
    """
    systems = [message for message in rendered.messages if message.get("role") == "system"]
    told = [_text(rendered.system), *("\n\n".join(_texts(message)) for message in systems)]
    if systems:
        losses.add("system messages joined into the system prompt", len(systems))
    rest = [_closed(message, losses) for message in rendered.messages if message.get("role") != "system"]
    system = "\n\n".join(text for text in told if text) if systems else rendered.system
    return msgspec.structs.replace(rendered, messages=rest, system=system)


def _closed(message: Native, losses: Losses) -> Native:
    """Return a message whose open calls have failed, in the words of a view."""
    changed = dict(message)
    for key in ("parts", "toolInvocations"):
        parts = message.get(key)
        if message.get("role") == "assistant" and isinstance(parts, list):
            changed[key] = [_answered(part, losses) for part in parts]  # pyright: ignore[reportUnknownVariableType]
    return changed


def _answered(part: Any, losses: Losses) -> Any:
    call = sdk4_call(part)
    own = call if call is not None else part
    part = _with_object(part, own, losses) if call is None and is_tool(part) else part
    if (call is None and not is_tool(part)) or own.get("state") not in _OPEN or own.get("providerExecuted"):
        return part
    losses.add("unanswered calls answered by a note")
    return with_result(part, UNANSWERED, is_error=True)


def _with_object(part: Native, own: Native, losses: Losses) -> Native:
    """Return a tool part whose input is an object: providers take no other."""
    if not isinstance(own.get("input"), str):
        return part
    losses.add("call arguments that are not a JSON object wrapped in one")
    return {**part, "input": {"input": own["input"]}}


def _texts(message: Native) -> list[str]:
    return [part["text"] for part in message.get("parts") or () if isinstance(part.get("text"), str)]


def _text(system: Any) -> str:
    if isinstance(system, list):
        return "\n\n".join(str(block.get("text", "")) for block in system)  # pyright: ignore
    return system or ""
