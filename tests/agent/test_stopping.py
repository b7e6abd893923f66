"""What was stopped, void or failed has no effect later."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.agent.program import serve_model
from tests.agent.working import host_on
from tests.support.waiting import until

import foldline
from foldline.agent.options import HostOptions
from foldline.agent.remote import Remote
from foldline.errors import StoreError
from foldline.session.session import Session
from foldline.testing import Answer, Scripted, call, calls


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


async def test_the_pieces_of_a_reply_that_the_window_cut_are_void(tmp_path):
    never = msgspec.structs.replace(foldline.preset("foldline"), soft=None, hard=None)

    def says(asked):
        return Answer(text="cut " * 4_000) if asked.index == 3 else "word " * 600

    async with host_on(tmp_path, says, window=5_000, policy=never) as host:
        for turn in range(4):
            ended = await host.prompt(f"Turn {turn}.")
        names = [event.name for event in host.heard if event.name in ("text", "restart", "retry")]
        retry = names.index("retry")
        assert names[retry - 2 : retry + 2] == ["text", "restart", "retry", "text"]
        assert "cut" not in ended.text


async def test_a_session_that_cannot_be_opened_leaves_the_model_of_the_one_before(tmp_path, monkeypatch):
    async def away(session):
        raise StoreError("the store is away")

    with serve_model(lambda asked: f"From {asked.model}.", models=("scripted", "other")) as (_, model):
        other = model.replace("scripted", "other")
        async with host_on(tmp_path, provider=None, model=other, window=60_000) as host:
            await host.prompt("Hello.")
            second = host.session.id
        async with host_on(tmp_path, provider=None, model=model, window=60_000) as host:
            await host.prompt("Hello.")
            first = host.session.id
        async with host_on(tmp_path, provider=None, session=first, window=60_000) as host:
            with monkeypatch.context() as patch:
                patch.setattr(Session, "__aenter__", away)
                with pytest.raises(StoreError):
                    await host.resume(second)
            assert (host.session.id, host.model) == (first, model)
            assert (await host.prompt("Still there?")).text == "From scripted."
            await host.resume(second)
            assert (await host.prompt("And you?")).text == "From other."


async def test_a_commit_that_takes_long_is_aborted_by_another_program(tmp_path, monkeypatch):
    begun = asyncio.Event()

    async def certifies(session, preview, **options):
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Session, "commit", certifies)
    sent = []
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
    remote = Remote(sent.append)
    model = Scripted(lambda asked: "It is done as you said. " * 60)
    store = f"sqlite:///{tmp_path / 'sessions.db'}"
    options = {"folder": tmp_path / "work", "home": tmp_path / "home", "provider": model, "store": store}
    await remote.open(HostOptions(**options))
    try:
        for turn in range(6):
            await remote.host.prompt(f"Turn {turn}.")
        await remote.take('{"type": "preview"}')
        await until(lambda: any(line.get("command") == "preview" for line in sent))
        async with asyncio.timeout(60):
            await remote.take('{"type": "commit"}')
            await begun.wait()
            await remote.take('{"type": "abort"}')
        await until(lambda: any("aborted" in line.get("error", "") for line in sent))
    finally:
        await remote.stop()
        await remote.host.close()
