"""Which session a call is answered from, where no session is named: that of the agent that calls."""

from __future__ import annotations

import asyncio
import os

import pytest
from tests.dialects.samples import user
from tests.exports.sessions import call, entries
from tests.mcp.homes import write_transcript
from tests.mcp.test_tools import asked

from foldline.loading import restore
from foldline.mcp.sessions import StoredSessions, TranscriptSessions
from foldline.session.opening import open_session
from foldline.stores.sqlite import MemoryStore

UNCLEAR = "unclear which session this is: pass `session`"
SEARCH = {"role": "assistant", "content": [call(1, "foldline_recall_search", query="marmalade")]}
RULES = {"role": "assistant", "content": [call(1, "foldline_user_rules")]}
FOLDS = {"role": "assistant", "content": [call(1, "foldline_fold_session")]}


async def said(store, name, *messages):
    async with open_session(store, name) as session:
        for message in messages:
            await session.append(message)


async def folds(store, name):
    async with open_session(store, name) as session:
        return (await session.stats()).summaries


@pytest.fixture
async def store():
    """A store in which "b" was updated after "a"."""
    found = LookedAt()
    await said(found, "a", user("Put marmalade into the parser. Never touch the lock file."))
    await said(found, "b", user("Bake a cake. Never use butter."), {"role": "assistant", "content": "Done."})
    return found


class LookedAt(MemoryStore):
    """Says when its sessions are looked at."""

    def __init__(self):
        super().__init__()
        self.looked = asyncio.Event()

    async def sessions(self, **which):
        found = await super().sessions(**which)
        self.looked.set()
        return found


async def served(server, **how):
    return (await server.call("session_info", **how)).split()[2].rstrip(",")


async def test_a_stored_session_is_the_one_whose_newest_message_makes_the_call(store):
    await said(store, "a", SEARCH)
    await said(store, "b", user("Go on."))
    async with asked(StoredSessions(store, None)) as server:
        assert "Put marmalade" in await server.call("recall_search", query="marmalade")
        assert UNCLEAR in await server.wrong("recall_search", query="butter")  # nobody's call
        assert UNCLEAR in await server.wrong("user_rules")
        assert "butter" in await server.call("user_rules", session="b")


async def test_a_reply_that_is_stored_after_its_call_came_is_waited_for(store):
    async with asked(StoredSessions(store, None)) as server:
        asking = asyncio.create_task(server.call("user_rules"))
        await store.looked.wait()
        await said(store, "a", RULES)
        assert "lock file" in await asking


async def test_a_call_that_stands_in_two_stored_sessions_is_told_by_its_id_alone(store):
    await said(store, "a", {"role": "assistant", "content": [call(7, "mcp__foldline__user_rules")]})
    await said(store, "b", user("Go on."), RULES)
    async with asked(StoredSessions(store, None)) as server:
        assert UNCLEAR in await server.wrong("user_rules")
        told = await server.client.call_tool("user_rules", {}, meta={"claudecode/toolUseId": "toolu_7"})
        assert "lock file" in told.content[0].text


async def test_a_call_that_was_left_open_long_ago_is_not_the_one_that_is_answered(store):
    old = entries([user("Never use butter."), RULES])
    await restore(store, "old", old, old[-1].id)
    async with asked(StoredSessions(store, None)) as server:
        assert UNCLEAR in await server.wrong("user_rules")


async def test_nothing_is_folded_in_a_session_that_was_only_guessed(store):
    alone = MemoryStore()
    await said(alone, "a", *(user(f"Step {n}: " + "word " * 400) for n in range(20)))
    async with asked(StoredSessions(alone, None)) as server:
        assert await served(server) == "a"
        assert UNCLEAR in await server.wrong("fold_session")
        assert await folds(alone, "a") == 0
        await said(alone, "a", FOLDS)
        assert "session a" in await server.call("fold_session")
    async with asked(StoredSessions(store, None)) as server:
        assert UNCLEAR in await server.wrong("fold_session")
        assert (await folds(store, "a"), await folds(store, "b")) == (0, 0)


@pytest.fixture
def two(home, here):
    """Make two transcripts of an agent, and return the older one."""

    def make(agent):
        older = write_transcript(
            home, here, agent, entries([user("Put marmalade into the parser.")]), at=1_000
        )
        newer = write_transcript(home, here, agent, entries([user("Bake a cake.")]))
        assert older != newer
        return older, newer

    return make


async def test_of_two_transcripts_of_claude_code_that_of_its_session_is_served(two, here, monkeypatch):
    older, newer = two("claude-code")
    async with asked(TranscriptSessions(here, "claude-code")) as server:
        assert await served(server) == newer.stem
        monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", older.stem)
        assert await served(server) == older.stem
        assert await served(server, session=newer.stem) == newer.stem


async def test_after_clear_the_transcript_in_which_the_call_stands_is_served(two, here, monkeypatch):
    older, newer = two("claude-code")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", older.stem)
    with newer.open("a") as file:
        file.write('{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "toolu_9"}]}}\n')
    os.utime(newer, (10, 10))
    async with asked(TranscriptSessions(here)) as server:
        told = await server.client.call_tool("session_info", {}, meta={"claudecode/toolUseId": "toolu_9"})
        assert newer.stem in told.content[0].text


async def test_of_two_transcripts_of_codex_that_of_the_thread_is_served(two, here):
    older, newer = two("codex")
    async with asked(TranscriptSessions(here, "codex")) as server:
        for thread, path in ((older.stem[-36:], older), ("another", newer)):
            told = await server.client.call_tool("session_info", {}, meta={"threadId": thread})
            assert path.stem in told.content[0].text
