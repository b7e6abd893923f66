"""How long does each click on a session of 20,000 messages take? Its page is asked of a service over loopback.

The session was folded on the way, by the default policy at a window of 200,000 tokens, as a long one is.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import httpx2
from budgets.gateway import running
from budgets.table import Row

import foldline
from foldline.bench.corpus import Talk
from foldline.errors import CallsOpen
from foldline.service.web.session_page import PANELS

BUDGET = 1_000.0  # ms
STEP = 40  # messages between two looks at what is sent
ENTRY = re.compile(r'id="e-([^"]+)"')


async def fill(url: str, messages: int) -> None:
    """Write a session, folded as it grows."""
    talk = Talk().messages(messages)
    async with foldline.open(url, "long", window=200_000) as session:
        for start in range(0, len(talk), STEP):
            await session.append(*talk[start : start + STEP])
            with suppress(CallsOpen):
                await session.context()


class Clicks:
    """Clicks on the page of one session, each timed."""

    def __init__(self, client: httpx2.Client, rows: list[Row]) -> None:
        self.client = client
        self.rows = rows

    def look(self, what: str, place: str = "", *, partial: bool = False) -> str:
        """Load a page, or a part of one; returns it."""
        headers = {"hx-request": "true"} if partial else {}
        return self._timed(what, "GET", f"/web/s/long{place}", headers).text

    def act(self, what: str, place: str, **fields: str) -> None:
        """Press a button; the page behind it is loaded as well."""
        self._timed(what, "POST", f"/web/s/long/{place}", {"origin": str(self.client.base_url)}, fields)

    def _timed(
        self, what: str, method: str, path: str, headers: dict[str, str], fields: dict[str, str] | None = None
    ) -> httpx2.Response:
        start = time.perf_counter()
        answer = self.client.request(method, path, headers=headers, data=fields, follow_redirects=True)
        self.rows.append(Row(f"page: {what}", (time.perf_counter() - start) * 1e3, "ms", most=BUDGET))
        answer.raise_for_status()
        return answer


def walk(clicks: Clicks) -> None:
    """Open a session, look at everything, and do everything but a fork, which copies it."""
    page = clicks.look("first paint, service just begun")
    clicks.look("again")
    for panel in PANELS:
        clicks.look(f"panel {panel}", f"/panel/{panel}?q=config", partial=True)
    first, *_, last = _entries(page)
    clicks.look("earlier messages", f"/earlier?before={first}", partial=True)
    clicks.act("pin", "do/pin", entry=last)
    clicks.act("preview", "preview", instructions="the parser")
    clicks.act("fold", "do/compact", instructions="the parser")
    clicks.act("undo", "do/undo")
    clicks.act("redo", "do/redo")
    clicks.act("branch", "do/branch", entry=first)
    clicks.act("rewind", "do/rewind", entry="")


def _entries(page: str) -> Sequence[str]:
    return ENTRY.findall(page)


def main(*, full: bool = False) -> list[Row]:
    """Measure a session of 20,000 messages (2,000 in the quick run)."""
    messages = 20_000 if full else 2_000
    rows = list[Row]()
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".budgets-") as name:
        url = f"sqlite:///{Path(name) / 'page.db'}"
        asyncio.run(fill(url, messages))
        with (
            running("-m", "foldline", "serve", "--port", "0", "--window", "200000", "--store", url) as (
                at,
                _,
            ),
            httpx2.Client(base_url=at, timeout=60) as client,
        ):
            walk(Clicks(client, rows))
    return [row._replace(what=f"{row.what}, {messages:,} messages") for row in rows]
