"""What the user stopped, and replies that are void: neither comes back later."""

from __future__ import annotations

import asyncio

from tests.agent.working import host_on
from tests.support.waiting import until

from foldline.testing import call, calls


async def test_an_attempt_that_the_user_stopped_is_not_gone_back_from_later(tmp_path):
    stopped = calls(call("rewind", note="It is a dead end."), call("bash", command="sleep 1000"))
    async with host_on(tmp_path, [stopped, call("bash", command="echo fresh"), "Done."]) as host:
        work = asyncio.ensure_future(host.prompt("Try."))
        await until(lambda: len(host.heard.named("call")) == 2)
        host.interrupt()
        assert (await work).how == "interrupted"
        assert (await host.prompt("Another thing.")).text == "Done."
        words = str(host.scripted.requests[-1].messages)
        assert "Another thing." in words
        assert "fresh" in words
