"""Replays in a browser: start one under several policies, watch it, compare and save the results."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, Final

from starlette.datastructures import FormData, UploadFile
from starlette.responses import RedirectResponse, Response

from foldline.config import Settings
from foldline.files import safe_name
from foldline.lab.report import MEASURES
from foldline.service.api import sessions, transfers
from foldline.service.api.sessions import SessionPage
from foldline.service.api.transfers import ExportQuery
from foldline.service.at_hand import require
from foldline.service.bodies import TooLarge, read_form
from foldline.service.jobs.replay_records import NONE, REPORT, ReplayRecord, ReplayRecords, ReplayWish, as_csv
from foldline.service.jobs.replays import can_draw
from foldline.service.problems import Refused
from foldline.service.web.list_page import policies_of
from foldline.service.web.page_request import BASE, STOP_ASKING, PageRequest
from foldline.service.web.rendering import HEADERS
from foldline.service.web.verdict import left_out, scatter, verdict

LISTED: Final = 200  # sessions offered
FIELDS: Final = 200  # of the form
LARGEST: Final = 100_000_000  # tokens of a window
OTHER: Final = "pi"  # ticked besides `foldline`, unless the settings name another policy
MEANINGS: Final = {  # of the measures of retention
    "handle": "paths, commands and queries that later calls address",
    "far": "of these, what was last named long before",
    "far-bound": "of the far ones, those with a word near them that tells what they are",
    "far-rare": "of the far ones, those that were named once or twice",
    "steps": "of the later steps that need something, those that find all of it",
}
TABLE: Final = "table.csv"
MEDIA: Final = {
    TABLE: "text/csv",
    REPORT: "application/json",
    "plot.svg": "image/svg+xml",
    "plot.png": "image/png",
}


def _offered(settings: Settings) -> tuple[dict[str, str], set[str]]:
    """Return the policies with their summaries, and those ticked by default."""
    named = {NONE: "Never compacts: the baseline of the comparison.", **policies_of(settings)}
    other = settings.policy if settings.policy not in ("foldline", NONE) else OTHER
    ticked = {NONE, "foldline", other}
    return dict(sorted(named.items(), key=lambda item: item[0] not in ticked)), ticked


async def form(request: PageRequest) -> Response:
    """Show the form of a new replay, and the existing replays."""
    query = request.query
    return await _form(request, session=query.get("session", ""), window=query.get("window", "")[:14])


async def _form(
    request: PageRequest,
    problem: str = "",
    *,
    session: str = "",
    window: str = "",
    ticked: set[str] | None = None,
) -> Response:
    listed = await request.ask(sessions.list_sessions, query=SessionPage(LISTED))
    infos = [info for info in listed.sessions if info.messages]
    policies, defaults = _offered(request.settings)
    return request.page(
        "replay.html",
        400 if problem else 200,
        here="replay",
        problem=problem,
        policies=policies,
        ticked=defaults if ticked is None else ticked,
        window=window,
        sessions=infos,
        names=await request.savings.names(infos),
        session=session,
        max_body=request.serve.max_body,
        jobs=await request.replays.of(request.tenant.presence),
    )


async def begin(request: PageRequest) -> Response:
    """Start a replay, and redirect to its page."""
    require("write")
    request.check_length(request.serve.max_body, "a file ([serve] max_body)")
    async with read_form(request.http, max_files=1, max_fields=FIELDS) as fields:
        ticked = {name for name in fields.getlist("policy") if isinstance(name, str)}
        window, session = _text(fields, "window"), _text(fields, "session")
        try:
            chosen, tokens = _chosen(request.settings, ticked), _window(window)
            label, kept, write = await _source(request, fields.get("file"), session)
            await _check_room(request)
            job = ReplayWish(label, chosen, tokens, kept)
            name = await request.replays.begin(request.tenant.presence, job, write)
        except (Refused, OSError) as error:  # the disk is full
            return await _form(request, str(error), session=session, window=window, ticked=ticked)
    return RedirectResponse(f"{BASE}/replay/{name}", 303)


async def _check_room(request: PageRequest) -> None:
    if await request.replays.full(request.tenant.presence):
        raise Refused(429, "Too many replays", "Wait until one of your replays has ended.")


def _chosen(settings: Settings, ticked: set[str]) -> tuple[str, ...]:
    """Return the ticked policies in the order of the page."""
    policies, _ = _offered(settings)
    if unknown := ticked - set(policies):
        raise Refused(400, "No such policy", f"There is no policy {min(unknown)[:100]!r}.")
    if not ticked:
        raise Refused(400, "No policy", "Tick a policy first.")
    return tuple(name for name in policies if name in ticked)


async def show(request: PageRequest) -> Response:
    """Show the progress of a replay, or its results."""
    job = await _job(request)
    if job is None:
        return _gone(request)
    return request.page(
        "replay_state.html" if request.partial else "replay_job.html",
        here="replay",
        job=job,
        measures=MEASURES,
        meanings=MEANINGS,
        most=_most(job),
        verdict=verdict(job.rows),
        drawn=scatter(job.rows),
        left_out=left_out(job.rows),
        can_draw=can_draw(),
    )


async def drop(request: PageRequest) -> Response:
    """Stop a replay, and remove its results."""
    require("write")
    await request.replays.drop(request.tenant.presence, request.path["job"])
    return RedirectResponse(f"{BASE}/replay", 303)


async def save(request: PageRequest) -> Response:
    """Send a table, a report or a drawing as a file."""
    job, name = await _job(request), request.path["file"]
    if job is None or job.state != "done" or name not in MEDIA:
        return _gone(request)
    base = PurePosixPath(safe_name(job.wish.label)).stem
    headers = {**HEADERS, "content-disposition": f'attachment; filename="{base}.replay.{name}"'}
    records = ReplayRecords(request.tenant.presence)
    content = as_csv(job.rows).encode() if name == TABLE else await records.file(job.id, name)
    if content is None:
        return _gone(request)
    return Response(content, media_type=MEDIA[name], headers=headers)


async def _job(request: PageRequest) -> ReplayRecord | None:
    require("read")
    return await request.replays.find(request.tenant.presence, request.path["job"])


async def _source(request: PageRequest, file: Any, session: str) -> tuple[str, str, Callable[[Path], object]]:
    """Return a label, the session ("" for a file), and a function that writes the log to a path."""
    if isinstance(file, UploadFile) and file.filename:
        stream = file.file

        def copy(target: Path) -> None:
            with target.open("wb") as copied:
                shutil.copyfileobj(stream, copied)

        return file.filename[:200], "", copy
    if not session:
        raise Refused(400, "Nothing to replay", "Choose a file or a session first.")
    detail = await request.ask(sessions.show_session, session=session)
    exported = await request.ask(transfers.export_session, query=ExportQuery(), session=session)
    raw = bytes(exported.body)
    if len(raw) > request.serve.max_body:
        raise TooLarge(f"the session has more than {request.serve.max_body:,} bytes ([serve] max_body)")
    return detail.info.title or session, session, lambda target: target.write_bytes(raw)


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    return value.strip() if isinstance(value, str) else ""


def _window(text: str) -> int | None:
    """Parse a number of tokens; None for an empty field."""
    digits = text.replace(",", "").replace("_", "").replace(" ", "")
    if not digits:
        return None
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 10 and 0 < int(digits) <= LARGEST):
        raise Refused(400, "Not a window", f"A window is a number of tokens, up to {LARGEST:,}.")
    return int(digits)


def _most(job: ReplayRecord) -> dict[str, float]:
    """Return the largest value of each column with bars."""
    most: dict[str, float] = {"input_tokens": max((row.input_tokens for row in job.rows), default=0)}
    for row in job.rows:
        for name, value in row.prices.items():
            most[name] = max(most.get(name, 0.0), value or 0.0)
    return most


def _gone(request: PageRequest) -> Response:
    if request.partial:
        text = '<p class="problem" role="alert">This replay was removed.</p>'
        return Response(text, STOP_ASKING, media_type="text/html", headers=HEADERS)
    return request.problem(404, "No such replay", "It was removed, or it never existed.")
