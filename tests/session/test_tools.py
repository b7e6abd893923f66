"""Tools for the model: valid in every dialect, careful with what the model sends, short in what they answer."""

import json

import pytest
from anthropic.types import ToolParam
from inline_snapshot import snapshot
from openai.types.chat import ChatCompletionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from foldline.core.cut.notes import MARK, TOOLS
from foldline.core.measure.tokens import OFFLINE, tools_tokens
from foldline.dialects import names
from foldline.errors import InputError
from foldline.session.definitions import arguments_of, definitions
from foldline.session.recall import EntryInfo, Passage
from foldline.session.tools import (
    ALL_TOOLS,
    RECALL_TOOLS,
    capped,
    hits_text,
    listed_text,
    passage_text,
)
from foldline.stores.base import Hit

ALL = ALL_TOOLS
SEARCH, READ, LIST = RECALL_TOOLS
SDK = {"anthropic": ToolParam, "openai-chat": ChatCompletionToolParam, "openai-responses": FunctionToolParam}


def test_every_dialect_has_a_form_and_recall_knows_its_own_tools():
    assert {tool.name for tool in ALL} == set(TOOLS)
    for dialect in names():
        assert len(definitions(dialect, ALL)) == 5


@pytest.mark.parametrize("dialect", SDK)
def test_the_official_sdks_take_the_definitions_as_their_own(dialect):
    form = TypeAdapter(SDK[dialect])
    for made in definitions(dialect, ALL):
        taken = form.validate_python(made)
        assert set(taken) == set(made)
        json.dumps(made)


def test_a_ui_message_session_gets_the_function_tool_of_the_ai_sdk():
    (made, *_) = definitions("ui-message", ALL)
    assert set(made) == {"type", "name", "description", "inputSchema"}
    assert (made["type"], made["inputSchema"]["type"]) == ("function", "object")


def test_the_names_and_schemas_are_what_every_api_allows():
    for tool in ALL:
        assert tool.name.replace("_", "").isalnum()
        assert len(tool.name) <= 64
        assert set(tool.required) <= set(tool.parameters)
        assert len(tool.description) < 1_024


def test_the_definitions_are_small():
    assert tools_tokens(definitions("anthropic", ALL), OFFLINE) < 800


def test_a_dialect_that_is_not_known_is_named():
    with pytest.raises(InputError, match="tools cannot be defined in dialect 'smoke'"):
        definitions("smoke", ALL)


def test_arguments_come_as_json_or_as_an_object():
    assert arguments_of(SEARCH, '{"query": "login", "limit": 3}') == {"query": "login", "limit": 3}
    assert arguments_of(SEARCH, {"query": "login", "limit": None}) == {"query": "login"}
    assert arguments_of(LIST, None) == arguments_of(LIST, "") == {}


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        (SEARCH, {}, "recall_search needs query"),
        (SEARCH, {"query": ""}, "needs query"),
        (SEARCH, {"query": 7}, "query must be a string"),
        (SEARCH, {"query": "a", "limit": "3"}, "limit must be a whole number"),
        (SEARCH, {"query": "a", "limit": True}, "limit must be a whole number"),
        (SEARCH, {"query": "a", "lines": 3}, "takes query, limit, session, not lines"),
        (READ, "[1]", "must be a JSON object"),
        (READ, '{"entry": ', "the arguments are not JSON"),
    ],
)
def test_wrong_arguments_are_answered_with_words(tool, given, told):
    with pytest.raises(InputError, match=told):
        arguments_of(tool, given)


def test_numbers_stay_within_what_an_answer_may_hold():
    assert [capped({"limit": n}, "limit", 10) for n in (-5, 0, 4, 99)] == [1, 1, 4, 10]
    assert capped({}, "limit", 10) == 10


def test_answers_begin_with_the_mark_by_which_recall_leaves_itself_out():
    hit = Hit("s", "e1", 4, "user", "the  login\npage", 0.0)
    other = Hit("old", "e0", 2, "tool", "x" * 5_000, None)

    found = hits_text("login", [hit, other], "s")

    assert found.startswith(MARK)
    assert "- e1 1970-01-01 00:00 UTC, user: the login page" in found
    assert "- e0 tool, session old: xxx" in found
    assert len(found) < 1_000
    assert hits_text("nope", [], "s") == snapshot(
        "[Recall] Nothing in this conversation matches 'nope'. Try fewer or other words."
    )


def test_a_passage_says_where_it_ends_and_how_to_read_on():
    piece = Passage("s", "e1", "tool", "abc", offset=10, total=20, at=None, next_offset=13)
    last = Passage("s", "e1", "tool", "abc", offset=17, total=20, at=None, next_offset=None)

    assert passage_text(piece) == snapshot("""\
[Recall] Entry e1, characters 10 to 13 of 20, quoted as data:
abc
[7 more characters: recall_read with offset 13]\
""")
    assert "more characters" not in passage_text(last)


def test_a_list_says_how_to_go_on_backwards():
    entries = [EntryInfo(f"e{n}", "user", "folded", f"[User]: {n}", 12, None) for n in range(2)]

    assert listed_text(entries, more=True) == snapshot("""\
[Recall] 2 messages that you do not see in full, oldest first:
- e0 folded, 12 tokens: [User]: 0
- e1 folded, 12 tokens: [User]: 1
Earlier ones: recall_list with before e0.\
""")
    assert "Earlier" not in listed_text(entries, more=False)
    assert listed_text([], more=False) == snapshot(
        "[Recall] Nothing is folded: you see the whole conversation."
    )
