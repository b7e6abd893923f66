"""One request through the gateway: stored, folded if needed, sent, and its reply stored."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
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
from foldline.service.gateway.upstream import Headers, returned_headers
from foldline.service.metrics import Metrics
from foldline.service.open_sessions import OpenSessions
from foldline.session.view import ContextMessages

log = logging.getLogger("foldline")

MAYBE_OVERFLOW: Final = frozenset({400, 413, 422, 500})  # statuses with which providers report one
READ_SECONDS: Final = 600.0  # without reading by the client of a stream: an agent may be suspended

Send = Callable[[bytes], Awaitable[httpx2.Response]]


class Relayed(msgspec.Struct):
    """The response for the client: status, headers, and the body, whole or streamed."""

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes]


class Exchange:
    """One request of one conversation; `cleanup` is closed after its reply is sent."""

    def __init__(
        self, conversation: AgentSession, request: AgentRequest, metrics: Metrics, cleanup: AsyncExitStack
    ) -> None:
        self._cleanup = cleanup
        self._conversation = conversation
        self._model = conversation.model  # of this request: a later one may have another
        self._request = request
        self._metrics = metrics
        self._view: ContextMessages | None = None
        self._newest_entry: str | None = None
        self._folded = False
        self._receipts: list[Receipt] = []
        self._sent = 0.0  # when the request was sent to the model

    async def prepare(self, user: str) -> bytes:
        """Store new messages and the user, fold, and return the body to send."""
        conversation, started = self._conversation, time.perf_counter()
        async with conversation.lock:
            conversation.begun_by = self if conversation.is_empty else None
            if not await conversation.follow(self._request):
                return self._request.raw
            await conversation.set_user(user)
            self._newest_entry = conversation.tip
            view = await conversation.context()
            if not await conversation.is_at(self._newest_entry):  # the view is another request's by now
                return self._request.raw
            self._view = view
            body = self._body(view)
        self._metrics.added(time.perf_counter() - started)
        return body

    def _body(self, view: ContextMessages) -> bytes:
        messages = self._conversation.messages_to_send(self._request, view)
        self._folded = messages is not None
        request = self._request if messages is None else self._request.changed(messages=messages)
        limit, requested = self._conversation.session.max_tokens, request.max_tokens
        if limit is None or (requested is not None and requested <= limit):
            return request.raw
        return request.changed(max_tokens=limit).raw

    async def run(self, body: bytes, send: Send, sessions: OpenSessions) -> Relayed:
        """Send the request, once more if it did not fit; if it fails, delete the session that it began."""
        failed = True
        try:
            relayed, error = await self._send_once(body, send)
            if error is not None and (retry_body := await self._fold_overflow(error, relayed)) is not None:
                relayed, error = await self._send_once(retry_body, send)
            failed = relayed.status >= 400 or error is not None
            return relayed
        finally:
            if failed:
                await self._delete_begun(sessions)

    async def _delete_begun(self, sessions: OpenSessions) -> None:
        """Delete the session that this request began, unless another one, of any worker, continued it."""
        session = self._conversation.session
        async with self._conversation.lock:
            if self._conversation.begun_by is not self:
                return
            try:
                if await session.store.leaf(session.id) == session.leaf:
                    await sessions.delete(session.id)
            except FoldlineError as error:
                log.warning("session %s: deleting it after its first request failed: %s", session.id, error)

    async def _send_once(self, body: bytes, send: Send) -> tuple[Relayed, Any]:
        """Return the response, and its error if that may be an overflow."""
        self._sent = time.perf_counter()
        response = await send(body)
        self._cleanup.push_async_callback(response.aclose)
        headers = returned_headers(response)
        encoding = response.headers.get("content-encoding", "").strip().lower()
        kind = response.headers.get("content-type", "")
        streamed = kind.startswith("text/event-stream") or (self._request.streamed and "json" not in kind)
        reader = ReplyReader(self._request.endpoint, streamed=streamed, coding=encoding)
        if not streamed or response.status_code >= 400:
            pieces = [piece async for piece in response.aiter_raw()]
            await response.aclose()
            for piece in pieces:
                await reader.feed(piece)
            error = None
            if response.status_code < 400:
                await self._store(reader)
            elif response.status_code in MAYBE_OVERFLOW:
                error = reader.plain() or f"{response.status_code} status code (no body)"
            return Relayed(response.status_code, self._fold_headers(headers), b"".join(pieces)), error
        return await self._streamed(response, headers, reader)

    async def _streamed(
        self, response: httpx2.Response, headers: Headers, reader: ReplyReader
    ) -> tuple[Relayed, Any]:
        """Hold back the beginning of a stream until the reply or an error begins."""
        rest = response.aiter_raw()
        head: list[bytes] = []
        async for piece in rest:
            head.append(piece)
            await reader.feed(piece)
            if reader.begun:
                break
        error = reader.error
        if error is not None:
            head += [piece async for piece in rest]
            await response.aclose()
            return Relayed(response.status_code, self._fold_headers(headers), b"".join(head)), error
        pieces = self._pass_on(head, rest, reader)
        return Relayed(response.status_code, self._fold_headers(headers), pieces), None

    async def _pass_on(
        self, head: list[bytes], rest: AsyncIterator[bytes], reader: ReplyReader
    ) -> AsyncGenerator[bytes]:
        """Yield the stream; the reply is stored before its last bytes are sent."""
        stored = False
        async for piece in _read_pieces(head, rest, reader):
            if reader.ended and not stored:
                stored = True
                await self._store(reader)
            yield piece
        if not stored:
            await self._store(reader)
        if self._folded and self._request.endpoint.comments and reader.as_events:
            yield b": foldline " + encode_utf8(self._fold_fields()) + b"\n\n"

    async def _store(self, reader: ReplyReader) -> None:
        """Store the reply if it is complete; if that fails, it is sent all the same."""
        reply = reader.whole()
        if reply is None:
            return
        try:
            message = decode_reply(reply, self._request.endpoint.dialect)
            self._report_usage(message.usage)
            if self._newest_entry is not None:
                async with self._conversation.lock:
                    await self._conversation.store_reply(message, self._newest_entry)
        except FoldlineError as error:
            log.warning("session %s: a reply was not stored: %s", self._conversation.session.id, error)
        except Exception:  # a bug here
            log.exception("session %s: a reply was not stored", self._conversation.session.id)

    def _report_usage(self, usage: Usage | None) -> None:
        """Count the reply, and add a span for the call of the model to the trace of the request."""
        price = self._model.info.price if self._model is not None else None
        vendor, model = self._request.endpoint.vendor, self._request.model
        usd = cost(usage, price) if usage is not None and price is not None else None
        seconds = time.perf_counter() - self._sent
        self._metrics.replied(self._request.full_model, usage, usd, seconds)
        values = {
            tracing.OPERATION: "chat",
            tracing.PROVIDER: vendor,
            tracing.REQUEST_MODEL: model,
            tracing.REQUEST_STREAM: self._request.streamed or None,
            **(self._view.traced if self._view is not None else {}),
            **traced(usage),
        }
        tracing.started(f"chat {model}", values=values, ago=seconds).end()

    async def _fold_overflow(self, error_body: Any, relayed: Relayed) -> bytes | None:
        """Return the request folded after an overflow; None if it was none or folding failed."""
        if self._view is None:
            return None
        decoded = error_body
        if isinstance(error_body, bytes | str):
            try:
                decoded = msgspec.json.decode(error_body)
            except (msgspec.DecodeError, UnicodeDecodeError):
                decoded = error_body if isinstance(error_body, str) else error_body.decode("utf-8", "replace")
        status = relayed.status if relayed.status >= 400 else None
        error = from_body(decoded, self._request.endpoint.vendor, scrub_with(()), status=status)
        if error.kind != "overflow" and not refuses_roles(str(error)):
            return None
        session = self._conversation.session
        try:
            async with self._conversation.lock:
                if not await self._conversation.is_at(self._newest_entry):
                    return None
                view, max_tokens = self._view, self._request.max_tokens
                self._view = await session.overflowed(error, view=view, max_tokens=max_tokens)
                still_there = await self._conversation.is_at(self._newest_entry)
                return self._body(self._view) if still_there else None
        except FoldlineError as failed:
            log.warning("session %s: the request is too large, and folding failed: %s", session.id, failed)
            return None

    def _fold_headers(self, headers: Headers) -> Headers:
        """Return the headers, with those about folds if there were any."""
        self._receipts += self._conversation.take_unreported()  # not before: there may be no response
        if not self._folded and not self._receipts:
            return headers
        figures = "; ".join(f"{name}={value}" for name, value in self._fold_fields().items())
        return [*headers, ("foldline-session", self._conversation.session.id), ("foldline-view", figures)]

    def _fold_fields(self) -> dict[str, Any]:
        session = self._conversation.session
        fields: dict[str, Any] = {"session": session.id, "tokens": session.view_tokens}
        if self._receipts:
            newest = self._receipts[-1]
            fields["reason"] = newest.reason
            fields |= {"before": newest.tokens_before, "after": newest.tokens_after}
        return fields


async def _read_pieces(
    head: list[bytes], rest: AsyncIterator[bytes], reader: ReplyReader
) -> AsyncGenerator[bytes]:
    for piece in head:
        yield piece
    async for piece in rest:
        await reader.feed(piece)
        yield piece


# ---- responses


def relay_unchanged(response: httpx2.Response, cleanup: AsyncExitStack) -> Relayed:
    """Return an upstream's response unchanged; `cleanup` closes it."""
    cleanup.push_async_callback(response.aclose)
    return Relayed(response.status_code, returned_headers(response), response.aiter_raw())


class _ClientStalled(Exception):
    """A client does not read its response."""


class _ClosingStream(StreamingResponse):
    """A streamed response that always closes its upstream, even if the client left before it began."""

    def __init__(self, status: int, pieces: AsyncGenerator[bytes], cleanup: AsyncExitStack) -> None:
        super().__init__(pieces, status_code=status)
        cleanup.push_async_callback(pieces.aclose)
        self._cleanup = cleanup

    async def __call__(self, scope: Scope, receive: Receive, send: ASGISend) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(READ_SECONDS):
                    await send(message)
            except TimeoutError as error:
                raise _ClientStalled(f"the client has read nothing for {READ_SECONDS:.0f} s") from error

        try:
            await super().__call__(scope, receive, send_in_time)
        except (httpx2.HTTPError, _ClientStalled) as error:  # the incomplete stream is closed
            log.warning("a response broke off: %s: %.200r", type(error).__name__, str(error))
        finally:
            await self._cleanup.aclose()


async def to_response(relayed: Relayed, cleanup: AsyncExitStack) -> Response:
    """Return a Starlette response; `cleanup` is closed after it is sent."""
    body = relayed.body
    if isinstance(body, bytes):
        await cleanup.aclose()
        reply: Response = Response(body, relayed.status)
    else:
        reply = _ClosingStream(relayed.status, body, cleanup)
    reply.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in relayed.headers]
    return reply
