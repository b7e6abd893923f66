"""One request to a model: a session's messages go out, a whole reply comes back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, cast

from foldline import ContextMessages, Session
from foldline.agent.events import ReplyDelayed, ReplyRestarted, streamed
from foldline.errors import ProviderError
from foldline.providers import Call, Delta, Provider, Reply
from foldline.session.events import Event

EMPTY: Final = (ReplyRestarted(), ReplyDelayed(attempt=1, wait=0.0, why="its reply is empty"))
"""The events that tell of a reply in which nothing is said, and that the model is asked once more."""


async def ask(
    session: Session,
    provider: Provider,
    messages: ContextMessages,
    *,
    max_tokens: int | None,
    emit: Callable[[Event], None],
) -> Reply:
    """Ask for a reply, of `max_tokens` at most where the session has no lower limit; raises ProviderError."""
    most = min((cap for cap in (session.max_tokens, max_tokens) if cap is not None), default=None)
    request = Call(messages, session.system, session.setup.tools, max_tokens=most)
    stream = cast("AsyncGenerator[Delta | Reply]", provider.stream(request))
    async with aclosing(stream) as pieces:
        async for piece in pieces:
            if isinstance(piece, Reply):
                return piece
            if (event := streamed(piece)) is not None:
                emit(event)
    raise ProviderError("the stream ended without a reply", kind="connection")


def says_nothing(reply: Reply) -> bool:
    """Whether a reply ended as it should, and there is no text and no call in it."""
    return reply.empty and reply.stop in ("end", "tools")
