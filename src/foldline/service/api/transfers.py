"""Export of sessions (the log, Markdown, JSON, the format of any agent), and import of transcripts.

Imports are limited in size, depth and time.
"""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import Annotated, Final

import msgspec
from starlette.responses import Response

from foldline import dialects
from foldline.config import ServeSettings
from foldline.core.log.entries import Compacted, Entry, Said
from foldline.core.log.log import digest
from foldline.errors import InputError
from foldline.exports import OWN, ExportRequest, export_stored, formats
from foldline.loading import Loaded, from_stream, restore, with_notes
from foldline.service.api.operation import BYTES, JSON, ApiCall, NewId, operation
from foldline.service.api.sessions import AT
from foldline.service.api.state import IMPORTED
from foldline.service.bodies import TooLarge, check_lists, too_many
from foldline.transcripts import MessageRecord, Record

LIST: Final = "json"  # the session's own dialect, as a list
LINES: Final = "application/jsonl"
NOWHERE: Final = "/"  # the folder named in an export: clients must not learn where the service runs
SECONDS: Final = 60.0  # to read a transcript
GZIP: Final = b"\x1f\x8b"
WARNINGS: Final = 100  # returned at most
LINES_EACH: Final = 10  # lines allowed for each message: most agents record much else


# ---- export


class ExportQuery(msgspec.Struct, frozen=True):
    """The format: `jsonl` (Foldline's own, lossless), `markdown`, `json`, a dialect's or an agent's name.

    With `view`, only what is sent to the model. `cwd` is the folder in which another agent continues; the
    headers `foldline-place` and `foldline-command` say where to put the file and how to resume it.
    """

    format: str = OWN
    view: bool = False
    cwd: Annotated[str, msgspec.Meta(max_length=1_000)] = NOWHERE


class FormatList(msgspec.Struct, frozen=True):
    """The names of the formats."""

    formats: list[str]


@operation("GET", "/formats")
async def list_formats(call: ApiCall) -> FormatList:
    """List the export formats."""
    del call
    return FormatList([*formats(), LIST])


@operation("GET", f"{AT}/export", media="*/*")
async def export_session(call: ApiCall, query: ExportQuery) -> Response:
    """Export a session: its log, Markdown, JSON, or the format of an agent."""
    session = call.session
    form = session.dialect if query.format == LIST else query.format
    if form == OWN:
        return Response(await session.export(OWN, view=query.view), media_type=LINES)
    media = "text/markdown" if form == "markdown" else JSON if form in dialects.names() else BYTES
    stream = BytesIO()
    request = ExportRequest(form, view=query.view, model=session.setup.model, cwd=query.cwd or NOWHERE)
    result = await export_stored(session.store, session.id, request, stream.write)
    hints = {"warnings": "; ".join(result.warnings), "place": result.place, "command": result.command}
    headers = {f"foldline-{name}": _header(text) for name, text in hints.items() if text}
    return Response(stream.getvalue(), media_type=media, headers=headers)


def _header(text: str) -> str:
    """Return a text as a valid header value."""
    return " ".join(text.encode("ascii", "backslashreplace").decode().split())[:2_000]


# ---- import


class ImportQuery(msgspec.Struct, frozen=True):
    """The session's id (default: made from the content); `from_start` leaves out its compactions.

    Importing the same transcript again changes nothing; one that has grown adds its new messages.
    """

    id: NewId | None = None
    from_start: bool = False


class ImportResult(msgspec.Struct, frozen=True):
    """The imported session: its format, how much was imported, and what could not be read."""

    session: str
    format: str
    messages: int
    compactions: int
    new_entries: int
    orphans: int
    warnings: list[str]
    leaf: str | None


@operation("POST", "/imports", status=201, takes=BYTES, keyed=True, held=False)
async def import_transcript(call: ApiCall, query: ImportQuery) -> ImportResult:
    """Import a transcript of any known format; gzip is unpacked."""
    if not call.raw:
        raise InputError("the body is empty: send the transcript")
    async with call.state.imports:
        loaded, log = await _load(call.raw, query, call.state.serve)
        name = query.id or _name_of(loaded, log)
        await call.tenant.check_no_turn(name)
        leaf = loaded.entries[-1].id if loaded.log else log[-1].id
        async with call.tenant.lock(name):
            new = await _store(call, name, log, leaf)
    if loaded.agent:
        await call.tenant.note_agent(name, loaded.agent)
    call.headers["location"] = f"/api/sessions/{name}"
    return ImportResult(
        session=name,
        format=loaded.format,
        messages=sum(isinstance(entry, Said) for entry in log),
        compactions=sum(isinstance(entry, Compacted) for entry in log),
        new_entries=new,
        orphans=len(loaded.orphans),
        warnings=loaded.warnings[:WARNINGS],
        leaf=await call.tenant.store.leaf(name),
    )


async def _store(call: ApiCall, name: str, log: list[Entry], leaf: str) -> int:
    """Append the new entries of a log and return their number; retention counts from now."""
    seconds, values = call.state.serve.keep_days * 86_400, call.tenant.values
    if not seconds:
        return await restore(call.tenant.store, name, log, leaf)
    added = await values.add(IMPORTED, name, b"1", seconds=seconds, session=name) is None
    new = await restore(call.tenant.store, name, log, leaf)
    if new:
        await values.put_all(IMPORTED, {name: b"1"}, seconds=seconds)
    elif added:
        await values.delete(IMPORTED, name)
    return new


async def _load(raw: bytes, query: ImportQuery, limits: ServeSettings) -> tuple[Loaded, list[Entry]]:
    """Read a transcript in a thread, which stops at the next record if this is cancelled."""
    cancelled = threading.Event()
    reading = asyncio.ensure_future(asyncio.to_thread(_read, raw, query, limits, cancelled))
    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        cancelled.set()
        await asyncio.gather(reading, return_exceptions=True)  # the file is in memory until it ends
        raise


def _read(
    raw: bytes, query: ImportQuery, limits: ServeSettings, cancelled: threading.Event
) -> tuple[Loaded, list[Entry]]:
    """Read a transcript; raises InputError if that takes too long, or after `cancelled`."""
    most, deadline = limits.max_messages, time.monotonic() + SECONDS

    def limited(records: Iterator[Record]) -> Iterator[Record]:
        count = 0
        for record in records:
            count += isinstance(record, MessageRecord)
            if count > most:
                raise too_many(most, f"the transcript has more than {most:,} messages")
            if cancelled.is_set():
                raise InputError("the client has left: nothing was stored")
            if time.monotonic() > deadline:
                raise InputError(f"reading the transcript took more than {SECONDS:.0f} s: nothing was stored")
            yield record

    plain = _unpacked(raw, limits.max_body) if raw[:2] == GZIP else raw
    _check(plain, most)
    try:
        loaded = from_stream(BytesIO(plain), "transcript", from_start=query.from_start, through=limited)
        return loaded, with_notes(loaded)
    except RecursionError as error:
        raise InputError("the transcript is nested too deeply") from error


def _check(plain: bytes, most: int) -> None:
    """Raise TooLarge if a transcript has too many lines or messages, in one JSON document or in lines."""
    head, _, rest = plain.partition(b"\n")
    if head.lstrip()[:1] not in (b"[", b"{"):
        texts = []
    else:
        check_lists(head, most)
        texts = rest.split(b"\n") if rest.strip() and _is_json(head) else [plain]
    lines = plain.count(b"\n")
    if lines > LINES_EACH * most:
        raise too_many(most, f"the transcript has {lines:,} lines")
    for text in texts:
        check_lists(text, most)


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _unpacked(raw: bytes, most: int) -> bytes:
    """Unpack gzip up to a size: a small file may be a zip bomb."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(raw)) as file:
            plain = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"broken gzip: {error}") from error
    if len(plain) > most:
        raise TooLarge(f"the unpacked transcript has more than {most:,} bytes ([serve] max_body)")
    return plain


def _name_of(loaded: Loaded, log: list[Entry]) -> str:
    """Return the id in the transcript if it is a valid one, else one made from the content."""
    try:
        return msgspec.convert(loaded.session, NewId)
    except msgspec.ValidationError:
        return f"import-{digest(log[0].id.encode())[:12]}"
