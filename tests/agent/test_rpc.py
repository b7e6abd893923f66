"""`foldline rpc`: every request, errors of one form, queueing, aborting, permissions; as a program over pipes."""

from __future__ import annotations

import json
import signal

import pytest
from tests.agent.program import Rpc, run_foldline, serve_model

from foldline.testing import Answer, Gate, call, calls


def answers(asked):
    return f"Answer {asked.index}. " + "It is done as you said. " * 80


@pytest.fixture
def remote(tmp_path):
    with serve_model(answers) as (_, name):
        rpc = Rpc(tmp_path, "--model", name)
        yield rpc
        code, error = rpc.close()
        assert code == 0, error


def test_prompt_stats_compact_undo_redo(remote):
    for turn in range(4):
        assert remote.prompt(f"Turn {turn}. Never push to main.")["how"] == "done"
    before = remote.ask(type="stats")
    assert before["totalMessages"] == before["activeMessages"] == 8
    assert before["compressionRatio"] == 1.0
    done = remote.ask(type="compact", instructions="the rule", id=7)
    assert done["folded"]
    assert remote.seen[-1]["id"] == 7
    assert remote.ask(type="stats")["contextTokens"] < before["contextTokens"]
    assert remote.ask(type="undo")["entry"]
    assert remote.ask(type="stats")["summaryCount"] == 0
    assert remote.ask(type="redo")["entry"]


def test_preview_and_commit_with_an_edited_summary(remote):
    for turn in range(4):
        remote.prompt(f"Turn {turn}.")
    assert remote.ask(type="commit") == "there is no preview to commit: request one first"
    shown = remote.ask(type="preview")
    assert remote.ask(type="stats")["summaryCount"] == 0
    assert remote.ask(type="commit", summary=shown["summary"] + "\nThe cat is called Tom.")["folded"]
    boundary = next(line for line in remote.seen if line["type"] == "compaction")
    assert "The cat is called Tom." in boundary["summary"]


def test_branch_goes_on_from_before_a_message(remote):
    for turn in range(3):
        remote.prompt(f"Turn {turn}.")
    prompts = remote.ask(type="prompts")["prompts"]
    assert [one["text"] for one in prompts] == ["Turn 0.", "Turn 1.", "Turn 2."]
    assert remote.ask(type="branch", entry=prompts[1]["entry"])["text"] == "Turn 1."
    assert remote.ask(type="stats")["totalMessages"] == 2
    assert "2 messages" in remote.ask(type="command", line="/tree")["text"]


def test_whatever_is_wrong_is_one_error_and_the_next_line_is_read(remote):
    nonsense = ("nonsense", "[]", "\ufffd{")
    for line in (*nonsense, '{"type": "nosuch"}', '{"type": "prompt"}', '{"type": "stats", "more": 1}'):
        remote.raw(line)
        found = remote.next()
        assert set(found) == {"type", "error"}, line
        assert found["type"] == "error"
    assert remote.prompt("Still there?")["how"] == "done"


def test_what_is_said_meanwhile_is_queued_and_an_abort_stops_the_turn(tmp_path):
    def says(asked):
        return "On we go." if "Two." in str(asked.messages) else Answer(text="slow", wait=Gate())

    with serve_model(says) as (_, name):
        rpc = Rpc(tmp_path, "--model", name)
        rpc.send(type="prompt", message="One.")
        rpc.wait("prompt")
        assert rpc.ask(type="prompt", message="Two.") == {"queued": True}
        assert rpc.ask(type="undo").startswith("the agent is busy")
        assert rpc.ask(type="abort") == {"stopped": True}
        assert rpc.wait("turn")["how"] == "interrupted"
        assert rpc.wait("turn")["text"] == "On we go."
        assert rpc.ask(type="abort") == {"stopped": False}
        assert rpc.close()[0] == 0


def test_a_permission_is_asked_for_and_answered(tmp_path):
    write = call("write", path="a.txt", content="x")
    with serve_model([write, "No.", write, "Yes.", write, "Again."]) as (_, name):
        rpc = Rpc(tmp_path, "--model", name)
        for answer, there in (("no", False), ("always", True)):
            rpc.send(type="prompt", message="Write.")
            asked = rpc.wait("permission")
            assert (asked["tool"], asked["detail"]) == ("write", "a.txt")
            assert "+x" in asked["change"]
            rpc.send(type="permission", request=asked["request"], answer=answer)
            rpc.wait("turn")
            assert (tmp_path / "work/a.txt").exists() == there
        assert rpc.prompt("Write.")["text"] == "Again."
        assert not [line for line in rpc.seen[-8:] if line["type"] == "permission"]
        rpc.close()


def test_killed_in_the_middle_of_a_turn_it_is_resumed_and_nothing_is_lost(tmp_path):
    with serve_model([call("bash", command="sleep 1000"), "I see."]) as (_, name):
        rpc = Rpc(tmp_path, "--model", name, "--allow", "bash")
        rpc.send(type="prompt", message="Sleep.")
        rpc.wait("call")
        session = rpc.session
        rpc.kill()
        rpc = Rpc(tmp_path, "--model", name, "--resume", session)
        assert rpc.ask(type="stats")["standing"]["state"] == "mid_tool"
        assert rpc.prompt("What happened?")["text"] == "I see."
        rpc.close()
    done = run_foldline(tmp_path, "verify")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schema_of_requests_is_printed(tmp_path):
    schema = json.loads(run_foldline(tmp_path, "rpc", "--schema").stdout)
    assert schema["version"] == 1
    assert {"PromptRequest", "CompactRequest", "BranchRequest"} <= set(schema["$defs"])


def test_interrupted_in_the_middle_of_a_turn_it_keeps_what_is_whole(tmp_path):
    both = calls(call("write", path="a.txt", content="x\n"), call("bash", command="sleep 1000"))
    with serve_model([both, "I see."]) as (model, name):
        rpc = Rpc(tmp_path, "--model", name, "--allow", "*")
        rpc.send(type="prompt", message="Write, then sleep.")
        rpc.send(type="prompt", message="Then this.")
        rpc.wait("call", tool="bash")
        rpc.process.send_signal(signal.SIGINT)
        assert rpc.wait("turn")["how"] == "interrupted"
        code, error = rpc.close()
        assert code == 130
        assert error.endswith("error: interrupted; finished work is kept\n")
        assert "Traceback" not in error
        rpc = Rpc(tmp_path, "--model", name, "--continue")
        rpc.prompt("What happened?")
        results = [one["content"] for one in model.requests[-1].messages if one["role"] == "tool"]
        assert results[0].startswith("Created a.txt")
        assert results[1].startswith("Stopped by the user")
        rpc.close()
