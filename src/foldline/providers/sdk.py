"""What both SDKs share: a client made at the first call, timeouts, closing, errors, and reading a reply."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import json
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from typing import Any, ClassVar, Final, Protocol, TypeVar, cast

import msgspec

from foldline import tracing
from foldline.catalogue import ModelInfo
from foldline.core.log.codec import in_utf8
from foldline.core.log.messages import Message, Opaque, Text, Thinking
from foldline.core.measure.overflow import overflow, silent
from foldline.dialects import get as dialect_of
from foldline.errors import InputError, ProviderError
from foldline.providers.base import PATIENCE, Call, Delta, Reply, Stop, traced
from foldline.providers.failures import (
    Scrub,
    WebPage,
    from_body,
    from_sdk,
    is_page,
    scrub_with,
    unusable_proxy,
)
from foldline.providers.options import Body, Option, Options
from foldline.tracing import Span

T = TypeVar("T")

LAST: Final = 10.0  # seconds for the usage, or the end, of a stream whose reply has come
NO_KEY = "none"  # the SDKs require a key; servers without keys ignore it
_HIDDEN = ("reasoning", "redacted_thinking")  # kinds of parts in which a model thinks unseen


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider is and its key, which is read from `variables` at the first call.

    `key` is one given by the caller; no repr shows it. `keyless`: the server may not need one.
    """

    base_url: str | None = None
    variables: tuple[str, ...] = ()
    key: str | None = None
    keyless: bool = False

    def __repr__(self) -> str:
        """Show everything but the key."""
        return f"Access(base_url={self.base_url!r}, variables={self.variables!r}, keyless={self.keyless!r})"

    def find_key(self) -> tuple[str, str] | None:
        """Return the key and the variable that holds it ("": the caller gave it); None if there is no key."""
        held = [(self.key or "", ""), *((os.environ.get(name, ""), name) for name in self.variables)]
        return next(((key.strip(), name) for key, name in held if key.strip()), None)


def withheld(sdk: Any, variable: str, key: str) -> Body:
    """Return headers that undo those which an SDK adds from a variable: they are for its own server."""
    names = [line.partition(":")[0].strip() for line in os.environ.get(variable, "").split("\n")]
    own = {"authorization": f"Bearer {key}"}
    return {name: own.get(name.lower()) or sdk.Omit() for name in names if name}


class Assembler(Protocol):
    """Put the events of a stream together."""

    def take(self, event: Body) -> Iterator[Delta]:
        """Take the next event; yield its deltas."""
        ...

    @property
    def ended(self) -> bool:
        """Whether no event of the reply can follow; a server may leave the connection open."""
        ...

    @property
    def said(self) -> bool:
        """Whether at most usage can follow."""
        ...

    def whole(self) -> Body | None:
        """Return the whole reply; None until its end has come."""
        ...


class SDKProvider(ABC):
    """A provider on an official SDK; the SDK, a key and a network are needed only at the first call."""

    dialect: str
    package: ClassVar[str]  # the SDK's module, and the name of the extra that installs it

    def __init__(self, name: str, model: str, access: Access, info: ModelInfo, *, client: Any = None) -> None:
        self.name = name
        self.model = model
        self.info = info
        self._access = access
        self._options = Options()
        self._made = client  # the SDK's, or one with the same methods; None: made at the first call
        self._scrub: Scrub = scrub_with(())  # once connected, it knows the key

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    # ---- what differs

    @abstractmethod
    def _client(self, sdk: Any, key: str | None, variable: str) -> Any:
        """Make the SDK's asynchronous client, without its own retries."""

    @abstractmethod
    def _request(self, call: Call) -> Body:
        """Return the request fields that every server accepts."""

    @abstractmethod
    def _wanted(self, call: Call, *, stream: bool) -> Sequence[Option]:
        """Return the fields that a server may refuse."""

    @abstractmethod
    def _create(self, client: Any, fields: Body) -> Awaitable[Any]:
        """Send the request by the SDK."""

    @abstractmethod
    def _assembler(self) -> Assembler:
        """Make the assembler of a stream."""

    @abstractmethod
    def _stopped(self, body: Body, message: Message) -> Stop:
        """Return why the reply ended."""

    @abstractmethod
    def _reason(self, body: Body) -> str:
        """Return the API's own word for why the reply ended."""

    # ---- the provider

    async def complete(self, call: Call) -> Reply:
        """Ask for a whole reply; see `Provider`."""
        with _chat(self.package, self.model, call) as opened, self._reported():
            async with asyncio.timeout(call.timeout or PATIENCE):
                answer = await self._send(call, stream=False)
            reply = self._reply(_plain(answer), call)
            _answered(opened, reply)
            return reply

    async def stream(self, call: Call) -> AsyncIterator[Delta | Reply]:
        """Stream a reply piece by piece, the whole Reply last; see `Provider`.

        A server that does not stream answers all at once: its text is one piece.
        """
        patience = call.timeout or PATIENCE
        assembler = self._assembler()
        with _chat(self.package, self.model, call, stream=True) as opened, self._reported():
            events = await _within(patience, self._send(call, stream=True))
            try:
                if not hasattr(events, "__aiter__"):
                    raise ValueError(f"not a stream: {str(events)[:200]}")
                unstreamed = await _within(patience, _unstreamed(events))
                following = aiter(events)
                while unstreamed is None and not assembler.ended:
                    left = min(patience, LAST) if assembler.said else patience
                    event = await self._next(following, left, assembler)
                    if event is None:
                        break
                    for delta in _guarded(lambda event=event: list(assembler.take(_plain(event)))):
                        yield delta
            finally:
                if hasattr(events, "close"):
                    await events.close()
            body = unstreamed or _guarded(assembler.whole)
            if body is None:
                raise self._failed("the stream ended before the reply did", "connection")
            reply = self._reply(body, call)
            _answered(opened, reply)
        if unstreamed is not None and reply.text:
            yield Delta("text", reply.text)
        yield reply

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        made, self._made = self._made, None
        if made is not None:
            await made.close()

    # ---- parts of a call

    async def _send(self, call: Call, *, stream: bool) -> Any:
        """Send the request, in another form if the server refuses one of its optional fields."""
        client = await self._connected()
        body, more = self._request(call), {"timeout": call.timeout or PATIENCE, "stream": stream}
        wanted = self._wanted(call, stream=stream)
        while True:
            try:
                return await self._create(client, {**body, **more, **self._options.fields(wanted)})
            except UnicodeEncodeError:  # a message holds half a character, which no request can carry
                body, cut = cast("Body", in_utf8(body)), body
                if body == cut:
                    raise
            except Exception as error:
                failure = self._translated(error)
                if failure is None or not self._options.learn(wanted, failure):
                    raise

    async def _next(self, events: AsyncIterator[Any], patience: float, assembler: Assembler) -> Any:
        """Return the next event; None at the end, or where the connection fails after the whole reply."""
        try:
            return await _within(patience, anext(events, None))
        except Exception as error:
            failure = self._translated(error)
            lost = failure is not None and failure.kind in ("connection", "timeout")
            if not lost or _guarded(assembler.whole) is None:
                raise
            return None

    async def _connected(self) -> Any:
        if self._made is None:
            found = self._access.find_key()
            if found is None and not self._access.keyless:
                raise self._failed(f"no key: set {' or '.join(self._access.variables)}", "auth")
            if found and not (found[0].isascii() and found[0].isprintable()):
                raise self._failed(
                    f"the key in {found[1] or 'api_key'} holds a character that no key has", "auth"
                )
            if variable := unusable_proxy():
                raise self._failed(
                    f"the proxy in {variable} cannot be used: write http://host:port, or unset it; "
                    "socks5://host:port needs `pip install socksio`",
                    "bad_request",
                )
            # in a thread: importing an SDK takes a second or more and would block the event loop
            sdk = await asyncio.to_thread(load, self.package)
            key, variable = found or (None, "")
            if self._made is None:
                self._scrub = scrub_with((key,) if key else ())
                self._made = self._client(sdk, key, variable)
        return self._made

    def _reply(self, body: Body, call: Call) -> Reply:
        error = body.get("error")
        if error and body.get("status") in (None, "failed"):
            raise from_body(body, self.name, self._scrub)
        message = dialect_of(self.dialect).decode_reply(body)
        reason = self._reason(body)
        window = self.info.window
        over = silent(message.usage, message.stop, window) if self.info.known else None
        bare = _is_bare(message)
        if bare and over is None:
            over = overflow(reason)
        if over is not None and bare:
            text = f"there was no room for a reply ({reason or 'no reason given'})"
            raise ProviderError(text, kind="overflow", status=None, overflow=over, provider=self.name)
        return Reply(
            native=body,
            text=message.text,
            usage=message.usage,
            stop=self._stopped(body, message),
            model=message.model or self.model,
            tokens_asked=self._asked(call),
            overflow=over,
            reason=reason,
            empty=bare,
        )

    def _compaction(self, call: Call) -> tuple[Option, ...]:
        """Return the fields by which the provider compacts on its server; a server may not know them."""
        dialect = dialect_of(self.dialect)
        fields = dialect.compaction(call.compact_at) if call.compact_at is not None else {}
        if not fields:
            return ()
        headers = {"extra_headers": {"anthropic-beta": beta}} if (beta := dialect.compaction_beta) else {}
        forms: tuple[Body, ...] = ({"extra_body": fields, **headers}, {})
        return (Option("compaction", ("context_management", "compact", "anthropic-beta"), forms),)

    def _asked(self, call: Call) -> int | None:
        """Return the `max_tokens` that was sent."""
        return call.max_tokens

    # ---- errors

    @contextlib.contextmanager
    def _reported(self) -> Generator[None]:
        """Raise an SDK's error as a ProviderError without its cause: the SDK's text may quote the key."""
        try:
            yield
        except Exception as error:
            failure = self._translated(error)
            if failure is None or failure is error:
                raise
            raise failure from None

    def _translated(self, error: Exception) -> ProviderError | None:
        return from_sdk(error, self.name, self._scrub)

    def _failed(self, text: str, kind: Any) -> ProviderError:
        return ProviderError(text, kind=kind, provider=self.name)


def load(package: str) -> Any:
    """Import an SDK; raises InputError that says what to install."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(f"{package} is not installed: pip install 'foldline[{package}]'") from error


def installed(package: str) -> bool:
    """Return whether an SDK can be imported, without importing it."""
    return importlib.util.find_spec(package) is not None


def _is_bare(message: Message) -> bool:
    """Return whether a reply has no text, call or other content besides thinking, readable or not."""
    return all(
        isinstance(part, Thinking)
        or (isinstance(part, Opaque) and part.kind in _HIDDEN)
        or (isinstance(part, Text) and not part.text.strip())
        for part in message.parts
    )


async def _within(seconds: float, waiting: Awaitable[T]) -> T:
    async with asyncio.timeout(seconds):
        return await waiting


async def _unstreamed(events: Any) -> Body | None:
    """Return the whole reply of a server that sent plain JSON where a stream was asked for; None for one."""
    response = getattr(events, "response", None)
    if response is None:
        return None
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/html":
        raise WebPage
    if kind != "application/json":
        return None
    return _plain(json.loads(await response.aread()))


def _guarded(read: Callable[[], T]) -> T:
    """Return what an assembler reads; ValueError where a server sent events of another shape."""
    try:
        return read()
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"an event with missing fields: {error!r}") from error


def _plain(value: Any) -> Body:
    """Return an SDK object as the dict it was made from; ValueError for anything else, such as HTML."""
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
    """Open the span of a call, without children; an exception marks it as failed, by its kind.

    It is by the gen_ai conventions, and holds nothing of what was said.
    """
    opened = tracing.started(
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
        yield opened
    except ProviderError as error:
        opened.failed(error.kind)
        raise
    except GeneratorExit:  # the reader of a stream stopped early
        raise
    except BaseException as error:
        opened.failed(type(error).__name__)
        raise
    finally:
        opened.end()


def _answered(opened: Span, reply: Reply) -> None:
    """Record the reply in the span: the model, why it stopped, and the usage."""
    opened.put(
        {
            tracing.RESPONSE_MODEL: reply.model,
            tracing.FINISH_REASONS: [reply.stop],
            **traced(reply.usage),
        }
    )
