"""A turn over a client's history: folded if needed, answered by the model, sent in chunks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, Final, cast

import msgspec

from foldline.core.decide.price import cost
from foldline.core.log.messages import Message, Usage
from foldline.dialects import get
from foldline.errors import FoldlineError, ProviderError
from foldline.providers import Call, Delta, Provider, Reply
from foldline.service.problems import words_of
from foldline.service.stateless.fork import Fork
from foldline.session.events import CompactionStarted, Event
from foldline.waiting import run_in_own_loop

log = logging.getLogger("foldline")

Chunk = dict[str, Any]
_PARTS: Final = {"text": "text", "thinking": "reasoning"}
STATE: Final = "state"  # the id of the part with the state: a later part with this id replaces it


class StatelessTurn:
    """One turn; it runs in a separate event loop, because a history may be long."""

    def __init__(self, fork: Fork, provider: Provider) -> None:
        self._fork = fork
        self._provider = provider
        self._loop = asyncio.get_running_loop()  # of the reader of the chunks
        self._queue: asyncio.Queue[Chunk | None] = asyncio.Queue()
        self._sent_warnings = 0  # warnings that were told
        self.usage: Usage | None = None  # of the reply

    @property
    def usd(self) -> float | None:
        """The price of the reply, if it is known."""
        price = self._fork.session.setup.info.price
        return cost(self.usage, price) if self.usage is not None and price is not None else None

    async def chunks(self) -> AsyncGenerator[Chunk]:
        """Run the turn and yield its chunks; closing the generator early ends the turn."""
        work = asyncio.ensure_future(run_in_own_loop(self._run()))
        try:
            while (chunk := await self._queue.get()) is not None:
                yield chunk
        finally:
            work.cancel()
            await asyncio.wait({work})

    def _send(self, *chunks: Chunk | None) -> None:
        for chunk in chunks:
            with suppress(RuntimeError):  # the service has stopped
                self._loop.call_soon_threadsafe(self._queue.put_nowait, chunk)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, CompactionStarted):
            fields = {"reason": event.reason, "tokens": event.size}
            self._send(transient("compaction-started", fields))

    async def _run(self) -> None:
        self._send({"type": "start"})
        try:
            async with self._fork.session as session:
                session.on("*", self._on_event)
                await self._reply_folding()
        except FoldlineError as error:
            log.warning("a turn failed: %s", error)
            self._send({"type": "error", "errorText": words_of(error)})
        except Exception:
            log.exception("a turn failed")
            self._send({"type": "error", "errorText": "internal error: see the service's log"})
        finally:
            await self._provider.close()
            self._send(None)

    async def _reply_folding(self) -> None:
        """Fold, call the model, and retry with a smaller view if the request did not fit."""
        fork, session = self._fork, self._fork.session
        await fork.begin()
        messages = await fork.fitted()
        while True:
            await self._send_state()
            reply = ReplyChunks(self._provider.dialect)
            call = Call(
                messages,
                session.system,
                fork.asking.tools,
                max_tokens=session.max_tokens,
                compact_at=session.compact_at,
            )
            try:
                return await self._stream_reply(call, reply)
            except ProviderError as error:
                if reply.begun:
                    raise
                messages = await session.overflowed(error, view=messages)

    async def _send_state(self) -> None:
        """Send the state after a fold, and new warnings."""
        fork = self._fork
        if await fork.folded():
            if fork.asking.chunks == "moldable":
                self._send({"type": "compaction", "compaction": fork.state})
            else:
                self._send(data("compaction", fork.state, id=STATE))
        new = fork.warnings[self._sent_warnings :]
        self._send(*(transient("warning", {"text": text}) for text in new))
        self._sent_warnings = len(fork.warnings)

    async def _stream_reply(self, call: Call, reply: ReplyChunks) -> None:
        stream = cast("AsyncGenerator[Delta | Reply]", self._provider.stream(call))
        async with aclosing(stream) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    self.usage = piece.usage
                    self._send(*reply.end(piece))
                elif piece.kind == "wait":
                    fields = {"attempt": piece.index, "wait": piece.seconds, "why": piece.text}
                    self._send(transient("retrying", fields))
                elif piece.kind == "restart":  # readers of the SDK cannot take back text
                    raise ProviderError("the reply broke off: try again", kind="connection")
                else:
                    self._send(*reply.take(piece))


# ---- chunks, as the AI SDK (5, 6 and 7) reads them


def data(name: str, value: Any, **extra: Any) -> Chunk:
    """Return a data part: `onData` receives it, and the message keeps it unless it is transient."""
    return {"type": f"data-{name}", "data": value, **extra}


def transient(name: str, value: Any) -> Chunk:
    """Return a data part that the message does not keep."""
    return data(name, value, transient=True)


class ReplyChunks:
    """The chunks of one reply; its first piece begins a step."""

    def __init__(self, dialect: str) -> None:
        self.begun = False
        self._has_text = False  # whether it has text
        self._dialect = dialect
        self._open: tuple[str, str] | None = None  # the type and id of the open part
        self._count = 0

    def take(self, piece: Delta) -> list[Chunk]:
        """Return the chunks of a piece; tool calls are sent complete, at the end."""
        kind = _PARTS.get(piece.kind)
        if kind is None:
            return []
        chunks = self._begin()
        self._has_text = self._has_text or (kind == "text" and bool(piece.text.strip()))
        if self._open is None or self._open[0] != kind:
            chunks += self._close()
            self._count += 1
            self._open = kind, f"{kind}-{self._count}"
            chunks.append({"type": f"{kind}-start", "id": self._open[1]})
        return [*chunks, {"type": f"{kind}-delta", "id": self._open[1], "delta": piece.text}]

    def end(self, reply: Reply) -> list[Chunk]:
        """Return the chunks that end a reply: its tool calls and how it ended."""
        message: Message = get(self._dialect).decode_reply(reply.native)
        chunks = [*self._begin(), *self._close()]
        chunks += [
            {
                "type": "tool-input-available",
                "toolCallId": call.id,
                "toolName": call.name,
                "input": call.arguments,
            }
            for call in message.calls
        ]
        if not self._has_text and not message.calls:
            return [*chunks, {"type": "error", "errorText": f"the model sent an empty reply ({reply.stop})"}]
        metadata = {"usage": msgspec.to_builtins(reply.usage), "finishReason": reply.stop}
        return [*chunks, {"type": "finish-step"}, {"type": "finish", "messageMetadata": metadata}]

    def _begin(self) -> list[Chunk]:
        was_begun, self.begun = self.begun, True
        return [] if was_begun else [{"type": "start-step"}]

    def _close(self) -> list[Chunk]:
        part, self._open = self._open, None
        return [] if part is None else [{"type": f"{part[0]}-end", "id": part[1]}]
