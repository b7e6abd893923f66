"""The stored state of a replay, where the store does not answer at its end."""

from __future__ import annotations

from tests.support.values import MemoryKeyValues
from tests.support.waiting import until

from foldline.errors import StoreError
from foldline.service import presence
from foldline.service.jobs.replay_records import ReplayRecords, ReplayWish
from foldline.service.jobs.replays import ReplayJob, ReplayJobs
from foldline.service.presence import Presence


async def test_a_replay_that_ends_while_the_store_is_away_ends_for_all_once_it_is_back(monkeypatch):
    update, refused = ReplayRecords.update, []

    async def update_late(self, record):
        if record.ended and not refused:
            refused.append(record)
            raise StoreError("away")
        return await update(self, record)

    async def run(self):
        return {"window": 1_000}

    monkeypatch.setattr(presence, "RENEWAL_SECONDS", 0.02)
    monkeypatch.setattr(ReplayRecords, "update", update_late)
    monkeypatch.setattr(ReplayJob, "run", run)
    values = MemoryKeyValues()
    one, two = Presence(values), Presence(values)
    jobs, others = ReplayJobs(), ReplayJobs()
    name = await jobs.begin(one, ReplayWish("a", ("none",)), lambda file: file.touch())

    async def done():
        found = await others.find(two, name)
        return found is not None and found.state == "done"

    try:
        await until(done)
        assert refused
        assert not jobs._jobs
    finally:
        await jobs.close()
        await one.close()
