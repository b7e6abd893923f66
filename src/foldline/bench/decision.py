"""Repeat decisions of a recorded session: a model chooses the next call from a folded context."""

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

MAX_CALLS: Final = 10  # of a session, from its second half
PARALLEL: Final = 4  # requests to the model
REFUSED: Final = ("bad_request", "overflow")  # the request is wrong, not the key or the network


class RecordedCall(NamedTuple):
    """A recorded call, and the messages before it."""

    past: Messages
    call: ToolCall


def sample_calls(messages: Messages) -> list[RecordedCall]:
    """Return calls of a session that follow a user message or a result; of parallel calls the first."""
    indices = [
        index
        for index in range(len(messages) // 2, len(messages))
        if messages[index].get("tool_calls") and messages[index - 1]["role"] in ("user", "tool")
    ]
    sample = indices[:: -(-len(indices) // MAX_CALLS) or 1]
    decode = get(OPENAI_CHAT).decode
    return [RecordedCall(messages[:index], decode(messages[index]).calls[0]) for index in sample]


def called_tools(messages: Messages) -> list[Any]:
    """Return definitions of the tools that a session called, with the arguments that it passed."""
    arguments: dict[str, dict[str, Any]] = {}
    for call in (call for message in messages for call in get(OPENAI_CHAT).decode(message).calls):
        names = call.arguments if isinstance(call.arguments, dict) else {}
        arguments.setdefault(call.name, {}).update((key, {}) for key in names)
    return [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": keys}}}
        for name, keys in arguments.items()
    ]


def request(view: Sequence[Any], dialect: str, tools: list[Any]) -> Call:
    """Return the request with a view of any dialect."""
    if dialect != OPENAI_CHAT:
        view = get(OPENAI_CHAT).render([(get(dialect).decode(message), ()) for message in view]).messages
    return Call(messages=list(view), tools=tools)


def compare_calls(model: str, requests: Sequence[tuple[ToolCall, Call]]) -> dict[str, float]:
    """Send requests to a model, and return how often it makes the recorded call of each.

    Raises ProviderError if the model cannot be called.
    """
    answers = asyncio.run(_answers(model, [call for _, call in requests]))
    same = [_is_same(call, answer) for (call, _), answer in zip(requests, answers, strict=True)]
    return {
        "tool": statistics.fmean(tool for tool, _ in same),
        "argument": statistics.fmean(argument for _, argument in same),
        "refused": sum(isinstance(answer, ProviderError) for answer in answers),
        "decisions": len(requests),
    }


def _is_same(call: ToolCall, answer: ToolCall | ProviderError | None) -> tuple[bool, bool]:
    """Return whether an answer calls the same tool, and with the same first argument (such as a path)."""
    if not isinstance(answer, ToolCall) or answer.name != call.name:
        return False, False
    recorded, actual = call.arguments, answer.arguments
    if not isinstance(recorded, dict) or not isinstance(actual, dict):
        return True, recorded == actual
    key = next(iter(recorded), "")
    return True, recorded.get(key) == actual.get(key)


async def _answers(model: str, calls: Sequence[Call]) -> list[ToolCall | ProviderError | None]:
    """Return the first call of each answer; None for an answer without calls, the error of a refusal."""
    provider, gate = Retrying(choose.get(model, dialect=OPENAI_CHAT)), asyncio.Semaphore(PARALLEL)

    async def answer(call: Call) -> ToolCall | ProviderError | None:
        if not call.messages:  # the fold raised, or returned nothing
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
