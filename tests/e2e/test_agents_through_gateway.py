"""Real agents and the Node SDKs through a gateway that is killed between their turns: `make soak`, where npm is.

Only their base URL is set. They work past the window, then go on in a new process behind a new gateway.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.e2e.running import run
from tests.service.served import run_gateway
from tests.support.gateway_agents import (
    AGENTS,
    DONE,
    LINES,
    Agent,
    ReportModel,
    codex_that_compacts,
    mini,
    report,
)
from tests.support.gateway_process import GatewayProcess
from tests.support.real_tools import TOOLS, Workspace

import foldline
from foldline.core.log.entries import Said
from foldline.testing import Scripted, serve_in_thread

pytestmark = pytest.mark.soak

RULE = "Never push to main."
NODE = Path(__file__).with_name("node_sdks.mjs")
FILLER = "Every word of it is needed. " * 60
TASKS = (f"Write the first reports. {RULE}", "Now write those that remain.")
NO_ROOM = "input length and `max_tokens` exceed context limit"


def model_of(work, window):
    """A strict model; it checks signatures as the real APIs do, block by block."""
    return Scripted(work, window=window, signatures="block")


def worked(agent, place, work, gateway):
    """Have an agent work twice, the gateway killed and started again in between."""
    for number, task in enumerate(TASKS):
        gateway.start()
        work.left = agent.commands
        try:
            done = agent.say(place, task, again=number > 0)
        finally:
            gateway.kill()
        assert done.code == 0, done.err[-2_000:]
        assert DONE in done.out + done.err
        assert work.left == 0


async def said_in(gateway):
    """What was said in each stored session, and how often each was compacted."""
    store = foldline.stores.open_store(gateway.store)
    assert await store.verify() == []
    found = []
    for info in await store.sessions():
        path = [entry async for entry in store.path(info.id) if isinstance(entry, Said)]
        found.append((path, info.compactions))
    await store.close()
    return found


def words(path):
    """The texts of a path and of its results, one a message."""
    return [
        entry.message.text + "".join(str(result.content) for result in entry.message.results)
        for entry in path
    ]


@pytest.mark.parametrize("name", AGENTS)
async def test_an_agent_goes_on_past_its_window_and_behind_another_gateway(name, tools, tmp_path):
    agent, work = AGENTS[name], ReportModel()
    model = model_of(work, agent.window)
    with serve_in_thread(model) as url:
        gateway = GatewayProcess(tmp_path, url, window=agent.window, summaries="upstream")
        program = tools / "node_modules" / ".bin" / TOOLS[name].program
        worked(agent, Workspace(program, tmp_path / "home", gateway.url), work, gateway)
    refused = [one.refused for one in model.requests if one.refused]
    assert [one for one in refused if not (agent.overflows and one.startswith(NO_ROOM))] == []
    assert RULE in str(model.requests[-1].messages)
    found = [(path, folds) for path, folds in await said_in(gateway) if TASKS[0] in "".join(words(path))]
    working = [one for one in found if report(1) in "".join(words(one[0]))]
    ((path, folds),) = working  # both turns are one session
    assert folds > 0
    assert work.summaries > 0
    whole = words(path)
    assert sum(TASKS[1] in one for one in whole) == 1
    for number in range(1, 2 * agent.commands + 1):
        assert sum(f"{report(number)} {LINES} " in one for one in whole) == 1
    assert sum(entry.tokens for entry in path) > agent.window
    assert run(tmp_path, "verify", "--store", gateway.store).returncode == 0


async def test_codex_compacts_on_the_gateway_and_goes_on_in_its_session(tools, tmp_path):
    work = ReportModel()
    model = model_of(work, 60_000)
    with serve_in_thread(model) as url:
        gateway = GatewayProcess(tmp_path, url, window=60_000)
        program = tools / "node_modules" / ".bin" / TOOLS["codex"].program
        agent = Agent(codex_that_compacts, 60_000, 8)
        worked(agent, Workspace(program, tmp_path / "home", gateway.url), work, gateway)
    assert [one.refused for one in model.requests if one.refused] == []
    assert not any("compaction" in str(one.get("type")) for asked in model.requests for one in asked.messages)
    assert RULE in str(model.requests[-1].messages)
    ((path, folds),) = await said_in(gateway)
    assert folds > 1
    whole = words(path)
    for number in range(1, 17):
        assert sum(f"{report(number)} {LINES} " in one for one in whole) == 1


async def test_an_agent_that_keeps_no_sessions_works_past_its_window(mini_program, tmp_path):
    work = ReportModel()
    model = model_of(work, 20_000)
    with serve_in_thread(model) as url:
        gateway = GatewayProcess(tmp_path, url, window=20_000)
        gateway.start()
        work.left = 24
        try:
            done = mini(Workspace(mini_program, tmp_path / "home", gateway.url), TASKS[0], again=False)
        finally:
            gateway.stop()
    assert done.code == 0, done.err[-2_000:]
    assert DONE in done.out
    assert [one.refused for one in model.requests if one.refused] == []
    ((path, folds),) = await said_in(gateway)
    assert folds > 0
    assert [n for n in range(1, 25) if f"{report(n)} 1 " not in "".join(words(path))] == []


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_the_node_sdks_stream_past_a_window(api, tools):
    model = Scripted(lambda asked: f"Answer {asked.index}. {FILLER}", window=12_000)
    with run_gateway(model, window=12_000) as (url, _):
        asked = [shutil.which("node"), str(NODE), str(tools), url, api, "48"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["said"] == [f"Answer {number}" for number in range(48)]
    assert told["folds"] > 1
    assert [one.refused for one in model.requests if one.refused] == []
