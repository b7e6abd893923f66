"""The sessions that are kept: listed, searched, imported, begun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.datastructures import UploadFile
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from foldline.config import Settings
from foldline.core.decide.presets import PRESETS
from foldline.core.log.codec import encode_utf8
from foldline.core.log.log import digest
from foldline.errors import FoldlineError, InputError
from foldline.service.api import sessions, transfers
from foldline.service.api.sessions import NewSession, SearchQuery, SessionList, SessionPage
from foldline.service.api.transfers import ImportQuery
from foldline.service.bodies import while_there
from foldline.service.problems import words_of
from foldline.service.web.connecting import recipes
from foldline.service.web.page_request import BASE, PageRequest, to_session
from foldline.service.web.rendering import model_name
from foldline.service.web.rows import COLUMNS, ListedSession, ListQuery, list_query, rows_of
from foldline.stores.base import Hit, SessionInfo

LIMIT: Final = 50  # sessions at once
HITS: Final = 20  # messages that a search shows at once
MOST_HITS: Final = 200  # in all its pages
FILES: Final = 200  # imported at once


def policies_of(settings: Settings) -> dict[str, str]:
    """Return the policies that can be named, with what they do: the user's own first."""
    own = {name: one.summary for name, one in settings.user_policies().items() if "," not in name}
    return {**own, **{name: one.summary for name, one in PRESETS.items()}}


async def list_page(asked: PageRequest, problem: str = "") -> Response:
    """Show the sessions, and what a search found in them; to htmx the list alone, where it has changed."""
    query, listed = asked.request.query_params, list_query(asked)
    newest = await asked.ask(sessions.list_sessions, query=SessionPage(1))
    part = asked.partial and not problem
    if part and query.get("state") == _state(asked, newest):  # asked every few seconds
        return Response(status_code=204)
    rows, count = await _listed(asked, listed)
    state = _state(asked, newest)  # with the figures that were read meanwhile
    words = query.get("q", "")[:1_000].strip()
    hits = HitPage() if part or not words else await _hits(asked, words, _number(query.get("at", "")))
    return asked.page(
        "list.html" if part else "sessions.html",
        400 if problem else 200,
        here="sessions",
        rows=rows,
        total=newest.total,
        count=count,
        listed=listed,
        columns=COLUMNS,
        behind=asked.savings.behind,
        known_agents=asked.savings.agents,
        known_models=sorted(set(map(model_name, asked.savings.models))),
        limit=LIMIT,
        state=state,
        q=words,
        found=hits,
        per_page=HITS,
        names=await asked.pages.beginnings.names(asked.tenant, await _found_in(asked, hits.hits)),
        policies=policies_of(asked.settings),
        usual=asked.usual_policy,
        problem=problem,
        notice=query.get("notice", "")[:500],
        **({} if newest.total else recipes(asked)),
    )


def _state(asked: PageRequest, newest: SessionList) -> str:
    """Return a word that changes where anything in the list has changed."""
    return digest(encode_utf8([newest, asked.savings.version]))[:16]


async def _listed(asked: PageRequest, listed: ListQuery) -> tuple[list[ListedSession], int]:
    """Return the rows of a page of the list, and how many there are on all its pages."""
    start = listed.offset
    if listed.is_plain:
        found = await asked.ask(sessions.list_sessions, query=SessionPage(LIMIT, start))
        return await rows_of(asked, found.sessions), found.total
    every = listed.rows(await rows_of(asked, await asked.tenant.store.sessions()))
    return every[start : start + LIMIT], len(every)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 12 else 0


class HitPage(msgspec.Struct, frozen=True):
    """A page of what was found: hits from the one of number `start` on, and whether there are more."""

    hits: Sequence[Hit] = ()
    start: int = 0
    more: bool = False


async def _hits(asked: PageRequest, words: str, start: int) -> HitPage:
    """Return a page of what a search finds; a message that sessions have in common is found once."""
    start = min(start, MOST_HITS - HITS)
    found = await asked.ask(sessions.search_sessions, query=SearchQuery(words, MOST_HITS))
    once = list({hit.entry: hit for hit in reversed(found.hits)}.values())[::-1]
    return HitPage(once[start : start + HITS], start, len(once) > start + HITS)


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
    """Import files, and lead to the session of one, or to the list behind several."""
    asked.check_length(asked.max_body, "what is imported at once ([serve] max_body)")
    async with asked.request.form(max_files=FILES, max_fields=4) as form:
        given = [one for one in form.getlist("file") if isinstance(one, UploadFile) and one.filename]
        if not given:
            return await list_page(asked, "Choose a file first.")
        done: list[tuple[str, str]] = []  # the session, and what is told of it
        failed: list[str] = []
        for one in given:
            name = one.filename or ""
            try:
                done.append(await while_there(asked.request, _imported(asked, await one.read())))
            except FoldlineError as error:
                failed.append(f"{name[:100]} was not imported: {words_of(error)}")
    if asked.partial:  # by the page's script, file by file
        return PlainTextResponse(" ".join(failed))
    if len(given) == 1:
        return to_session(done[0][0], notice=done[0][1][:500]) if done else await list_page(asked, failed[0])
    if not done:
        return await list_page(asked, " ".join(failed)[:1_000])
    told = " ".join([f"Imported {len(done)} of {len(given)} files.", *failed])
    return RedirectResponse(f"{BASE}/?{urlencode({'notice': told[:500]})}", 303)


async def _imported(asked: PageRequest, raw: bytes) -> tuple[str, str]:
    """Import a file, and return its session and what to tell of it.

    One that leaves the session of its id becomes a session of its own.
    """
    apart = False
    try:
        found = await asked.ask(transfers.import_transcript, raw=raw)
    except InputError:
        apart, own = True, ImportQuery(id=f"import-{digest(raw)[:16]}")
        found = await asked.ask(transfers.import_transcript, query=own, raw=raw)
    told = [f"Imported {found.messages:,} messages of {found.format}."]
    if apart:
        told.append("It is a copy of its own, since the session kept under its id was changed here.")
    if found.warnings:
        told.append(f"{len(found.warnings)} warnings: {found.warnings[0]}")
    return found.session, " ".join(told)
