from __future__ import annotations

import json

import pytest
from tests.exports.moving import export
from tests.exports.sessions import chat, entries, talk

from foldline.dialects import get, names


def messages(raw):
    return [json.loads(line) for line in raw.splitlines()]


def test_messages_of_the_dialect_are_as_received():
    raw, result = export(entries(), "anthropic")

    assert messages(raw) == talk()
    assert (result.count, result.warnings, result.place) == (8, (), None)


def test_a_system_prompt_that_stands_apart_is_a_line_before_them():
    raw, result = export(entries(chat()[:5], dialect="openai-chat", model=None), "anthropic")

    assert messages(raw)[0] == {"system": "Be brief."}
    assert "call arguments that are not a JSON object wrapped in one (1)" in result.warnings


def test_boundaries_have_no_form_in_a_list_but_a_checkpoint_has():
    path = entries(fold_at=6, keep_from=4)
    raw, result = export(path, "openai-chat")
    view, _ = export(path, "openai-chat", view=True)

    assert "boundaries left out (a list has no form for them) (1)" in result.warnings
    assert messages(raw)[0]["content"] == talk()[0]["content"]
    assert "Mend it." in messages(view)[0]["content"]


@pytest.mark.parametrize("dialect", names())
def test_every_dialect_writes_a_valid_view(dialect):
    raw, _ = export(entries(fold_at=6, keep_from=4), dialect, view=True)

    assert get(dialect).validate(messages(raw)) == []
