"""LlamaIndex's messages: pictures, and calls in the forms of providers, are read and written again."""

from __future__ import annotations

import base64

import pytest

pytest.importorskip("llama_index.core")

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_pictures_and_calls_of_every_form_are_read_and_written_again() -> None:
    from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock

    from foldline.adapters.llama_index import FORM
    from foldline.dialects import get

    asked = {"id": "b", "type": "function", "function": {"name": "look", "arguments": '{"at": 2}'}}
    messages = [
        ChatMessage(role="user", blocks=[TextBlock(text="See."), ImageBlock(image=PNG)]),
        ChatMessage(
            role="assistant",
            blocks=[ToolCallBlock(tool_call_id="a", tool_name="look", tool_kwargs={"at": 1})],
        ),
        ChatMessage("quay 7", role="tool", additional_kwargs={"tool_call_id": "a"}),
        ChatMessage("And", role="assistant", additional_kwargs={"tool_calls": [asked]}),
        ChatMessage("quay 8", role="tool", additional_kwargs={"tool_call_id": "b"}),
    ]
    read = [message for each in FORM.decode(messages) for message in each]
    assert [[call.arguments for call in message.calls] for message in read] == [
        [],
        [{"at": 1}],
        [],
        [{"at": 2}],
        [],
    ]
    whole = get("openai-chat").render([(message, ()) for message in read]).messages
    assert get("openai-chat").validate(whole) == []
    assert whole[0]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    written = FORM.encode(whole)
    assert written[1:3] == messages[1:3]
    assert (written[3].content, written[3].blocks[1].tool_kwargs) == ("And", {"at": 2})  # pyright: ignore


async def test_a_memory_gives_all_that_was_put_into_it() -> None:
    from llama_index.core.base.llms.types import ChatMessage

    from foldline.adapters.llama_index import WholeMemory

    messages = [ChatMessage("word " * 9_000, role="user") for _ in range(9)]
    memory = WholeMemory.from_defaults(messages)
    assert await memory.aget() == messages
