"""A client that compacts by itself: whether its new history begins with a summary that a model wrote here."""

from __future__ import annotations

from typing import Final

from foldline.service.gateway.request import AgentRequest

BEGINNING: Final = 8  # messages of a new history in which a summary may stand
LINE: Final = 40  # characters that a line must have: shorter ones may stand anywhere
LEAST: Final = 200  # characters that must be in common


def goes_on_from(reply: str, beginning: str) -> bool:
    """Return whether a text carries on a reply: a quarter of its lines stand in it, and 200 characters.

    Clients take the tags off a summary, or only a part of it, and write words of their own around it.
    """
    lines = [line for one in reply.splitlines() if len(line := one.strip()) >= LINE]
    common = [line for line in lines if line in beginning]
    return sum(map(len, common)) >= LEAST and 4 * len(common) >= len(lines)


def beginning_of(asked: AgentRequest) -> str:
    """Return what the user's first messages of a request say."""
    first = asked.decode(asked.units[:BEGINNING])
    return "\n".join(message.text for message in first if message.role != "assistant")
