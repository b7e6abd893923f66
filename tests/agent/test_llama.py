"""A first session with a real llama-server: start, ask, fold, ask what was folded, undo. Protocol, never quality."""

from __future__ import annotations

import json

import pytest
from tests.agent.program import Rpc, run_foldline, settings

pytestmark = pytest.mark.slow


def test_the_first_five_minutes(tmp_path, llama):
    name = f"openai-compatible:smollm2@{llama}/v1"
    settings(tmp_path, '[agent]\nmax_tokens = 60\ntools = false\n[compaction]\nmodel = "offline"\n')
    rpc = Rpc(tmp_path, "--model", name, "--window", "8192")
    for text in ("Never change the limits. Say hello.", "Say it again.", "Thank you."):
        ended = rpc.prompt(text)
        assert ended["how"] in ("done", "waiting", "length"), ended  # a small model goes on and on
    stats = rpc.ask(type="stats")
    assert stats["usage"]["output"] > 0
    assert stats["totalMessages"] >= 6
    folded = rpc.ask(type="compact", instructions="the limits")
    assert folded["folded"] or folded["why"] in ("no_gain", "nothing_to_fold")
    found = rpc.ask(type="command", line="/recall limits")
    assert "Never change the limits" in found["text"]
    if folded["folded"]:
        assert rpc.ask(type="undo")["entry"]
    session = rpc.session
    assert rpc.close()[0] == 0
    assert run_foldline(tmp_path, "verify").returncode == 0
    again = run_foldline(
        tmp_path, "run", "-p", "Bye.", "--json", "--resume", session, "--model", name, "--window", "8192"
    )
    told = [json.loads(line) for line in again.stdout.splitlines()]
    assert "text" in [one["type"] for one in told], "a real server streams"
    ended = [one["how"] for one in told if one["type"] == "turn"][-1]
    assert (ended, again.returncode) in (("done", 0), ("length", 1)), again.stderr
