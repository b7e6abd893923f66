"""Requests of browsers: they run operations of the API, and their errors become pages."""

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
from foldline.service.web.savings_book import SavingsBook
from foldline.stores.base import SessionInfo

log = logging.getLogger("foldline")

BASE: Final = "/web"
RAW: Final = "foldline-raw"  # the cookie that turns Markdown and colours off
FORM: Final = 1_000_000  # bytes of a form without a file
LONGEST: Final = 4_096  # characters of the address to open after a login
HISTORY: Final = msgspec.structs.replace(
    history.read_history, run=partial(history.history_page, as_sent=False)
)  # pages show the parts of messages: a long history is read in half the time
STOP_ASKING: Final = 286  # the status that stops polling by htmx
DELETED: Final = '<p class="problem" role="alert">This session was deleted.</p>'

T = TypeVar("T")
Handler = Callable[["PageRequest"], Awaitable[Response]]


def to_session(name: str, at: str = "", **fields: str) -> Response:
    """Redirect to a session's page, to an anchor in it, with query fields such as a notice."""
    query = f"?{urlencode(fields)}" if fields else ""
    anchor = f"#{at}" if at else ""
    return RedirectResponse(f"{_place(name)}{query}{anchor}", 303)


def _place(session: str) -> str:
    return f"{BASE}/s/{segment(session)}"


class PageHandlers:
    """State that pages share; wraps their functions as handlers that authenticate and show errors."""

    def __init__(self, api: Api, tenants: Tenants) -> None:
        self.api = api
        self.replays = ReplayJobs()
        self._tenants = tenants
        self._savings: dict[str, SavingsBook] = {}

    def savings_of(self, tenant: Tenant) -> SavingsBook:
        """Return the costs and savings of a tenant's sessions."""
        if tenant.name not in self._savings:
            self._savings[tenant.name] = SavingsBook(tenant, self.api.state.settings.catalogue())
        return self._savings[tenant.name]

    async def close(self) -> None:
        """Stop background work, and remove the files of replays."""
        await asyncio.gather(*(book.close() for book in self._savings.values()))
        await self.replays.close()

    def __call__(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Wrap a page's function as a request handler."""

        async def handle(request: Request) -> Response:
            tenant = self._tenants.find(request)
            if isinstance(tenant, Denied):
                return _denied(request, tenant)
            page = PageRequest(request, tenant, self)
            if await tenant.rate.wait():
                return page.problem(429, "Too many requests", "Wait a moment.")
            try:
                return await handler(page)
            except SessionNotFound:
                if page.partial and request.method == "GET":  # an open page polls every second
                    return HTMLResponse(DELETED, STOP_ASKING, headers=HEADERS)
                return page.problem(404, "No such session", "It was deleted, or it never existed.")
            except ClientDisconnect:
                return Response(status_code=400)
            except FoldlineError as error:
                title = error.title if isinstance(error, Refused) else "It cannot be done"
                return page.problem(status_of(error), title, words_of(error))
            except HTTPException as error:  # an invalid form
                return page.problem(error.status_code, "It cannot be read", error.detail)
            except Exception:
                log.exception("a page failed: %s %s", request.method, request.url.path)
                return page.problem(500, "Internal error", "This is a bug in the service: see its log.")

        return handle


class PageRequest:
    """One request of a browser."""

    def __init__(self, request: Request, tenant: Tenant, shared: PageHandlers) -> None:
        self.http = request
        self.path, self.query = request.path_params, request.query_params
        self.tenant = tenant
        self._shared = shared
        self.replays = shared.replays
        self.models = shared.api.state.models
        self.settings = shared.api.state.settings
        self.serve = shared.api.state.serve

    @property
    def session(self) -> str:
        """The id of the session named in the path."""
        return unquote(self.path["session"])

    @property
    def place(self) -> str:
        """The address of that session's page; "" if the path names none."""
        return _place(self.session) if "session" in self.path else ""

    @property
    def savings(self) -> SavingsBook:
        """The costs and savings of the tenant's sessions."""
        return self._shared.savings_of(self.tenant)

    async def history(self, limit: int, before: str | None = None) -> HistoryResult:
        """Return the newest messages and boundaries of the session, or those before an entry."""
        return await self.ask(HISTORY, query=HistoryPage(limit, before))

    async def info(self) -> SessionInfo:
        """Return the list's row of the session named in the path."""
        return (await self.ask(sessions.show_session)).info

    def back(self, at: str = "", **fields: str) -> Response:
        """Redirect to the session's page with the same panel open."""
        query = parse_qs(_split(self.http.headers.get("referer", "")).query)
        panel = {"panel": query["panel"][0]} if "panel" in query else {}
        return to_session(self.session, at, **panel, **fields)

    @property
    def partial(self) -> bool:
        """Whether htmx asks for a part of the page."""
        return _is_part(self.http)

    @property
    def raw(self) -> bool:
        """Whether texts are shown as written, without Markdown and colours."""
        return self.http.cookies.get(RAW) == "1"

    def check_length(self, most: int, what: str) -> None:
        """Raise TooLarge if the body is larger, or has no Content-Length."""
        length = self.http.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > most:
            raise TooLarge(f"{what} may have {most:,} bytes at most")

    async def form(self) -> dict[str, str]:
        """Return the fields of a form; raises TooLarge."""
        self.check_length(FORM, "a form")
        async with read_form(self.http, max_files=0, max_fields=2_000) as form:
            return {name: value for name, value in form.items() if isinstance(value, str)}

    async def ask(
        self, operation: Operation[T], *, body: Any = None, query: Any = None, raw: bytes = b"", **names: str
    ) -> T:
        """Run an operation of the API; raises FoldlineError."""
        if operation.of_session and "session" not in names:
            names["session"] = self.session
        inputs = {"body": (operation.body, body), "query": (operation.query, query)}
        arguments = {
            name: kind() if value is None else value for name, (kind, value) in inputs.items() if kind
        }
        work = self._shared.api.ask(self.tenant, operation, names=names, raw=raw, **arguments)
        return await (work if body is None or operation.held else while_there(self.http, work))

    def page(
        self, template: str, status: int = 200, headers: dict[str, str] | None = None, **context: Any
    ) -> Response:
        """Render a page; `here` is its place in the navigation, `at` that of its session.

        `tenant` is set if tokens are.
        """
        tenant = self.tenant.name if self.serve.tokens else ""
        defaults = {"here": "", "at": self.place, "problem": "", "raw": self.raw, "tenant": tenant}
        return rendered(template, status, headers, base=BASE, **defaults | context)

    def problem(self, status: int, title: str, detail: str) -> Response:
        """Render a page that shows an error."""
        return self.page("problem.html", status, title=title, detail=detail)


def _denied(request: Request, denied: Denied) -> Response:
    """Redirect to the login page; for a request of a script, redirect the page that sent it."""
    if denied.wait:
        return login(denied)
    if "text/event-stream" in request.headers.get("accept", ""):  # a turn: the page keeps the text
        return JSONResponse({"detail": "Your message was not sent: sign in again."}, 401)
    if _is_part(request):
        place = _split(request.headers.get("hx-current-url", ""))
    else:
        address = request.scope["raw_path"].decode("latin-1") + f"?{request.url.query}"
        place = _split(address if request.method == "GET" else "")
    target = place.path + (f"?{place.query}" if place.query else "")
    query = f"?{urlencode({'to': target})}" if target not in ("", f"{BASE}/") else ""
    login_address = f"{BASE}/login{query}"
    if _is_part(request):
        return Response(status_code=401, headers={"hx-redirect": login_address})
    return RedirectResponse(login_address, 303)


def _is_part(request: Request) -> bool:
    """Whether htmx asks for a part of a page."""
    return request.headers.get("hx-request") == "true"


def _split(address: str) -> SplitResult:
    """Split an address from a browser; an invalid one becomes empty."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def login(denied: Denied | None = None, to: str = "") -> Response:
    """Render the login page, with why a token was refused.

    `to` is the address to open after the login.
    """
    status, headers, problem = 200, dict[str, str](), ""
    if denied is not None and denied.wait:
        status, problem = 429, f"{TOO_MANY.capitalize()}."
        headers["retry-after"] = str(math.ceil(denied.wait))
    elif denied is not None:
        status, problem = 401, "This token is not valid."
    return rendered("login.html", status, headers, base=BASE, here="", problem=problem, to=within(to))


def within(address: str) -> str:
    """Return an address if it is a page of this service, without a host; else that of the list."""
    begins = address.startswith(f"{BASE}/") and not address.startswith(f"{BASE}/login")
    begins = begins and len(address) <= LONGEST
    return address if begins and not set(address) & set("\\\r\n") else f"{BASE}/"
