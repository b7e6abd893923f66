"""A turn: the model answers in a session, and its progress is streamed as server-sent events.

A client that disconnects ends the turn: complete messages stay, an incomplete reply is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from foldline.agent.events import (
    CallEnded,
    CallStarted,
    OverflowRetried,
    ReplyDelayed,
    ReplyEnded,
    ReplyRestarted,
    TextStreamed,
    ThinkingStreamed,
    TurnEnded,
)
from foldline.agent.loop import Agent
from foldline.agent.tools.toolbox import AgentTool, Toolbox
from foldline.core.log.codec import encode_utf8
from foldline.core.log.messages import Message, Text
from foldline.errors import FoldlineError, InputError, LeafMoved, StoreError
from foldline.providers import Provider
from foldline.service.api.operation import (
    PING_SECONDS,
    SEND_SECONDS,
    STREAM,
    ApiCall,
    Title,
    Words,
    etag,
    operation,
    sent_event,
)
from foldline.service.api.sessions import AT
from foldline.service.idempotency import KeyBusy, TurnRecord, stored_before
from foldline.service.models import give
from foldline.service.problems import words_of
from foldline.service.tenants import busy
from foldline.session.events import (
    EVERY,
    CompactionDone,
    CompactionStarted,
    DraftFailed,
    DraftReady,
    DraftStarted,
    Event,
    NothingDone,
    OverflowSeen,
    ProviderCompacted,
    PruneDone,
    Struck,
    WarningGiven,
)
from foldline.session.session import Session
from foldline.session.tools import RECALL_TOOLS

log = logging.getLogger("foldline")

TurnLine = tuple[str, dict[str, Any]]
DONE: Final = "done"
DELTAS: Final = frozenset({"message.delta", "thinking.delta"})
STEPS: Final = 50  # replies to one prompt: the only tools are those of recall
KEPT: Final = 256 * 1024  # bytes of a turn's events that are stored to be sent again


class TurnWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prompt (`text`, or `messages` of any dialect; neither: answer the last message), and the model.

    `model` is a configured one (null: the session's, else the service's). `max_tokens` limits a reply. With
    `settle`, the stream also waits for compactions after the reply, before `done`.
    """

    text: Words | None = None
    messages: list[dict[str, Any]] = []
    model: Title | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    settle: bool = False


class Turn:
    """One running turn: the agent, and the events that it emits."""

    def __init__(
        self, call: ApiCall, provider: Provider, toolbox: Toolbox, record: TurnRecord, uses: AsyncExitStack
    ) -> None:
        self._call = call
        self._request: TurnWish = call.arguments["body"]
        self._agent = Agent(
            call.session,
            provider,
            toolbox,
            emit=self.on_event,
            steps=STEPS,
            max_tokens=self._request.max_tokens,
            words=words_of,
        )
        self._record = record
        self._uses = uses
        self._request_start = time.perf_counter()  # of the last request to the model
        self._queue: asyncio.Queue[TurnLine | None] = asyncio.Queue()
        self._work: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] = call.session.on(EVERY, self.on_event)

    def on_event(self, event: Event) -> None:
        """Send an event of the agent or the session to the client, and record it."""
        if isinstance(event, CallEnded):
            self._request_start = time.perf_counter()
        if isinstance(event, ReplyEnded):
            seconds = time.perf_counter() - self._request_start
            model = self._agent.session.setup.model or ""
            self._call.state.metrics.replied(model, event.usage, event.usd, seconds)
        for name, data in stream_events(event):
            if name == DONE:  # sent last, by `_run`
                continue
            if name not in DELTAS:
                self._record.events.append((name, data))
            self._queue.put_nowait((name, data))

    async def _run(self) -> None:
        try:
            data = await self._answer()
            self._record.events.append((DONE, data))
            if len(encode_utf8(self._record.events)) > KEPT:
                del self._record.events[:-1]  # `done` has the text
            await self._store_record()
        finally:
            await self._free()  # before `done`: the client may start the next turn at once
        self._queue.put_nowait((DONE, data))
        self._queue.put_nowait(None)

    async def _answer(self) -> dict[str, Any]:
        """Run the agent, and return the data of the event `done`."""
        try:
            ended = await self._agent.run()
            if self._request.settle:
                await self._agent.session.settled()
        except FoldlineError as error:
            return {"how": "failed", "text": "", "detail": words_of(error), "leaf": self._agent.session.leaf}
        except Exception:
            log.exception("a turn of session %s failed", self._agent.session.id)
            return {"how": "failed", "text": "", "detail": "this is a bug in the service: see its log"}
        self._record.ended = ended.how != "interrupted"
        return {**msgspec.to_builtins(ended), "leaf": self._agent.session.leaf}

    async def _store_record(self) -> None:
        """Store the events under the request's idempotency key, for a retry."""
        if self._call.key_entry is None:
            return
        try:
            await self._call.tenant.keys.settle(self._call.key_entry, None)
        except StoreError as error:
            log.warning("a turn of session %s was not stored for retries: %s", self._agent.session.id, error)

    async def events(self) -> AsyncGenerator[ServerSentEvent]:
        """Run the turn, and yield its events until it ends."""
        self._work = asyncio.ensure_future(self._run())
        while (line := await self._queue.get()) is not None:
            yield sent_event(*line)

    def stop(self) -> None:
        """End a turn that still runs, in the background, and free the session."""
        if self._work is None:  # the client left before the turn started
            self._call.state.end(self._free())
        elif not self._work.done():
            self._call.state.end(self._work)
            if not self._agent.interrupt():  # it had not started, or only had to settle
                self._work.cancel()
                self._call.state.end(self._free())

    async def _free(self) -> None:
        self._unsubscribe()
        await self._uses.aclose()


class TurnStream(EventSourceResponse):
    """The stream of a turn; it ends the turn even if the client left before the stream started."""

    def __init__(self, turn: Turn, grace: float, leaf: str | None) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            turn.events(),
            headers={"etag": etag(leaf)},
            ping=PING_SECONDS,
            send_timeout=SEND_SECONDS,
            shutdown_grace_period=grace,
        )
        self._turn = turn

    async def drain(self) -> None:
        """Run the turn without sending its events."""
        try:
            async for _ in self._turn.events():
                pass
        finally:
            self._turn.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream, and end the turn."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._turn.stop()


@operation(
    "POST",
    f"{AT}/turns",
    media=STREAM,
    changes=True,
    keyed=True,
    resumes=True,
    example={"text": "Why does the build fail?"},
)
async def turn(call: ApiCall, body: TurnWish) -> Response:
    """Send a prompt to the model and stream its answer as server-sent events, `done` last."""
    session, state = call.session, call.state
    record = call.key_entry.record.turn if call.key_entry is not None else None
    if record is not None and record.ended:
        return _replay(record, session.leaf)
    opening = await state.opening(call.tenant, session.id)
    models = (session.setup.model, opening.model)
    own_model = next((model for model in models if model in state.models.names), None)
    name = state.models.chosen(body.model or own_model)
    provider = state.models.provider(name)
    turns = call.tenant.turns
    if not await turns.take(session.id):
        raise busy(session.id) if record is None else KeyBusy()
    async with AsyncExitStack() as uses:
        uses.push_async_callback(turns.release, session.id)
        uses.enter_context(state.use(call.tenant, session.id, opening))
        recall = [AgentTool(tool, partial(session.call_tool, tool.name), reads=True) for tool in RECALL_TOOLS]
        toolbox = Toolbox(recall)
        early: list[Event] = []  # before the stream starts
        if session.compacting:
            early.append(CompactionStarted(reason="threshold", size=session.view_tokens))
        unsubscribe = session.on(EVERY, early.append)
        uses.callback(unsubscribe)
        await _use_model(session, name, provider, toolbox, call)
        record = await _append_prompt(call, body, record)
        unsubscribe()
        running = Turn(call, provider, toolbox, record, uses.pop_all())
    for event in early:
        running.on_event(event)
    return TurnStream(running, grace=max(0.0, state.serve.drain - 1.0), leaf=session.leaf)


async def _append_prompt(call: ApiCall, body: TurnWish, record: TurnRecord | None) -> TurnRecord:
    """Append the prompt, unless an earlier request with the same key did so."""
    session, entry = call.session, call.key_entry
    if record is not None:
        if session.leaf != record.leaf and (await session.standing()).state != "mid_tool":
            raise LeafMoved("the session has changed since that turn was interrupted", leaf=session.leaf)
        record.events.clear()
        return record
    prompt = [*body.messages, *([Message("user", (Text(body.text),))] if body.text is not None else [])]
    stored = None
    if entry is not None and entry.is_retry and prompt:
        stored = await stored_before(session, entry.record.leaf, prompt)
    if stored is None and prompt:
        await session.append(*prompt)
    elif not prompt and not (await session.stats()).total_messages:
        raise InputError("there is nothing to answer yet: send a text or messages")
    record = TurnRecord(session.leaf if stored is None else stored[-1])
    if entry is not None:
        entry.record.turn = record
    return record


async def _use_model(
    session: Session, name: str, provider: Provider, toolbox: Toolbox, call: ApiCall
) -> None:
    """Switch the session to this model, with the recall tools, unless it has both already."""
    tools = toolbox.definitions(provider.dialect)
    if (session.setup.model, session.dialect, session.setup.tools) == (name, provider.dialect, tools):
        return
    summarizer = session.summarizer
    await session.use_model(name, window=call.state.serve.window, dialect=provider.dialect, tools=tools)
    if session.summarizer is summarizer:  # opened by the gateway, which does not follow model changes
        give(session, call.state.models.summarizer(name))


def _replay(record: TurnRecord, leaf: str | None) -> Response:
    """Stream the events of an ended turn again, without deltas."""

    async def events() -> AsyncGenerator[ServerSentEvent]:
        for name, data in record.events:
            yield sent_event(name, data)

    return EventSourceResponse(events(), headers={"etag": etag(leaf)}, ping=PING_SECONDS)


# ---- events of the agent and its session, with their names in the stream

NAMES: Final[dict[type[Event], tuple[str, dict[str, Any]]]] = {
    TextStreamed: ("message.delta", {}),
    ThinkingStreamed: ("thinking.delta", {}),
    ReplyRestarted: ("message.restart", {}),
    ReplyDelayed: ("retrying", {}),
    ReplyEnded: ("message", {}),
    CallStarted: ("tool.call", {}),
    CallEnded: ("tool.result", {}),
    OverflowSeen: ("overflow", {}),
    OverflowRetried: ("overflow.retried", {}),
    CompactionStarted: ("compaction.started", {"background": False}),
    DraftStarted: ("compaction.started", {"background": True}),
    DraftReady: ("compaction.drafted", {}),
    CompactionDone: ("compaction.committed", {"made": "compaction"}),
    PruneDone: ("compaction.committed", {"made": "prune"}),
    ProviderCompacted: ("compaction.committed", {"made": "provider"}),
    NothingDone: ("compaction.skipped", {}),
    DraftFailed: ("compaction.failed", {"background": True}),
    Struck: ("compaction.failed", {"background": False}),
    WarningGiven: ("warning", {}),
    TurnEnded: (DONE, {}),
}
"""The name of each event in the stream, and fields that are added to its own."""


def stream_events(event: Event) -> list[TurnLine]:
    """Return what the stream sends for an event; nothing for an internal one."""
    if type(event) not in NAMES:
        return []
    name, fields = NAMES[type(event)]
    data: dict[str, Any] = {**msgspec.to_builtins(event), **fields}
    if isinstance(event, DraftFailed):  # an error of the store may name its address
        del data["detail"]
    if isinstance(event, WarningGiven) and event.kind == "failed":
        data["text"] = "a compaction failed, and the session is unchanged: see the service's log"
    if isinstance(event, ReplyEnded) and event.usage is not None:
        usage = {"entry": event.entry, "usage": data.pop("usage"), "usd": data.pop("usd")}
        return [(name, data), ("usage", usage)]
    return [(name, data)]
