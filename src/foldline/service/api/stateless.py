"""`/api/fold` and `/api/turn`, for clients that keep their own history: they store nothing."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import msgspec
from sse_starlette import EventSourceResponse
from starlette.responses import Response

import foldline
from foldline.core.log.codec import encode_utf8
from foldline.dialects import UI_MESSAGE
from foldline.errors import InputError
from foldline.providers import Provider, Retrying
from foldline.service.api.operation import SEND_SECONDS, STREAM, ApiCall, operation
from foldline.service.models import closing, written_by
from foldline.service.stateless.fork import SESSION, Asking, Fork, asking_of, forked
from foldline.service.stateless.turn import StatelessTurn
from foldline.session.events import CompactionDone, PruneDone
from foldline.session.session import Session
from foldline.stores import MemoryStore
from foldline.waiting import run_in_own_loop

POLICY: Final = "moldable"  # if neither the request nor the settings name one
MEDIA: Final = {"x-vercel-ai-ui-message-stream": "v1"}  # the protocol of the AI SDK's useChat


EXAMPLE: Final = {
    "messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "Never push to main."}]}],
    "compactionState": None,
}


class FoldResult(msgspec.Struct, frozen=True, rename="camel"):
    """What to send to the model, and the state to send with the history next time."""

    messages: list[Any]
    compaction_state: Any
    compacted: bool
    warnings: list[str]


@operation("POST", "/fold", held=False, read=asking_of, example=EXAMPLE)
async def fold_history(call: ApiCall, body: Asking) -> FoldResult:
    """Fold a history if its policy asks for it, and return what to send to the model."""
    return await run_in_own_loop(_fold(call, body))


async def _fold(call: ApiCall, asking: Asking) -> FoldResult:
    provider, problem = _summary_model(call, asking)
    fork = await _forked(call, asking, provider, UI_MESSAGE)
    async with fork.session:
        await fork.begin()
        messages = await fork.fitted()
        await fork.folded()
    if problem and fork.changed:
        fork.warnings.append(f"the summary was written without a model: {problem}")
    return FoldResult(fork.to_send(messages), fork.state, fork.changed, fork.warnings)


@operation("POST", "/turn", media=STREAM, held=False, read=asking_of, example=EXAMPLE)
async def answer_history(call: ApiCall, body: Asking) -> Response:
    """Fold a history if necessary, and stream the model's reply as a UI message of the AI SDK."""
    provider = _provider(call, body, body.model or call.state.models.chosen(None))
    fork = await run_in_own_loop(_forked(call, body, provider, provider.dialect))
    events = _events(call, StatelessTurn(fork, Retrying(provider)), provider.name)
    return EventSourceResponse(events, headers=MEDIA, send_timeout=SEND_SECONDS)


async def _forked(call: ApiCall, asking: Asking, provider: Provider | None, dialect: str) -> Fork:
    """Open a history as a session in memory, with its view in a dialect."""
    serve = call.state.serve

    def on_fold(event: CompactionDone | PruneDone) -> None:
        call.state.metrics.folded(event.receipt, call.tenant.name)

    def opener(store: MemoryStore, system: str | None) -> Session:
        opened = foldline.open(
            store,
            SESSION,
            model=asking.model or call.state.models.usual,
            policy=asking.policy or serve.policy or POLICY,
            window=asking.window or serve.window,
            dialect=dialect,
            system=system,
            tools=asking.tools,
            summarizer=written_by(serve, lambda: provider, None),
        )
        for kind in (CompactionDone, PruneDone):
            opened.on(kind.name, on_fold)
        return closing(opened)

    return await forked(asking, opener)


def _summary_model(call: ApiCall, asking: Asking) -> tuple[Provider | None, str]:
    """Return the model that writes the summary, or why the named one cannot."""
    model = asking.model or call.state.models.usual
    try:
        return (None if model is None else _provider(call, asking, model)), ""
    except InputError as error:
        return None, str(error)


def _provider(call: ApiCall, asking: Asking, model: str) -> Provider:
    """Return the provider of the model that a request names; the settings give its address."""
    return call.state.models.made_for(model, key=call.key, window=asking.window)


async def _events(call: ApiCall, turn: StatelessTurn, model: str) -> AsyncGenerator[dict[str, str]]:
    """Yield the chunks of a turn as events, and count its reply."""
    start = time.perf_counter()
    async with aclosing(turn.chunks()) as chunks:
        async for chunk in chunks:
            # an empty reply ends with an error, and is paid for too
            if chunk["type"] == "finish" or (chunk["type"] == "error" and turn.usage is not None):
                call.state.metrics.replied(model, turn.usage, turn.usd, time.perf_counter() - start)
            yield {"data": encode_utf8(chunk).decode()}
    yield {"data": "[DONE]"}
