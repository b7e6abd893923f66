"""The routes of the web page."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from foldline.service.api.api import Api
from foldline.service.bodies import read_form
from foldline.service.tenants import HEADER, Denied, Tenants
from foldline.service.web import actions, list_page, previews, replay_page, session_page
from foldline.service.web.connecting import connect_page
from foldline.service.web.overview import overview_page
from foldline.service.web.page_request import BASE, PageHandlers, PageRequest, login, to_session, within
from foldline.service.web.rendering import HEADERS

STATIC: Final = {
    **{f"{name}.css": "text/css" for name in ("page", "session", "messages", "fold", "meter")},
    **{f"{name}.css": "text/css" for name in ("replay", "touch", "list")},
    **{f"{name}.js": "text/javascript" for name in ("page", "keys", "list", "preview", "htmx.min")},
    "fold.svg": "image/svg+xml",
}
SESSION: Final = "/s/{session}"
REPLAY: Final = "/replay/{job}"
LOGIN: Final = 16_384  # bytes of a form with a token and an encoded address


async def _to_session(request: PageRequest) -> Response:
    """Redirect a reload of a form's result, which is not stored, to the session."""
    return to_session(request.session)


async def _to_list(request: PageRequest) -> Response:
    """Redirect a reload of a failed import or new session to the list."""
    del request
    return RedirectResponse(f"{BASE}/", 303)


async def _unknown(request: PageRequest) -> Response:
    """Show that the page does not exist."""
    return request.problem(404, "No such page", f"There is nothing at {request.http.url.path[:200]}.")


async def _logout(request: Request) -> Response:
    """Delete the token's cookie."""
    del request
    response = RedirectResponse(f"{BASE}/login", 303)
    response.delete_cookie(HEADER, path=BASE, httponly=True, samesite="strict")
    return response


class Site:
    """The web page of the service."""

    def __init__(self, api: Api, tenants: Tenants) -> None:
        self._tenants = tenants
        self._pages = PageHandlers(api, tenants)
        folder = files("foldline.service.web") / "static"
        self._static = {name: (folder / name).read_bytes() for name in STATIC}

    def routes(self) -> list[Route]:
        """Return the routes below `/web`."""
        pages, preview = self._pages, f"{SESSION}/preview/{{preview}}"
        gets = {
            "/": list_page.list_page,
            "/list": list_page.list_page,
            "/connect": connect_page,
            "/overview": overview_page,
            SESSION: session_page.session_page,
            f"{SESSION}/earlier": session_page.earlier,
            f"{SESSION}/since": session_page.since,
            f"{SESSION}/panel/{{panel}}": session_page.panel,
            f"{SESSION}/at/{{entry}}": session_page.at,
            f"{SESSION}/raw": session_page.raw,
            f"{SESSION}/map": session_page.minimap,
            f"{SESSION}/download": actions.download,
            f"{SESSION}/print": session_page.print_page,
            f"{SESSION}/preview": _to_session,
            preview: previews.show,
            f"{preview}/{{step}}": _to_session,
            f"{SESSION}/handoff": _to_session,
            f"{SESSION}/say": _to_session,
            "/import": _to_list,
            "/new": _to_list,
            "/replay": replay_page.form,
            REPLAY: replay_page.show,
            f"{REPLAY}/{{file}}": replay_page.save,
        }
        posts = {
            "/new": list_page.begin,
            "/import": list_page.put,
            f"{SESSION}/do/{{action}}": actions.act,
            f"{SESSION}/preview": previews.preview,
            f"{preview}/keep": previews.keep,
            f"{preview}/commit": previews.commit,
            f"{preview}/drop": previews.leave,
            f"{SESSION}/handoff": actions.preview_handoff,
            f"{SESSION}/say": actions.say,
            "/replay": replay_page.begin,
            f"{REPLAY}/drop": replay_page.drop,
        }
        return [
            *(Route(path, pages(handler)) for path, handler in gets.items()),
            *(Route(path, pages(handler), methods=["POST"]) for path, handler in posts.items()),
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/logout", _logout, methods=["POST"]),
            Route("/static/{name}", self._file),
            Route("/{path:path}", pages(_unknown), methods=["GET", "POST"]),
        ]

    async def close(self) -> None:
        """Stop background work, and remove the files of replays."""
        await self._pages.close()

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return Response(status_code=404)
        headers = {**HEADERS, "cache-control": "max-age=300"}
        return Response(self._static[name], media_type=STATIC[name], headers=headers)

    async def _login(self, request: Request) -> Response:
        """Check a token, and store it in a cookie until the browser is closed."""
        denied, to = None, request.query_params.get("to", "")
        size = int(request.headers.get("content-length") or LOGIN + 1)
        if request.method == "POST" and size > LOGIN:
            denied = Denied()
        elif request.method == "POST":
            async with read_form(request, max_files=0, max_fields=4) as form:
                token, to = str(form.get("token") or "").strip(), str(form.get("to") or "")
            tenant = self._tenants.find(request, typed=token)
            if not isinstance(tenant, Denied):
                response = RedirectResponse(within(to), 303)
                secure = request.url.scheme == "https"
                response.set_cookie(HEADER, token, path=BASE, httponly=True, samesite="strict", secure=secure)
                return response
            denied = tenant
        return login(denied, to)
