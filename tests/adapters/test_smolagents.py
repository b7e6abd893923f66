"""What smolagents makes of its memory is read as calls and results, pictures and errors included."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("smolagents")


def said(role: str, text: str) -> Any:
    from smolagents import ChatMessage, MessageRole

    return ChatMessage(MessageRole(role), [{"type": "text", "text": text}])


def call(*ids: str) -> Any:
    asked = [
        {"id": one, "type": "function", "function": {"name": "look", "arguments": {"at": 1}}} for one in ids
    ]
    return said("tool-call", f"Calling tools:\n{asked}")


def test_calls_and_results_are_read_from_their_texts_and_written_again() -> None:
    from PIL.Image import new
    from smolagents import ChatMessage, MessageRole

    from foldline.adapters.smolagents import FORM, text_of
    from foldline.dialects import get

    shown = ChatMessage(MessageRole.USER, [{"type": "image", "image": new("RGB", (2, 2))}])
    messages = [
        said("user", "Look."),
        said("assistant", "I look."),
        call("a", "b"),
        shown,
        said("tool-response", "Observation:\nquay 7"),
        said("tool-response", "Error:\nno such quay"),
        shown,
        said("tool-call", "Calling tools:\n[nan]"),
    ]
    read = FORM.decode(messages)
    assert [len(each) for each in read] == [1, 0, 1, 0, 2, 1, 1, 1]
    assert (read[2][0].text, [one.id for one in read[2][0].calls]) == ("I look.", ["a", "b"])
    assert [one.text for each in read[4] for one in each.results] == ["quay 7", ""]
    assert read[5][0].injected
    whole = get("openai-chat").render([(one, ()) for each in read for one in each]).messages
    assert get("openai-chat").validate(whole) == []
    written = FORM.encode(whole)
    assert [text_of(one) for one in written[:4]] == [text_of(messages[at]) for at in (0, 1, 2, 4)]
