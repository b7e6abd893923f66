"""What only Agno has: members of a team, and calls of a model that are of no run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.drivers import installed

if not installed("agno"):
    pytest.skip("agno is not installed: run `make adapters`", allow_module_level=True)

from agno.agent import Agent
from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse

from foldline.adapters.agno import use_foldline

pytestmark = pytest.mark.slow


class Scripted(Model):
    """Answers, and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(id="scripted")
        self.seen: list[list[str]] = []

    def answer(self, messages: Sequence[Any]) -> ModelResponse:
        self.seen.append([one.get_content_string() for one in messages if one.role != "system"])
        return ModelResponse(role="assistant", content=f"Answer {len(self.seen)}.")

    def invoke(self, messages: Any, **_: Any) -> ModelResponse:
        return self.answer(messages)

    async def ainvoke(self, messages: Any, **_: Any) -> ModelResponse:
        return self.answer(messages)

    def invoke_stream(self, messages: Any, **_: Any) -> Any:
        yield self.answer(messages)

    async def ainvoke_stream(self, messages: Any, **_: Any) -> Any:
        yield self.answer(messages)

    def _parse_provider_response(self, response: Any, **_: Any) -> Any:
        return response

    def _parse_provider_response_delta(self, response: Any) -> Any:
        return response


def test_members_of_a_team_have_a_session_each(tmp_path: Path) -> None:
    url, found = f"sqlite:///{tmp_path}/sessions.db", list[Any]()
    for name in ("coder", "tester"):
        member = Agent(name=name, model=Scripted(), telemetry=False)
        member.team_id = "team"  # as a Team sets it
        found.append((member, use_foldline(member, url, window=16_000)))
    for turn in range(3):
        for member, _ in found:
            member.run(f"For the {member.name}: {turn}.", session_id="shared")
    for member, histories in found:
        other = "tester" if member.name == "coder" else "coder"
        assert not any(f"For the {other}" in text for view in member.model.seen for text in view)
        histories.close()
    _, histories = found[0]
    sessions = histories.run("shared-coder", lambda history: history.session.store.sessions())
    assert {one.id.partition(".")[0] for one in sessions} == {"shared-coder", "shared-tester"}
    histories.close()


def test_a_call_that_is_of_no_run_is_left_as_it_is(tmp_path: Path) -> None:
    agent = Agent(model=Scripted(), telemetry=False)
    histories = use_foldline(agent, f"sqlite:///{tmp_path}/sessions.db", window=16_000)
    agent.model.response([Message(role="user", content="Remember that I like tea.")])
    assert agent.model.seen == [["Remember that I like tea."]]
    sessions = histories.run("any", lambda history: history.session.store.sessions())
    assert sessions == []
    histories.close()
