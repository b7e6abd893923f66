"""What only the OpenAI Agents SDK has: agents as tools, hand-offs, limits, filters, over a session that is the record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.drivers import installed

if not installed("agents"):
    pytest.skip("openai-agents is not installed: run `make adapters`", allow_module_level=True)

from agents import Agent, ModelResponse, RunConfig, Runner, Usage, handoff, set_tracing_disabled
from agents.extensions.handoff_filters import remove_all_tools
from agents.memory import SessionSettings
from agents.models.interface import Model
from agents.run import CallModelData, ModelInputData
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from foldline.adapters.openai_agents import FoldlineSession

pytestmark = pytest.mark.slow
set_tracing_disabled(True)


class Scripted(Model):
    """Says texts, and calls tools where a step is a name and arguments; keeps what it was sent."""

    def __init__(self, *steps: str | tuple[str, dict[str, Any]]) -> None:
        self.steps = list(steps)
        self.seen: list[list[Any]] = []

    async def get_response(self, *_: Any, **asked: Any) -> ModelResponse:
        self.seen.append(list(asked["input"]))
        step, number = self.steps.pop(0), len(self.seen)
        if isinstance(step, tuple):
            made: Any = ResponseFunctionToolCall(
                arguments=json.dumps(step[1]),
                call_id=f"{id(self)}_{number}",
                name=step[0],
                type="function_call",
            )
        else:
            text = ResponseOutputText(text=step, type="output_text", annotations=[])
            made = ResponseOutputMessage(
                id=f"msg_{id(self)}_{number}",
                content=[text],
                role="assistant",
                status="completed",
                type="message",
            )
        return ModelResponse(output=[made], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@pytest.fixture
def session(tmp_path: Path) -> Iterator[FoldlineSession]:
    made = FoldlineSession("talk", f"sqlite:///{tmp_path}/sessions.db", window=16_000)
    yield made
    made.histories.close()


async def say(agent: Agent, session: FoldlineSession, text: str, config: RunConfig | None = None) -> str:
    done = await Runner.run(agent, text, session=session, run_config=session.run_config(config))
    return str(done.final_output)


def texts(items: Sequence[Any]) -> list[str]:
    found = [one.get("content") or one.get("name") or one.get("output") for one in items]
    return [text if isinstance(text, str) else text[0]["text"] for text in found]


async def test_an_agent_as_a_tool_leaves_the_session_of_the_one_that_called_it_whole(
    session: FoldlineSession,
) -> None:
    inner = Agent("inner", model=Scripted("Inner answer.", "Inner again."))
    outer = Agent(
        "outer",
        model=Scripted(("ask", {"input": "Count."}), "Done.", ("ask", {"input": "Count more."}), "Done too."),
        tools=[inner.as_tool("ask", "Asks another agent.")],
    )
    assert await say(outer, session, "Go.") == "Done."
    assert await say(outer, session, "Once more.") == "Done too."
    items = ["Go.", "ask", "Inner answer.", "Done.", "Once more.", "ask", "Inner again.", "Done too."]
    assert texts(await session.get_items()) == items
    assert texts(outer.model.seen[-1]) == items[:-1]
    assert texts(inner.model.seen[-1]) == ["Count more."]


async def test_a_hand_off_that_filters_the_history_leaves_the_session_whole(session: FoldlineSession) -> None:
    second = Agent("second", model=Scripted("I go on.", "And on."))
    first = Agent(
        "first",
        model=Scripted("Hello.", ("transfer_to_second", {})),
        handoffs=[handoff(second, input_filter=remove_all_tools)],
    )
    await say(first, session, "Hi.")
    await say(first, session, "Pass me on.")
    await say(second, session, "Still there?")
    kept = texts(await session.get_items())
    assert kept[:3] == ["Hi.", "Hello.", "Pass me on."]
    assert kept[-3:] == ["I go on.", "Still there?", "And on."]


async def test_a_limit_takes_the_newest_items_and_loses_none(session: FoldlineSession) -> None:
    agent = Agent("coder", model=Scripted("One.", "Two.", "Three."))
    for text in ("First.", "Second.", "Third."):
        await say(agent, session, text, RunConfig(session_settings=SessionSettings(limit=2)))
    assert texts(await session.get_items()) == ["First.", "One.", "Second.", "Two.", "Third.", "Three."]
    assert len(await session.get_items(50)) == 6
    assert texts(await session.get_items(2)) == ["Third.", "Three."]
    assert await session.get_items(0) == []
    assert texts(agent.model.seen[-1])[-1] == "Third."


async def test_the_filter_that_a_configuration_has_gets_the_view(session: FoldlineSession) -> None:
    def hide(data: CallModelData[Any]) -> ModelInputData:
        hidden = [{**one, "content": "(hidden)"} for one in data.model_data.input]
        return ModelInputData(input=hidden, instructions=data.model_data.instructions)

    agent = Agent("coder", model=Scripted("Noted."))
    await say(agent, session, "My number is 7.", RunConfig(call_model_input_filter=hide))
    assert texts(agent.model.seen[0]) == ["(hidden)"]
    assert texts(await session.get_items()) == ["My number is 7.", "Noted."]


async def test_the_window_is_that_of_the_agents_model(tmp_path: Path) -> None:
    session = FoldlineSession("talk", f"sqlite:///{tmp_path}/sessions.db")
    model = Scripted("Hello.")
    model.model = "gpt-4o"
    await say(Agent("coder", instructions="Be brief.", model=model), session, "Hi.")
    setup = session.histories.run("talk", lambda history: asyncio.sleep(0, history.session.setup))
    session.histories.close()
    assert (setup.window.context, setup.system) == (128_000, "Be brief.")
