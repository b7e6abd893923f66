"""Replays as every worker sees them: what one does is told in the store, with what it found."""

from __future__ import annotations

import time
import zlib
from typing import Final, Literal

import msgspec

from foldline.errors import StoreError
from foldline.service.jobs.replay_table import ComparedPolicy
from foldline.service.presence import Presence
from foldline.stores.key_values import pack, unpack

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


class ReplayRecord(msgspec.Struct, frozen=True):
    """One replay as it stands; `worker` makes it, `plots` are the drawings that there are. Unix times."""

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
    plots: tuple[str, ...] = ()

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
