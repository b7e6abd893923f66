"""How a turn ends: by why the model's last reply ended, not by its having no calls."""

from __future__ import annotations

from typing import Final

from foldline.agent.events import Ending, TurnEnded
from foldline.providers import Reply
from foldline.providers.base import Stop

PAUSED: Final = "pause_turn"  # Anthropic's reason where its own tools take long: sent back, the reply goes on

_BROKEN: Final[dict[Stop, tuple[Ending, str]]] = {
    "refused": ("refused", "the model refused to answer; ask in other words, or ask another model"),
    "length": ("length", "the reply was cut off at its token limit; raise max_tokens, or say to go on"),
    "error": ("failed", "the reply broke off; ask again"),
}


def ending(reply: Reply, *, waiting: bool) -> TurnEnded:
    """Return how a turn ends with this reply; `waiting`: the session waits for an answer of the user's."""
    how, detail = _BROKEN.get(reply.stop, ("waiting" if waiting else "done", ""))
    if not detail and not reply.text.strip():
        how, detail = "empty", "the model's reply is empty, twice; ask in other words, or ask another model"
    if detail and reply.reason:
        detail = f"{detail} (the API's reason: {reply.reason})"
    return TurnEnded(how=how, text=reply.text, detail=detail)
