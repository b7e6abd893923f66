"""One session as a page: its whole history with the folds in it, the meter, and a panel beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec
from starlette.responses import RedirectResponse, Response

from foldline.core.log.log import digest
from foldline.service.api.boundaries import Timeline
from foldline.service.api.history import (
    HistoryPage,
    HistoryResult,
    RecallQuery,
    ShownBoundary,
    ShownMessage,
    StatsResult,
    ViewResult,
)
from foldline.service.web.meter import course, meter
from foldline.service.web.page_request import BASE, PageRequest
from foldline.service.web.rendering import segment

PAGE: Final = 50  # messages and boundaries at once
FIRST, NEWEST = 20, 180  # messages of a long view that are shown as they are sent
LIVE: Final = 1_000  # that may come between two looks
PANELS: Final = (
    ("view", "Sent"),
    ("receipts", "Folds"),
    ("rules", "Rules"),
    ("ledger", "Ledger"),
    ("course", "Course"),
    ("tree", "Branches"),
    ("recall", "Recall"),
)
OPERATION: Final = {  # that a panel shows
    "view": "readView",
    "receipts": "listBoundaries",
    "rules": "listConstraints",
    "ledger": "readLedger",
    "course": "readTimeline",
    "tree": "listBranches",
    "recall": "recall",
}
NO_HITS: Final[dict[str, Any]] = {"hits": []}
Item = ShownMessage | ShownBoundary


class Group(msgspec.Struct, frozen=True):
    """Folded messages in a row, or one item that is not folded."""

    folded: bool
    members: list[Item]
    tokens: int = 0


def grouped(items: Sequence[Item]) -> list[Group]:
    """Return items with folded messages in a row put together."""
    found: list[Group] = []
    for one in items:
        folded = isinstance(one, ShownMessage) and one.how == "folded"
        if folded and found and found[-1].folded:
            found[-1].members.append(one)
        else:
            found.append(Group(folded, [one]))
    return [
        msgspec.structs.replace(group, tokens=sum(getattr(one, "tokens", 0) for one in group.members))
        for group in found
    ]


def state_of(items: Sequence[Item]) -> str:
    """Return a word that changes where an item that is shown has changed: by a fold, an undo, a pin."""
    looks = [
        [one.entry, *([one.how, one.pinned] if isinstance(one, ShownMessage) else [one.undone])]
        for one in items
    ]
    return digest(msgspec.json.encode(looks))[:16]


async def session_page(asked: PageRequest) -> Response:
    """Show a session."""
    query = asked.request.query_params
    panel = query.get("panel", "view")
    panel = panel if panel in OPERATION else "view"
    shown = await _history(asked, query.get("before"))
    detail = await asked.answer("showSession")
    stats: StatsResult = await asked.answer("readStats")
    formats = await asked.answer("listFormats")
    return asked.page(
        "session.html",
        here="sessions",
        **shown,
        **await _panel(asked, panel, stats),
        policy=detail.policy,
        links=detail.links,
        model=detail.model,
        spent=stats.spent,
        gauge=meter(stats.stats),
        formats=formats.formats,
        can_talk=bool(asked.models.usual),
        notice=query.get("notice", "")[:500],
        problem=query.get("problem", "")[:500],
        draft=query.get("draft", "")[:20_000],
        panels=PANELS,
    )


async def _history(asked: PageRequest, before: str | None, limit: int = PAGE) -> dict[str, Any]:
    """Return what the history of a page is made of."""
    found: HistoryResult = await asked.answer("readHistory", query=HistoryPage(limit, before or None))
    detail = await asked.answer("showSession")
    return {
        "info": detail.info,
        "groups": grouped(found.items),
        "before": found.before,
        "newest": not before,
        "leaf": found.leaf or "",
        "last": found.items[-1].entry if found.items else "",
        "state": state_of(found.items[-PAGE:]),
    }


async def earlier(asked: PageRequest) -> Response:
    """Show the messages before one."""
    return asked.page("earlier.html", **await _history(asked, asked.request.query_params.get("before")))


async def since(asked: PageRequest) -> Response:
    """Show what was said since the page was made, or the history anew where something of it has changed."""
    known = asked.request.query_params
    if (await asked.tenant.store.leaf(asked.session) or "") == known.get("leaf"):  # asked every second
        return Response(status_code=204)
    stats: StatsResult = await asked.answer("readStats")
    found: HistoryResult = await asked.answer("readHistory", query=HistoryPage(LIVE))
    places = [number for number, one in enumerate(found.items) if one.entry == known.get("last")]
    end = places[0] + 1 if places else 0
    old, new = found.items[:end], found.items[end:]
    detail = await asked.answer("showSession")
    anew = not old or state_of(old[-PAGE:]) != known.get("state")
    shown = found.items[-PAGE:] if anew else new
    given: dict[str, Any] = {
        "info": detail.info,
        "groups": grouped(shown),
        "before": found.before if len(found.items) <= PAGE else found.items[-PAGE].entry,
        "newest": True,
        "leaf": found.leaf or "",
        "last": found.items[-1].entry if found.items else "",
        "state": state_of(found.items[-PAGE:]),
        "gauge": meter(stats.stats),
    }
    if not anew:
        return asked.page("since.html", **given)
    headers = {"hx-retarget": "#history", "hx-reswap": "innerHTML"}
    return asked.page("anew.html", headers=headers, **given)


async def panel(asked: PageRequest) -> Response:
    """Show a panel."""
    name = asked.request.path_params["panel"]
    if name not in OPERATION:
        return asked.problem(404, "No such panel", "")
    if not asked.partial:
        query = asked.request.url.query
        place = f"{BASE}/s/{segment(asked.session)}?panel={name}"
        return RedirectResponse(f"{place}&{query}" if query else place, 303)
    stats: StatsResult = await asked.answer("readStats")
    detail = await asked.answer("showSession")
    return asked.page("panel.html", info=detail.info, **await _panel(asked, name, stats))


async def _panel(asked: PageRequest, name: str, stats: StatsResult) -> dict[str, Any]:
    """Return what a panel is made of."""
    words = asked.request.query_params.get("q", "")[:1_000]
    given: dict[str, Any] = {
        "panel": name,
        "stats": stats.stats,
        "q": words,
        "shown": [],
        "left_out": 0,
        "first": FIRST,
        "pinned": [],
    }
    if name == "recall":
        found = await asked.answer("recall", query=RecallQuery(words)) if words.strip() else NO_HITS
        return {**given, "data": found}
    found = await asked.answer(OPERATION[name])
    if name == "view":
        messages = cast("ViewResult", found).messages
        given["left_out"] = max(0, len(messages) - FIRST - NEWEST)
        shown = messages if not given["left_out"] else [*messages[:FIRST], *messages[-NEWEST:]]
        given["shown"] = [_sent(one) for one in shown]
    elif name == "rules":
        entries: HistoryResult = await asked.answer("readHistory", query=HistoryPage(LIVE))
        given["pinned"] = [one for one in entries.items if isinstance(one, ShownMessage) and one.pinned]
    elif name == "course":
        found = course(cast("Timeline", found).points, stats.stats)
    return {**given, "data": found}


def _sent(message: dict[str, Any]) -> dict[str, str]:
    """Return a message of the view: who says it, how it begins, and its JSON."""
    text = msgspec.json.format(msgspec.json.encode(message), indent=2).decode()
    content = message.get("content")
    start = content if isinstance(content, str) else msgspec.json.encode(content or message).decode()
    role = str(message.get("role") or message.get("type") or "")
    return {"role": role, "start": start[:120], "json": text}


async def at(asked: PageRequest) -> Response:
    """Lead to a message, wherever in the history it stands."""
    entry = asked.request.path_params["entry"]
    stored = [one.id async for one in asked.tenant.store.path(asked.session)]
    place = f"{BASE}/s/{segment(asked.session)}"
    if entry not in stored:
        return RedirectResponse(f"{place}?notice=That+message+stands+on+another+branch.", 303)
    behind = stored[stored.index(entry) + 1 :]
    before = next((one for one in behind[PAGE // 2 :]), None)
    return RedirectResponse(f"{place}?before={before}#e-{entry}" if before else f"{place}#e-{entry}", 303)
