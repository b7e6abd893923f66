"""Replays as every worker sees them: what one does is told in the store, with what it found."""

from __future__ import annotations

import time
import zlib
from typing import Final, Literal

import msgspec

from foldline.errors import StoreError
from foldline.service.presence import Presence
from foldline.service.web.replay_table import ComparedPolicy

SPACE: Final = "replay"
FILES: Final = "replay file"
LIST: Final = "list"  # the key of the names of all of them, the newest first
SECONDS: Final = 86_400.0  # that what was found is kept
TRIES: Final = 16

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
    state: ReplayState
    worker: str
    asked_at: float
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
        await self._values.add(SPACE, record.id, _packed(record), seconds=SECONDS)
        for _ in range(TRIES):
            raw = await self._values.get(SPACE, LIST)
            names = _names(raw)
            new = msgspec.msgpack.encode([record.id, *(one for one in names if one != record.id)][:100])
            if raw is None and await self._values.add(SPACE, LIST, new, seconds=SECONDS) is None:
                return
            if raw is not None and await self._values.replace(SPACE, LIST, raw, new, seconds=SECONDS):
                return
        raise StoreError("the list of replays is written to faster than it can be followed")

    async def update(self, record: ReplayRecord) -> bool:
        """Tell how a replay stands; False where it was dropped."""
        raw = await self._values.get(SPACE, record.id)
        return raw is not None and await self._values.replace(
            SPACE, record.id, raw, _packed(record), seconds=SECONDS
        )

    async def find(self, name: str) -> ReplayRecord | None:
        """Return a replay; one whose worker is gone has failed."""
        raw = await self._values.get(SPACE, name) if name != LIST else None
        if raw is None:
            return None
        try:
            found = msgspec.msgpack.decode(zlib.decompress(raw), type=ReplayRecord)
        except (msgspec.DecodeError, zlib.error):  # another version of this service wrote it
            return None
        if found.ended or await self._presence.alive(found.worker):
            return found
        return msgspec.structs.replace(
            found, state="failed", ended_at=found.began, error="It was stopped: the service was."
        )

    async def all(self) -> list[ReplayRecord]:
        """Return every replay, the newest first."""
        found = [await self.find(name) for name in _names(await self._values.get(SPACE, LIST))]
        return [one for one in found if one is not None]

    async def drop(self, record: ReplayRecord, files: tuple[str, ...]) -> None:
        """Forget a replay, and the files that it made; who makes it stops."""
        await self._values.delete(SPACE, record.id)
        for name in files:
            await self._values.delete(FILES, f"{record.id}/{name}")

    async def keep_file(self, record: str, name: str, content: bytes) -> bool:
        """Keep a file that a replay made; False where it is too large."""
        try:
            await self._values.add(FILES, f"{record}/{name}", zlib.compress(content), seconds=SECONDS)
        except StoreError:
            return False
        return True

    async def file(self, record: str, name: str) -> bytes | None:
        """Return a file that a replay made."""
        raw = await self._values.get(FILES, f"{record}/{name}")
        return None if raw is None else zlib.decompress(raw)


def _packed(record: ReplayRecord) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(record), 1)


def _names(raw: bytes | None) -> list[str]:
    return [] if raw is None else msgspec.msgpack.decode(raw, type=list[str])
