"""A rate holds whoever asks at once: requests of one worker, and workers over one store."""

from __future__ import annotations

import asyncio
import re
import time

from tests.service.api.client import api
from tests.service.served import freeze_rate_clock
from tests.support.values import MemoryKeyValues

from foldline.errors import StoreError
from foldline.service import rate
from foldline.service.rate import RateLimit
from foldline.stores import open_store


async def admitted(limits, each):
    waits = await asyncio.gather(*(limit.wait() for limit in limits for _ in range(each)))
    assert all(wait >= 0.1 for wait in waits if wait)
    return waits.count(0.0)


async def test_a_rate_holds_over_workers(tmp_path):
    stores = [open_store(f"sqlite:///{tmp_path / 's.db'}") for _ in range(2)]
    limits = [RateLimit(store.key_values, "requests", 60) for store in stores]
    began = time.monotonic()
    counts = [await admitted(limits, 50) for _ in range(3)]
    took = time.monotonic() - began
    assert 50 <= sum(counts) <= 61 + took  # a minute's worth, and one for each second that it took
    for store in stores:
        await store.close()


class Contested(MemoryKeyValues):
    """Values of which another worker changes each before it can be replaced."""

    async def replace(self, space, key, old, new, *, seconds):
        return False


async def test_who_is_always_too_late_has_to_wait():
    values = Contested()
    assert await RateLimit(values, "requests", 600).wait() == 0.0  # the first one puts the bucket
    assert await admitted([RateLimit(values, "requests", 600)], 5) == 0


class Away(MemoryKeyValues):
    """Values that are away, and count how often they are asked."""

    asked = 0

    async def get(self, space, key):
        self.asked += 1
        raise StoreError("away")


async def test_requests_do_not_queue_for_a_store_that_is_away(monkeypatch):
    monkeypatch.setattr(rate, "AWAY_SECONDS", 3_600.0)
    values = Away()
    assert await admitted([RateLimit(values, "requests", 60)], 100) == 100
    assert values.asked == 1


def test_what_is_left_is_told_in_every_answer(monkeypatch):
    freeze_rate_clock(monkeypatch)
    with api(rate=60) as (client, _):
        left = []
        for _ in range(3):
            headers = client.get("/sessions").headers
            assert headers["ratelimit-policy"] == '"requests";q=60;w=60'
            told = re.fullmatch(r'"requests";r=(\d+);t=(\d+)', headers["ratelimit"])
            left.append(int(told[1]))
            assert 0 <= 60 - left[-1] <= int(told[2]) + 1
        assert 55 <= left[-1] <= 59
        while (found := client.http.get("/sessions")).status_code == 200:
            pass
        assert (found.status_code, found.headers["ratelimit"].split(";")[1]) == (429, "r=0")
    with api() as (client, _):
        assert "ratelimit" not in client.get("/sessions").headers
