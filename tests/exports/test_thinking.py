"""An export says how many replies hold thinking that the other tool leaves out by itself."""

from __future__ import annotations

import msgspec
import pytest
from tests.exports.moving import export

from foldline import dialects
from foldline.core.log.log import said
from foldline.core.log.messages import Message, Text, Thinking

TOLD = {
    "claude-code": "replies with thinking, which Claude Code keeps but may not send",
    "pi": "replies with thinking, which pi sends as such to the model that wrote it alone",
    "openai-chat": "replies with reasoning beside them, which LangChain leaves out",
}


def talk(*replies: Message):
    """A question before each reply."""
    entries, parent, key = [], None, ""
    for reply in replies:
        for message in (Message("user", (Text("Go on."),)), reply):
            entry = said(message, parent=parent, said_key=key)
            entries.append(entry)
            parent, key = entry.id, entry.said_key
    return entries


def thought(signature: str | None) -> Message:
    return Message("assistant", (Thinking("Hm.", signature), Text("Done.")), model="claude-sonnet-4-5")


REASONED = dialects.get("openai-chat").decode(
    {"role": "assistant", "content": "Done.", "reasoning_content": "Hm."}
)
PLAIN = Message("assistant", (Text("Done."),), model="claude-sonnet-4-5")


@pytest.mark.parametrize("form", TOLD)
def test_thinking_that_the_tool_leaves_out_is_counted_once_a_kind(form):
    thinking = REASONED if form == "openai-chat" else thought("c2ln")
    raw, told = export(talk(thinking, PLAIN, thinking), form)
    assert raw.count(b"Hm.") == 2
    assert [one for one in told.warnings if one.startswith("replies with")] == [f"{TOLD[form]} (2)"]


@pytest.mark.parametrize("form", TOLD)
def test_where_there_is_no_thinking_nothing_is_said(form):
    _, told = export(talk(PLAIN, PLAIN), form)
    assert not [one for one in told.warnings if "thinking" in one or "reasoning" in one]


def test_thinking_that_is_not_written_is_not_said_to_be_kept():
    raw, told = export(talk(thought(None)), "claude-code")
    assert b"Hm." not in raw
    assert [one for one in told.warnings if "thinking" in one] == ["unsigned thinking left out (1)"]
    assert msgspec.json.decode(raw.splitlines()[-1])["type"] == "assistant"
