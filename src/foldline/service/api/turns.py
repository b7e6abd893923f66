"""A turn: the model is asked over a session, and what happens is told as server-sent events.

A client that stops ends the turn: what is whole stays, and nothing is half done.
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
from foldline.service.api.idempotency import KeyBusy, TurnRecord, stored_before
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
from foldline.service.api.sessions import AT, busy
from foldline.service.models import give
from foldline.service.problems import words_of
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
STEPS: Final = 50  # replies to one prompt: there are no tools but recall
KEPT: Final = 256 * 1024  # bytes of what a turn told that are kept to be told again


class TurnWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said (`text`, or `messages` of any dialect; neither: the model goes on), and who answers.

    `model` is one of those that are configured (null: the session's, else the service's). `max_tokens` bounds
    a reply. With `settle`, what is compacted behind the reply is told as well, before `done`.
    """

    text: Words | None = None
    messages: list[dict[str, Any]] = []
    model: Title | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    settle: bool = False


class Turn:
    """One turn under way: the agent at work, and what it tells."""

    def __init__(
        self, call: ApiCall, provider: Provider, toolbox: Toolbox, record: TurnRecord, uses: AsyncExitStack
    ) -> None:
        self._call = call
        self._wish: TurnWish = call.given["body"]
        self._agent = Agent(
            call.session,
            provider,
            toolbox,
            emit=self.heard,
            steps=STEPS,
            max_tokens=self._wish.max_tokens,
            words=words_of,
        )
        self._record = record
        self._uses = uses
        self._asked = time.perf_counter()  # when the model was asked last
        self._queue: asyncio.Queue[tuple[str, dict[str, Any]] | None] = asyncio.Queue()
        self._work: asyncio.Task[None] | None = None
        self._off: Callable[[], None] = call.session.on(EVERY, self.heard)

    def heard(self, event: Event) -> None:
        """Tell of something that happened."""
        if isinstance(event, CallEnded):
            self._asked = time.perf_counter()
        if isinstance(event, ReplyEnded):
            took = time.perf_counter() - self._asked
            model = self._agent.session.setup.model or ""
            self._call.state.metrics.replied(model, event.usage, event.usd, took)
        for name, data in told(event):
            if name != DONE:  # it is told when all else was
                self._tell(name, data)

    def _tell(self, name: str, data: dict[str, Any]) -> None:
        if name not in DELTAS:
            self._record.events.append((name, data))
        self._queue.put_nowait((name, data))

    async def _run(self) -> None:
        try:
            data = await self._worked()
            self._record.events.append((DONE, data))
            if len(encode_utf8(self._record.events)) > KEPT:
                del self._record.events[:-1]  # `done` has the text
            await self._keep()
        finally:
            await self._free()  # who hears that it is done may ask again at once
        self._queue.put_nowait((DONE, data))
        self._queue.put_nowait(None)

    async def _worked(self) -> dict[str, Any]:
        """Have the agent work; return how that ended."""
        try:
            ended = await self._agent.run()
            if self._wish.settle:
                await self._agent.session.settled()
        except FoldlineError as error:
            return {"how": "failed", "text": "", "detail": words_of(error), "leaf": self._agent.session.leaf}
        except Exception:
            log.exception("a turn of session %s failed", self._agent.session.id)
            return {"how": "failed", "text": "", "detail": "a defect of the service: its log says more"}
        self._record.ended = ended.how != "interrupted"
        return {**msgspec.to_builtins(ended), "leaf": self._agent.session.leaf}

    async def _keep(self) -> None:
        """Keep what was told under the key of the request, for whoever sends it again."""
        known = self._call.remembered
        if known is None:
            return
        try:
            await self._call.state.of(self._call.tenant).keys.settle(known, None)
        except StoreError as error:
            log.warning("a turn of session %s is not kept: %s", self._agent.session.id, error)

    async def events(self) -> AsyncGenerator[ServerSentEvent]:
        """Work, and yield what happens until the turn has ended."""
        self._work = asyncio.ensure_future(self._run())
        while (one := await self._queue.get()) is not None:
            yield sent_event(*one)

    def stop(self) -> None:
        """End the turn where it has not ended, beside the request; then the session is free again."""
        if self._work is None:  # the client has left before it began
            self._call.state.end(self._free())
        elif not self._work.done():
            self._call.state.end(self._work)
            if not self._agent.interrupt():  # it was about to begin, or had only to settle
                self._work.cancel()
                self._call.state.end(self._free())

    async def _free(self) -> None:
        self._off()
        await self._uses.aclose()


class TurnStream(EventSourceResponse):
    """The stream of a turn, which ends the turn also where the client has left before it began."""

    def __init__(self, turn: Turn, grace: float, leaf: str | None) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            turn.events(),
            headers={"etag": etag(leaf)},
            ping=PING_SECONDS,
            send_timeout=SEND_SECONDS,
            shutdown_grace_period=grace,
        )
        self._turn = turn

    async def to_its_end(self) -> None:
        """Have the turn without telling anybody of it."""
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
    """Say something and have the model answer: server-sent events, `done` the last."""
    session, state = call.session, call.state
    record = call.remembered.turn if call.remembered is not None else None
    if record is not None and record.ended:
        return _again(record, session.leaf)
    opening = await state.opening(call.tenant, session.id)
    its_own = (session.setup.model, opening.model)
    known = next((one for one in its_own if one in state.models.names), None)
    name = state.models.chosen(body.model or known)
    provider = state.models.provider(name)
    turns = state.of(call.tenant).turns
    if not await turns.take(session.id):
        raise busy(session.id) if record is None else KeyBusy()
    async with AsyncExitStack() as uses:
        uses.push_async_callback(turns.release, session.id)
        uses.enter_context(state.use(call.tenant, session.id, opening))
        recall = [AgentTool(tool, partial(session.call_tool, tool.name), reads=True) for tool in RECALL_TOOLS]
        toolbox = Toolbox(recall)
        early: list[Event] = []  # what happens before the stream begins
        if session.compacting:
            early.append(CompactionStarted(reason="threshold", size=session.view_tokens))
        off = session.on(EVERY, early.append)
        uses.callback(off)
        await _go_on_with(session, name, provider, toolbox, call)
        record = await _prompted(call, body, record)
        off()
        going = Turn(call, provider, toolbox, record, uses.pop_all())
    for event in early:
        going.heard(event)
    return TurnStream(going, grace=max(0.0, state.serve.drain - 1.0), leaf=session.leaf)


async def _prompted(call: ApiCall, body: TurnWish, record: TurnRecord | None) -> TurnRecord:
    """Append what is said, unless an earlier request with this key has done so."""
    session = call.session
    if record is not None:
        if session.leaf != record.leaf and (await session.standing()).state != "mid_tool":
            raise LeafMoved("the session has gone on since that turn was left", leaf=session.leaf)
        record.events.clear()
        return record
    said = [*body.messages, *([Message("user", (Text(body.text),))] if body.text is not None else [])]
    known = call.remembered
    again = known is not None and known.again and said
    before = await stored_before(session, known.record.leaf, said) if known is not None and again else None
    if before is not None:
        record = TurnRecord(before[-1])
    elif said:
        await session.append(*said)
    elif not (await session.stats()).total_messages:
        raise InputError("there is nothing to answer yet: give a text, or messages")
    record = record or TurnRecord(session.leaf)
    if known is not None:
        known.turn = record
    return record


async def _go_on_with(
    session: Session, name: str, provider: Provider, toolbox: Toolbox, call: ApiCall
) -> None:
    """Have the session go on with this model, and with recall as its tools, where it does not already."""
    tools = toolbox.definitions(provider.dialect)
    if (session.setup.model, session.dialect, session.setup.tools) == (name, provider.dialect, tools):
        return
    before = session.summarizer
    await session.use_model(name, window=call.state.serve.window, dialect=provider.dialect, tools=tools)
    if session.summarizer is before:  # the gateway has opened it: nobody hears there that the model changed
        give(session, call.state.models.summarizer(name))


def _again(record: TurnRecord, leaf: str | None) -> Response:
    """Tell once more what a turn that has ended told, but for its deltas."""

    async def events() -> AsyncGenerator[ServerSentEvent]:
        for name, data in record.events:
            yield sent_event(name, data)

    return EventSourceResponse(events(), headers={"etag": etag(leaf)}, ping=PING_SECONDS)


# ---- events of the agent and its session, as the stream names them

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
"""The names in the stream, and what stands in the data beside the event's own fields."""


def told(event: Event) -> list[TurnLine]:
    """Return an event as the stream tells it; nothing for what is no business of a client's."""
    known = NAMES.get(type(event))
    if known is None:
        return []
    name, more = known
    data: dict[str, Any] = {**msgspec.to_builtins(event), **more}
    if isinstance(event, DraftFailed):  # what went wrong may be the store's, and say where that is
        del data["detail"]
    if isinstance(event, WarningGiven) and event.kind == "failed":
        data["text"] = "a compaction failed, and the session is as it was: the service's log says more"
    if isinstance(event, ReplyEnded) and event.usage is not None:
        usage = {"entry": event.entry, "usage": data.pop("usage"), "usd": data.pop("usd")}
        return [(name, data), ("usage", usage)]
    return [(name, data)]
