"""One request through the gateway: stored, folded where it must be, sent on, and its reply stored."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import httpx2
import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope
from starlette.types import Send as ASGISend

from foldline import tracing
from foldline.core.decide.price import cost
from foldline.core.log.codec import encode_utf8
from foldline.core.log.entries import Receipt
from foldline.core.log.messages import Usage
from foldline.core.measure.overflow import refuses_roles
from foldline.dialects.base import decode_reply
from foldline.errors import FoldlineError
from foldline.providers.base import traced
from foldline.providers.failures import from_body, scrub_with
from foldline.service.gateway.agent_session import AgentSession
from foldline.service.gateway.request import AgentRequest
from foldline.service.gateway.stream import ReplyReader
from foldline.service.gateway.upstream import Headers, passed_back
from foldline.service.metrics import Metrics
from foldline.service.open_sessions import OpenSessions
from foldline.session.view import ContextMessages

log = logging.getLogger("foldline")

MAYBE_OVERFLOW: Final = frozenset({400, 413, 422, 500})  # statuses under which providers report one
READ_SECONDS: Final = 600.0  # that a client may read nothing of a stream: an agent may be stopped for a while
NO_BODY: Final = "{status} status code (no body)"

Send = Callable[[bytes], Awaitable[httpx2.Response]]


class Relayed(msgspec.Struct):
    """What goes back to the client: status, headers, and the body, whole or as it streams in."""

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes]


class Exchange:
    """One request of one conversation; `ends` is closed when its reply has gone back."""

    def __init__(
        self,
        talk: AgentSession,
        asked: AgentRequest,
        sessions: OpenSessions,
        metrics: Metrics,
        ends: AsyncExitStack,
    ) -> None:
        self._sessions = sessions
        self._ends = ends
        self._talk = talk
        self._asked = asked
        self._metrics = metrics
        self._view: ContextMessages | None = None
        self._after: str | None = None
        self._folded = False
        self._receipts: list[Receipt] = []
        self._sent = 0.0  # when the request went to the model

    async def prepare(self, user: str) -> bytes:
        """Store what is new in the request, and whose it is, fold, and return the bytes to send."""
        talk, started = self._talk, time.perf_counter()
        async with talk.lock:
            talk.begun_by = self if talk.is_empty else None
            if not await talk.follow(self._asked):
                return self._asked.raw
            await talk.belongs_to(user)
            self._after = talk.tip
            self._view = await talk.context()
            body = self._body(self._view)
        self._metrics.added(time.perf_counter() - started)
        return body

    def _body(self, view: ContextMessages) -> bytes:
        messages = self._talk.folded(self._asked, view)
        self._folded = messages is not None
        self._receipts += self._talk.take_untold()
        body = self._asked if messages is None else self._asked.changed(messages=messages)
        most, wanted = self._talk.session.max_tokens, body.max_tokens
        if most is None or (wanted is not None and wanted <= most):
            return body.raw
        return body.changed(max_tokens=most).raw

    async def run(self, body: bytes, send: Send) -> Relayed:
        """Send the request, once more if it did not fit, and return the response for the client."""
        failed = True
        try:
            passage, refused = await self._try(body, send)
            if refused is not None and (again := await self._mend(refused, passage)) is not None:
                passage, refused = await self._try(again, send)
            failed = passage.status >= 400 or refused is not None
            return passage
        finally:
            if failed:
                await self._delete_begun()

    async def _delete_begun(self) -> None:
        """Delete the session if this request began it and no other request has used it."""
        async with self._talk.lock:
            if self._talk.begun_by is not self:
                return
            name = self._talk.session.id
            try:
                await self._sessions.delete(name)
            except FoldlineError as error:
                log.warning("session %s: deleting it after its first request failed: %s", name, error)

    async def _try(self, body: bytes, send: Send) -> tuple[Relayed, Any]:
        """Return the passage, and what was refused where that may be an overflow."""
        self._sent = time.perf_counter()
        response = await send(body)
        self._ends.push_async_callback(response.aclose)
        headers = passed_back(response)
        coding = response.headers.get("content-encoding", "").strip().lower()
        kind = response.headers.get("content-type", "")
        streamed = kind.startswith("text/event-stream") or (self._asked.streamed and "json" not in kind)
        reader = ReplyReader(self._asked.endpoint, streamed=streamed, coding=coding)
        if not streamed or response.status_code >= 400:
            pieces = [piece async for piece in response.aiter_raw()]
            await response.aclose()
            for piece in pieces:
                await reader.feed(piece)
            refused = None
            if response.status_code < 400:
                await self._store(reader)
            elif response.status_code in MAYBE_OVERFLOW:
                refused = reader.plain() or NO_BODY.format(status=response.status_code)
            return Relayed(response.status_code, self._told(headers), b"".join(pieces)), refused
        return await self._streamed(response, headers, reader)

    async def _streamed(
        self, response: httpx2.Response, headers: Headers, reader: ReplyReader
    ) -> tuple[Relayed, Any]:
        """Hold the beginning of a stream back until the model answers: an error may come instead."""
        rest = response.aiter_raw()
        held: list[bytes] = []
        async for piece in rest:
            held.append(piece)
            await reader.feed(piece)
            if reader.begun:
                break
        refused = reader.error
        if refused is not None:
            held += [piece async for piece in rest]
            await response.aclose()
            return Relayed(response.status_code, headers, b"".join(held)), refused
        pieces = self._pass_on(held, rest, reader)
        return Relayed(response.status_code, self._told(headers), pieces), None

    async def _pass_on(
        self, held: list[bytes], rest: AsyncIterator[bytes], reader: ReplyReader
    ) -> AsyncGenerator[bytes]:
        """Yield the stream; the reply is stored before the bytes that end it go to the client."""
        stored = False
        async for piece in _following(held, rest, reader):
            if reader.ended and not stored:
                stored = True
                await self._store(reader)
            yield piece
        if not stored:
            await self._store(reader)
        if self._folded and self._asked.endpoint.comments:
            yield b": foldline " + encode_utf8(dict(self._figures())) + b"\n\n"

    async def _store(self, reader: ReplyReader) -> None:
        """Store the reply, if it came whole; that it cannot be stored is no reason to withhold it."""
        reply = reader.whole()
        if reply is None:
            return
        try:
            message = decode_reply(reply, self._asked.endpoint.dialect)
            self._count(message.usage)
            if self._after is not None:
                async with self._talk.lock:
                    await self._talk.answered(message, self._after)
        except FoldlineError as error:
            log.warning("session %s: a reply was not stored: %s", self._talk.session.id, error)
        except Exception:  # a defect of ours
            log.exception("session %s: a reply was not stored", self._talk.session.id)

    def _count(self, usage: Usage | None) -> None:
        info = self._talk.session.setup.info
        model = f"{self._asked.endpoint.vendor}:{self._asked.model}"
        usd = cost(usage, info.price) if usage is not None and info.price is not None else None
        seconds = time.perf_counter() - self._sent
        self._metrics.replied(model, usage, usd, seconds)
        self._trace(usage, seconds)

    def _trace(self, usage: Usage | None, seconds: float) -> None:
        """Put the reply into a trace as the span of a call, inside that of the request."""
        values = {
            tracing.OPERATION: "chat",
            tracing.PROVIDER: self._asked.endpoint.vendor,
            tracing.REQUEST_MODEL: self._asked.model,
            tracing.REQUEST_STREAM: self._asked.streamed or None,
            **(self._view.traced if self._view is not None else {}),
            **traced(usage),
        }
        tracing.started(f"chat {self._asked.model}", values=values, ago=seconds).end()

    async def _mend(self, refused: Any, passage: Relayed) -> bytes | None:
        """Return the request folded after an overflow; None where it was none, or nothing can be done."""
        if self._view is None:
            return None
        body = refused
        if isinstance(refused, bytes | str):
            try:
                body = msgspec.json.decode(refused)
            except (msgspec.DecodeError, UnicodeDecodeError):
                body = refused if isinstance(refused, str) else refused.decode("utf-8", "replace")
        status = passage.status if passage.status >= 400 else None
        error = from_body(body, self._asked.endpoint.vendor, scrub_with(()), status=status)
        if error.kind != "overflow" and not refuses_roles(str(error)):
            return None
        session = self._talk.session
        try:
            async with self._talk.lock:
                view, most = self._view, self._asked.max_tokens
                self._view = await session.overflowed(error, view=view, max_tokens=most)
                return self._body(self._view)
        except FoldlineError as failed:
            log.warning("session %s: an overflow could not be mended: %s", session.id, failed)
            return None

    def _told(self, headers: Headers) -> Headers:
        """Return the headers with what was folded; untouched where nothing is."""
        if not self._folded and not self._receipts:
            return headers
        figures = "; ".join(f"{name}={value}" for name, value in self._figures().items())
        return [*headers, ("foldline-session", self._talk.session.id), ("foldline-view", figures)]

    def _figures(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {"session": self._talk.session.id, "tokens": self._talk.session.view_tokens}
        for receipt in self._receipts:
            found |= {
                "reason": receipt.reason,
                "before": receipt.tokens_before,
                "after": receipt.tokens_after,
            }
        return found


async def _following(
    held: list[bytes], rest: AsyncIterator[bytes], reader: ReplyReader
) -> AsyncGenerator[bytes]:
    for piece in held:
        yield piece
    async for piece in rest:
        await reader.feed(piece)
        yield piece


# ---- what goes back


def untouched(response: httpx2.Response, ends: AsyncExitStack) -> Relayed:
    """Return what an upstream answers as it came; `ends` closes it."""
    ends.push_async_callback(response.aclose)

    async def pieces() -> AsyncGenerator[bytes]:
        async for piece in response.aiter_raw():
            yield piece

    return Relayed(response.status_code, passed_back(response), pieces())


class _Unread(Exception):
    """A client reads nothing of what it is sent."""


class _Streamed(StreamingResponse):
    """A stream on its way back; its connection is closed also where the client has left before it began."""

    def __init__(self, status: int, pieces: AsyncGenerator[bytes], ends: AsyncExitStack) -> None:
        super().__init__(pieces, status_code=status)
        ends.push_async_callback(pieces.aclose)
        self._ends = ends

    async def __call__(self, scope: Scope, receive: Receive, send: ASGISend) -> None:
        async def sent(message: Message) -> None:
            try:
                async with asyncio.timeout(READ_SECONDS):
                    await send(message)
            except TimeoutError as error:
                raise _Unread(f"the client has read nothing for {READ_SECONDS:.0f} s") from error

        try:
            await super().__call__(scope, receive, sent)
        except (httpx2.HTTPError, _Unread) as error:  # the answer has no end, and the connection is closed
            log.warning("an answer broke off: %s: %.200r", type(error).__name__, str(error))
        finally:
            await self._ends.aclose()


async def answer_of(relayed: Relayed, ends: AsyncExitStack) -> Response:
    """Return what goes back; `ends` is closed when it has gone."""
    body = relayed.body
    if isinstance(body, bytes):
        await ends.aclose()
        made: Response = Response(body, relayed.status)
    else:
        made = _Streamed(relayed.status, body, ends)
    made.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in relayed.headers]
    return made
