"""The sessions that are kept: listed, searched, imported, begun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.datastructures import UploadFile
from starlette.responses import Response

from foldline.config import Settings
from foldline.core.decide.presets import PRESETS
from foldline.core.log.log import digest
from foldline.errors import FoldlineError, InputError
from foldline.service.api import sessions, transfers
from foldline.service.api.history import RecallQuery
from foldline.service.api.sessions import NewSession, SearchQuery, SessionPage
from foldline.service.api.transfers import ImportQuery, ImportResult
from foldline.service.bodies import while_there
from foldline.service.problems import words_of
from foldline.service.web.page_request import PageRequest, to_session
from foldline.stores.base import Hit, SessionInfo

LIMIT: Final = 50  # sessions at once


def policies_of(settings: Settings) -> dict[str, str]:
    """Return the policies that can be named, with what they do: the user's own first."""
    own = {name: one.summary for name, one in settings.user_policies().items() if "," not in name}
    return {**own, **{name: one.summary for name, one in PRESETS.items()}}


async def list_page(asked: PageRequest, problem: str = "") -> Response:
    """Show the sessions, and what a search found in them."""
    query = asked.request.query_params
    words, offset = query.get("q", "")[:1_000], query.get("offset", "0")
    start = int(offset) if offset.isdecimal() and len(offset) < 12 else 0
    found = await asked.ask(sessions.list_sessions, query=SessionPage(LIMIT, start))
    hits: list[Hit] = []
    if words.strip():
        hits = (
            await asked.ask(sessions.search_sessions, query=SearchQuery(words, RecallQuery(words).limit))
        ).hits
    listed = [*found.sessions, *await _found_in(asked, hits)]
    return asked.page(
        "sessions.html",
        400 if problem else 200,
        here="sessions",
        sessions=found.sessions,
        total=found.total,
        offset=start,
        limit=LIMIT,
        q=words,
        hits=hits,
        names=await asked.pages.beginnings.names(asked.tenant, listed),
        policies=policies_of(asked.settings),
        usual=asked.usual_policy,
        problem=problem,
    )


async def _found_in(asked: PageRequest, hits: Sequence[Hit]) -> list[SessionInfo]:
    """Return the sessions in which a search found something."""
    infos = [await asked.tenant.store.info(name) for name in dict.fromkeys(hit.session for hit in hits)]
    return [info for info in infos if info is not None]


async def begin(asked: PageRequest) -> Response:
    """Begin a session."""
    form = await asked.form()
    made = await asked.ask(
        sessions.create_session,
        body=NewSession(title=form.get("title") or None, policy=form.get("policy") or None),
    )
    return to_session(made.id)


async def put(asked: PageRequest) -> Response:
    """Import a file, and lead to its session."""
    asked.check_length(asked.max_body, "a file ([serve] max_body)")
    async with asked.request.form(max_files=1, max_fields=4) as form:
        given = form.get("file")
        if not isinstance(given, UploadFile):
            return await list_page(asked, "Choose a file first.")
        raw, name = await given.read(), given.filename or "the file"
    try:
        found, apart = await while_there(asked.request, _imported(asked, raw))
    except FoldlineError as error:
        return await list_page(asked, f"{name} was not imported: {words_of(error)}")
    told = [f"Imported {found.messages:,} messages of {found.format}."]
    if apart:
        told.append("It is a copy of its own, since the session kept under its id was changed here.")
    if found.warnings:
        told.append(f"{len(found.warnings)} warnings: {found.warnings[0]}")
    return to_session(found.session, notice=" ".join(told)[:500])


async def _imported(asked: PageRequest, raw: bytes) -> tuple[ImportResult, bool]:
    """Import a file; one that leaves the session of its id becomes a session of its own."""
    try:
        return await asked.ask(transfers.import_transcript, raw=raw), False
    except InputError:
        own = ImportQuery(id=f"import-{digest(raw)[:16]}")
        return await asked.ask(transfers.import_transcript, query=own, raw=raw), True
