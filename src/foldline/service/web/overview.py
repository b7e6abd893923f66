"""The overview of all sessions: cost and savings by day, agent and model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from starlette.responses import Response

from foldline.core.log.codec import encode_utf8
from foldline.core.log.log import digest
from foldline.service.api.sessions import SessionPage, list_sessions
from foldline.service.web.page_request import PageRequest
from foldline.service.web.rendering import model_name
from foldline.service.web.savings import UNKNOWN, Savings, Sum, summed

DAYS: Final = 30  # in the drawing
DAY: Final = 86_400
HEIGHT: Final = 120.0  # of the drawing; a day is 10 wide


class SumLine(msgspec.Struct, frozen=True):
    """A line of a table: a name, its number of sessions, and their sum."""

    name: str
    sessions: int
    sum: Sum


class Bar(msgspec.Struct, frozen=True):
    """The bar of a day: its sum, place and height."""

    day: str
    sum: Sum
    x: int
    height: float


async def overview_page(request: PageRequest) -> Response:
    """Show the sums of all sessions; htmx gets only the part that changes."""
    await request.ask(list_sessions, query=SessionPage(1))  # checks the scope of the token
    sessions = await request.tenant.store.sessions()
    known = await request.savings.look(sessions)
    parts = [
        (savings, day, model, total)
        for savings in known.values()
        for day, models in savings.days.items()
        for model, total in models.items()
    ]
    by_day = {line.name: line.sum for line in _lines(parts, lambda _, day, __: day)}
    context: dict[str, Any] = {
        "whole": summed(total for *_, total in parts),
        "sessions": len(sessions),
        "messages": sum(info.messages for info in sessions),
        "folds": sum(savings.at.folds for savings in known.values()),
        "behind": len(sessions) - sum(info.id in known for info in sessions) or request.savings.behind,
        "agents": _lines(parts, lambda savings, _, __: savings.agent),
        "models": _lines(parts, lambda _, __, model: model_name(model)),
        "bars": bars(by_day, time.time()),
        "undated": by_day.get(UNKNOWN),
    }
    state = digest(encode_utf8(context))[:16]
    if request.partial and request.query.get("state") == state:  # polled every few seconds
        return Response(status_code=204)
    template = "overview_part.html" if request.partial else "overview.html"
    return request.page(template, here="overview", height=HEIGHT, state=state, **context)


Part = tuple[Savings, str, str, Sum]


def _lines(parts: Iterable[Part], key: Callable[[Savings, str, str], str]) -> list[SumLine]:
    """Return sums by a key, the largest savings first."""
    groups: dict[str, tuple[set[int], list[Sum]]] = {}
    for savings, day, model, total in parts:
        sessions, totals = groups.setdefault(key(savings, day, model), (set(), []))
        sessions.add(id(savings))
        totals.append(total)
    lines = [SumLine(name, len(sessions), summed(totals)) for name, (sessions, totals) in groups.items()]
    return sorted(lines, key=lambda line: (-line.sum.saved, -line.sum.usd, line.name))


def bars(by_day: dict[str, Sum], now: float) -> list[Bar]:
    """Return the bars of the newest days by their savings; the largest has the full height."""
    days = [time.strftime("%Y-%m-%d", time.gmtime(now - DAY * back)) for back in reversed(range(DAYS))]
    sums = [by_day.get(day, Sum()) for day in days]
    most = max(total.saved for total in sums) or 1
    return [
        Bar(day, total, 10 * number, round(HEIGHT * total.saved / most, 1))
        for number, (day, total) in enumerate(zip(days, sums, strict=True))
    ]
