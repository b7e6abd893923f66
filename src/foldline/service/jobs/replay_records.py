"""The stored records of replays: their progress and results, for all workers."""

from __future__ import annotations

import csv
import logging
import time
import zlib
from collections.abc import Sequence
from io import StringIO
from typing import Final, Literal

import msgspec

from foldline.errors import StoreError
from foldline.lab.report import MEASURES, PolicyReport, SessionReport
from foldline.service.presence import Presence
from foldline.stores.key_values import pack, unpack

log = logging.getLogger("foldline")

NONE: Final = "none"  # the policy that the others are compare_policies with
COUNTS: Final = ("compactions", "prunes", "overflows", "peak", "calls")
PRICES: Final = ("price", "price_cached", "price_summaries")
SPACE: Final = "replay"
FILE_SPACE: Final = "replay file"
REPORT: Final = "report.json"
PLOTS: Final = ("plot.svg", "plot.png")
FILES: Final = (REPORT, *PLOTS)  # written by a replay
SECONDS: Final = 86_400.0  # a result is kept

ReplayState = Literal["waiting", "running", "done", "failed"]


class ReplayWish(msgspec.Struct, frozen=True):
    """What to replay: a label for people, the policies, the window in tokens (None: the file's).

    `session` is the id of a stored session; "" for a file.
    """

    label: str
    policies: tuple[str, ...]
    window: int | None = None
    session: str = ""


class ReplayProgress(msgspec.Struct, frozen=True):
    """The number of replayed messages."""

    done: int = 0
    total: int = 0


class ComparedPolicy(msgspec.Struct, frozen=True):
    """The result of a policy: input tokens (`less`: share saved against `none`), prices in USD, counts.

    `retention` has five shares; `scored` of `cuts` points had a view that could be sent.
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
    """The current state of a replay; `worker` runs it, `files` are its stored files. Unix times."""

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
        """The names of its plots."""
        return [name for name in self.files if name in PLOTS]

    @property
    def ended(self) -> bool:
        """Whether it is done or has failed."""
        return self.state in ("done", "failed")

    @property
    def seconds(self) -> float:
        """The running time in seconds."""
        return (self.ended_at or time.time()) - self.began if self.began else 0.0


class ReplayRecords:
    """The records of one tenant's replays."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._values = presence.values

    async def add(self, record: ReplayRecord) -> None:
        """Store a new replay."""
        await self._presence.begin()
        await self._values.add(SPACE, record.id, pack(record), seconds=SECONDS)

    async def update(self, record: ReplayRecord) -> bool:
        """Store the state of a replay; return False if it was dropped."""
        raw = await self._values.get(SPACE, record.id)
        return raw is not None and await self._values.replace(
            SPACE, record.id, raw, pack(record), seconds=SECONDS
        )

    async def end(self, record: ReplayRecord) -> None:
        """Store the end of a replay, later if the store does not answer now."""
        try:
            await self.update(record)
        except StoreError as error:
            log.warning("the end of a replay will be stored later: %s", error)
            self._presence.owe(f"replay {record.id}", lambda: self.update(record))

    async def find(self, name: str) -> ReplayRecord | None:
        """Return a replay; it has failed if its worker died."""
        raw = await self._values.get(SPACE, name)
        record = None if raw is None else unpack(raw, ReplayRecord)
        if record is None or record.ended or await self._presence.alive(record.worker):
            return record
        error = "The service stopped during the replay. Start it again."
        return msgspec.structs.replace(record, state="failed", ended_at=record.began, error=error)

    async def all(self) -> list[ReplayRecord]:
        """Return all replays, newest first."""
        found = [await self.find(name) for name in await self._values.keys(SPACE)]
        records = [record for record in found if record is not None]
        return sorted(records, key=lambda record: -record.asked_at)

    async def drop(self, name: str) -> None:
        """Delete a replay and its files; a worker that runs it stops."""
        await self._values.delete(SPACE, name)
        for file in FILES:
            await self._values.delete(FILE_SPACE, f"{name}/{file}")

    async def keep_file(self, record: str, name: str, content: bytes) -> bool:
        """Store a file of a replay; return False if it is too large."""
        try:
            await self._values.add(FILE_SPACE, f"{record}/{name}", zlib.compress(content), seconds=SECONDS)
        except StoreError:
            return False
        return True

    async def file(self, record: str, name: str) -> bytes | None:
        """Return a stored file of a replay."""
        raw = await self._values.get(FILE_SPACE, f"{record}/{name}")
        return None if raw is None else zlib.decompress(raw)


# ---- the table of a replay


class ReplayDocument(msgspec.Struct, frozen=True):
    """The output of `foldline replay --json`."""

    sessions: list[SessionReport]


def compare_policies(session: SessionReport) -> list[ComparedPolicy]:
    """Return the table of a session, one row per policy."""
    reports = session.policies
    baseline = next((report.totals["input_tokens"] for report in reports if report.policy == NONE), 0)
    return [_row(report, baseline) for report in reports]


def _row(report: PolicyReport, baseline: int) -> ComparedPolicy:
    sent = report.totals["input_tokens"]
    retention = report.retention or {}
    cuts = retention.get("cuts", [])
    return ComparedPolicy(
        report.policy,
        sent,
        1 - sent / baseline if baseline and report.policy != NONE else None,
        {name: report.totals[name] for name in PRICES},
        {name: report.totals[name] for name in COUNTS},
        {name: retention.get(name) for name in MEASURES},
        sum(cut["fits"] for cut in cuts),
        len(cuts),
    )


def as_csv(rows: Sequence[ComparedPolicy]) -> str:
    """Return rows as CSV; unknown values are empty."""
    target = StringIO()
    flat_rows = [
        {
            "policy": row.policy,
            "input_tokens": row.input_tokens,
            "less": None if row.less is None else round(row.less, 4),
            **row.prices,
            **row.counts,
            **row.retention,
            "cuts_scored": row.scored,
            "cuts": row.cuts,
        }
        for row in rows
    ]
    writer = csv.DictWriter(target, list(flat_rows[0]) if flat_rows else [])
    writer.writeheader()
    writer.writerows(flat_rows)
    return target.getvalue()
