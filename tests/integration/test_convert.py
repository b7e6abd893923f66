from __future__ import annotations

import pytest

import foldline
from foldline.dialects import get, names

CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
}
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Read it.", "name": "ann"},
    CALL,
    {"role": "tool", "tool_call_id": "a", "content": "It says hello."},
    {"role": "assistant", "content": "It greets."},
]


@pytest.mark.parametrize("name", names())
def test_a_list_is_valid_in_every_dialect_and_comes_back(name):
    found = foldline.convert(MESSAGES, to=name)
    assert found.dialect == name
    assert get(name).validate(found.messages, found.system) == []
    back = foldline.convert(found.messages, to="openai-chat", dialect=name, system=found.system)
    words = [(one["role"], one.get("content")) for one in MESSAGES]
    if name != "openai-chat":  # the others have no field for who speaks
        words[1] = ("user", "ann: Read it.")
    assert [(one["role"], one.get("content")) for one in back.messages] == words


def test_what_a_dialect_takes_separately_is_beside_the_messages():
    found = foldline.convert(MESSAGES, to="anthropic")
    assert found.system == "Be brief."
    assert found.messages[0] == {"role": "user", "content": "ann: Read it."}
    assert found.warnings == ()


def test_messages_of_the_dialect_asked_for_come_back_as_they_are():
    assert foldline.convert(MESSAGES, to="openai-chat").messages == MESSAGES
    assert foldline.convert(MESSAGES, to="openai-chat").warnings == ()


def test_a_call_without_a_result_is_answered_and_said():
    found = foldline.convert([*MESSAGES[:3], {"role": "user", "content": "And?"}], to="anthropic")
    assert get("anthropic").validate(found.messages, found.system) == []
    assert "calls without a result, answered by a note (1): 'a'" in found.warnings


@pytest.mark.parametrize(
    ("given", "told"),
    [({"to": "latin"}, "unknown dialect 'latin'"), ({"to": 4}, "to = 4"), ({"to": "anthropic", "system": 4}, "system = 4")],
)  # fmt: skip
def test_what_cannot_be_converted_to_is_refused(given, told):
    with pytest.raises(foldline.InputError, match=told):
        foldline.convert(MESSAGES, **given)
