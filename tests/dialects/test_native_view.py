"""A view rendered as it grows is the view rendered at once, and nobody's marks stay in it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs import DIALECTS, any_messages, chain, decode, logs, rendered

from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import Item
from foldline.dialects import dialect as dialects
from foldline.dialects import get
from foldline.dialects.base import in_dialect
from foldline.dialects.native_view import NativeView, deep_copy


@given(logs(), st.sampled_from(DIALECTS), st.integers(1, 3))
def test_a_view_rendered_as_it_grows_is_the_view_rendered_at_once(made, dialect, every):
    _, log = made
    fold, growing = ViewState(counter=OFFLINE), NativeView()
    for number, entry in enumerate(log.path()):
        fold.push(entry)
        if number % every == 0 and not fold.open_calls:
            assert growing.messages(dialect, fold.items()) == rendered(fold.view(), dialect)[0]


@given(any_messages, any_messages, st.sampled_from(DIALECTS))
def test_messages_of_two_dialects_are_rendered_as_at_once(first, second, dialect):
    log = chain([*decode(*first), *decode(*second)])
    fold, growing = ViewState(counter=OFFLINE), NativeView()
    for entry in log.path():
        fold.push(entry)
        if not fold.open_calls:
            assert growing.messages(dialect, fold.items()) == rendered(fold.view(), dialect)[0]


@given(any_messages)
def test_marks_that_a_caller_makes_do_not_stay(made):
    dialect, payloads = made
    fold, growing = ViewState(chain(decode(dialect, payloads)).path(), counter=OFFLINE), NativeView()
    items = fold.items()
    whole = copy.deepcopy(growing.messages(dialect, items))
    for message in growing.messages(dialect, items):
        if isinstance(message.get("content"), list):
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}
            message["content"].append("more")
        message["mark"] = True
    assert growing.messages(dialect, items) == whole


def test_a_reply_that_was_cut_off_behind_its_reasoning_leaves_none_of_it():
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [], "status": "incomplete"}
    asked = [{"role": "user", "content": text} for text in ("look", "go on")]
    log = chain([*decode("openai-responses", asked[:1]), *decode("openai-responses", [thought, said])])
    log = chain([*(entry.message for entry in log.path()), *decode("openai-responses", asked[1:])])
    fold, growing = ViewState(counter=OFFLINE), NativeView()
    first, *later = log.path()
    fold.push(first)
    growing.messages("openai-responses", fold.items())
    for entry in later:  # both before the next request
        fold.push(entry)
    sent = growing.messages("openai-responses", fold.items())
    assert get("openai-responses").validate(sent) == []
    assert sent == rendered(fold.view(), "openai-responses")[0]
    assert all(item.get("type") != "reasoning" for item in sent)


def test_a_server_tool_call_leaves_the_view_when_the_user_goes_on_without_it():
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    said = [{"type": "text", "text": "I look."}, search]
    natives = [{"role": "user", "content": "find"}, {"role": "assistant", "content": said}]
    fold, growing = ViewState(counter=OFFLINE), NativeView()
    for entry in chain(decode("anthropic", [*natives, {"role": "user", "content": "stop"}])).path():
        fold.push(entry)
        sent = growing.messages("anthropic", fold.items())
        assert get("anthropic").validate(sent) == []
        assert sent == rendered(fold.view(), "anthropic")[0]
    assert sent[1]["content"] == said[:1]


class Counted:
    """A dialect that notes how many messages it rendered."""

    def __init__(self, dialect: Any) -> None:
        self.dialect = dialect
        self.rendered = 0

    def render(self, items: Sequence[Any], *, whole: bool = False) -> Any:
        self.rendered += len(items)
        return self.dialect.render(items, whole=whole)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dialect, name)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_turn_renders_what_the_turn_added(monkeypatch, dialect):
    counted = Counted(get(dialect))
    monkeypatch.setitem(dialects._DIALECTS, dialect, counted)
    natives = [{"role": ("user", "assistant")[n % 2], "content": f"message {n}"} for n in range(60)]
    natives = [in_dialect(native, dialect, str(n)) for n, native in enumerate(natives)]
    entries = chain([counted.dialect.decode(native) for native in natives]).path()
    fold, growing = ViewState(entries[:20], counter=OFFLINE), NativeView()
    growing.messages(dialect, fold.items())
    assert counted.rendered == 20
    for entry in entries[20:]:
        fold.push(entry)
        growing.messages(dialect, fold.items())
    assert counted.rendered == 60
    assert growing.messages(dialect, fold.items()) == natives
    assert counted.rendered == 60


def test_another_dialect_or_another_fold_is_rendered_anew():
    natives = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    entries = chain(decode("openai-chat", natives)).path()
    growing = NativeView()
    assert growing.messages("openai-chat", ViewState(entries, counter=OFFLINE).items()) == natives
    assert growing.messages("anthropic", ViewState(entries, counter=OFFLINE).items()) == natives
    assert growing.messages("openai-chat", ViewState(entries[:1], counter=OFFLINE).items()) == natives[:1]
    assert growing.messages("openai-chat", []) == []


def test_a_message_without_a_native_form_is_rendered_with_its_neighbours():
    made = Message("user", (Text("and then"),))
    entries = chain([*decode("anthropic", [{"role": "user", "content": "first"}]), made, made]).path()
    fold, growing = ViewState(entries[:1], counter=OFFLINE), NativeView()
    for entry in entries[1:]:
        assert isinstance(entry, Said)
        growing.messages("anthropic", fold.items())
        fold.push(entry)
    items: Sequence[Item] = fold.items()
    assert growing.messages("anthropic", items) == rendered(items, "anthropic")[0]


def test_a_copy_shares_nothing_that_can_be_changed():
    value = {"a": [{"b": [1, None, True, "text", 2**70, -0.0]}], "c": {"d": {}}}
    made = deep_copy(value)
    assert made == value
    made["a"][0]["b"].append(2)
    made["c"]["d"]["e"] = 1
    assert value == {"a": [{"b": [1, None, True, "text", 2**70, -0.0]}], "c": {"d": {}}}


def nests(value: Any) -> list[Any]:
    """Every list and dict in a value, itself included."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict | list) else []), *(n for v in inner for n in nests(v))]


@given(logs(), st.sampled_from(DIALECTS), st.data())
def test_a_change_at_any_depth_stays_with_the_list_that_it_was_made_in(made, dialect, data):
    _, log = made
    fold, growing = ViewState(log.path(), counter=OFFLINE), NativeView()
    if fold.open_calls:
        return
    first, second = (growing.messages(dialect, fold.items()) for _ in range(2))
    as_it_was = copy.deepcopy(second)
    for place in data.draw(st.lists(st.sampled_from(nests(first)), max_size=5)):
        if isinstance(place, dict):
            place["cache_control"] = {"type": "ephemeral"}
            place.pop(next(iter(place)))
        else:
            place.append("more")
    assert second == as_it_was, "a list handed out before the change"
    assert growing.messages(dialect, fold.items()) == as_it_was, "and one handed out after it"


ITEMS = [
    {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "x"},
]
BLOCKS = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]},
]
CONVERSE = [
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "read", "input": {}}}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "x"}]}}]},
]


@pytest.mark.parametrize(
    ("dialect", "loop"), [("openai-responses", ITEMS), ("anthropic", BLOCKS), ("bedrock-converse", CONVERSE)]
)
def test_ids_that_repeat_stay_unique_when_the_session_changes_to_another_dialect(dialect, loop):
    """Local servers number the calls of each reply from 1; the native ones are renamed by edits."""
    chat = [
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ]
    asked = [Message("user", (Text("Read it."),))]
    for times in (1, 2):
        before = [*asked, *decode("openai-chat", chat * times)]
        fold = ViewState(
            chain([*before, *decode(dialect, loop), *decode(dialect, loop)]).path(), counter=OFFLINE
        )
        messages, system = rendered(fold.view(), dialect)
        assert get(dialect).validate(messages, system) == []
