"""What every process of a run would do first, done once before they are forked: load the SDKs and build their schemas."""

from __future__ import annotations

import asyncio

from tests.support.talkers import DIALECTS, sdk_client, user_message
from tests.support.weather_agent import MODEL

import foldline
from foldline.testing import Scripted, call, serve


async def warm() -> None:
    """Ask by each SDK, whole and as a stream, for a text and for a call."""
    model = Scripted([call("read", path="a"), "Hello."] * 2 * len(DIALECTS), model=MODEL)
    async with serve(model) as url:
        for dialect in DIALECTS:
            for stream in (False, True):
                async with sdk_client(url, dialect, MODEL, stream=stream) as talking:
                    for _ in range(2):
                        await talking.ask([user_message("Hi.")], 2_000)
    async with foldline.open("memory://", "s") as session:
        await session.append(user_message("Hi."))
        await session.compact(target=5_000)


asyncio.run(warm())
