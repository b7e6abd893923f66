"""One session as a page: its whole history with the folds in it, the meter, and a panel beside it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import RedirectResponse, Response

from foldline.core.log.codec import encode_utf8
from foldline.core.log.log import digest
from foldline.exports import agents
from foldline.service.api import boundaries, history, sessions, transfers
from foldline.service.api.history import (
    HistoryPage,
    HistoryResult,
    ShownBoundary,
    ShownMessage,
)
from foldline.service.web.meter import meter
from foldline.service.web.page_request import BASE, PageRequest, to_session
from foldline.service.web.panels import PANELS, panel_content
from foldline.service.web.rendering import segment
from foldline.session.links import is_start, links

PAGE: Final = 50  # messages and boundaries at once
LIVE: Final = 1_000  # that may come between two looks
PASSED: Final = ("panel", "q", "notice")  # what a page tells another one on the way to a message
Item = ShownMessage | ShownBoundary


class Group(msgspec.Struct, frozen=True):
    """Folded messages in a row, with the boundaries among them; or one item that is not folded.

    `fold` stands where what follows is sent: its summary is what the model reads instead.
    """

    folded: bool
    members: list[Item]
    fold: ShownBoundary | None = None

    @property
    def messages(self) -> list[ShownMessage]:
        """The messages of it."""
        return [one for one in self.members if isinstance(one, ShownMessage)]

    @property
    def tokens(self) -> int:
        """Their size."""
        return sum(one.tokens for one in self.messages)


def grouped(items: Sequence[Item], fold: ShownBoundary | None) -> list[Group]:
    """Return items with folded messages in a row put together, with boundaries and excluded ones between.

    `fold` is the newest fold that holds.
    """
    inside = [isinstance(one, ShownMessage) and one.how == "folded" for one in items]
    places = [number for number, folded in enumerate(inside) if folded]
    for last, following in pairwise(places):
        between = range(last + 1, following)
        if all(_may_be_inside(items[number]) for number in between):
            for number in between:
                inside[number] = True
    found: list[Group] = []
    for one, folded in zip(items, inside, strict=True):
        if folded and found and found[-1].folded:
            found[-1].members.append(one)
        else:
            found.append(Group(folded, [one]))
    last = max((number for number, one in enumerate(found) if one.folded), default=len(found))
    if last < len(found) - 1:
        found[last] = msgspec.structs.replace(found[last], fold=fold)
    return found


def _may_be_inside(one: Item) -> bool:
    return isinstance(one, ShownBoundary) or one.how == "excluded"


def newest_fold(boundaries: Sequence[ShownBoundary]) -> ShownBoundary | None:
    """Return the newest fold that was not undone."""
    made = (one for one in reversed(boundaries) if one.made == "compaction" and not one.undone)
    return next(made, None)


def state_of(items: Sequence[Item]) -> str:
    """Return a word that changes where an item that is shown has changed: by a fold, an undo, a pin."""
    looks = [
        [one.entry, *([one.how, one.pinned] if isinstance(one, ShownMessage) else [one.undone])]
        for one in items
    ]
    return digest(encode_utf8(looks))[:16]


async def session_page(asked: PageRequest) -> Response:
    """Show a session."""
    query = asked.request.query_params
    before = query.get("before") or None
    found = await asked.ask(history.read_history, query=HistoryPage(PAGE, before))
    head = await _head(asked)
    formats = await asked.ask(transfers.list_formats)
    return asked.page(
        "session.html",
        here="sessions",
        later=before,
        **head,
        **_shown(found, found.items, found.before, head["boundaries"], newest=not before),
        **await panel_content(asked, query.get("panel", ""), head["figures"]),
        formats=formats.formats,
        agents=agents(),
        notice=query.get("notice", "")[:500],
        problem=query.get("problem", "")[:500],
        draft=query.get("draft", "")[:20_000],
        panels=PANELS,
    )


async def _head(asked: PageRequest) -> dict[str, Any]:
    """Return what stands above the history, and changes with it: figures, meter, what can be done."""
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
        "gauge": meter(figures.stats),
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
) -> dict[str, Any]:
    """Return what a part of a history is made of; `newest` says that more may come behind it."""
    said = [one for one in found.items[-PAGE:] if isinstance(one, ShownMessage)]
    return {
        "groups": grouped(items, newest_fold(boundaries)),
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
    detail = await asked.ask(sessions.show_session)
    folds = (await asked.ask(boundaries.list_boundaries)).boundaries
    shown = _shown(found, found.items, found.before, folds)
    return asked.page("earlier.html", info=detail.info, **shown)


async def since(asked: PageRequest) -> Response:
    """Show what was said since the page was made, or the history anew where something of it has changed."""
    known = asked.request.query_params
    if (await asked.tenant.store.leaf(asked.session) or "") == known.get("leaf"):  # asked every second
        return Response(status_code=204)
    found = await asked.ask(history.read_history, query=HistoryPage(LIVE))
    head = await _head(asked)  # behind it: what comes between is told at the next look
    places = [number for number, one in enumerate(found.items) if one.entry == known.get("last")]
    end = places[0] + 1 if places else 0
    old, new = found.items[:end], found.items[end:]
    anew = not old or state_of(old[-PAGE:]) != known.get("state")
    before = found.before if len(found.items) <= PAGE else found.items[-PAGE].entry
    shown = _shown(found, found.items[-PAGE:] if anew else new, before, head["boundaries"])
    changed = {"hx-trigger": "changed"}  # the panel asks for itself
    if not anew:
        return asked.page("since.html", headers=changed, **head, **shown)
    headers = {**changed, "hx-retarget": "#history", "hx-reswap": "innerHTML"}
    return asked.page("anew.html", headers=headers, **head, **shown)


async def at(asked: PageRequest) -> Response:
    """Lead to a message, wherever it stands in the history, or in that of a session this one came from."""
    entry, store = asked.request.path_params["entry"], asked.tenant.store
    query = {name: text for name, text in asked.request.query_params.items() if name in PASSED}
    if any(one.id == entry for one in await store.tail(asked.session, PAGE // 2)):
        return to_session(asked.session, at=f"e-{entry}", **query)
    stored = [one.id async for one in store.path(asked.session)]
    if entry in stored:
        before = next(iter(stored[stored.index(entry) + 1 + PAGE // 2 :]), None)
        return to_session(asked.session, at=f"e-{entry}", **query, **({"before": before} if before else {}))
    here = await store.entry(asked.session, entry) is not None
    for link in () if here else reversed(await links(store, asked.session)):
        if link.way == "from" and await store.entry(link.session, entry) is not None:
            place = f"{BASE}/s/{segment(link.session)}/at/{segment(entry)}"
            return RedirectResponse(f"{place}?{urlencode(query)}", 303)
    return to_session(asked.session, **{**query, "notice": "That message stands on another branch."})
