"""Replays in a browser: a session under several policies, begun, watched, compared and saved."""

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

LISTED: Final = 200  # sessions that can be chosen
FIELDS: Final = 200  # of the form
LARGEST: Final = 100_000_000  # tokens of a window
OTHER: Final = ("pi", "codex")  # that are ticked beside `foldline`: the first that is not set already
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
    """Return the policies that can be replayed, with what they do, and which of them are ticked at first."""
    named = {NONE: "Never compacts: what the others are compared with.", **policies_of(settings)}
    other = settings.policy if settings.policy not in ("foldline", NONE) else OTHER[0]
    ticked = {NONE, "foldline", other}
    return dict(sorted(named.items(), key=lambda one: one[0] not in ticked)), ticked


async def form(asked: PageRequest) -> Response:
    """Show what can be replayed, and the replays there are."""
    query = asked.request.query_params
    return await _form(asked, session=query.get("session", ""), window=query.get("window", "")[:14])


async def _form(
    asked: PageRequest,
    problem: str = "",
    *,
    session: str = "",
    window: str = "",
    ticked: set[str] | None = None,
) -> Response:
    found = await asked.ask(sessions.list_sessions, query=SessionPage(LISTED))
    infos = [one for one in found.sessions if one.messages]
    policies, usual = _offered(asked.settings)
    return asked.page(
        "replay.html",
        400 if problem else 200,
        here="replay",
        problem=problem,
        policies=policies,
        ticked=usual if ticked is None else ticked,
        window=window,
        sessions=infos,
        names=await asked.savings.names(infos),
        session=session,
        max_body=asked.serve.max_body,
        jobs=await asked.replays.of(asked.tenant.presence),
    )


async def begin(asked: PageRequest) -> Response:
    """Begin a replay, and lead to its page."""
    require("write")
    asked.check_length(asked.serve.max_body, "a file ([serve] max_body)")
    async with read_form(asked.request, max_files=1, max_fields=FIELDS) as given:
        ticked = {one for one in given.getlist("policy") if isinstance(one, str)}
        window, session = _text(given, "window"), _text(given, "session")
        try:
            chosen, tokens = _chosen(asked.settings, ticked), _window(window)
            label, kept, write = await _source(asked, given.get("file"), session)
            await _check_room(asked)
            wish = ReplayWish(label, chosen, tokens, kept)
            name = await asked.replays.begin(asked.tenant.presence, wish, write)
        except (Refused, OSError) as error:  # a full disk
            return await _form(asked, str(error), session=session, window=window, ticked=ticked)
    return RedirectResponse(f"{BASE}/replay/{name}", 303)


async def _check_room(asked: PageRequest) -> None:
    if await asked.replays.full(asked.tenant.presence):
        raise Refused(429, "Too many replays", "Wait until one of yours has ended.")


def _chosen(settings: Settings, ticked: set[str]) -> tuple[str, ...]:
    """Return the policies that were ticked, in the order of the page."""
    policies, _ = _offered(settings)
    if unknown := ticked - set(policies):
        raise Refused(400, "No such policy", f"There is no policy {min(unknown)[:100]!r}.")
    if not ticked:
        raise Refused(400, "No policy", "Tick a policy first.")
    return tuple(name for name in policies if name in ticked)


async def show(asked: PageRequest) -> Response:
    """Show how far a replay is, or what it found."""
    job = await _job(asked)
    if job is None:
        return _gone(asked)
    return asked.page(
        "replay_state.html" if asked.partial else "replay_job.html",
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


async def drop(asked: PageRequest) -> Response:
    """Stop a replay that runs, and remove what it found."""
    require("write")
    await asked.replays.drop(asked.tenant.presence, asked.request.path_params["job"])
    return RedirectResponse(f"{BASE}/replay", 303)


async def save(asked: PageRequest) -> Response:
    """Write out a table, a report or a drawing as a file."""
    job, name = await _job(asked), asked.request.path_params["file"]
    if job is None or job.state != "done" or name not in MEDIA:
        return _gone(asked)
    base = PurePosixPath(safe_name(job.wish.label)).stem
    headers = {**HEADERS, "content-disposition": f'attachment; filename="{base}.replay.{name}"'}
    records = ReplayRecords(asked.tenant.presence)
    content = as_csv(job.rows).encode() if name == TABLE else await records.file(job.id, name)
    if content is None:
        return _gone(asked)
    return Response(content, media_type=MEDIA[name], headers=headers)


async def _job(asked: PageRequest) -> ReplayRecord | None:
    require("read")
    return await asked.replays.find(asked.tenant.presence, asked.request.path_params["job"])


async def _source(asked: PageRequest, given: Any, session: str) -> tuple[str, str, Callable[[Path], object]]:
    """Return the name of what is replayed, its session ("" for a file), and what writes it into a file."""
    if isinstance(given, UploadFile) and given.filename:
        stream = given.file

        def copy(target: Path) -> None:
            with target.open("wb") as copied:
                shutil.copyfileobj(stream, copied)

        return given.filename[:200], "", copy
    if not session:
        raise Refused(400, "Nothing to replay", "Choose a file or a session first.")
    detail = await asked.ask(sessions.show_session, session=session)
    found = await asked.ask(transfers.export_session, query=ExportQuery(), session=session)
    raw = bytes(found.body)
    if len(raw) > asked.serve.max_body:
        raise TooLarge(f"the session has more than {asked.serve.max_body:,} bytes ([serve] max_body)")
    return detail.info.title or session, session, lambda target: target.write_bytes(raw)


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    return value.strip() if isinstance(value, str) else ""


def _window(text: str) -> int | None:
    """Return the tokens that somebody typed; None for nothing."""
    digits = text.replace(",", "").replace("_", "").replace(" ", "")
    if not digits:
        return None
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 10 and 0 < int(digits) <= LARGEST):
        raise Refused(400, "Not a window", f"A window is a number of tokens, up to {LARGEST:,}.")
    return int(digits)


def _most(job: ReplayRecord) -> dict[str, float]:
    """Return the largest value of each column that is drawn as bars."""
    most: dict[str, float] = {"input_tokens": max((row.input_tokens for row in job.rows), default=0)}
    for row in job.rows:
        for name, value in row.prices.items():
            most[name] = max(most.get(name, 0.0), value or 0.0)
    return most


def _gone(asked: PageRequest) -> Response:
    if asked.partial:
        text = '<p class="problem" role="alert">This replay is gone.</p>'
        return Response(text, STOP_ASKING, media_type="text/html", headers=HEADERS)
    return asked.problem(404, "No such replay", "It was removed, or never was.")
