"""How pages ask: the operations of the API, for the tenant whose browser it is."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, parse_qs, unquote, urlencode, urlsplit

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from foldline.errors import FoldlineError, SessionNotFound
from foldline.service.api import history, sessions
from foldline.service.api.api import Api
from foldline.service.api.history import HistoryPage, HistoryResult
from foldline.service.api.operation import Operation
from foldline.service.bodies import TooLarge, read_form, while_there
from foldline.service.jobs.replays import ReplayJobs
from foldline.service.problems import Refused, status_of, words_of
from foldline.service.tenants import TOO_MANY, Denied, Tenant, Tenants
from foldline.service.web.rendering import HEADERS, rendered, segment
from foldline.service.web.savings import SavingsBook
from foldline.stores.base import SessionInfo

log = logging.getLogger("foldline")

BASE: Final = "/web"
RAW: Final = "foldline-raw"  # the cookie of who wants texts as they were written
FORM: Final = 1_000_000  # bytes of a form without a file
LONGEST: Final = 4_096  # characters of an address that a login leads to
HISTORY: Final = msgspec.structs.replace(
    history.read_history, run=partial(history.history_page, as_sent=False)
)  # pages show the parts of messages: a long history is read in half the time
STOP_ASKING: Final = 286  # a status at which htmx asks no more
DELETED: Final = '<p class="problem" role="alert">This session was deleted.</p>'

T = TypeVar("T")
Handler = Callable[["PageRequest"], Awaitable[Response]]


def to_session(name: str, at: str = "", **told: str) -> Response:
    """Return the way to a session's page, to a place in it, with something to tell there."""
    query = f"?{urlencode(told)}" if told else ""
    place = f"#{at}" if at else ""
    return RedirectResponse(f"{BASE}/s/{segment(name)}{query}{place}", 303)


class PageHandlers:
    """What pages share; makes handlers of functions: who asks, and what goes wrong, is dealt with once."""

    def __init__(self, api: Api, tenants: Tenants) -> None:
        self.api = api
        self.replays = ReplayJobs()
        self._tenants = tenants
        self._savings: dict[str, SavingsBook] = {}

    def savings_of(self, tenant: Tenant) -> SavingsBook:
        """Return what the sessions of a tenant have cost and saved."""
        if tenant.name not in self._savings:
            self._savings[tenant.name] = SavingsBook(tenant, self.api.state.known.catalogue())
        return self._savings[tenant.name]

    async def close(self) -> None:
        """End what is under way, and remove the files of replays."""
        await asyncio.gather(*(one.close() for one in self._savings.values()))
        await self.replays.close()

    def __call__(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler of requests."""

        async def handle(request: Request) -> Response:
            tenant = self._tenants.find(request)
            if isinstance(tenant, Denied):
                return _denied(request, tenant)
            asked = PageRequest(request, tenant, self)
            if await tenant.rate.wait():
                return asked.problem(429, "Too many requests", "Wait a moment.")
            try:
                return await handler(asked)
            except SessionNotFound:
                if asked.partial and request.method == "GET":  # a page that is open asks each second
                    return HTMLResponse(DELETED, STOP_ASKING, headers=HEADERS)
                return asked.problem(404, "No such session", "It was deleted, or never was.")
            except ClientDisconnect:
                return Response(status_code=400)
            except FoldlineError as error:
                title = error.title if isinstance(error, Refused) else "It cannot be done"
                return asked.problem(status_of(error), title, words_of(error))
            except HTTPException as error:  # of a form that cannot be read
                return asked.problem(error.status_code, "It cannot be read", error.detail)
            except Exception:
                log.exception("a page failed: %s %s", request.method, request.url.path)
                return asked.problem(500, "Something went wrong here", "The log of the service says what.")

        return handle


class PageRequest:
    """One request of a browser."""

    def __init__(self, request: Request, tenant: Tenant, shared: PageHandlers) -> None:
        self.request = request
        self.tenant = tenant
        self._shared = shared
        self.replays = shared.replays
        self.models = shared.api.state.models
        self.settings = shared.api.state.known
        self.serve = shared.api.state.serve

    @property
    def session(self) -> str:
        """The id of the session that the path names."""
        return unquote(self.request.path_params["session"])

    @property
    def savings(self) -> SavingsBook:
        """What the sessions have cost and saved."""
        return self._shared.savings_of(self.tenant)

    async def history(self, limit: int, before: str | None = None) -> HistoryResult:
        """Return the newest messages and boundaries of the session, or those before an entry."""
        return await self.ask(HISTORY, query=HistoryPage(limit, before))

    async def info(self) -> SessionInfo:
        """Return the session that the path names, as the list has it."""
        return (await self.ask(sessions.show_session)).info

    def back(self, at: str = "", **told: str) -> Response:
        """Return the way back to the session's page, where the panel that was open is open again."""
        known = parse_qs(_split(self.request.headers.get("referer", "")).query)
        panel = {"panel": known["panel"][0]} if "panel" in known else {}
        return to_session(self.session, at, **panel, **told)

    @property
    def partial(self) -> bool:
        """Whether htmx asks for a part of the page."""
        return _is_part(self.request)

    @property
    def raw(self) -> bool:
        """Whether texts are shown as they were written, without Markdown and colours."""
        return self.request.cookies.get(RAW) == "1"

    def check_length(self, most: int, what: str) -> None:
        """Raise TooLarge for a body that is larger, or does not tell its size."""
        told = self.request.headers.get("content-length", "")
        if not told.isdecimal() or int(told) > most:
            raise TooLarge(f"{what} may have {most:,} bytes at most")

    async def form(self) -> dict[str, str]:
        """Return the fields of a form; raises TooLarge."""
        self.check_length(FORM, "a form")
        async with read_form(self.request, max_files=0, max_fields=2_000) as form:
            return {name: value for name, value in form.items() if isinstance(value, str)}

    async def ask(
        self, operation: Operation[T], *, body: Any = None, query: Any = None, raw: bytes = b"", **names: str
    ) -> T:
        """Return what an operation of the API finds; raises FoldlineError."""
        if operation.of_session and "session" not in names:
            names["session"] = self.session
        kinds = {"body": (operation.body, body), "query": (operation.query, query)}
        given = {name: kind() if one is None else one for name, (kind, one) in kinds.items() if kind}
        doing = self._shared.api.ask(self.tenant, operation, names=names, raw=raw, **given)
        if body is None or operation.held:
            return await doing
        return await while_there(self.request, doing)

    def page(
        self, template: str, status: int = 200, headers: dict[str, str] | None = None, **given: Any
    ) -> Response:
        """Return a page; `here` is its place in the navigation, `tenant` whose it is where tokens say so."""
        tenant = self.tenant.name if self.serve.tokens else ""
        usual = {"base": BASE, "here": "", "problem": "", "raw": self.raw, "tenant": tenant}
        return rendered(template, status, headers, **usual | given)

    def problem(self, status: int, title: str, detail: str) -> Response:
        """Return a page that says what went wrong."""
        return self.page("problem.html", status, title=title, detail=detail)


def _denied(request: Request, denied: Denied) -> Response:
    """Lead to the page that asks for a token; of a script's request, lead the page that it stands in."""
    if denied.wait:
        return login(denied)
    if "text/event-stream" in request.headers.get("accept", ""):  # a turn: its page keeps what was written
        return JSONResponse({"detail": "It was not sent: a token is needed."}, 401)
    if _is_part(request):
        place = _split(request.headers.get("hx-current-url", ""))
    else:
        asked = request.scope["raw_path"].decode("latin-1") + f"?{request.url.query}"
        place = _split(asked if request.method == "GET" else "")
    asked_for = place.path + (f"?{place.query}" if place.query else "")
    known = {"to": asked_for} if asked_for not in ("", f"{BASE}/") else {}
    address = f"{BASE}/login{'?' if known else ''}{urlencode(known)}"
    if _is_part(request):
        return Response(status_code=401, headers={"hx-redirect": address})
    return RedirectResponse(address, 303)


def _is_part(request: Request) -> bool:
    """Return whether a script of a page asks, for a part of it."""
    return request.headers.get("hx-request") == "true"


def _split(address: str) -> SplitResult:
    """Return the parts of an address that a browser told; of one that is none, nothing."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def login(denied: Denied | None = None, to: str = "") -> Response:
    """Return the page that asks for a token, and says why one that was given is not taken.

    `to` is the address that was asked for without one: the page leads there.
    """
    status, headers, problem = 200, dict[str, str](), ""
    if denied is not None and denied.wait:
        status, problem = 429, f"{TOO_MANY.capitalize()}."
        headers["retry-after"] = str(math.ceil(denied.wait))
    elif denied is not None:
        status, problem = 401, "There is no such token."
    return rendered("login.html", status, headers, base=BASE, here="", problem=problem, to=within(to))


def within(address: str) -> str:
    """Return an address where it is one of a page here, without a host; else that of the list."""
    begins = address.startswith(f"{BASE}/") and not address.startswith(f"{BASE}/login")
    begins = begins and len(address) <= LONGEST
    return address if begins and not set(address) & set("\\\r\n") else f"{BASE}/"
