"""Replays as every worker sees them: in the store, with how far they are and what they found."""

from __future__ import annotations

import csv
import time
import zlib
from collections.abc import Sequence
from io import StringIO
from typing import Any, Final, Literal

import msgspec

from foldline.errors import StoreError
from foldline.lab.report import MEASURES, PolicyReport, SessionReport
from foldline.service.presence import Presence
from foldline.stores.key_values import pack, unpack

NONE: Final = "none"  # the policy that the others are compared with
COUNTS: Final = ("compactions", "prunes", "overflows", "peak", "calls")
PRICES: Final = ("price", "price_cached", "price_summaries")
SPACE: Final = "replay"
FILE_SPACE: Final = "replay file"
REPORT: Final = "report.json"
PLOTS: Final = ("plot.svg", "plot.png")
FILES: Final = (REPORT, *PLOTS)  # that a replay makes
SECONDS: Final = 86_400.0  # that what was found is kept

ReplayState = Literal["waiting", "running", "done", "failed"]


class ReplayWish(msgspec.Struct, frozen=True):
    """What to replay: the name that a person knows it by, the policies, the window (None: the file's own).

    `session` is the id of one that is kept here; "" for a file.
    """

    label: str
    policies: tuple[str, ...]
    window: int | None = None
    session: str = ""


class ReplayProgress(msgspec.Struct, frozen=True):
    """How many of the messages were replayed."""

    done: int = 0
    total: int = 0


class ComparedPolicy(msgspec.Struct, frozen=True):
    """A row: input tokens (`less`: the share saved against `none`), prices in USD, counts, retention.

    `retention` has the five shares; `scored` of `cuts` places had a view that could be sent.
    """

    policy: str
    input_tokens: int
    less: float | None
    prices: dict[str, float | None]
    counts: dict[str, int]
    retention: dict[str, float | None]
    scored: int
    cuts: int


class ReplayRecord(msgspec.Struct, frozen=True):
    """One replay as it stands; `worker` makes it, `files` are those of it that are kept. Unix times."""

    id: str
    wish: ReplayWish
    worker: str
    asked_at: float
    state: ReplayState = "waiting"
    began: float = 0.0
    ended_at: float = 0.0
    progress: ReplayProgress = ReplayProgress()
    window: int = 0
    rows: list[ComparedPolicy] = []
    warnings: list[str] = []
    error: str = ""
    files: tuple[str, ...] = ()

    @property
    def plots(self) -> list[str]:
        """The drawings that there are."""
        return [name for name in self.files if name in PLOTS]

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self.state in ("done", "failed")

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return (self.ended_at or time.time()) - self.began if self.began else 0.0


class ReplayRecords:
    """The records of one tenant's replays."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._values = presence.values

    async def add(self, record: ReplayRecord) -> None:
        """Tell of a new replay."""
        await self._presence.begin()
        await self._values.add(SPACE, record.id, pack(record), seconds=SECONDS)

    async def update(self, record: ReplayRecord) -> bool:
        """Tell how a replay stands; False where it was dropped."""
        raw = await self._values.get(SPACE, record.id)
        return raw is not None and await self._values.replace(
            SPACE, record.id, raw, pack(record), seconds=SECONDS
        )

    async def find(self, name: str) -> ReplayRecord | None:
        """Return a replay; one whose worker is gone has failed."""
        raw = await self._values.get(SPACE, name)
        found = None if raw is None else unpack(raw, ReplayRecord)
        if found is None or found.ended or await self._presence.alive(found.worker):
            return found
        error = "It was stopped: the service was."
        return msgspec.structs.replace(found, state="failed", ended_at=found.began, error=error)

    async def all(self) -> list[ReplayRecord]:
        """Return every replay, the newest first."""
        found = [await self.find(name) for name in await self._values.keys(SPACE)]
        return sorted((one for one in found if one is not None), key=lambda one: -one.asked_at)

    async def drop(self, name: str) -> None:
        """Forget a replay, and the files that it made; who makes it stops."""
        await self._values.delete(SPACE, name)
        for file in FILES:
            await self._values.delete(FILE_SPACE, f"{name}/{file}")

    async def keep_file(self, record: str, name: str, content: bytes) -> bool:
        """Keep a file that a replay made; False where it is too large."""
        try:
            await self._values.add(FILE_SPACE, f"{record}/{name}", zlib.compress(content), seconds=SECONDS)
        except StoreError:
            return False
        return True

    async def file(self, record: str, name: str) -> bytes | None:
        """Return a file that a replay made."""
        raw = await self._values.get(FILE_SPACE, f"{record}/{name}")
        return None if raw is None else zlib.decompress(raw)


# ---- the table of a replay: one row per policy


class ReplayDocument(msgspec.Struct, frozen=True):
    """What `foldline replay --json` writes."""

    sessions: list[SessionReport]


def compared(session: SessionReport) -> list[ComparedPolicy]:
    """Return the rows of a session."""
    whole = next((one.totals["input_tokens"] for one in session.policies if one.policy == NONE), 0)
    return [_row(one, whole) for one in session.policies]


def _row(one: PolicyReport, whole: int) -> ComparedPolicy:
    sent = one.totals["input_tokens"]
    retention = one.retention or {}
    cuts = retention.get("cuts", [])
    return ComparedPolicy(
        one.policy,
        sent,
        1 - sent / whole if whole and one.policy != NONE else None,
        {name: one.totals[name] for name in PRICES},
        {name: one.totals[name] for name in COUNTS},
        {name: retention.get(name) for name in MEASURES},
        sum(cut["fits"] for cut in cuts),
        len(cuts),
    )


def as_csv(rows: Sequence[ComparedPolicy]) -> str:
    """Return rows as CSV; what is unknown is empty."""
    target = StringIO()
    found = [_flat(row) for row in rows]
    writer = csv.DictWriter(target, list(found[0]) if found else [])
    writer.writeheader()
    writer.writerows(found)
    return target.getvalue()


def _flat(row: ComparedPolicy) -> dict[str, Any]:
    return {
        "policy": row.policy,
        "input_tokens": row.input_tokens,
        "less": None if row.less is None else round(row.less, 4),
        **row.prices,
        **row.counts,
        **row.retention,
        "cuts_scored": row.scored,
        "cuts": row.cuts,
    }
