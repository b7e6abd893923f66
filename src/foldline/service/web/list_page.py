"""The sessions that are kept: listed with their figures, filtered and sorted, searched, imported, begun."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from foldline.service.bodies import read_form, while_there
from foldline.service.problems import words_of
from foldline.service.web.connecting import recipes
from foldline.service.web.page_request import BASE, PageRequest, to_session
from foldline.service.web.rendering import model_name
from foldline.service.web.savings import Savings
from foldline.stores.base import Hit, SessionInfo

LIMIT: Final = 50  # sessions at once
HITS: Final = 20  # messages that a search shows at once
MOST_HITS: Final = 200  # in all its pages
FILES: Final = 200  # imported at once
NEWEST: Final = "updated"  # what the list is sorted by, unless it is asked for otherwise


class ListedSession(msgspec.Struct, frozen=True):
    """A session in the list: its name, its figures (`known`: whether they were read), its model's window."""

    info: SessionInfo
    name: str
    known: bool
    savings: Savings
    window: int | None

    @property
    def model(self) -> str:
        """The model that it goes on with."""
        return model_name(self.savings.model)

    @property
    def size(self) -> int | None:
        """The tokens of the next request; None where they are not known."""
        return self.savings.size if self.known and self.info.messages else None

    @property
    def folds(self) -> int | None:
        """How many folds hold; None where that is not known."""
        return self.savings.at.folds if self.known else None

    @property
    def fill(self) -> float | None:
        """The share of the window that the next request takes."""
        return self.size / self.window if self.size is not None and self.window else None


COLUMNS: Final[dict[str, tuple[str, Callable[[ListedSession], float | None]]]] = {
    "messages": ("Messages", lambda row: row.info.messages),
    "fill": ("Next request", lambda row: row.fill),
    "saved": ("Saved", lambda row: row.savings.whole.saved if row.known else None),
    "spent": ("Price", lambda row: row.savings.whole.spent if row.known else None),
    "folds": ("Folds", lambda row: row.folds),
    NEWEST: ("Updated", lambda row: row.info.updated),
}
"""The columns by which the list can be sorted: what each is called, and its value."""


class ListQuery(msgspec.Struct, frozen=True):
    """Which sessions are shown, in which order: by one of `COLUMNS`, largest first, with `-` least."""

    words: str = ""
    agent: str = ""
    model: str = ""
    sort: str = NEWEST
    offset: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether it is the list as the store has it."""
        return (self.words, self.agent, self.model, self.sort) == ("", "", "", NEWEST)

    def query(self, **changes: str | int) -> str:
        """Return it as the query of an address, with changes."""
        given = {"f": self.words, "agent": self.agent, "model": self.model, "sort": self.sort}
        usual = {"sort": NEWEST, "offset": 0}
        asked = {**given, "offset": self.offset, **changes}
        return urlencode({name: value for name, value in asked.items() if value != usual.get(name, "")})

    def place(self, **changes: str | int) -> str:
        """Return its address, with changes."""
        query = self.query(**changes)
        return f"{BASE}/?{query}" if query else f"{BASE}/"

    def sorted_by(self, key: str) -> str:
        """Return where the list is sorted by a key, or the other way where it is already."""
        return self.place(sort=f"-{key}" if self.sort == key else key, offset=0)

    def order(self, key: str) -> str:
        """Return how it is sorted by a key, as a screen reader says it; "" where it is not."""
        return {key: "descending", f"-{key}": "ascending"}.get(self.sort, "")

    def rows(self, rows: Sequence[ListedSession]) -> list[ListedSession]:
        """Return those that are shown, in order; what is not known comes last."""
        words = self.words.casefold().split()

        def shown(row: ListedSession) -> bool:
            text = f"{row.name} {row.info.id}".casefold()
            agent = self.agent in ("", row.savings.agent)
            model = not self.model or self.model in map(model_name, row.savings.models)
            return agent and model and all(word in text for word in words)

        _, key = COLUMNS[self.sort.removeprefix("-")]
        sign = 1 if self.sort.startswith("-") else -1

        def place(row: ListedSession) -> tuple[bool, float]:
            value = key(row)
            return value is None, sign * (value or 0.0)

        return sorted(filter(shown, rows), key=place)


def list_query(asked: PageRequest) -> ListQuery:
    """Return what a request asks for."""
    given = asked.request.query_params
    words, agent, model = (given.get(name, "")[:200] for name in ("f", "agent", "model"))
    sort = given.get("sort", "")
    known = sort.removeprefix("-") in COLUMNS
    return ListQuery(words.strip(), agent, model, sort if known else NEWEST, _number(given.get("offset", "")))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 12 else 0


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
        names=await asked.savings.names(await _found_in(asked, hits.hits)),
        policies=policies_of(asked.settings),
        usual=asked.serve.policy,
        problem=problem,
        notice=query.get("notice", "")[:500],
        **({} if newest.total else recipes(asked)),
    )


def _state(asked: PageRequest, newest: SessionList) -> str:
    """Return a word that changes where anything in the list has changed."""
    return digest(encode_utf8([newest, asked.savings.version]))[:16]


async def _listed(asked: PageRequest, listed: ListQuery) -> tuple[list[ListedSession], int]:
    """Return the rows of a page of the list, and how many there are on all its pages."""
    start, store = listed.offset, asked.tenant.store
    if listed.is_plain:
        found = await store.sessions(limit=start + LIMIT)
        return await rows_of(asked, found[start:]), await store.count()
    every = listed.rows(await rows_of(asked, await store.sessions()))
    return every[start : start + LIMIT], len(every)


async def rows_of(asked: PageRequest, infos: Sequence[SessionInfo]) -> list[ListedSession]:
    """Return the rows of sessions, with what is known of them by now."""
    known = await asked.savings.look(infos)
    rows: list[ListedSession] = []
    for info in infos:
        found = known.get(info.id, Savings())
        window = asked.savings.window_of(found.model, found.window or asked.serve.window)
        rows.append(ListedSession(info, found.name_of(info), info.id in known, found, window))
    return rows


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
    asked.check_length(asked.serve.max_body, "what is imported at once ([serve] max_body)")
    async with read_form(asked.request, max_files=FILES, max_fields=4) as form:
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
