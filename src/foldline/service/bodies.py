"""Request bodies: read, bounded and decoded in one place, so that no client can block the service.

Bytes are counted as they arrive. Size alone says little: 22 kB of gzip can be 300,000 messages, and 64 MB of
`[],[],` decode to gigabytes of objects. So list items and values are counted before anything is decoded. A
large body is decoded in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec
from starlette.datastructures import FormData
from starlette.requests import ClientDisconnect, Request

from foldline.config import ServeSettings
from foldline.core.log.codec import whole_escapes
from foldline.errors import InputError
from foldline.service.problems import Refused

T = TypeVar("T")

SECONDS: Final = 120.0  # for a client to send a body
WHOLE: Final = "the body did not arrive"
DEPTH: Final = 64  # levels of nesting in a body
VALUES: Final = 100  # JSON values allowed per allowed message: a tool call has about 20
LARGE: Final = 256 * 1024  # bytes from which a body is decoded in a thread
_ESCAPE: Final = ord("\\")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements: Final = msgspec.json.Decoder(list[msgspec.Raw])


class TooLarge(Refused):
    """The body is too large, or has too many messages or values."""

    def __init__(self, detail: str) -> None:
        super().__init__(413, "the body is too large", detail)


async def read_body(request: Request, limits: ServeSettings, *, json: bool = True) -> bytes:
    """Return the body; raises TooLarge as soon as it exceeds `limits`, Refused if it arrives too slowly.

    With `json`, its messages and values are limited too.
    """
    limit = limits.max_body
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise TooLarge(f"the body has {int(declared):,} bytes; {limit:,} may be sent ([serve] max_body)")
    body = bytearray()
    async with _within_time(WHOLE):
        async for piece in request.stream():
            body += piece
            if len(body) > limit:
                raise TooLarge(f"the body has more than {limit:,} bytes ([serve] max_body)")
    raw = bytes(body)
    if json:
        await decoded(raw, lambda body_bytes: check_lists(body_bytes, limits.max_messages))
    return raw


@asynccontextmanager
async def read_form(request: Request, *, max_files: int, max_fields: int) -> AsyncGenerator[FormData]:
    """Read a form and close it after the block; raises Refused if it arrives too slowly."""
    async with _within_time(WHOLE):
        form = await request.form(max_files=max_files, max_fields=max_fields)
    try:
        yield form
    finally:
        await form.close()


async def paced(request: Request) -> AsyncGenerator[bytes]:
    """Yield a body of any size as it arrives; raises Refused if its next piece takes too long."""
    pieces = request.stream()
    while True:
        async with _within_time("its next piece did not arrive"):
            piece = await anext(pieces, None)
        if piece is None:
            return
        yield piece


@asynccontextmanager
async def _within_time(told: str) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(SECONDS):
            yield
    except TimeoutError as error:
        raise Refused(408, "the body came too slowly", f"{told} within {SECONDS:.0f} s") from error


async def decoded(raw: bytes, read: Callable[[bytes], T]) -> T:
    """Return `read(raw)`, called in a thread for a large body."""
    return read(raw) if len(raw) < LARGE else await asyncio.to_thread(read, raw)


def check_lists(raw: bytes, limit: int) -> None:
    """Raise TooLarge if a list of a body has more than `limit` messages, or the body too many values.

    Only a list at the top, or in a field at the top, has messages. Invalid JSON passes: decoding it fails.
    """
    first = raw[:64].lstrip()[:1]
    if first not in (b"[", b"{") or raw.count(b",") < limit:
        return
    if raw.count(b",") > VALUES * limit and _values_exceed(raw, VALUES * limit):
        raise TooLarge(f"the body has more than {VALUES * limit:,} values; {_limit_text(limit)}")
    try:
        fields = [raw] if first == b"[" else map(bytes, _fields.decode(raw).values())
        lists = [_elements.decode(field) for field in fields if field[:64].lstrip()[:1] == b"["]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if (count := max(map(len, lists), default=0)) > limit:
        raise too_many(limit, f"a list of the body has {count:,} messages")


def too_many(limit: int, problem: str) -> TooLarge:
    """Return the error for too many messages; `problem` says what was sent."""
    return TooLarge(f"{problem}; {_limit_text(limit)}")


def _limit_text(limit: int) -> str:
    return f"{limit:,} messages may be sent ([serve] max_messages)"


def decoded_json(raw: bytes, kind: Any) -> Any:
    """Decode a JSON body as a type; raises InputError with the place of the problem."""
    try:
        value = msgspec.json.decode(whole_escapes(raw) or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise InputError(f"the body is not valid here: {error}") from error
    except RecursionError as error:
        raise InputError(f"the body is nested too deep: {DEPTH} levels are read") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"the body is not JSON: {error}") from error
    if too_deep(raw):
        raise InputError(f"the body is nested too deep: {DEPTH} levels are read")
    return value


def too_deep(raw: bytes, most: int = DEPTH) -> bool:
    """Return whether valid JSON is nested deeper than `most` levels."""
    if raw.count(b"[") + raw.count(b"{") <= most:
        return False
    left = b"".join(piece.translate(None, _NO_BRACKETS) for piece in _between_texts(raw))
    for _ in range(most):
        if not left:
            return False
        left = left.replace(b"[]", b"").replace(b"{}", b"")
    return bool(left)


def _values_exceed(raw: bytes, limit: int) -> bool:
    """Return whether JSON has more than `limit` values, reading only as far as needed."""
    count = 0
    for piece in _between_texts(raw):
        count += piece.count(b",")
        if count > limit:
            return True
    return False


def _between_texts(raw: bytes) -> Iterator[bytes]:
    """Yield the pieces of JSON between its strings; one search of the whole body would hold the GIL."""
    start = 0
    while (opening := raw.find(b'"', start)) >= 0:
        yield raw[start:opening]
        start = opening + 1
        while (end := raw.find(b'"', start)) >= 0:
            start = end + 1
            escapes = end
            while raw[escapes - 1] == _ESCAPE and escapes - 1 > opening:
                escapes -= 1
            if (end - escapes) % 2 == 0:
                break
        else:
            return
    yield raw[start:]


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do long work, and cancel it if the client disconnects: nobody would get the result."""
    task, disconnect = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return await task
    finally:
        disconnect.cancel()
        task.cancel()
        await asyncio.wait({task, disconnect})


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
