"""A session written out: as it is stored, as Markdown, as JSON, in the format of any agent."""

from __future__ import annotations

from io import BytesIO
from typing import Annotated, Final

import msgspec
from starlette.responses import Response

from foldline import dialects
from foldline.exports import OWN, ExportWish, export_stored, formats
from foldline.service.api.operation import BYTES, JSON, ApiCall, ApiResult, Operation
from foldline.service.api.sessions import AT

LIST: Final = "json"  # the session's own dialect, as a list
LINES: Final = "application/jsonl"
NOWHERE: Final = "/"  # the folder that an export names: where the service runs is nobody's business


class ExportQuery(msgspec.Struct, frozen=True):
    """The format: `jsonl` (Foldline's own, lossless), `markdown`, `json`, a dialect's or an agent's name.

    With `view`, what the model is sent instead of all that was said. `cwd` is the folder in which another
    agent goes on; the headers `foldline-place` and `foldline-command` say where it looks for the file, and
    how it resumes it.
    """

    format: str = OWN
    view: bool = False
    cwd: Annotated[str, msgspec.Meta(max_length=1_000)] = NOWHERE


class FormatList(msgspec.Struct, frozen=True):
    """The names of the formats."""

    formats: list[str]


async def list_formats(call: ApiCall) -> ApiResult:
    """List the formats."""
    del call
    return ApiResult(FormatList([*formats(), LIST]))


async def export(call: ApiCall) -> Response:
    """Write a session out."""
    asked: ExportQuery = call.query
    session = call.session
    form = session.dialect if asked.format == LIST else asked.format
    if form == OWN:
        return Response(await session.export(OWN, view=asked.view), media_type=LINES)
    stream = BytesIO()
    wish = ExportWish(form, view=asked.view, model=session.setup.model, cwd=asked.cwd or NOWHERE)
    told = await export_stored(session.store, session.id, wish, stream.write)
    known = {"warnings": "; ".join(told.warnings), "place": told.place, "command": told.command}
    headers = {f"foldline-{name}": _header(text) for name, text in known.items() if text}
    return Response(stream.getvalue(), media_type=_media(form), headers=headers)


def _header(text: str) -> str:
    """Return a text as a header may hold it."""
    return " ".join(text.encode("ascii", "backslashreplace").decode().split())[:2_000]


def _media(form: str) -> str:
    if form == "markdown":
        return "text/markdown"
    return JSON if form in dialects.names() else BYTES


OPERATIONS: Final = (
    Operation(
        name="listFormats",
        method="GET",
        path="/formats",
        about="List the formats that sessions are written in",
        run=list_formats,
        result=FormatList,
    ),
    Operation(
        name="exportSession",
        method="GET",
        path=f"{AT}/export",
        about="Write a session out: its log, Markdown, JSON, or the format of an agent",
        run=export,
        query=ExportQuery,
        media="*/*",
    ),
)
