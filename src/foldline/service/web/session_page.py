"""One session as a page: its whole history with the folds in it, the meter, and a panel beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from foldline.core.log.entries import Compacted
from foldline.exports import agents
from foldline.service.api import boundaries, history, sessions, transfers
from foldline.service.api.history import (
    HistoryPage,
    HistoryResult,
    ShownBoundary,
    ShownMessage,
)
from foldline.service.web.grouping import Item, answers, grouped, newest_fold, state_of, within
from foldline.service.web.meter import meter
from foldline.service.web.page_request import BASE, RAW, PageRequest, to_session
from foldline.service.web.panels import PANELS, panel_content
from foldline.service.web.rendering import segment
from foldline.session.links import is_start, links

PAGE: Final = 50  # messages and boundaries at once
LIVE: Final = 1_000  # that may come between two looks
NOTHING_TOLD: Final[dict[str, Any]] = {"notice": "", "problem": "", "undo": ""}
PASSED: Final = ("panel", "q", "notice", "undo")  # what a page tells another one on the way to a message


async def session_page(asked: PageRequest) -> Response:
    """Show a session."""
    query = asked.request.query_params
    told: dict[str, Any] = {name: query.get(name, "")[:500] for name in ("notice", "problem", "undo")}
    before = None if asked.partial else query.get("before") or None
    found = await asked.ask(history.read_history, query=HistoryPage(PAGE, before))
    head = await _head(asked, found.items)
    shown = _shown(found, found.items, found.before, head["boundaries"], newest=not before)
    if asked.partial:  # what a button led to: what has changed goes into the page that is there
        changed = {"hx-trigger": "changed", "hx-trigger-after-settle": "folded" if told["undo"] else "done"}
        return asked.page("in_place.html", headers=changed, later=None, **head, **shown, **told)
    formats = await asked.ask(transfers.list_formats)
    return asked.page(
        "session.html",
        here="sessions",
        later=before,
        **head,
        **shown,
        **await panel_content(asked, query.get("panel", ""), head["figures"]),
        formats=formats.formats,
        agents=agents(),
        **told,
        draft=query.get("draft", "")[:20_000],
        panels=PANELS,
    )


async def _head(asked: PageRequest, items: Sequence[Item]) -> dict[str, Any]:
    """Return what stands above a history, and changes with it: figures, meter, what can be done."""
    detail = await asked.ask(sessions.show_session)
    figures = await asked.ask(history.read_stats)
    folds = (await asked.ask(boundaries.list_boundaries)).boundaries
    names = await asked.pages.beginnings.names(asked.tenant, [detail.info])
    return {
        "info": detail.info,
        "heading": names[asked.session],
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


async def earlier(asked: PageRequest) -> Response:
    """Show the messages before one."""
    before = asked.request.query_params.get("before") or None
    found = await asked.ask(history.read_history, query=HistoryPage(PAGE, before))
    head = await _head(asked, found.items)
    shown = _shown(found, found.items, found.before, head["boundaries"], newest=False)
    return asked.page("earlier.html", **head, **shown)


async def since(asked: PageRequest) -> Response:
    """Show what was said since the page was made, or the history anew where something of it has changed."""
    known = asked.request.query_params
    if (await asked.tenant.store.leaf(asked.session) or "") == known.get("leaf"):  # asked every second
        return Response(status_code=204)
    found = await asked.ask(history.read_history, query=HistoryPage(LIVE))
    head = await _head(asked, found.items)  # behind it: what comes between is told at the next look
    places = [number for number, one in enumerate(found.items) if one.entry == known.get("last")]
    end = places[0] + 1 if places else 0
    old, new = found.items[:end], found.items[end:]
    anew = not old or state_of(old[-PAGE:]) != known.get("state")
    before = found.before if len(found.items) <= PAGE else found.items[-PAGE].entry
    items, shown_already = (found.items[-PAGE:], []) if anew else (new, old[-PAGE:])
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
        entry = found.first_kept  # where its mark is
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
