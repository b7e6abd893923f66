"""Dialogs under others, commands and prompts beside each other, and leaving at work."""

from __future__ import annotations

import asyncio

from tests.support.waiting import until as until_true
from tests.tui.screen import open_chat, until

from foldline.agent.host import Host
from foldline.core.log.entries import Said
from foldline.session.session import Session
from foldline.stores import open_store
from foldline.summarizers import ModelSummarizer
from foldline.testing import Answer, Gate, call, calls

PALETTE = "CommandPalette"
LONG = "It is done as you said. " * 60


async def test_a_permission_that_is_given_under_the_palette_is_taken_and_closed(tmp_path):
    async with open_chat(tmp_path, [call("bash", command="touch there"), "Done."], allow=()) as talk:
        await talk.type("Go.")
        asks = await talk.opened("PermissionScreen")
        await talk.pilot.press("ctrl+p")
        await talk.opened(PALETTE)
        asks.dismiss("once")  # as its timer does shortly after a y
        await talk.closed()
        await talk.sees("Done.")
        assert (tmp_path / "work/there").exists()


async def test_stopping_a_turn_closes_its_question_under_the_palette(tmp_path):
    async with open_chat(tmp_path, [call("bash", command="touch there"), "Again."], allow=()) as talk:
        await talk.type("Go.")
        await talk.opened("PermissionScreen")
        await talk.pilot.press("ctrl+p")
        await talk.opened(PALETTE)
        await talk.pilot.press("ctrl+c")
        await talk.closed()
        await talk.say("And now?")
        await talk.sees("bash touch there  stopped", "Again.")


async def test_a_fold_that_is_confirmed_twice_is_made_once_and_told(tmp_path, monkeypatch):
    gate, commits = asyncio.Event(), []
    commit = Session.commit

    async def slow(session, preview, **options):
        commits.append(preview)
        outcome = await commit(session, preview, **options)
        await gate.wait()
        return outcome

    async with open_chat(tmp_path, lambda asked: LONG) as talk:
        monkeypatch.setattr(Session, "commit", slow)
        await talk.turns(6)
        await talk.type("/preview")
        screen = await talk.opened("PreviewScreen")
        await until(talk.pilot, lambda: screen._preview is not None)
        await talk.pilot.press("ctrl+s")
        await until_true(lambda: commits)
        await talk.pilot.press("ctrl+s")
        gate.set()
        await talk.closed()
        await talk.sees("by code alone. /undo reverts it.")
        assert len(commits) == 1


async def test_a_prompt_is_for_what_the_command_before_it_makes(tmp_path, monkeypatch):
    gate, resume = asyncio.Event(), Host.resume

    async def slow(host, session):
        await gate.wait()
        await resume(host, session)

    monkeypatch.setattr(Host, "resume", slow)
    async with open_chat(tmp_path, lambda asked: "Hello yourself.") as talk:
        first = talk.host.session.id
        await talk.type("/clear")
        await talk.type("Hello.")
        await talk.pilot.pause()
        gate.set()
        await until(talk.pilot, talk.quiet)
        await talk.sees("A new session", "Hello yourself.")
        assert talk.host.session.id != first
        assert (await talk.host.session.stats()).total_messages == 2


async def test_the_session_stays_until_its_fold_is_made(tmp_path):
    gate = Gate()

    def says(asked):
        return Answer(text=LONG, wait=gate) if "summar" in str(asked.system or asked.messages[0]) else LONG

    async with open_chat(tmp_path, says) as talk:
        await talk.turns(4)
        session = talk.host.session
        session.summarizer = ModelSummarizer(talk.model, window=talk.model.window)
        asked = len(talk.model.requests)
        await talk.type("/compact")
        await until(talk.pilot, lambda: len(talk.model.requests) > asked)
        await talk.type("/clear")
        await talk.sees("a compaction is running: wait for it, or stop it first")
        gate.open()
        await until(talk.pilot, talk.quiet)
        await talk.sees("reverts it")
        assert "folding" not in talk.text
        await talk.say("/clear")
        assert talk.host.session is not session


async def test_leaving_at_work_stores_the_results_that_are_there(tmp_path):
    wants = calls(call("write", path="a.txt", content="one"), call("bash", command="sleep 600"))
    async with open_chat(tmp_path, [wants]) as talk:
        await talk.type("Go.")
        await talk.sees("running bash")
        session = talk.host.session.id
    store = open_store(f"sqlite:///{tmp_path / 'sessions.db'}")
    try:
        said = [entry.message async for entry in store.path(session) if isinstance(entry, Said)]
    finally:
        await store.close()
    results = [result.text for message in said for result in message.results]
    assert [text.partition(" ")[0] for text in results] == ["Created", "Stopped"]
