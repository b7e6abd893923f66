"""Where agents keep transcripts, and which of them are a folder's."""

from __future__ import annotations

import json
import os
from hashlib import sha256

import pytest
from tests.mcp.homes import AGENTS, write_transcript

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
    write_transcript(home, tmp_path / "other", agent)
    path = write_transcript(home, tmp_path / "work.dir", agent)
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
    old = write_transcript(home, tmp_path, "codex", at=1_000)
    new = write_transcript(home, tmp_path, "claude-code", at=2_000)
    (new.parent / "agent-0001.jsonl").write_bytes(new.read_bytes())  # a sub-agent's
    assert newest_transcript(tmp_path).path == new
    assert newest_transcript(tmp_path, "codex").path == old
    assert [one.path for one in transcripts_of(tmp_path)] == [new, old]


def test_a_folder_of_the_same_name_in_claude_s_writing_is_another_one(home, tmp_path):
    write_transcript(home, tmp_path / "a.b", "claude-code")
    assert transcripts_of(tmp_path / "a-b") == []
    assert len(transcripts_of(tmp_path / "a.b")) == 1


def test_what_a_sub_agent_of_codex_wrote_is_no_session_of_the_folder_s(home, tmp_path):
    path = write_transcript(home, tmp_path, "codex", at=1_000)
    first, rest = path.read_text().split("\n", 1)
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "1", "depth": 1}}}
    for name, told in (("spawned", {"source": spawned}), ("threaded", {"thread_source": "subagent"})):
        meta = json.loads(first)
        meta["payload"].update(told)
        path.with_name(f"rollout-{name}.jsonl").write_text(f"{json.dumps(meta)}\n{rest}")
    assert [one.path for one in transcripts_of(tmp_path)] == [path]


def test_what_a_sub_agent_of_klaude_code_wrote_is_no_session_of_the_folder_s(home, tmp_path):
    path = write_transcript(home, tmp_path, "klaude-code", at=1_000)
    path.with_name("meta.json").write_text(json.dumps({"work_dir": str(tmp_path), "sub_agent_state": None}))
    child = path.parent.with_name("child") / path.name
    child.parent.mkdir()
    child.write_bytes(path.read_bytes())
    meta = {"work_dir": str(tmp_path), "sub_agent_state": {"sub_agent_type": "explore"}}
    child.with_name("meta.json").write_text(json.dumps(meta, indent=2))
    assert [one.path for one in transcripts_of(tmp_path)] == [path]


def test_a_folder_of_the_same_name_in_klaude_code_s_writing_is_another_one(home, tmp_path):
    path = write_transcript(home, tmp_path / "a/b-c", "klaude-code")
    path.with_name("meta.json").write_text(json.dumps({"work_dir": str(tmp_path / "a/b-c")}))
    assert transcripts_of(tmp_path / "a-b/c") == []
    assert [one.path for one in transcripts_of(tmp_path / "a/b-c")] == [path]


def test_of_gemini_s_two_folders_of_a_project_the_one_that_names_it_counts(home, tmp_path):
    work = tmp_path / "work"
    names = {"work": work, "work-1": tmp_path / "other", sha256(str(work).encode()).hexdigest(): None}
    for at, (name, root) in enumerate(names.items(), 1):
        chats = home / ".gemini/tmp" / name / "chats"
        chats.mkdir(parents=True)
        if root is not None:
            (chats.parent / ".project_root").write_text(f"{root}\n")
        chat = chats / "session-2026.json"
        chat.write_text(json.dumps({"sessionId": name, "messages": []}))
        os.utime(chat, (at, at))
    assert [one.path.parent.parent.name for one in transcripts_of(work)] == ["work"]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_folder_s_name_is_no_pattern(home, tmp_path, agent):
    path = write_transcript(home, tmp_path / "app[1]", agent)
    assert [one.path for one in transcripts_of(tmp_path / "app[1]")] == [path]


def test_the_environment_moves_an_agent_s_folder(home, tmp_path, monkeypatch):
    path = write_transcript(home, tmp_path, "codex")
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
