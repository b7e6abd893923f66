"""The list of sessions: figures, filters, sorting, search, import, and new sessions."""

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
NEWEST: Final = "updated"  # the default order


class ListedSession(msgspec.Struct, frozen=True):
    """A row of the list: a session, its name, its figures (if `known`), its model's window."""

    info: SessionInfo
    name: str
    known: bool
    savings: Savings
    window: int | None

    @property
    def model(self) -> str:
        """The current model."""
        return model_name(self.savings.model)

    @property
    def size(self) -> int | None:
        """The tokens of the next request; None if unknown."""
        return self.savings.at.size if self.known and self.info.messages else None

    @property
    def folds(self) -> int | None:
        """How many folds are in effect; None if unknown."""
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
"""The sortable columns: the title of each, and its value."""


class ListQuery(msgspec.Struct, frozen=True, omit_defaults=True, rename={"words": "f"}):
    """Which sessions to show, sorted by one of `COLUMNS`: largest first, with `-` smallest first."""

    words: str = ""
    agent: str = ""
    model: str = ""
    sort: str = NEWEST
    offset: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether the list has no filter and the default order."""
        return msgspec.structs.replace(self, offset=0) == ListQuery()

    @property
    def fields(self) -> dict[str, str | int]:
        """The fields of an address that asks for this."""
        return msgspec.to_builtins(self)

    def place(self, **changes: str | int) -> str:
        """Return the address of the list, with changes."""
        query = urlencode(msgspec.structs.replace(self, **changes).fields)
        return f"{BASE}/?{query}" if query else f"{BASE}/"

    def sorted_by(self, key: str) -> str:
        """Return the address of the list sorted by a key, or reversed if it is sorted by it."""
        return self.place(sort=f"-{key}" if self.sort == key else key, offset=0)

    def order(self, key: str) -> str:
        """Return the `aria-sort` of a column; "" if the list is not sorted by it."""
        return {key: "descending", f"-{key}": "ascending"}.get(self.sort, "")

    def rows(self, rows: Sequence[ListedSession]) -> list[ListedSession]:
        """Return the rows that match, in order; unknown values come last."""
        words = self.words.casefold().split()

        def matches(row: ListedSession) -> bool:
            text = f"{row.name} {row.info.id}".casefold()
            agent = self.agent in ("", row.savings.agent)
            model = not self.model or self.model in map(model_name, row.savings.models)
            return agent and model and all(word in text for word in words)

        _, key = COLUMNS[self.sort.removeprefix("-")]
        sign = 1 if self.sort.startswith("-") else -1

        def sort_key(row: ListedSession) -> tuple[bool, float]:
            value = key(row)
            return value is None, sign * (value or 0.0)

        return sorted(filter(matches, rows), key=sort_key)


def list_query(request: PageRequest) -> ListQuery:
    """Read the query of a request; unknown orders become the default."""
    params = request.query
    words, agent, model = (params.get(name, "")[:200] for name in ("f", "agent", "model"))
    sort = params.get("sort", "")
    known = sort.removeprefix("-") in COLUMNS
    return ListQuery(
        words.strip(), agent, model, sort if known else NEWEST, _number(params.get("offset", ""))
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 12 else 0


def policies_of(settings: Settings) -> dict[str, str]:
    """Return the policies with their summaries, the user's own first."""
    own = {name: policy.summary for name, policy in settings.user_policies().items() if "," not in name}
    return {**own, **{name: policy.summary for name, policy in PRESETS.items()}}


async def list_page(request: PageRequest, problem: str = "") -> Response:
    """Show the sessions and search results; htmx gets the list alone, if it has changed."""
    query, listed = request.query, list_query(request)
    newest = await request.ask(sessions.list_sessions, query=SessionPage(1))
    part = request.partial and not problem
    if part and query.get("state") == _state(request, newest):  # polled every few seconds
        return Response(status_code=204)
    rows, count = await _listed(request, listed)
    state = _state(request, newest)  # with the figures read meanwhile
    words = query.get("q", "")[:1_000].strip()
    hits = HitPage() if part or not words else await _hits(request, words, _number(query.get("at", "")))
    return request.page(
        "list.html" if part else "sessions.html",
        400 if problem else 200,
        here="sessions",
        rows=rows,
        total=newest.total,
        count=count,
        listed=listed,
        columns=COLUMNS,
        behind=request.savings.behind,
        known_agents=request.savings.agents,
        known_models=sorted(set(map(model_name, request.savings.models))),
        limit=LIMIT,
        state=state,
        q=words,
        found=hits,
        per_page=HITS,
        names=await request.savings.names(await _sessions_of(request, hits.hits)),
        policies=policies_of(request.settings),
        usual=request.serve.policy,
        problem=problem,
        notice=query.get("notice", "")[:500],
        **({} if newest.total else recipes(request)),
    )


def _state(request: PageRequest, newest: SessionList) -> str:
    """Return a hash that changes whenever the list does."""
    return digest(encode_utf8([newest, request.savings.version]))[:16]


async def _listed(request: PageRequest, listed: ListQuery) -> tuple[list[ListedSession], int]:
    """Return the rows of one page of the list, and how many rows all pages have."""
    start, store = listed.offset, request.tenant.store
    if listed.is_plain:
        infos = await store.sessions(limit=start + LIMIT)
        return await rows_of(request, infos[start:]), await store.count()
    rows = listed.rows(await rows_of(request, await store.sessions()))
    return rows[start : start + LIMIT], len(rows)


async def rows_of(request: PageRequest, infos: Sequence[SessionInfo]) -> list[ListedSession]:
    """Return the rows of sessions, with the figures read so far."""
    known = await request.savings.look(infos)
    rows: list[ListedSession] = []
    for info in infos:
        savings = known.get(info.id, Savings())
        window = request.savings.window_of(savings.model, savings.window or request.serve.window)
        rows.append(ListedSession(info, savings.name_of(info), info.id in known, savings, window))
    return rows


class HitPage(msgspec.Struct, frozen=True):
    """A page of search results: hits from number `start` on, and whether there are more."""

    hits: Sequence[Hit] = ()
    start: int = 0
    more: bool = False


async def _hits(request: PageRequest, words: str, start: int) -> HitPage:
    """Return a page of search results; a message that several sessions share appears once."""
    start = min(start, MOST_HITS - HITS)
    result = await request.ask(sessions.search_sessions, query=SearchQuery(words, MOST_HITS))
    unique = list({hit.entry: hit for hit in reversed(result.hits)}.values())[::-1]
    return HitPage(unique[start : start + HITS], start, len(unique) > start + HITS)


async def _sessions_of(request: PageRequest, hits: Sequence[Hit]) -> list[SessionInfo]:
    """Return the sessions of search results."""
    infos = [await request.tenant.store.info(name) for name in dict.fromkeys(hit.session for hit in hits)]
    return [info for info in infos if info is not None]


async def begin(request: PageRequest) -> Response:
    """Create a session."""
    form = await request.form()
    created = await request.ask(
        sessions.create_session,
        body=NewSession(title=form.get("title") or None, policy=form.get("policy") or None),
    )
    return to_session(created.id)


async def put(request: PageRequest) -> Response:
    """Import files, and redirect to the session of a single file, or to the list."""
    request.check_length(request.serve.max_body, "an import ([serve] max_body)")
    async with read_form(request.http, max_files=FILES, max_fields=4) as form:
        files = [file for file in form.getlist("file") if isinstance(file, UploadFile) and file.filename]
        if not files:
            return await list_page(request, "Choose a file first.")
        imported: list[tuple[str, str]] = []  # the session, and the notice
        failed: list[str] = []
        for file in files:
            name = file.filename or ""
            try:
                imported.append(await while_there(request.http, _import(request, await file.read())))
            except FoldlineError as error:
                failed.append(f"{name[:100]} was not imported: {words_of(error)}")
    if request.partial:  # the page's script sends files one by one
        return PlainTextResponse(" ".join(failed))
    if not imported:
        return await list_page(request, " ".join(failed)[:1_000])
    if len(files) == 1:
        return to_session(imported[0][0], notice=imported[0][1][:500])
    notice = " ".join([f"Imported {len(imported)} of {len(files)} files.", *failed])
    return RedirectResponse(f"{BASE}/?{urlencode({'notice': notice[:500]})}", 303)


async def _import(request: PageRequest, raw: bytes) -> tuple[str, str]:
    """Import a file, and return its session and a notice.

    A file that contradicts the session stored under its id becomes a separate session.
    """
    copied = False
    try:
        result = await request.ask(transfers.import_transcript, raw=raw)
    except InputError:
        copied, query = True, ImportQuery(id=f"import-{digest(raw)[:16]}")
        result = await request.ask(transfers.import_transcript, query=query, raw=raw)
    notice = [f"Imported {result.messages:,} messages of {result.format}."]
    if copied:
        notice.append("It is a separate copy, because the session with its id was changed here.")
    if result.warnings:
        notice.append(f"{len(result.warnings)} warnings: {result.warnings[0]}")
    return result.session, " ".join(notice)
