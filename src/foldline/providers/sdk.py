"""The parts that both SDKs share: a client made at the first call, timeouts, errors, reading a reply."""

from __future__ import annotations

import asyncio
import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from typing import Any, ClassVar, Final, Protocol, TypeVar, cast

from foldline import tracing
from foldline.catalogue import ModelInfo
from foldline.core.log.codec import in_utf8
from foldline.core.log.messages import Message, Opaque, Text, Thinking
from foldline.core.measure.overflow import overflow, silent
from foldline.dialects import get as dialect_of
from foldline.errors import ProviderError
from foldline.providers.access import Access, load, unusable_certificates, unusable_proxy
from foldline.providers.base import PATIENCE, Call, Delta, Reply, Stop, traced
from foldline.providers.failures import Scrub, WebPage, from_body, from_sdk, is_page, scrub_with
from foldline.providers.options import Body, Option, Options
from foldline.tracing import Span

T = TypeVar("T")

LAST: Final = 10.0  # seconds to wait for the usage, or the end, of a stream after the reply is complete
_HIDDEN = ("reasoning", "redacted_thinking")  # kinds of parts with thinking that is not readable


class Assembler(Protocol):
    """Put the events of a stream together."""

    def take(self, event: Body) -> Iterator[Delta]:
        """Take the next event; yield its deltas."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the reply is complete; a server may keep the connection open after it."""
        ...

    @property
    def answered(self) -> bool:
        """Whether at most usage can follow."""
        ...

    def whole(self) -> Body | None:
        """Return the whole reply; None before its end."""
        ...


class SDKProvider(ABC):
    """A provider on an official SDK; the SDK, a key and a network are needed only at the first call."""

    dialect: str
    package: ClassVar[str]  # the SDK's module, and the name of the extra that installs it
    assembler: ClassVar[type[Assembler]]

    def __init__(self, name: str, model: str, access: Access, info: ModelInfo, *, client: Any = None) -> None:
        self.name = name
        self.model = model
        self.info = info
        self._access = access
        self._options = Options()
        self._connection = client  # the SDK's, or one with the same methods; None: made at the first call
        self._scrub: Scrub = scrub_with(())  # replaced by one with the key at the first call

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    # ---- one implementation for each API

    @abstractmethod
    def _client(self, sdk: Any, key: str | None, variable: str) -> Any:
        """Make the SDK's asynchronous client, without its own retries."""

    @abstractmethod
    def _request(self, call: Call) -> Body:
        """Return the fields of a request that every server accepts."""

    @abstractmethod
    def _optional(self, call: Call, *, stream: bool) -> Sequence[Option]:
        """Return the fields of a request that a server may refuse."""

    @abstractmethod
    def _create(self, client: Any, fields: Body) -> Awaitable[Any]:
        """Send the request through the SDK."""

    @abstractmethod
    def _reason(self, body: Body) -> str:
        """Return the API's word for why the reply ended."""

    @abstractmethod
    def _is_refused(self, body: Body) -> bool:
        """Return whether the model refused to reply."""

    def _stop(self, body: Body, message: Message) -> Stop:
        """Return why the reply ended."""
        if self._is_refused(body):
            return "refused"
        return cast("Stop", message.stop) if message.stop in ("end", "tools", "length") else "error"

    # ---- the provider

    async def complete(self, call: Call) -> Reply:
        """Request a whole reply; see `Provider`."""
        with _chat(self.package, self.model, call) as span, self._as_provider_errors():
            async with asyncio.timeout(call.timeout or PATIENCE):
                answer = await self._send(call, stream=False)
            reply = self._reply(_plain(answer), call)
            _record(span, reply)
            return reply

    async def stream(self, call: Call) -> AsyncIterator[Delta | Reply]:
        """Stream a reply piece by piece, the whole Reply last; see `Provider`.

        If the server does not stream, the text is one piece.
        """
        patience = call.timeout or PATIENCE
        assembler = self.assembler()
        with _chat(self.package, self.model, call, stream=True) as span, self._as_provider_errors():
            events = await _within(patience, self._send(call, stream=True))
            try:
                if not hasattr(events, "__aiter__"):
                    raise ValueError(f"not a stream: {str(events)[:200]}")
                unstreamed = await _within(patience, _unstreamed(events))
                iterator = aiter(events)
                while unstreamed is None and not assembler.ended:
                    timeout = min(patience, LAST) if assembler.answered else patience
                    event = await self._next(iterator, timeout, assembler)
                    if event is None:
                        break
                    for delta in _checked(lambda event=event: list(assembler.take(_plain(event)))):
                        yield delta
            finally:
                if hasattr(events, "close"):
                    await events.close()
            body = unstreamed or _checked(assembler.whole)
            if body is None:
                raise self._error("the stream ended before the reply did", "connection")
            reply = self._reply(body, call)
            _record(span, reply)
        if unstreamed is not None and reply.text:
            yield Delta("text", reply.text)
        yield reply

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, self._connection = self._connection, None
        if client is not None:
            await client.close()

    # ---- parts of a call

    async def _send(self, call: Call, *, stream: bool) -> Any:
        """Send the request, in another form if the server refuses one of its optional fields."""
        client = await self._connected()
        body, fixed = self._request(call), {"timeout": call.timeout or PATIENCE, "stream": stream}
        options = self._optional(call, stream=stream)
        while True:
            optional = self._options.fields(options)
            try:
                return await self._create(client, {**body, **fixed, **optional})
            except UnicodeEncodeError:  # a message contains half a surrogate pair
                body, before = cast("Body", in_utf8(body)), body
                if body == before:
                    raise
            except Exception as error:
                failure = self._translate(error)
                if failure is None or not self._options.learn(options, failure, optional):
                    raise

    async def _next(self, events: AsyncIterator[Any], seconds: float, assembler: Assembler) -> Any:
        """Return the next event; None at the end, or if the connection fails after the whole reply."""
        try:
            return await _within(seconds, anext(events, None))
        except Exception as error:
            failure = self._translate(error)
            lost = failure is not None and failure.kind in ("connection", "timeout")
            if not lost or _checked(assembler.whole) is None:
                raise
            return None

    async def _connected(self) -> Any:
        if self._connection is None:
            key, variable = self._access.find_key() or (None, "")
            if key is None and not self._access.keyless:
                raise self._error(f"no key: set {' or '.join(self._access.variables)}", "auth")
            if key and not (key.isascii() and key.isprintable()):
                raise self._error(
                    f"the key in {variable or 'api_key'} contains a character that keys cannot have", "auth"
                )
            if problem := unusable_proxy() or unusable_certificates():
                raise self._error(problem, "bad_request")
            # in a thread: importing an SDK takes a second or more and would block the event loop
            sdk = await asyncio.to_thread(load, self.package)
            if self._connection is None:
                self._scrub = scrub_with((key,) if key else ())
                self._connection = self._client(sdk, key, variable)
        return self._connection

    def _reply(self, body: Body, call: Call) -> Reply:
        error = body.get("error")
        if error and body.get("status") in (None, "failed"):
            raise from_body(body, self.name, self._scrub)
        message = dialect_of(self.dialect).decode_reply(body)
        reason = self._reason(body)
        window = self.info.window
        sizes = silent(message.usage, message.stop, window) if self.info.known else None
        empty = _is_empty(message)
        if empty and sizes is None:
            sizes = overflow(reason)
        if sizes is not None and empty:
            text = f"there was no room for a reply ({reason or 'no reason given'})"
            raise ProviderError(text, kind="overflow", status=None, overflow=sizes, provider=self.name)
        return Reply(
            native=body,
            text=message.text,
            usage=message.usage,
            stop=self._stop(body, message),
            model=message.model or self.model,
            tokens_asked=self._max_tokens(call),
            overflow=sizes,
            reason=reason,
            empty=empty,
        )

    def _compaction(self, call: Call) -> tuple[Option, ...]:
        """Return the fields that make the provider compact on its server; a server may not know them."""
        dialect = dialect_of(self.dialect)
        fields = dialect.compaction(call.compact_at) if call.compact_at is not None else {}
        if not fields:
            return ()
        headers = {"extra_headers": {"anthropic-beta": beta}} if (beta := dialect.compaction_beta) else {}
        forms: tuple[Body, ...] = ({"extra_body": fields, **headers}, {})
        return (Option("compaction", ("context_management", "compact", "anthropic-beta"), forms),)

    def _max_tokens(self, call: Call) -> int | None:
        """Return the `max_tokens` that is sent."""
        return call.max_tokens

    # ---- errors

    @contextlib.contextmanager
    def _as_provider_errors(self) -> Generator[None]:
        """Raise an SDK's errors as ProviderError, without the cause: its text may quote the key."""
        try:
            yield
        except Exception as error:
            failure = self._translate(error)
            if failure is None or failure is error:
                raise
            raise failure from None

    def _translate(self, error: Exception) -> ProviderError | None:
        return from_sdk(error, self.name, self._scrub)

    def _error(self, text: str, kind: Any) -> ProviderError:
        return ProviderError(text, kind=kind, provider=self.name)


def _is_empty(message: Message) -> bool:
    """Return whether a reply has nothing but thinking and blank text."""
    return all(
        isinstance(part, Thinking)
        or (isinstance(part, Opaque) and part.kind in _HIDDEN)
        or (isinstance(part, Text) and not part.text.strip())
        for part in message.parts
    )


async def _within(seconds: float, awaitable: Awaitable[T]) -> T:
    async with asyncio.timeout(seconds):
        return await awaitable


async def _unstreamed(events: Any) -> Body | None:
    """Return the whole reply of a server that sent JSON instead of a stream; None for a stream."""
    response = getattr(events, "response", None)
    if response is None:
        return None
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/html":
        raise WebPage
    if kind != "application/json":
        return None
    return _plain(json.loads(await response.aread()))


def _checked(read: Callable[[], T]) -> T:
    """Call an assembler; raises ValueError if a server sent events of another shape."""
    try:
        return read()
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"an event with missing fields: {error!r}") from error


def _plain(value: Any) -> Body:
    """Return an SDK object as a dict; raises ValueError for anything else, such as HTML."""
    dump = getattr(value, "to_dict", None)
    body = dump(mode="json", warnings=False) if callable(dump) else value
    if not isinstance(body, dict):
        text = str(cast("Any", body))[:200]
        if is_page(text):
            raise WebPage
        raise ValueError(f"not a JSON object: {text}")  # noqa: TRY004 - sent by a server
    return cast("Body", body)


@contextlib.contextmanager
def _chat(package: str, model: str, call: Call, *, stream: bool = False) -> Generator[Span]:
    """Open the span of a call; an exception marks it as failed.

    It follows the gen_ai conventions, and contains no messages.
    """
    span = tracing.started(
        f"chat {model}",
        values={
            tracing.OPERATION: "chat",
            tracing.PROVIDER: package,
            tracing.REQUEST_MODEL: model,
            tracing.REQUEST_MAX_TOKENS: call.max_tokens,
            tracing.REQUEST_STREAM: True if stream else None,
            tracing.MESSAGE_COUNT: len(call.messages),
            **getattr(call.messages, "traced", {}),  # of a session's view
        },
    )
    try:
        yield span
    except ProviderError as error:
        span.failed(error.kind)
        raise
    except GeneratorExit:  # the reader of a stream stopped early
        raise
    except BaseException as error:
        span.failed(type(error).__name__)
        raise
    finally:
        span.end()


def _record(span: Span, reply: Reply) -> None:
    """Record the reply in the span: the model, why it stopped, and the usage."""
    outcome = {tracing.RESPONSE_MODEL: reply.model, tracing.FINISH_REASONS: [reply.stop]}
    span.put({**outcome, **traced(reply.usage)})
