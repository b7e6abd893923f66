"""The page of one session: its history with its folds, the meter, a panel and a map.

The page is loaded once; then htmx polls every second for what is new and inserts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from foldline.core.log.entries import Compacted
from foldline.errors import InputError
from foldline.exports import agents
from foldline.service.api import boundaries, history, messages, sessions, transfers, tree
from foldline.service.api.boundaries import BoundaryList, Timeline
from foldline.service.api.history import (
    HistoryResult,
    RecallQuery,
    ShownBoundary,
    ShownMessage,
    StatsResult,
    ViewResult,
)
from foldline.service.api.operation import Operation
from foldline.service.api.sessions import HitList
from foldline.service.api.transfers import ExportQuery
from foldline.service.web import prose
from foldline.service.web.meter import course, meter, slices
from foldline.service.web.page_request import BASE, RAW, PageRequest, to_session
from foldline.service.web.rendering import segment
from foldline.service.web.shown import Item, answers, grouped, largest, newest_fold, sent, state_of
from foldline.session.links import is_start, links
from foldline.session.tree import prompt_at
from foldline.waiting import run_off_loop

PAGE: Final = 50  # messages and boundaries at once
LIVE: Final = 1_000  # items between two polls, or on an open page
FIRST_SHOWN: Final = "foldline-first"  # the header with the first message of an open page
PASSED: Final = ("panel", "q", "notice", "undo")  # query fields kept in a redirect to a message
CHANGED: Final = {"hx-trigger": "changed"}  # the panel reloads itself
FIRST, NEWEST = 20, 180  # messages of a long view that its panel shows
LATEST: Final = 1_000  # messages in which the largest are searched
LARGEST: Final = 8
PANELS: Final[dict[str, tuple[str, Operation[Any]]]] = {
    "view": ("Sent", history.read_view),
    "receipts": ("Folds", boundaries.list_boundaries),
    "rules": ("Rules", messages.list_constraints),
    "tokens": ("Tokens", boundaries.read_timeline),
    "ledger": ("Ledger", boundaries.read_ledger),
    "tree": ("Branches", tree.list_branches),
    "recall": ("Recall", history.recall),
}
"""The title of each panel, and the operation behind it."""


async def session_page(
    request: PageRequest, status: int = 200, *, problem: str = "", draft: str = ""
) -> Response:
    """Show a session; `problem` and `draft` belong to a message that could not be sent."""
    query = request.query
    notices: dict[str, Any] = {name: query.get(name, "")[:500] for name in ("notice", "problem", "undo")}
    notices["problem"] = problem or notices["problem"]
    before = None if request.partial else query.get("before") or None
    page = await request.history(LIVE if request.partial else PAGE, before)
    head = await _head(request, page.items)
    shown = _history_context(page, *_on_page(request, page), head["boundaries"], newest=not before)
    if request.partial:  # after a button: update the open page
        settled = {"hx-trigger-after-settle": "folded" if notices["undo"] else "done"}
        return request.page("in_place.html", headers=CHANGED | settled, **head, **shown, **notices)
    formats = await request.ask(transfers.list_formats)
    return request.page(
        "session.html",
        status,
        here="sessions",
        later=before,
        **head,
        **shown,
        **await panel_content(request, query.get("panel", ""), head["figures"]),
        formats=formats.formats,
        agents=agents(),
        panels=PANELS,
        draft=draft or await _draft(request, query.get("draft_of", "")),
        **notices,
    )


async def _draft(request: PageRequest, entry: str) -> str:
    """Return the user's text at or before an entry, for editing."""
    try:
        prompt = await prompt_at(request.tenant.store, request.session, None, entry or None)
    except InputError:
        return ""
    return prompt.message.text


async def _head(request: PageRequest, items: Sequence[Item]) -> dict[str, Any]:
    """Return the context of the page's head: figures, meter, possible actions."""
    detail = await request.ask(sessions.show_session)
    figures = await request.ask(history.read_stats)
    folds = (await request.ask(boundaries.list_boundaries)).boundaries
    return {
        "info": detail.info,
        "heading": (await request.savings.names([detail.info]))[request.session],
        "policy": detail.policy,
        "links": detail.links,
        "model": detail.model,
        "figures": figures,
        "gauge": meter(figures, [item for item in items[-PAGE:] if isinstance(item, ShownMessage)]),
        "boundaries": folds,
        "pruned": any(fold.made == "prune" and not fold.undone for fold in folds),
        "can_undo": await _can_undo(request, folds),
        "can_redo": bool(folds) and folds[-1].undone,
        "can_talk": bool(request.models.usual),
    }


async def _can_undo(request: PageRequest, boundaries: Sequence[ShownBoundary]) -> bool:
    newest = next((boundary.entry for boundary in reversed(boundaries) if not boundary.undone), None)
    return newest is not None and not await is_start(request.tenant.store, request.session, newest)


def _history_context(
    page: HistoryResult,
    items: Sequence[Item],
    before: str | None,
    boundaries: Sequence[ShownBoundary],
    *,
    newest: bool = True,
    known: Sequence[Item] = (),
) -> dict[str, Any]:
    """Return the context of a part of a history; with `newest`, new messages are added after it.

    `known` are the messages before it that the open page shows: results of their calls are `late`.
    """
    recent = [item for item in page.items[-PAGE:] if isinstance(item, ShownMessage)]
    answered = answers([*known, *items])
    old, new = {item.entry for item in known}, {item.entry for item in items}
    fold = newest_fold(boundaries)
    return {
        "groups": grouped(items, fold, newest=newest),
        "answers": answered,
        "within": {result.message.entry for result in answered.values()},  # shown with their calls
        "late": [
            (place, result)
            for place, result in answered.items()
            if place[0] in old and result.message.entry in new
        ],
        "fold": fold,
        "before": before,
        "newest": newest,
        "waits": newest and bool(recent) and recent[-1].role in ("user", "tool"),
        "leaf": page.leaf or "",
        "last": page.items[-1].entry if page.items else "",
        "state": state_of(page.items[-PAGE:]),
    }


def _on_page(request: PageRequest, page: HistoryResult) -> tuple[Sequence[Item], str | None]:
    """Return the items that a page shows, and the entry before which there are more.

    These are the newest `PAGE` items, or all from the first message of an open page on.
    """
    items, first = page.items, request.http.headers.get(FIRST_SHOWN)
    start = max(0, len(items) - PAGE)
    places = [number for number, item in enumerate(items[:start]) if item.entry == first]
    if places:
        start = places[0]
        while start and not isinstance(items[start - 1], ShownMessage):
            start -= 1
    return items[start:], items[start].entry if start else page.before


async def earlier(request: PageRequest) -> Response:
    """Show the messages before an entry."""
    before = request.query.get("before") or None
    page = await request.history(PAGE, before)
    head = await _head(request, page.items)
    shown = _history_context(page, page.items, page.before, head["boundaries"], newest=False)
    return request.page("earlier.html", **head, **shown)


async def since(request: PageRequest) -> Response:
    """Show the messages since the last poll, or the whole history if a shown item has changed."""
    query = request.query
    if (await request.tenant.store.leaf(request.session) or "") == query.get("leaf"):  # polled every second
        return Response(status_code=204)
    page = await request.history(LIVE)
    head = await _head(request, page.items)  # read last: a message in between comes with the next poll
    places = [number for number, item in enumerate(page.items) if item.entry == query.get("last")]
    end = places[0] + 1 if places else 0
    old, new = page.items[:end], page.items[end:]
    reload = not old or state_of(old[-PAGE:]) != query.get("state")
    on_page, before = _on_page(request, page)
    items, known = (on_page, []) if reload else (new, old[-PAGE:])
    shown = _history_context(page, items, before, head["boundaries"], known=known)
    if not reload:
        return request.page("since.html", headers=CHANGED, **head, **shown)
    return request.page("in_place.html", headers=CHANGED, **head, **shown, notice="", undo="")


async def raw(request: PageRequest) -> Response:
    """Switch between texts as written and rendered texts."""
    response = request.back()
    raw = request.query.get("on") == "1"
    response.set_cookie(RAW, "1" if raw else "", path=BASE, samesite="strict", httponly=True)
    return response


async def at(request: PageRequest) -> Response:
    """Redirect to a message in this session's history, or in that of a session it came from."""
    entry, store = request.path["entry"], request.tenant.store
    place = f"e-{entry}"
    stored = await store.entry(request.session, entry)
    if isinstance(stored, Compacted) and stored.first_kept:
        newest = newest_fold((await request.ask(boundaries.list_boundaries)).boundaries)
        if newest is not None and newest.entry == entry:
            entry = stored.first_kept  # the newest fold is shown there
    query = {name: text for name, text in request.query.items() if name in PASSED}
    if any(item.id == entry for item in await store.tail(request.session, PAGE // 2)):
        return to_session(request.session, at=place, **query)
    path = [item.id async for item in store.path(request.session)]
    if entry in path:
        before = next(iter(path[path.index(entry) + 1 + PAGE // 2 :]), None)
        return to_session(request.session, at=place, **query, **({"before": before} if before else {}))
    for link in () if stored is not None else reversed(await links(store, request.session)):
        if link.way == "from" and await store.entry(link.session, entry) is not None:
            there = f"{BASE}/s/{segment(link.session)}/at/{segment(entry)}"
            return RedirectResponse(f"{there}?{urlencode(query)}", 303)
    return to_session(request.session, **{**query, "notice": "That message is on another branch."})


async def print_page(request: PageRequest) -> Response:
    """Show the whole session on one page for printing; long results are shortened."""
    info = await request.info()
    exported = await request.ask(transfers.export_session, query=ExportQuery("markdown"))
    raw = bytes(exported.body)
    content = await run_off_loop(len(raw), lambda: prose.unkept(raw.decode("utf-8", "replace")))
    names = await request.savings.names([info])
    return request.page("print.html", here="sessions", info=info, heading=names[info.id], content=content)


# ---- panels and the map


async def panel(request: PageRequest) -> Response:
    """Show a panel."""
    name = request.path["panel"]
    if name not in PANELS:
        return request.problem(404, "No such panel", "")
    if not request.partial:
        query = request.http.url.query
        place = f"{request.place}?panel={name}"
        return RedirectResponse(f"{place}&{query}" if query else place, 303)
    content = await panel_content(request, name, await request.ask(history.read_stats))
    newest = "before=" not in request.http.headers.get("hx-current-url", "")
    return request.page("panel.html", info=await request.info(), newest=newest, **content)


async def minimap(request: PageRequest) -> Response:
    """Show the map: the view's size over the session, with links to its messages."""
    stats = (await request.ask(history.read_stats)).stats
    points = (await request.ask(boundaries.read_timeline)).points
    return request.page(
        "map.html", info=await request.info(), data=course(points, stats), slices=slices(points)
    )


async def panel_content(request: PageRequest, name: str, stats: StatsResult) -> dict[str, Any]:
    """Return the context of a panel; the first panel for an unknown name."""
    name = name if name in PANELS else next(iter(PANELS))
    words = request.query.get("q", "")[:1_000]
    context: dict[str, Any] = {"panel": name, "stats": stats.stats, "spent": stats.spent, "q": words}
    if name == "recall":
        query = RecallQuery(words)
        data = await request.ask(history.recall, query=query) if words.strip() else HitList([])
    else:
        data = await request.ask(PANELS[name][1])
    match name:
        case "view":
            view = cast("ViewResult", data)
            left_out = max(0, len(view.messages) - FIRST - NEWEST)
            shown = [*view.messages[:FIRST], *view.messages[-NEWEST:]] if left_out else view.messages
            context["shown"] = [sent(message, view.dialect) for message in shown]
            context |= {"left_out": left_out, "first": FIRST}
        case "receipts":
            context["lifts"] = await _can_undo(request, cast("BoundaryList", data).boundaries)
        case "rules":
            context["pinned"] = (await request.ask(messages.list_pins)).pins
        case "tokens":
            data = course(cast("Timeline", data).points, stats.stats)
            items = (await request.history(LATEST)).items
            context["largest"] = largest((item for item in items if isinstance(item, ShownMessage)), LARGEST)
        case _:
            pass
    return {**context, "data": data}
