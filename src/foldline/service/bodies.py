"""The body of a request: read, bounded and decoded in one place, so that no client holds the service up.

Bytes are bounded while they come in. The size of a body says little of the work in it: 22 kB of gzip can be
300,000 messages, and 64 MB of `[],[],` are gigabytes of objects. So the lists of a body are counted before
anything is made of them, and its values too. What is decoded after that takes a moment, and no longer; a
large body is decoded in a thread all the same.
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

SECONDS: Final = 120.0  # that a client may take to send a body
WHOLE: Final = "the body did not come"
DEPTH: Final = 64  # levels of nesting in a body
VALUES: Final = 100  # values of JSON for each message that may be sent: a call has about 20
LARGE: Final = 256 * 1024  # bytes from which a body is decoded in a thread
_ESCAPE: Final = ord("\\")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements: Final = msgspec.json.Decoder(list[msgspec.Raw])


class TooLarge(Refused):
    """The body is larger than may be, or there is too much in it."""

    def __init__(self, detail: str) -> None:
        super().__init__(413, "the body is too large", detail)


async def read_body(request: Request, limits: ServeSettings, *, json: bool = True) -> bytes:
    """Return the whole body, as large as `limits` says at most; raises TooLarge as soon as more is known.

    With `json`, what there is to decode is bounded too. Raises Refused where the body does not come in time.
    """
    most = limits.max_body
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > most:
        raise TooLarge(f"the body has {int(told):,} bytes; {most:,} may be sent ([serve] max_body)")
    body = bytearray()
    async with _in_time(WHOLE):
        async for piece in request.stream():
            body += piece
            if len(body) > most:
                raise TooLarge(f"the body has more than {most:,} bytes ([serve] max_body)")
    raw = bytes(body)
    if json:
        await decoded(raw, lambda given: check_lists(given, limits.max_messages))
    return raw


@asynccontextmanager
async def read_form(request: Request, *, max_files: int, max_fields: int) -> AsyncGenerator[FormData]:
    """Read a form, and close it behind the block; raises Refused where it does not come in time."""
    async with _in_time(WHOLE):
        form = await request.form(max_files=max_files, max_fields=max_fields)
    try:
        yield form
    finally:
        await form.close()


async def paced(request: Request) -> AsyncGenerator[bytes]:
    """Yield a body of any size as it comes; raises Refused where its next piece does not come in time."""
    pieces = request.stream()
    while True:
        async with _in_time("its next piece did not come"):
            piece = await anext(pieces, None)
        if piece is None:
            return
        yield piece


@asynccontextmanager
async def _in_time(told: str) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(SECONDS):
            yield
    except TimeoutError as error:
        raise Refused(408, "the body came too slowly", f"{told} within {SECONDS:.0f} s") from error


async def decoded(raw: bytes, read: Callable[[bytes], T]) -> T:
    """Return what `read` makes of a body; of a large one in a thread, while the event loop goes on."""
    return read(raw) if len(raw) < LARGE else await asyncio.to_thread(read, raw)


def check_lists(raw: bytes, most: int) -> None:
    """Raise TooLarge where a list of a body holds more than `most` messages, or the body too many values.

    Only lists at its top, or in a field at its top, hold messages. What is no JSON is not looked at: who
    decodes it says what is wrong.
    """
    begun = raw[:64].lstrip()[:1]
    if begun not in (b"[", b"{") or raw.count(b",") < most:
        return
    if raw.count(b",") > VALUES * most and _values_exceed(raw, VALUES * most):
        raise TooLarge(f"the body has more than {VALUES * most:,} values; {_bound(most)}")
    try:
        fields = [raw] if begun == b"[" else map(bytes, _fields.decode(raw).values())
        lists = [_elements.decode(one) for one in fields if one[:64].lstrip()[:1] == b"["]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if (count := max(map(len, lists), default=0)) > most:
        raise too_many(most, f"a list of the body has {count:,} messages")


def too_many(most: int, found: str) -> TooLarge:
    """Return the error for more messages than may be sent; `found` says what there was."""
    return TooLarge(f"{found}; {_bound(most)}")


def _bound(most: int) -> str:
    return f"{most:,} messages may be sent ([serve] max_messages)"


def decoded_json(raw: bytes, kind: Any) -> Any:
    """Return a JSON body as its type; raises InputError that says what is wrong, and where."""
    try:
        value = msgspec.json.decode(whole_escapes(raw) or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise InputError(f"the body is not what this takes: {error}") from error
    except RecursionError as error:
        raise InputError(f"the body is nested too deep: {DEPTH} levels are read") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"the body is not JSON: {error}") from error
    if too_deep(raw):
        raise InputError(f"the body is nested too deep: {DEPTH} levels are read")
    return value


def too_deep(raw: bytes, most: int = DEPTH) -> bool:
    """Return whether valid JSON is nested deeper than that many levels."""
    if raw.count(b"[") + raw.count(b"{") <= most:
        return False
    left = b"".join(piece.translate(None, _NO_BRACKETS) for piece in _between_texts(raw))
    for _ in range(most):
        if not left:
            return False
        left = left.replace(b"[]", b"").replace(b"{}", b"")
    return bool(left)


def _values_exceed(raw: bytes, most: int) -> bool:
    """Return whether JSON has more than that many values; no more of it is read than it takes to know."""
    count = 0
    for piece in _between_texts(raw):
        count += piece.count(b",")
        if count > most:
            return True
    return False


def _between_texts(raw: bytes) -> Iterator[bytes]:
    """Yield the pieces of JSON between its texts, one at a time: a search of the whole would hold the GIL."""
    at = 0
    while (start := raw.find(b'"', at)) >= 0:
        yield raw[at:start]
        at = start + 1
        while (end := raw.find(b'"', at)) >= 0:
            at = end + 1
            escapes = end
            while raw[escapes - 1] == _ESCAPE and escapes - 1 > start:
                escapes -= 1
            if (end - escapes) % 2 == 0:
                break
        else:
            return
    yield raw[at:]


async def while_there(request: Request, doing: Coroutine[Any, Any, T]) -> T:
    """Do what takes long, and cancel it where the client leaves: nobody would know that it was done."""
    task, leaving = asyncio.ensure_future(doing), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return await task
    finally:
        leaving.cancel()
        task.cancel()
        await asyncio.wait({task, leaving})


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
