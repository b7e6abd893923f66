"""One session as a page: its whole history with the folds in it, the meter, and what stands beside it.

Beside the history is one panel at a time, and a map. The page is asked for whole at first, and then every
second for what is new, which htmx puts in its place.
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
from foldline.service.api.transfers import ExportQuery
from foldline.service.web import prose
from foldline.service.web.meter import course, meter, slices
from foldline.service.web.page_request import BASE, RAW, PageRequest, to_session
from foldline.service.web.rendering import segment
from foldline.service.web.shown import Item, answers, grouped, largest, newest_fold, sent, state_of, within
from foldline.session.links import is_start, links
from foldline.session.tree import prompt_at
from foldline.waiting import aside

PAGE: Final = 50  # messages and boundaries at once
LIVE: Final = 1_000  # that may come between two looks, or stand on an open page
FIRST_SHOWN: Final = "foldline-first"  # the header in which such a page tells its first message
NOTHING_TOLD: Final[dict[str, Any]] = {"notice": "", "problem": "", "undo": ""}
PASSED: Final = ("panel", "q", "notice", "undo")  # what a page tells another one on the way to a message
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


async def session_page(
    asked: PageRequest, status: int = 200, *, problem: str = "", draft: str = ""
) -> Response:
    """Show a session; `problem` and `draft` are those of a message that could not be said."""
    query = asked.request.query_params
    told: dict[str, Any] = {name: query.get(name, "")[:500] for name in ("notice", "problem", "undo")}
    told["problem"] = problem or told["problem"]
    before = None if asked.partial else query.get("before") or None
    found = await asked.history(LIVE if asked.partial else PAGE, before)
    head = await _head(asked, found.items)
    shown = _shown(found, *_on_page(asked, found), head["boundaries"], newest=not before)
    if asked.partial:  # what a button led to: what has changed goes into the page that is there
        changed = {"hx-trigger": "changed", "hx-trigger-after-settle": "folded" if told["undo"] else "done"}
        return asked.page("in_place.html", headers=changed, later=None, **head, **shown, **told)
    formats = await asked.ask(transfers.list_formats)
    return asked.page(
        "session.html",
        status,
        here="sessions",
        later=before,
        **head,
        **shown,
        **await panel_content(asked, query.get("panel", ""), head["figures"]),
        formats=formats.formats,
        agents=agents(),
        panels=PANELS,
        draft=draft or await _draft(asked, query.get("draft_of", "")),
        **told,
    )


async def _draft(asked: PageRequest, entry: str) -> str:
    """Return the user's text at an entry, or before it, which is edited and said anew."""
    try:
        found = await prompt_at(asked.tenant.store, asked.session, None, entry or None)
    except InputError:
        return ""
    return found.message.text


async def _head(asked: PageRequest, items: Sequence[Item]) -> dict[str, Any]:
    """Return what stands above a history, and changes with it: figures, meter, what can be done."""
    detail = await asked.ask(sessions.show_session)
    figures = await asked.ask(history.read_stats)
    folds = (await asked.ask(boundaries.list_boundaries)).boundaries
    return {
        "info": detail.info,
        "heading": (await asked.savings.names([detail.info]))[asked.session],
        "policy": detail.policy,
        "links": detail.links,
        "model": detail.model,
        "figures": figures,
        "gauge": meter(figures, [one for one in items[-PAGE:] if isinstance(one, ShownMessage)]),
        "boundaries": folds,
        "pruned": any(one.made == "prune" and not one.undone for one in folds),
        "can_undo": await _can_undo(asked, folds),
        "can_redo": bool(folds) and folds[-1].undone,
        "can_talk": bool(asked.models.usual),
    }


async def _can_undo(asked: PageRequest, boundaries: Sequence[ShownBoundary]) -> bool:
    newest = next((one.entry for one in reversed(boundaries) if not one.undone), None)
    return newest is not None and not await is_start(asked.tenant.store, asked.session, newest)


def _shown(
    found: HistoryResult,
    items: Sequence[Item],
    before: str | None,
    boundaries: Sequence[ShownBoundary],
    *,
    newest: bool = True,
    known: Sequence[Item] = (),
) -> dict[str, Any]:
    """Return what a part of a history is made of; `newest` says that more may come behind it.

    `known` are the messages before it that the page shows already: what their calls are answered is `late`.
    """
    said = [one for one in found.items[-PAGE:] if isinstance(one, ShownMessage)]
    answered = answers([*known, *items])
    before_it, new = {one.entry for one in known}, {one.entry for one in items}
    fold = newest_fold(boundaries)
    return {
        "groups": grouped(items, fold, newest=newest),
        "answers": answered,
        "within": within(answered),
        "late": [
            (place, one)
            for place, one in answered.items()
            if place[0] in before_it and one.message.entry in new
        ],
        "fold": fold,
        "before": before,
        "newest": newest,
        "waits": newest and bool(said) and said[-1].role in ("user", "tool"),
        "leaf": found.leaf or "",
        "last": found.items[-1].entry if found.items else "",
        "state": state_of(found.items[-PAGE:]),
    }


def _on_page(asked: PageRequest, found: HistoryResult) -> tuple[Sequence[Item], str | None]:
    """Return what a page shows of a history, and before which entry there is more.

    It is the newest `PAGE`; or what an open page shows, which tells its first message.
    """
    items, first = found.items, asked.request.headers.get(FIRST_SHOWN)
    start = max(0, len(items) - PAGE)
    if (told := next((n for n, one in enumerate(items[:start]) if one.entry == first), None)) is not None:
        start = told
        while start and not isinstance(items[start - 1], ShownMessage):
            start -= 1
    return items[start:], items[start].entry if start else found.before


async def earlier(asked: PageRequest) -> Response:
    """Show the messages before one."""
    before = asked.request.query_params.get("before") or None
    found = await asked.history(PAGE, before)
    head = await _head(asked, found.items)
    shown = _shown(found, found.items, found.before, head["boundaries"], newest=False)
    return asked.page("earlier.html", **head, **shown)


async def since(asked: PageRequest) -> Response:
    """Show what was said since the page was made, or the history anew where something of it has changed."""
    known = asked.request.query_params
    if (await asked.tenant.store.leaf(asked.session) or "") == known.get("leaf"):  # asked every second
        return Response(status_code=204)
    found = await asked.history(LIVE)
    head = await _head(asked, found.items)  # behind it: what comes between is told at the next look
    places = [number for number, one in enumerate(found.items) if one.entry == known.get("last")]
    end = places[0] + 1 if places else 0
    old, new = found.items[:end], found.items[end:]
    anew = not old or state_of(old[-PAGE:]) != known.get("state")
    whole, before = _on_page(asked, found)
    items, shown_already = (whole, []) if anew else (new, old[-PAGE:])
    shown = _shown(found, items, before, head["boundaries"], known=shown_already)
    changed = {"hx-trigger": "changed"}  # the panel asks for itself
    if not anew:
        return asked.page("since.html", headers=changed, **head, **shown)
    return asked.page("in_place.html", headers=changed, later=None, **head, **shown, **NOTHING_TOLD)


async def raw(asked: PageRequest) -> Response:
    """Show texts as they were written from now on, or rendered again."""
    answer = asked.back()
    wanted = asked.request.query_params.get("on") == "1"
    answer.set_cookie(RAW, "1" if wanted else "", path=BASE, samesite="strict", httponly=True)
    return answer


async def at(asked: PageRequest) -> Response:
    """Lead to a message, wherever it stands in the history, or in that of a session this one came from."""
    entry, store = asked.request.path_params["entry"], asked.tenant.store
    place = f"e-{entry}"
    found = await store.entry(asked.session, entry)
    if isinstance(found, Compacted) and found.first_kept:
        newest = newest_fold((await asked.ask(boundaries.list_boundaries)).boundaries)
        if newest is not None and newest.entry == entry:
            entry = found.first_kept  # where its mark is, on whatever page it stands itself
    query = {name: text for name, text in asked.request.query_params.items() if name in PASSED}
    if any(one.id == entry for one in await store.tail(asked.session, PAGE // 2)):
        return to_session(asked.session, at=place, **query)
    stored = [one.id async for one in store.path(asked.session)]
    if entry in stored:
        before = next(iter(stored[stored.index(entry) + 1 + PAGE // 2 :]), None)
        return to_session(asked.session, at=place, **query, **({"before": before} if before else {}))
    for link in () if found is not None else reversed(await links(store, asked.session)):
        if link.way == "from" and await store.entry(link.session, entry) is not None:
            there = f"{BASE}/s/{segment(link.session)}/at/{segment(entry)}"
            return RedirectResponse(f"{there}?{urlencode(query)}", 303)
    return to_session(asked.session, **{**query, "notice": "That message stands on another branch."})


async def print_page(asked: PageRequest) -> Response:
    """Show all that was said and where it was folded on one page, for paper; long results are shortened."""
    info = await asked.info()
    found = await asked.ask(transfers.export_session, query=ExportQuery("markdown"))
    raw = bytes(found.body)
    content = await aside(len(raw), lambda: prose.unkept(raw.decode("utf-8", "replace")))
    names = await asked.savings.names([info])
    return asked.page("print.html", here="sessions", info=info, heading=names[info.id], content=content)


# ---- what stands beside a history: the view as it is sent, folds, rules, ledger, tokens, branches, recall


async def panel(asked: PageRequest) -> Response:
    """Show a panel."""
    name = asked.request.path_params["panel"]
    if name not in OPERATION:
        return asked.problem(404, "No such panel", "")
    if not asked.partial:
        query = asked.request.url.query
        place = f"{BASE}/s/{segment(asked.session)}?panel={name}"
        return RedirectResponse(f"{place}&{query}" if query else place, 303)
    content = await panel_content(asked, name, await asked.ask(history.read_stats))
    newest = "before=" not in asked.request.headers.get("hx-current-url", "")
    return asked.page("panel.html", info=await asked.info(), newest=newest, **content)


async def minimap(asked: PageRequest) -> Response:
    """Show the session by the size of what was sent: beside the history, where it leads to any message."""
    stats = (await asked.ask(history.read_stats)).stats
    points = (await asked.ask(boundaries.read_timeline)).points
    return asked.page("map.html", info=await asked.info(), data=course(points, stats), slices=slices(points))


async def panel_content(asked: PageRequest, name: str, stats: StatsResult) -> dict[str, Any]:
    """Return what a panel is made of; the first one for a name that there is not."""
    name = name if name in OPERATION else PANELS[0][0]
    words = asked.request.query_params.get("q", "")[:1_000]
    given: dict[str, Any] = {"panel": name, "stats": stats.stats, "spent": stats.spent, "q": words}
    if name == "recall":
        found = await asked.ask(history.recall, query=RecallQuery(words)) if words.strip() else NO_HITS
    else:
        found = await asked.ask(OPERATION[name])
    match name:
        case "view":
            view = cast("ViewResult", found)
            whole = view.messages
            out = max(0, len(whole) - FIRST - NEWEST)
            shown = [*whole[:FIRST], *whole[-NEWEST:]] if out else whole
            given |= {"shown": [sent(one, view.dialect) for one in shown], "left_out": out, "first": FIRST}
        case "receipts":
            given["lifts"] = await _can_undo(asked, cast("BoundaryList", found).boundaries)
        case "rules":
            given["pinned"] = (await asked.ask(messages.list_pins)).pins
        case "tokens":
            found = course(cast("Timeline", found).points, stats.stats)
            latest = (await asked.history(LATEST)).items
            given["largest"] = largest([one for one in latest if isinstance(one, ShownMessage)], LARGEST)
        case _:
            pass
    return {**given, "data": found}
