"""Transcripts of any known format, put into the store: bounded in size, depth and time."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import Final

import msgspec
from starlette.responses import Response

from foldline.core.log.entries import Compacted, Entry, Said
from foldline.core.log.log import digest
from foldline.errors import InputError
from foldline.loading import Loaded, from_stream, restore, with_notes
from foldline.service.api.operation import BYTES, ApiCall, ApiResult, NewId, Operation
from foldline.service.bodies import TooLarge
from foldline.service.problems import problem
from foldline.transcripts import Record

SECONDS: Final = 60.0  # that reading a transcript may take
GZIP: Final = b"\x1f\x8b"
WARNINGS: Final = 100  # that are told


class ImportQuery(msgspec.Struct, frozen=True):
    """The session's id (made of the content where none is given); `from_start` leaves its compactions out.

    The same transcript again changes nothing; one that has grown is added to.
    """

    id: NewId | None = None
    from_start: bool = False


class ImportResult(msgspec.Struct, frozen=True):
    """What was imported: the session, the format, how much of it, and what could not be read."""

    session: str
    format: str
    messages: int
    compactions: int
    new_entries: int
    orphans: int
    warnings: list[str]
    leaf: str | None


async def put(call: ApiCall) -> ApiResult | Response:
    """Put a transcript into the store."""
    asked: ImportQuery = call.query
    if not call.raw:
        raise InputError("the body is empty: send the transcript")
    async with call.state.imports:
        most = call.state.serve.max_body
        deadline = time.monotonic() + SECONDS
        loaded, log = await asyncio.to_thread(_read, call.raw, asked, most, deadline)
        name = asked.id or _named(loaded, log)
        own = call.state.of(call.tenant)
        if await own.turns.held(name):
            return problem(409, "a turn is under way", f"wait for the turn of {name!r}")
        leaf = loaded.entries[-1].id if loaded.log else log[-1].id
        async with own.lock(name):
            new = await restore(call.tenant.store, name, log, leaf)
    result = ImportResult(
        session=name,
        format=loaded.format,
        messages=sum(isinstance(entry, Said) for entry in log),
        compactions=sum(isinstance(entry, Compacted) for entry in log),
        new_entries=new,
        orphans=len(loaded.orphans),
        warnings=loaded.warnings[:WARNINGS],
        leaf=await call.tenant.store.leaf(name),
    )
    return ApiResult(result, headers={"location": f"/api/sessions/{name}"})


def _read(raw: bytes, asked: ImportQuery, most: int, deadline: float) -> tuple[Loaded, list[Entry]]:
    """Read a transcript in a thread of its own; raises InputError where that takes too long."""

    def in_time(records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if time.monotonic() > deadline:
                raise InputError(f"the transcript was not read within {SECONDS:.0f} s: nothing was stored")
            yield record

    plain = _unpacked(raw, most) if raw[:2] == GZIP else raw
    try:
        loaded = from_stream(BytesIO(plain), "transcript", from_start=asked.from_start, through=in_time)
        return loaded, with_notes(loaded)
    except RecursionError as error:
        raise InputError("the transcript is nested too deep") from error


def _unpacked(raw: bytes, most: int) -> bytes:
    """Unpack gzip up to a size: a few bytes can stand for a great many."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(raw)) as file:
            plain = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"broken gzip: {error}") from error
    if len(plain) > most:
        raise TooLarge(f"unpacked it has more than {most:,} bytes ([serve] max_body)")
    return plain


def _named(loaded: Loaded, log: list[Entry]) -> str:
    """Return the id that an export had, where it is one that may be given; else one made of the content."""
    try:
        return msgspec.convert(loaded.session, NewId)
    except msgspec.ValidationError:
        return f"import-{digest(log[0].id.encode())[:12]}"


OPERATIONS: Final = (
    Operation(
        name="importTranscript",
        method="POST",
        path="/imports",
        about="Put a transcript of any known format into the store; gzip is unpacked",
        run=put,
        query=ImportQuery,
        result=ImportResult,
        status=201,
        takes=BYTES,
        keyed=True,
    ),
)
