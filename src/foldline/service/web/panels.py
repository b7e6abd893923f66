"""What stands beside a history: the view as it is sent, folds, rules, ledger, tokens, branches, recall."""

from __future__ import annotations

from typing import Any, Final, cast

from starlette.responses import RedirectResponse, Response

from foldline.service.api import boundaries, history, messages, sessions, tree
from foldline.service.api.boundaries import Timeline
from foldline.service.api.history import (
    HistoryPage,
    RecallQuery,
    ShownMessage,
    StatsResult,
    ViewResult,
)
from foldline.service.api.operation import Operation
from foldline.service.web.meter import course, slices
from foldline.service.web.page_request import BASE, PageRequest
from foldline.service.web.rendering import segment
from foldline.service.web.shown import largest, sent

FIRST, NEWEST = 20, 180  # messages of a long view that are shown as they are sent
LATEST: Final = 1_000  # messages among which those are looked for that are pinned, or large
LARGEST: Final = 8
PANELS: Final = (
    ("view", "Sent"),
    ("receipts", "Folds"),
    ("rules", "Rules"),
    ("tokens", "Tokens"),
    ("ledger", "Ledger"),
    ("tree", "Branches"),
    ("recall", "Recall"),
)
OPERATION: Final[dict[str, Operation[Any]]] = {  # that a panel shows
    "view": history.read_view,
    "receipts": boundaries.list_boundaries,
    "rules": messages.list_constraints,
    "ledger": boundaries.read_ledger,
    "tokens": boundaries.read_timeline,
    "tree": tree.list_branches,
    "recall": history.recall,
}
NO_HITS: Final[dict[str, Any]] = {"hits": []}


async def panel(asked: PageRequest) -> Response:
    """Show a panel."""
    name = asked.request.path_params["panel"]
    if name not in OPERATION:
        return asked.problem(404, "No such panel", "")
    if not asked.partial:
        query = asked.request.url.query
        place = f"{BASE}/s/{segment(asked.session)}?panel={name}"
        return RedirectResponse(f"{place}&{query}" if query else place, 303)
    stats = await asked.ask(history.read_stats)
    detail = await asked.ask(sessions.show_session)
    return asked.page("panel.html", info=detail.info, **await panel_content(asked, name, stats))


async def minimap(asked: PageRequest) -> Response:
    """Show the session by the size of what was sent: beside the history, where it leads to any message."""
    stats = await asked.ask(history.read_stats)
    points = (await asked.ask(boundaries.read_timeline)).points
    info = (await asked.ask(sessions.show_session)).info
    return asked.page("map.html", info=info, data=course(points, stats.stats), slices=slices(points))


async def panel_content(asked: PageRequest, name: str, stats: StatsResult) -> dict[str, Any]:
    """Return what a panel is made of; the first one for a name that there is not."""
    name = name if name in OPERATION else PANELS[0][0]
    words = asked.request.query_params.get("q", "")[:1_000]
    given: dict[str, Any] = {"panel": name, "stats": stats.stats, "spent": stats.spent, "q": words}
    if name == "recall":
        found = await asked.ask(history.recall, query=RecallQuery(words)) if words.strip() else NO_HITS
        return {**given, "data": found}
    found = await asked.ask(OPERATION[name])
    match name:
        case "view":
            whole = cast("ViewResult", found).messages
            out = max(0, len(whole) - FIRST - NEWEST)
            shown = [*whole[:FIRST], *whole[-NEWEST:]] if out else whole
            given |= {"shown": [sent(one) for one in shown], "left_out": out, "first": FIRST}
        case "rules":
            given["pinned"] = (await asked.ask(messages.list_pins)).pins
        case "tokens":
            found = course(cast("Timeline", found).points, stats.stats)
            given["largest"] = largest(await _latest(asked), LARGEST)
        case _:
            pass
    return {**given, "data": found}


async def _latest(asked: PageRequest) -> list[ShownMessage]:
    found = await asked.ask(history.read_history, query=HistoryPage(LATEST))
    return [one for one in found.items if isinstance(one, ShownMessage)]
