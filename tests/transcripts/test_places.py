"""Where agents keep transcripts, and which of them are a folder's."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from tests.mcp.homes import AGENTS, put

from foldline.errors import InputError
from foldline.transcripts.places import agent_of, newest_transcript, transcripts_of


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_s_session_is_found_where_the_export_says_that_it_looks(home, tmp_path, agent):
    put(home, tmp_path / "other", agent)
    path = put(home, tmp_path / "work.dir", agent)
    (found,) = transcripts_of(tmp_path / "work.dir")
    assert (found.agent, found.path, found.size) == (agent, path, path.stat().st_size)
    assert found.id in str(path)


def test_copilot_s_and_gemini_s_sessions_are_found(home, tmp_path):
    events = home / ".copilot/session-state/1234/events.jsonl"
    events.parent.mkdir(parents=True)
    start = {"type": "session.start", "data": {"sessionId": "1234", "context": {"cwd": str(tmp_path)}}}
    events.write_text(json.dumps(start) + "\n")
    chats = home / ".gemini/tmp" / sha256(str(tmp_path).encode()).hexdigest() / "chats"
    chats.mkdir(parents=True)
    (chats / "session-2026.json").write_text(json.dumps({"sessionId": "5678", "messages": []}, indent=2))
    assert {one.agent: one.id for one in transcripts_of(tmp_path)} == {
        "copilot-cli": "1234",
        "gemini-cli": "session-2026",
    }


def test_the_newest_is_the_one_that_was_written_last_of_all_agents_or_of_one(home, tmp_path):
    old = put(home, tmp_path, "codex", at=1_000)
    new = put(home, tmp_path, "claude-code", at=2_000)
    (new.parent / "agent-0001.jsonl").write_bytes(new.read_bytes())  # a sub-agent's
    assert newest_transcript(tmp_path).path == new
    assert newest_transcript(tmp_path, "codex").path == old
    assert [one.path for one in transcripts_of(tmp_path)] == [new, old]


def test_a_folder_of_the_same_name_in_claude_s_writing_is_another_one(home, tmp_path):
    put(home, tmp_path / "a.b", "claude-code")
    assert transcripts_of(tmp_path / "a-b") == []
    assert len(transcripts_of(tmp_path / "a.b")) == 1


def test_the_environment_moves_an_agent_s_folder(home, tmp_path, monkeypatch):
    path = put(home, tmp_path, "codex")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "elsewhere"))
    assert transcripts_of(tmp_path) == []
    (home / ".codex").rename(tmp_path / "elsewhere")
    assert [one.path.name for one in transcripts_of(tmp_path)] == [path.name]


def test_without_a_session_the_error_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"no session of codex .* name a session file"):
        newest_transcript(tmp_path, "codex")


def test_agents_go_by_the_names_of_their_commands(tmp_path):
    assert agent_of("claude") == agent_of("claude-code") == "claude-code"
    with pytest.raises(InputError, match="did you mean 'codex'"):
        agent_of("codx")
