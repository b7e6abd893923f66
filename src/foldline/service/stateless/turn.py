"""A turn over a client's history: folded where it must be, answered by the model, told chunk by chunk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final, cast

from foldline.errors import FoldlineError, ProviderError
from foldline.providers import Call, Delta, Provider, Reply
from foldline.service.problems import words_of
from foldline.service.stateless.chunks import Chunk, ReplyChunks, data, passing
from foldline.service.stateless.fold import Folding
from foldline.session.events import CompactionStarted, Event
from foldline.waiting import apart

log = logging.getLogger("foldline")

STATE: Final = "state"  # the id of the part that carries a state: a later one of the same message replaces it


class StatelessTurn:
    """One turn; its chunks come while it goes on, in an event loop of its own: a history may be long."""

    def __init__(self, folding: Folding, provider: Provider) -> None:
        self._folding = folding
        self._provider = provider
        self._loop = asyncio.get_running_loop()  # in which the chunks are told
        self._queue: asyncio.Queue[Chunk | None] = asyncio.Queue()
        self._warned = 0  # warnings that were told

    async def chunks(self) -> AsyncGenerator[Chunk]:
        """Work, and yield what happens; closing this before its end ends the turn."""
        work = asyncio.ensure_future(apart(self._run()))
        try:
            while (chunk := await self._queue.get()) is not None:
                yield chunk
        finally:
            work.cancel()
            await asyncio.wait({work})

    def _tell(self, *chunks: Chunk) -> None:
        for chunk in chunks:
            self._put(chunk)

    def _put(self, chunk: Chunk | None) -> None:
        with suppress(RuntimeError):  # the service has ended meanwhile
            self._loop.call_soon_threadsafe(self._queue.put_nowait, chunk)

    def _heard(self, event: Event) -> None:
        if isinstance(event, CompactionStarted):
            told = {"reason": event.reason, "tokens": event.size}
            self._tell(passing("compaction-started", told))

    async def _run(self) -> None:
        self._tell({"type": "start"})
        try:
            async with self._folding.session as session:
                session.on("*", self._heard)
                await self._answered()
        except FoldlineError as error:
            log.warning("a turn failed: %s", error)
            self._tell({"type": "error", "errorText": words_of(error)})
        except Exception:
            log.exception("a turn failed")
            self._tell({"type": "error", "errorText": "a defect of the service: its log says more"})
        finally:
            await self._provider.close()
            self._put(None)

    async def _answered(self) -> None:
        """Fold, and ask until a reply has come; what did not fit is folded and asked again."""
        folding, session = self._folding, self._folding.session
        await folding.begin()
        messages = await folding.fitted()
        while True:
            await self._tell_state()
            reply = ReplyChunks(self._provider.dialect)
            call = Call(messages, session.system, folding.asking.tools, max_tokens=session.max_tokens)
            try:
                return await self._asked(call, reply)
            except ProviderError as error:
                if reply.begun:
                    raise
                messages = await session.overflowed(error, view=messages)

    async def _tell_state(self) -> None:
        """Tell of the state that a fold has made, and of what there is to warn of."""
        folding = self._folding
        if await folding.folded():
            if folding.asking.chunks == "moldable":
                self._tell({"type": "compaction", "compaction": folding.state})
            else:
                self._tell(data("compaction", folding.state, id=STATE))
        self._tell(*(passing("warning", {"text": text}) for text in folding.warnings[self._warned :]))
        self._warned = len(folding.warnings)

    async def _asked(self, call: Call, reply: ReplyChunks) -> None:
        stream = cast("AsyncGenerator[Delta | Reply]", self._provider.stream(call))
        async with aclosing(stream) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    self._tell(*reply.end(piece))
                elif piece.kind == "wait":
                    told = {"attempt": piece.index, "wait": piece.seconds, "why": piece.text}
                    self._tell(passing("retrying", told))
                elif piece.kind == "restart":  # no reader of the SDK takes back what it has shown
                    raise ProviderError("the reply broke off: ask again", kind="connection")
                else:
                    self._tell(*reply.take(piece))
