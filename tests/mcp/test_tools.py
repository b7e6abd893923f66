"""The tools, asked by the SDK's own client in one process."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.exports.moving import load
from tests.exports.sessions import entries
from tests.mcp.homes import AGENTS, write_transcript

import foldline
from foldline.core.cut.notes import MARK, WINDOW_MARK, is_recall
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult
from foldline.core.measure.tokens import OFFLINE
from foldline.mcp.server import RecallServer
from foldline.mcp.sessions import Caller, StoredSessions, TranscriptSessions
from foldline.session.tools import RESULT_TOKENS
from foldline.stores import open_store
from mcp import Client

EXAMPLE = Path(__file__).parents[2] / "examples/session.jsonl"
READING = {"recall_search", "recall_read", "recall_list", "context_stats"} | {
    "list_sessions", "session_info", "user_rules", "handoff_text",
}  # fmt: skip


class Asked:
    """A client, and what its calls are answered."""

    def __init__(self, client):
        self.client = client

    async def call(self, name, **given):
        answer = await self.client.call_tool(name, given)
        assert not answer.is_error, answer.content[0].text
        text = answer.content[0].text
        assert text.startswith((MARK, WINDOW_MARK))
        assert OFFLINE.count(text) <= RESULT_TOKENS + 100
        return text

    async def wrong(self, name, **given):
        answer = await self.client.call_tool(name, given)
        assert answer.is_error
        assert "Traceback" not in answer.content[0].text
        return answer.content[0].text


@asynccontextmanager
async def asked(sessions, **how):
    try:
        async with Client(RecallServer(sessions, **how)) as client:
            yield Asked(client)
    finally:
        await sessions.close()


@pytest.mark.parametrize("agent", AGENTS)
async def test_what_an_agent_compacted_away_is_searched_and_read(home, here, agent):
    write_transcript(home, here, agent)
    async with asked(TranscriptSessions(here)) as server:
        assert "compactions so far: 1" in await server.call("session_info")
        found = await server.call("recall_search", query="lock file")
        entry = re.search(r"^- (\w+)", found, re.MULTILINE)[1]
        assert "Never touch the lock file." in await server.call("recall_read", entry=entry)
        assert "folded" in await server.call("recall_list")
        assert "Never touch the lock file." in await server.call("user_rules")
        assert "usable tokens" in await server.call("context_stats")
        assert "Mended and committed" in await server.call("handoff_text", goal="write tests")


async def test_a_transcript_is_read_on_as_it_grows(home, here):
    path = write_transcript(home, here, "claude-code")
    async with asked(TranscriptSessions(here)) as server:
        before = await server.call("recall_search", query="marmalade")
        assert "Nothing in this conversation" in before
        line = json.loads(path.read_text().splitlines()[-2])
        more = {**line, "parentUuid": line["uuid"], "uuid": "9" * 8, "type": "user"}
        more["message"] = {"role": "user", "content": "Put marmalade into the parser."}
        raw = json.dumps(more)
        with path.open("a") as file:
            file.write(raw[:40])  # the agent is still writing it
        assert "Nothing in this conversation" in await server.call("recall_search", query="marmalade")
        with path.open("a") as file:
            file.write(raw[40:] + "\n")
        assert "Put marmalade" in await server.call("recall_search", query="marmalade")
        assert "Never touch" in await server.call("user_rules")


async def test_a_session_that_went_back_is_read_as_it_is_now(home, here):
    path = write_transcript(home, here, "pi", entries())
    async with asked(TranscriptSessions(here)) as server:
        assert "3 passed" in await server.call("recall_search", query="passed")
        whole = path.read_text().splitlines(keepends=True)
        path.write_text("".join(whole[:5]))
        assert "Nothing in this conversation" in await server.call("recall_search", query="passed")
        assert "lock file" in await server.call("recall_search", query="lock file")


@pytest.mark.parametrize("lines", [None, 5])
async def test_a_call_is_answered_while_a_later_one_finds_the_transcript_changed(home, here, lines):
    path = write_transcript(home, here, "pi", entries())
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:-1]))
    sessions = TranscriptSessions(here)
    try:
        first, _ = await sessions.open(None, Caller("recall_search", {}))
        path.write_text("".join(whole[:lines]))  # it grew, or the user went back
        later, _ = await sessions.open(None, Caller("recall_search", {}))
        for session in (first, later):
            assert "lock file" in await session.call_tool("recall_search", {"query": "lock file"})
    finally:
        await sessions.close()


async def test_without_a_session_a_call_says_what_to_do_and_the_session_is_found_once_it_is_there(home, here):
    async with asked(TranscriptSessions(here)) as server:
        assert "send the agent a message" in await server.wrong("recall_search", query="lock")
        assert "There is no session yet" in await server.call("list_sessions")
        write_transcript(home, here, "codex")
        assert "lock file" in await server.call("recall_search", query="lock")


async def test_a_broken_transcript_is_an_error_of_the_tool_until_it_is_mended(here):
    file = here / "broken.jsonl"
    file.write_bytes(b"\x00\x01 nothing that can be read\n")
    async with asked(TranscriptSessions(here, file=file)) as server:
        assert "broken.jsonl" in await server.wrong("session_info")
        file.write_bytes(EXAMPLE.read_bytes() + b'{"half a li')
        assert "cannot be read" in await server.call("session_info")
        file.unlink()
        assert "No such file" in await server.wrong("session_info")


async def test_other_sessions_of_the_folder_are_listed_and_read(home, here):
    write_transcript(home, here, "codex", at=1_000)
    newest = write_transcript(home, here, "pi", entries([{"role": "user", "content": "Bake a cake."}]))
    async with asked(TranscriptSessions(here)) as server:
        listed = await server.call("list_sessions")
        first, second = re.findall(r"^- (\S+)", listed, re.MULTILINE)
        assert first == newest.stem
        assert "Nothing in this" in await server.call("recall_search", query="lock file")
        assert "lock file" in await server.call("recall_search", query="lock file", session=second)
        assert "list_sessions" in await server.wrong("session_info", session="nobody")


async def test_wrong_calls_say_what_is_right(home, here):
    write_transcript(home, here, "pi")
    async with asked(TranscriptSessions(here)) as server:
        assert "needs query" in await server.wrong("recall_search")
        assert "a whole number" in await server.wrong("recall_search", query="x", limit="many")
        assert "take the id" in await server.wrong("recall_read", entry="nothing")
        assert "there are recall_search" in await server.wrong("recall")


async def test_a_long_hand_off_comes_in_pieces_that_make_the_whole(here):
    async with asked(TranscriptSessions(here, file=EXAMPLE)) as server:
        pieces, offset = [], 0
        while True:
            text = await server.call("handoff_text", goal="go on", offset=offset)
            pieces.append(text.removeprefix(MARK).partition("\n[")[0])
            more = re.search(r"with offset (\d+)\]$", text)
            if more is None:
                break
            assert int(more[1]) > offset
            offset = int(more[1])
        assert "## State" in pieces[0]
        assert len(pieces) > 1


async def test_the_pieces_of_a_hand_off_are_of_one_text_though_the_transcript_grows(home, here):
    said = [
        {"role": role, "content": f"About part {part}: {'what holds for it, ' * 40}"}
        for part in range(60)
        for role in ("user", "assistant")
    ]
    path = write_transcript(home, here, "pi", entries(said))
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:-4]))
    async with asked(TranscriptSessions(here)) as server:
        first = await server.call("handoff_text", goal="go on")
        offset = int(re.search(r"with offset (\d+)\]$", first)[1])
        second = await server.call("handoff_text", goal="go on", offset=offset)
        path.write_text("".join(whole))
        assert await server.call("handoff_text", goal="go on", offset=offset) == second
        assert await server.call("handoff_text", goal="go on") != first


async def stored(url, *texts):
    async with foldline.open(url, "kept", window=4_000) as session:
        for text in texts:
            await session.append({"role": "user", "content": text})
            await session.append({"role": "assistant", "content": "Done: " + "word " * 200})


async def test_a_stored_session_is_folded_by_the_tool_that_says_that_it_writes(here):
    url = f"sqlite:///{here}/store.db"
    await stored(url, "Never touch the lock file.", *(f"Step {n} of the work." for n in range(12)))
    async with asked(StoredSessions(open_store(url), "kept")) as server:
        tools = {one.name: one for one in (await server.client.list_tools()).tools}
        assert set(tools) == READING | {"fold_session"}
        assert tools["fold_session"].description.startswith("WRITES")
        assert not tools["fold_session"].annotations.read_only_hint
        assert tools["recall_search"].annotations.read_only_hint
        assert "tokens before" in await server.call("fold_session", focus="the lock file")
        assert "folded" in await server.call("recall_list")
        assert "Never touch" in await server.call("user_rules")
        assert "kept" in await server.call("list_sessions")
        assert "Nothing was folded" in await server.call("fold_session")
    async with foldline.open(url, "kept") as session:
        assert (await session.stats()).summaries == 1


async def test_read_only_leaves_the_fold_out_and_so_does_a_transcript(home, here):
    url = f"sqlite:///{here}/store.db"
    await stored(url, "Hello.")
    write_transcript(home, here, "pi")
    for sessions in (StoredSessions(open_store(url), "kept"), TranscriptSessions(here)):
        async with asked(sessions, read_only=sessions.writes) as server:
            assert {one.name for one in (await server.client.list_tools()).tools} == READING
            assert "no tool 'fold_session'" in await server.wrong("fold_session")


async def test_a_stored_session_is_read_on_as_another_process_adds_to_it(here):
    url = f"sqlite:///{here}/store.db"
    await stored(url, "Hello.")
    async with asked(StoredSessions(open_store(url), "kept")) as server:
        assert "2 messages" in await server.call("session_info")
        await stored(url, "Put marmalade into it.")
        assert "marmalade" in await server.call("recall_search", query="marmalade")
        assert "4 messages" in await server.call("session_info")
        assert "list_sessions" in await server.wrong("session_info", session="nobody")


def test_recall_does_not_find_what_agents_asked_the_server():
    asked_for = ToolCall("1", "mcp__foldline__user_rules", {})
    answer = ToolResult("1", (Text(f"{MARK}Rules"),))
    assert is_recall(Message("assistant", (asked_for,)))
    assert is_recall(Message("user", (answer,)))
    assert not is_recall(Message("assistant", (ToolCall("1", "recall", {}),)))


@pytest.mark.corpus
async def test_every_recorded_native_transcript_is_served(recorded, here):
    for file in sorted((recorded / "native").glob("*.jsonl")):
        async with asked(TranscriptSessions(here, file=file)) as server:
            assert file.stem in await server.call("session_info")
            word = max(load(file.read_bytes()).entries[0].message.text.split(), key=len)[:40]
            await server.call("recall_search", query=word)
            for name in ("recall_list", "context_stats", "user_rules", "handoff_text", "list_sessions"):
                await server.call(name)
