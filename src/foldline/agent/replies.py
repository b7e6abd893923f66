"""The parts of a turn: prompts and results as messages, one request to a model, and how the turn ends.

A turn ends by why the model's last reply ended, not by its having no calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing, suppress
from typing import Any, Final, TypeVar, cast

from foldline import ContextMessages, Message, Session, Text, ToolResult
from foldline.agent.events import Ending, ReplyDelayed, ReplyRestarted, TurnEnded, streamed
from foldline.errors import InputError, LeafMoved, ProviderError, SessionNotFound
from foldline.providers import Call, Delta, Provider, Reply
from foldline.session.events import Event

T = TypeVar("T")
Words = tuple[str | Message, ...]  # what was typed, or messages that were made of it
Prompt = tuple[Message, ...]  # the user's words first, then what goes along with them
Prepare = Callable[..., Awaitable[Prompt]]  # makes a prompt of words
STOPPED = "Stopped by the user before it ended; whether it took effect is not known."
LEFT = "It was left before it ended; whether it took effect is not known."
EMPTY: Final = (ReplyRestarted(), ReplyDelayed(attempt=1, wait=0.0, why="its reply is empty"))
"""The events that tell of a reply in which nothing is said, and that the model is asked once more."""
MEANWHILE: Final = (
    "somebody else, such as a second chat, wrote to this session meanwhile; what came here is noted behind: "
    "say what to do next"
)
PAUSED: Final = "pause_turn"  # Anthropic's reason where its own tools take long: sent back, the reply goes on
_BROKEN: Final[dict[str, tuple[Ending, str]]] = {
    "refused": ("refused", "the model refused to answer; ask in other words, or ask another model"),
    "length": ("length", "the reply was cut off at its token limit; raise max_tokens, or say to go on"),
    "error": ("failed", "the reply broke off; ask again"),
}


async def as_prompt(*words: str | Message) -> Prompt:
    """Return a prompt of the user's as messages; what follows the first goes along with it."""
    return tuple(Message("user", (Text(one),)) if isinstance(one, str) else one for one in words)


def results_of(results: Iterable[ToolResult]) -> Message:
    """Return the message that answers calls."""
    return Message("tool", tuple(results))


def unfinished(call: str, why: str = STOPPED) -> ToolResult:
    """Return the result of a call that did not come to its end."""
    return ToolResult(call, (Text(why),), is_error=True)


async def behind(session: Session, messages: Iterable[Message], *, begun: bool) -> list[str]:
    """Append messages behind whatever others have said, however often they do; return their entry ids.

    Raises SessionNotFound where the session had `begun` and was deleted: nothing of it may come back.
    """
    while True:
        if await session.follow() is None and begun and await session.store.info(session.id) is None:
            raise SessionNotFound(f"session {session.id} was deleted")
        with suppress(LeafMoved):
            return await session.append(*messages)


async def stored(session: Session, answer: Any, late: Callable[[], Message]) -> list[str]:
    """Append an answer; where others spoke first, append it behind them, as `late`, and raise InputError."""
    try:
        return await session.append(answer)
    except LeafMoved as error:
        await behind(session, [late()], begun=True)
        raise InputError(MEANWHILE) from error


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
    request = Call(
        messages, session.system, session.setup.tools, max_tokens=most, compact_at=session.compact_at
    )
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


def ending(reply: Reply, *, waiting: bool) -> TurnEnded:
    """Return how a turn ends with this reply; `waiting`: the session waits for an answer of the user's."""
    how, detail = _BROKEN.get(reply.stop, ("waiting" if waiting else "done", ""))
    if not detail and not reply.text.strip():
        how, detail = "empty", "the model's reply is empty, twice; ask in other words, or ask another model"
    if detail and reply.reason:
        detail = f"{detail} (the API's reason: {reply.reason})"
    return TurnEnded(how=how, text=reply.text, detail=detail)


async def to_its_end(work: Awaitable[T]) -> T:
    """Do work to its end, however often the caller is cancelled meanwhile; that is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None and not task.cancelled() and task.exception() is None:
        raise cancelled
    return task.result()
