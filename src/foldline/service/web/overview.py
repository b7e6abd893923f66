"""All sessions together: what they cost and what folds saved, by day, agent and model."""

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

DAYS: Final = 30  # that are drawn
DAY: Final = 86_400
HEIGHT: Final = 120.0  # of the drawing; a day is 10 wide


class SumLine(msgspec.Struct, frozen=True):
    """A line of a table: what is summed, how many sessions have it, the sum."""

    name: str
    sessions: int
    sum: Sum


class Bar(msgspec.Struct, frozen=True):
    """A day as it is drawn: its sum, and where its bar stands."""

    day: str
    sum: Sum
    x: int
    height: float


async def overview_page(asked: PageRequest) -> Response:
    """Show what all sessions come to; to htmx the part that changes."""
    await asked.ask(list_sessions, query=SessionPage(1))  # whether it may be read
    sessions = await asked.tenant.store.sessions()
    known = await asked.savings.look(sessions)
    found = list(known.values())
    sums = [
        (one, day, model, sum_) for one in found for day, by in one.days.items() for model, sum_ in by.items()
    ]
    by_day = {line.name: line.sum for line in _lines(sums, lambda _, day, __: day)}
    given: dict[str, Any] = {
        "whole": summed(one for *_, one in sums),
        "sessions": len(sessions),
        "messages": sum(one.messages for one in sessions),
        "folds": sum(one.at.folds for one in found),
        "behind": len(sessions) - sum(1 for one in sessions if one.id in known) or asked.savings.behind,
        "agents": _lines(sums, lambda one, _, __: one.agent),
        "models": _lines(sums, lambda _, __, model: model_name(model)),
        "bars": bars(by_day, time.time()),
        "undated": by_day.get(UNKNOWN),
    }
    state = digest(encode_utf8(given))[:16]
    if asked.partial and asked.request.query_params.get("state") == state:  # asked every few seconds
        return Response(status_code=204)
    template = "overview_part.html" if asked.partial else "overview.html"
    return asked.page(template, here="overview", height=HEIGHT, state=state, **given)


Part = tuple[Savings, str, str, Sum]


def _lines(parts: Iterable[Part], key: Callable[[Savings, str, str], str]) -> list[SumLine]:
    """Return sums by a key, the one that saved most first."""
    found: dict[str, tuple[set[int], list[Sum]]] = {}
    for one, day, model, sum_ in parts:
        who, sums = found.setdefault(key(one, day, model), (set(), []))
        who.add(id(one))
        sums.append(sum_)
    lines = [SumLine(name, len(who), summed(sums)) for name, (who, sums) in found.items()]
    return sorted(lines, key=lambda line: (-line.sum.saved, -line.sum.usd, line.name))


def bars(by_day: dict[str, Sum], now: float) -> list[Bar]:
    """Return the newest days as they are drawn, by what was saved; the largest fills the height."""
    days = [time.strftime("%Y-%m-%d", time.gmtime(now - DAY * back)) for back in reversed(range(DAYS))]
    sums = [by_day.get(day, Sum()) for day in days]
    most = max(one.saved for one in sums) or 1
    return [
        Bar(day, one, 10 * number, round(HEIGHT * one.saved / most, 1))
        for number, (day, one) in enumerate(zip(days, sums, strict=True))
    ]
