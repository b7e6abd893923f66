"""A turn over a client's history: folded where it must be, answered by the model, told chunk by chunk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, Final, cast

import msgspec

from foldline.core.log.messages import Message
from foldline.dialects import get
from foldline.errors import FoldlineError, ProviderError
from foldline.providers import Call, Delta, Provider, Reply
from foldline.service.problems import words_of
from foldline.service.stateless.fork import Folding
from foldline.session.events import CompactionStarted, Event
from foldline.waiting import apart

log = logging.getLogger("foldline")

Chunk = dict[str, Any]
_PARTS: Final = {"text": "text", "thinking": "reasoning"}
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
            call = Call(
                messages,
                session.system,
                folding.asking.tools,
                max_tokens=session.max_tokens,
                compact_at=session.compact_at,
            )
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


# ---- what is told: chunks that the readers of the AI SDK (5, 6 and 7) take


def data(name: str, value: Any, **more: Any) -> Chunk:
    """Return a data part: `onData` hears of it, and only where it is not transient the message keeps it."""
    return {"type": f"data-{name}", "data": value, **more}


def passing(name: str, value: Any) -> Chunk:
    """Return a data part that the message does not keep."""
    return data(name, value, transient=True)


class ReplyChunks:
    """The chunks of one reply; a step begins with its first piece."""

    def __init__(self, dialect: str) -> None:
        self.begun = False
        self._spoken = False  # any of its text
        self._dialect = dialect
        self._open: tuple[str, str] | None = None  # the part that is open: its type and id
        self._count = 0

    def take(self, piece: Delta) -> list[Chunk]:
        """Return the chunks of a piece; calls are told whole, at the end."""
        kind = _PARTS.get(piece.kind)
        if kind is None:
            return []
        made = self._begin()
        self._spoken = self._spoken or (kind == "text" and bool(piece.text.strip()))
        if self._open is None or self._open[0] != kind:
            made += self._close()
            self._count += 1
            self._open = kind, f"{kind}-{self._count}"
            made.append({"type": f"{kind}-start", "id": self._open[1]})
        return [*made, {"type": f"{kind}-delta", "id": self._open[1], "delta": piece.text}]

    def end(self, reply: Reply) -> list[Chunk]:
        """Return the chunks that end a reply: its calls, and how it ended."""
        message: Message = get(self._dialect).decode_reply(reply.native)
        made = [*self._begin(), *self._close()]
        made += [
            {
                "type": "tool-input-available",
                "toolCallId": one.id,
                "toolName": one.name,
                "input": one.arguments,
            }
            for one in message.calls
        ]
        if not self._spoken and not message.calls:
            return [*made, {"type": "error", "errorText": f"the model answered with nothing ({reply.stop})"}]
        told = {"usage": msgspec.to_builtins(reply.usage), "finishReason": reply.stop}
        return [*made, {"type": "finish-step"}, {"type": "finish", "messageMetadata": told}]

    def _begin(self) -> list[Chunk]:
        begun, self.begun = self.begun, True
        return [] if begun else [{"type": "start-step"}]

    def _close(self) -> list[Chunk]:
        opened, self._open = self._open, None
        return [] if opened is None else [{"type": f"{opened[0]}-end", "id": opened[1]}]
