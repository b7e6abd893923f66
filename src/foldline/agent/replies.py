"""The parts of a turn: prompts and results as messages, one request to a model, and how the turn ends.

The reason why the last reply stopped decides how a turn ends, not whether it has calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing, suppress
from typing import Any, Final, TypeVar, cast

from foldline import ContextMessages, Message, Session, Text, ToolResult
from foldline.agent.events import (
    Ending,
    OverflowRetried,
    ReplyDelayed,
    ReplyRestarted,
    TurnEnded,
    delta_event,
)
from foldline.errors import InputError, LeafMoved, ProviderError, SessionNotFound
from foldline.providers import Call, Delta, Provider, Reply
from foldline.session.events import Event

T = TypeVar("T")
Words = tuple[str | Message, ...]  # typed text, or messages
Prompt = tuple[Message, ...]  # the user's text first, then its attachments
Prepare = Callable[..., Awaitable[Prompt]]  # turns words into a prompt
STOPPED = "Stopped by the user before it ended; it is unknown whether it took effect."
ABANDONED = "It was abandoned before it ended; it is unknown whether it took effect."
EMPTY: Final = (ReplyRestarted(), ReplyDelayed(attempt=1, wait=0.0, why="its reply is empty"))
"""The events for an empty reply, after which the model is asked once more."""
MEANWHILE: Final = (
    "another client, such as a second chat, wrote to this session meanwhile; the result was added as a note: "
    "say what to do next"
)
# of Anthropic while its own tools work; sent back, the reply continues
PAUSED: Final = "pause_turn"
_INCOMPLETE: Final[dict[str, tuple[Ending, str]]] = {
    "refused": ("refused", "the model refused to answer; rephrase the request, or use another model"),
    "length": ("length", "the reply was cut off at its token limit; raise max_tokens, or ask it to continue"),
    "error": ("failed", "the reply broke off; ask again"),
}


async def as_prompt(*words: str | Message) -> Prompt:
    """Return a prompt as messages, without attachments."""
    return tuple(Message("user", (Text(part),)) if isinstance(part, str) else part for part in words)


def results_of(results: Iterable[ToolResult]) -> Message:
    """Return the message that answers calls."""
    return Message("tool", tuple(results))


def unfinished(call: str, why: str = STOPPED) -> ToolResult:
    """Return the result of a call that did not finish."""
    return ToolResult(call, (Text(why),), is_error=True)


async def append_after_others(session: Session, messages: Iterable[Message], *, exists: bool) -> list[str]:
    """Append messages after whatever others append meanwhile; return their entry ids.

    Raises SessionNotFound if a session that `exists` was deleted meanwhile: it must not reappear.
    """
    while True:
        if await session.follow() is None and exists and await session.store.info(session.id) is None:
            raise SessionNotFound(f"session {session.id} was deleted")
        with suppress(LeafMoved):
            return await session.append(*messages)


async def store(session: Session, answer: Any, late: Callable[[], Message]) -> list[str]:
    """Append an answer; if others appended first, append `late()` after them and raise InputError."""
    try:
        return await session.append(answer)
    except LeafMoved as error:
        await append_after_others(session, [late()], exists=True)
        raise InputError(MEANWHILE) from error


async def ask(
    session: Session,
    provider: Provider,
    messages: ContextMessages,
    *,
    max_tokens: int | None,
    emit: Callable[[Event], None],
) -> Reply:
    """Ask for a reply of at most `max_tokens`, or the session's lower limit; raises ProviderError."""
    limit = min((cap for cap in (session.max_tokens, max_tokens) if cap is not None), default=None)
    request = Call(
        messages, session.system, session.setup.tools, max_tokens=limit, compact_at=session.compact_at
    )
    stream = cast("AsyncGenerator[Delta | Reply]", provider.stream(request))
    async with aclosing(stream) as pieces:
        async for piece in pieces:
            if isinstance(piece, Reply):
                return piece
            if (event := delta_event(piece)) is not None:
                emit(event)
    raise ProviderError("the stream ended without a reply", kind="connection")


def asked_again(why: str) -> tuple[Event, ...]:
    """Return the events for a request that did not fit and is made again, with the reason."""
    return ReplyRestarted(), OverflowRetried(why=why)


def is_empty(reply: Reply) -> bool:
    """Return whether a reply ended normally, but without text and calls."""
    return reply.empty and reply.stop in ("end", "tools")


def ending(reply: Reply, *, waiting: bool) -> TurnEnded:
    """Return how a turn ends with this reply; `waiting`: the session waits for the user's answer."""
    how, detail = _INCOMPLETE.get(reply.stop, ("waiting" if waiting else "done", ""))
    if not detail and not reply.text.strip():
        how, detail = "empty", "the model's reply was empty twice; rephrase the request, or use another model"
    if detail and reply.reason:
        detail = f"{detail} (the API's reason: {reply.reason})"
    return TurnEnded(how=how, text=reply.text, detail=detail)


async def run_shielded(work: Awaitable[T]) -> T:
    """Finish work even if the caller is cancelled meanwhile; the cancellation is raised afterwards."""
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
