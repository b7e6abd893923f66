"""`useChat` itself, of three releases of the AI SDK, through turns that fold: `make soak`, where npm reaches its
registry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.e2e.conftest import run
from tests.service.served import run_gateway

from foldline.testing import Answer, Refusal, call

pytestmark = pytest.mark.soak

SCRIPT = Path(__file__).parent / "use_chat.mjs"
VERSIONS = (5, 6, 7)
TURNS = 12


@pytest.fixture(scope="session")
def ai(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `ai` as ai5, ai6 and ai7; `FOLDLINE_AI` names one that has them already."""
    ready = os.environ.get("FOLDLINE_AI")
    if ready:
        return Path(ready)
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm: install Node.js with npm")
    folder = tmp_path_factory.mktemp("ai")
    packages = [f"ai{version}@npm:ai@{version}" for version in VERSIONS]
    run(npm, "install", "--no-fund", "--no-audit", "--prefix", folder, *packages)
    return folder


def chatted(ai, version, url, turns=TURNS, **body):
    """What `useChat` kept of some turns."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: install Node.js with npm")
    done = subprocess.run(
        [node, SCRIPT, ai, str(version), url, str(turns), json.dumps(body)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_chat_goes_through_a_fold_and_on(ai, version):
    with run_gateway(lambda _: "It is done.", window=4_000) as (url, model):
        told = chatted(ai, version, url)
    assert told["errors"] == []
    assert told["status"] == "ready"
    assert "data-compaction-started" in told["heard"]
    assert "data-compaction" in told["heard"]
    carried = [parts for parts in told["parts"] if "data-compaction" in parts]
    assert carried[0] == ["assistant", "data-compaction", "step-start", "text"]
    assert not any("data-compaction-started" in parts for parts in told["parts"])
    assert len(told["texts"]) == 2 * TURNS
    assert len(model.requests) == TURNS
    assert len(carried) < TURNS - 5  # the state came back with the messages: not every turn folds


@pytest.mark.parametrize("version", VERSIONS)
def test_thoughts_calls_and_refusals_are_read(ai, version):
    called = Answer(text="I read it.", thinking="Hm.", calls=call("read", path="a.py").calls)
    tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    with run_gateway([called], window=20_000) as (url, _):
        told = chatted(ai, version, url, 1, tools=tools)
    assert told["errors"] == []
    assert told["parts"][-1] == ["assistant", "step-start", "reasoning", "text", "tool-read"]
    with run_gateway([Refusal(401, "not today")], window=20_000) as (url, _):
        told = chatted(ai, version, url, 1)
    assert "not today" in told["errors"][0]
    with run_gateway([Refusal(500, "down"), "Here."], window=20_000) as (url, _):
        told = chatted(ai, version, url, 1)
    assert told["heard"] == ["data-retrying"]
    assert told["texts"][-1] == "Here."
    with run_gateway([Answer(stop="refused")], window=20_000) as (url, _):
        told = chatted(ai, version, url, 1)
    assert "answered with nothing" in told["errors"][0]
