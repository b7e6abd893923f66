"""Decisions of a recorded session, made again: a model is asked for the next call from a folded context."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from foldline.bench.system import Messages
from foldline.core.log.messages import ToolCall
from foldline.dialects import OPENAI_CHAT, get
from foldline.dialects.base import decode_reply
from foldline.errors import ProviderError
from foldline.providers import choose
from foldline.providers.base import Call
from foldline.providers.retry import Retrying

MOST: Final = 10  # decisions of a session, from its second half
AT_ONCE: Final = 4
REFUSED: Final = ("bad_request", "overflow")  # what is sent is wrong, not the key or the network


class Decided(NamedTuple):
    """A recorded call, and the messages before it."""

    past: Messages
    call: ToolCall


def decided(messages: Messages) -> list[Decided]:
    """Return calls of a session that answered the user or results: of several at once, the first."""
    found = [
        at
        for at in range(len(messages) // 2, len(messages))
        if messages[at].get("tool_calls") and messages[at - 1]["role"] in ("user", "tool")
    ]
    some = found[:: -(-len(found) // MOST) or 1]
    return [Decided(messages[:at], get(OPENAI_CHAT).decode(messages[at]).calls[0]) for at in some]


def tools(messages: Messages) -> list[Any]:
    """Return the tools that a session called, with the arguments that it gave them."""
    found: dict[str, dict[str, Any]] = {}
    for call in (call for one in messages for call in get(OPENAI_CHAT).decode(one).calls):
        given = call.arguments if isinstance(call.arguments, dict) else {}
        found.setdefault(call.name, {}).update((key, {}) for key in given)
    return [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": some}}}
        for name, some in found.items()
    ]


def request(view: Sequence[Any], dialect: str, known: list[Any]) -> Call:
    """Return the request that a view in some dialect makes of a model with these tools."""
    if dialect != OPENAI_CHAT:
        view = get(OPENAI_CHAT).render([(get(dialect).decode(one), ()) for one in view]).messages
    return Call(messages=list(view), tools=known)


def compared(model: str, asked: Sequence[tuple[ToolCall, Call]]) -> dict[str, float]:
    """Ask a model, and return how often it calls what is recorded.

    Raises ProviderError where it cannot be asked.
    """
    answers = asyncio.run(_answers(model, [one for _, one in asked]))
    same = [_same(call, answer) for (call, _), answer in zip(asked, answers, strict=True)]
    return {
        "tool": statistics.fmean(tool for tool, _ in same),
        "argument": statistics.fmean(argument for _, argument in same),
        "refused": sum(isinstance(one, ProviderError) for one in answers),
        "decisions": len(asked),
    }


def _same(call: ToolCall, answer: ToolCall | ProviderError | None) -> tuple[bool, bool]:
    """Return whether an answer calls the same tool, and whether with the same first argument (a path ...)."""
    if not isinstance(answer, ToolCall) or answer.name != call.name:
        return False, False
    given, now = call.arguments, answer.arguments
    if not isinstance(given, dict) or not isinstance(now, dict):
        return True, given == now
    key = next(iter(given), "")
    return True, given.get(key) == now.get(key)


async def _answers(model: str, calls: Sequence[Call]) -> list[ToolCall | ProviderError | None]:
    """Return the first call of each answer; None for words alone, an error for a request that is refused."""
    provider, gate = Retrying(choose.get(model, dialect=OPENAI_CHAT)), asyncio.Semaphore(AT_ONCE)

    async def answer(call: Call) -> ToolCall | ProviderError | None:
        if not call.messages:  # the fold raised, or left nothing
            return None
        async with gate:
            try:
                reply = await provider.complete(call)
            except ProviderError as error:
                if error.kind not in REFUSED:
                    raise
                return error
        return next(iter(decode_reply(reply.native, OPENAI_CHAT).calls), None)

    try:
        return await asyncio.gather(*map(answer, calls))
    finally:
        await provider.close()
