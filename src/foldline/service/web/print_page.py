"""A session from its first message to its last on one page, for paper and for reading without a script."""

from __future__ import annotations

from starlette.responses import Response

from foldline.service.api import sessions, transfers
from foldline.service.api.transfers import ExportQuery
from foldline.service.web import prose
from foldline.service.web.page_request import PageRequest
from foldline.waiting import aside


async def print_page(asked: PageRequest) -> Response:
    """Show all that was said and where it was folded; long results are shortened."""
    detail = await asked.ask(sessions.show_session)
    found = await asked.ask(transfers.export_session, query=ExportQuery("markdown"))
    raw = bytes(found.body)
    content = await aside(len(raw), lambda: prose.prose(raw.decode("utf-8", "replace")))
    names = await asked.pages.beginnings.names(asked.tenant, [detail.info])
    return asked.page(
        "print.html", here="sessions", info=detail.info, heading=names[asked.session], content=content
    )
