"""Inspect's own handling of a compaction: several passes, messages combined, and samples side by side."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: run `make adapters`")

from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Model,
    ModelAPI,
    compaction,
    modelapi,
)
from inspect_ai.tool import ToolCall, ToolCallError
from inspect_ai.util import store

from foldline.adapters.inspect import FORM, FoldlineCompaction, chat_payload

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated"),
    pytest.mark.filterwarnings("ignore:.*MemoryObjectReceiveStream"),
]


@modelapi("counting")
class Counting(ModelAPI):
    """A model that is only counted for; its API wants one message of the user's at a time."""

    async def generate(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def count_text_tokens(self, text: str) -> int:
        return len(text)

    def collapse_user_messages(self) -> bool:
        return True


@pytest.fixture
def model() -> Model:
    return Model(Counting("counting"), GenerateConfig())


def turn(number: int) -> list[Any]:
    call = ToolCall(f"call_{number}", "look", {"path": f"src/file_{number}.py"})
    return [
        ChatMessageAssistant(content=f"Step {number}.", tool_calls=[call], source="generate"),
        ChatMessageTool(content="value = compute()\n" * 40, tool_call_id=call.id, function="look"),
    ]


async def total(strategy: FoldlineCompaction, session: str) -> int:
    return (await strategy.histories.arun(session, lambda history: history.session.stats())).total_messages


async def test_a_view_that_is_still_too_large_is_folded_harder(tmp_path: Any, model: Model) -> None:
    strategy = FoldlineCompaction(
        f"sqlite:///{tmp_path}/s.db", session="talk", threshold=7_000, window=16_000
    )
    prompt = ChatMessageUser(content="Look at all files.", source="input")
    handler = compaction(strategy, [prompt], model=model)
    messages: list[Any] = [prompt]
    for number in range(60):
        messages += turn(number)
        if number % 7 == 0:
            messages.append(ChatMessageUser(content=f"And then {number}?"))
        shown, extra = await handler.compact_input(messages)
        assert extra is None
        assert sum(len(one.text) for one in shown) <= 7_000
        assert [one.role for one in shown].count("user") <= 5
        assert messages[-1].id == shown[-1].id or messages[-1].text in shown[-1].text
    stored = await total(strategy, "talk")
    assert 100 < stored <= len(messages)
    strategy.histories.close()


async def test_samples_with_the_same_input_have_sessions_of_their_own(tmp_path: Any, model: Model) -> None:
    strategy = FoldlineCompaction(f"sqlite:///{tmp_path}/s.db", threshold=9_000, window=16_000)
    prompt = ChatMessageUser(content="Look at all files.", source="input")
    talks: list[list[Any]] = [[prompt], [prompt]]
    handlers = [compaction(strategy, [prompt], model=model) for _ in talks]
    for number in range(40):
        for handler, messages in zip(handlers, talks, strict=True):
            messages.extend(turn(number))
            await handler.compact_input(messages)
    first, second = store().get("foldline")
    assert first != second
    for name in (first, second):
        assert 40 < await total(strategy, name) <= 81
    strategy.histories.close()


async def test_an_agent_that_was_handed_the_messages_has_a_session_of_its_own(
    tmp_path: Any, model: Model
) -> None:
    strategy = FoldlineCompaction(f"sqlite:///{tmp_path}/s.db", threshold=9_000, window=16_000)
    prompt = ChatMessageUser(content="Look at all files.", source="input")
    parent = compaction(strategy, [prompt], model=model)
    messages: list[Any] = [prompt]
    for number in range(20):
        messages.extend(turn(number))
        await parent.compact_input(messages)
    handed = [*messages, ChatMessageUser(content="Go on from here.")]
    child = compaction(strategy, [prompt], model=model)
    for number in range(20, 40):
        handed.extend(turn(number))
        await child.compact_input(handed)
        messages.extend(turn(number + 100))
        await parent.compact_input(messages)
    first, second = store().get("foldline")
    for name in (first, second):
        path = await strategy.histories.arun(name, lambda history: history.session.history())
        assert path[0]["content"] == "Look at all files."
        assert 60 < len(path) <= 82
    strategy.histories.close()


def test_messages_are_read_and_written() -> None:
    image = "data:image/png;base64,iVBORw0KGgo="
    shown = ChatMessageUser(content=[ContentText(text="What is this?"), ContentImage(image=image)])
    assert chat_payload(shown)["content"][1] == {"type": "image_url", "image_url": {"url": image}}
    thought = ChatMessageAssistant(content=[ContentReasoning(reasoning="hm"), ContentText(text="A cat.")])
    assert chat_payload(thought) == {"role": "assistant", "content": "A cat."}
    failed = ChatMessageTool(content="", tool_call_id="c", error=ToolCallError("timeout", "too slow"))
    assert chat_payload(failed)["content"] == "timeout: too slow"
    payloads = [chat_payload(one) for one in turn(1)]
    back = FORM.encode([payloads[0], {**payloads[1], "name": "look"}])
    assert [chat_payload(one) for one in back] == payloads
