"""`foldline.compact` and `foldline.convert` on careless lists: repairs, budgets and other dialects."""

from __future__ import annotations

import pytest
from openai.types.chat import ChatCompletionMessage

import foldline
from foldline.dialects import get, names
from foldline.errors import InputError

CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}


def chat(turns: int, words: int = 60) -> list[dict[str, str]]:
    return [
        {"role": role, "content": f"{role} says part {i}: " + "one more word " * words}
        for i in range(turns)
        for role in ("user", "assistant")
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "8000"}, "target = '8000': give a whole number"),
        ({"target": 8e3}, "target = 8000.0: give a whole number"),
        ({"target": True}, "target = True"),
        ({"target": 0}, "target = 0: give a positive number"),
        ({"window": "16000"}, "window = '16000': give a whole number"),
        ({"window": -1}, "window = -1: give a positive number"),
    ],
)
def test_what_is_no_number_of_tokens_is_refused_with_its_name(given, message):
    with pytest.raises(InputError, match=message):
        foldline.compact(chat(2), **given)


async def test_a_session_refuses_a_window_that_is_none():
    with pytest.raises(InputError, match="window = -1: give a positive number"):
        foldline.open("memory://", "s", window=-1)


def test_what_was_left_out_or_put_in_is_said():
    messages = [
        {"role": "user", "content": None},
        {"role": "user", "content": "Look at it."},
        CALL,
        {"role": "tool", "tool_call_id": "zz", "content": "?"},
        {"role": "user", "content": "Go on."},
    ]
    result = foldline.compact(messages, target=1_000)
    assert result.warnings[:3] == (
        "blank messages, left out (1): 0",
        "results without a call, left out (1): 'zz' (message 3)",
        "calls without a result, answered by a note (1): 'a'",
    )


def test_results_that_came_late_are_said_to_be_moved():
    messages = [
        {"role": "user", "content": "Look at it."},
        CALL,
        {"role": "user", "content": "And?"},
        {"role": "tool", "tool_call_id": "a", "content": "fine"},
    ]
    result = foldline.compact(messages, target=1_000)
    assert result.warnings == ("late results, moved behind their calls",)


def test_a_list_that_comes_back_as_it_was_is_not_said_to_be_mended():
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "c"},
    ]
    result = foldline.compact(messages, target=1_000)
    assert (result.messages, result.warnings) == (messages, ())


def test_objects_of_an_sdk_come_back_as_they_were():
    given = [*chat(1, 1)[:1], ChatCompletionMessage(role="assistant", content="Yes.")]
    result = foldline.compact(given, target=1_000)
    assert [new is old for new, old in zip(result.messages, given, strict=True)] == [True, True]


def test_a_policy_that_is_none_is_refused():
    with pytest.raises(foldline.FoldlineError, match="policy = 4: give a Policy"):
        foldline.compact(chat(2), policy=4)


def test_an_unknown_model_is_said_to_be_one_where_its_window_counts():
    name = "openai:gpt-9-super"
    assert f"{name} is not in the catalogue" in foldline.compact(chat(2), model=name).warnings[0]
    assert foldline.compact(chat(2), 10_000, model=name).warnings == ()
    assert foldline.compact(chat(2), model=name, window=10_000).warnings == ()


def test_a_list_names_nothing_to_recall():
    """There is no store to recall from: the handle was noise, twenty tokens of it in each mark."""
    system = {"role": "system", "content": "You are careful with every table. " * 600}
    last = {"role": "user", "content": "Read this: " + "a pasted line of the log\n" * 800}
    result = foldline.compact([system, *chat(20), last], target=3_000)
    text = str(result.messages)
    assert "characters left out …]" in text
    assert "recall" not in text


def test_modules_that_the_documents_name_are_there():
    assert foldline.policies.load is not None
    assert "stores" in dir(foldline)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = foldline.nothing


@pytest.mark.parametrize("policy", ["foldline", "klaude", "pi", "coop"])
def test_a_budget_is_used(policy):
    """Two thirds of it stayed unused while the answer before the last question was folded."""
    messages = [*chat(120, 120), {"role": "user", "content": "And now?"}]
    result = foldline.compact(messages, target=12_000, policy=policy)
    assert 0.8 * 12_000 < result.view_tokens <= 12_000
    assert result.messages[-3:] == messages[-3:]


def test_a_receipt_says_what_the_view_does_not():
    rules = [f"Never delete table number {i} of the archive without asking." for i in range(12)]
    messages = [{"role": "user", "content": rule} for rule in rules]
    messages = [one for rule in messages for one in (rule, {"role": "assistant", "content": "Understood."})]
    for target in (180, 250, 400, 900):
        result = foldline.compact([*messages, *chat(30)], target=target)
        text = str(result.messages)
        kept, excess = result.receipt.constraints.texts, result.receipt.constraints.excess
        assert all(rule in text for rule in kept)
        assert sorted([*kept, *excess]) == sorted(rules)


def test_what_is_left_of_a_budget_goes_to_the_users_rules_first():
    """A tenth of it was theirs, while an answer that says nothing was kept for want of anything better."""
    rules = [f"Never delete table number {i} of the archive without asking." for i in range(24)]
    messages = [
        one
        for rule in rules
        for one in ({"role": "user", "content": rule}, {"role": "assistant", "content": "ok " * 80})
    ]
    result = foldline.compact(messages, target=1_000)
    assert result.receipt.constraints.kept == 24
    assert result.receipt.constraints.excess == ()
    assert all(rule in str(result.messages) for rule in rules)


READ = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
}
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Read it.", "name": "ann"},
    READ,
    {"role": "tool", "tool_call_id": "a", "content": "It says hello."},
    {"role": "assistant", "content": "It greets."},
]


@pytest.mark.parametrize("name", names())
def test_a_list_is_valid_in_every_dialect_and_comes_back(name):
    converted = foldline.convert(CHAT, to=name)
    assert converted.dialect == name
    assert get(name).validate(converted.messages, converted.system) == []
    back = foldline.convert(converted.messages, to="openai-chat", dialect=name, system=converted.system)
    words = [(one["role"], one.get("content")) for one in CHAT]
    if name != "openai-chat":  # the others have no field for who speaks
        words[1] = ("user", "ann: Read it.")
    assert [(one["role"], one.get("content")) for one in back.messages] == words


def test_what_a_dialect_takes_separately_is_beside_the_messages():
    converted = foldline.convert(CHAT, to="anthropic")
    assert converted.system == "Be brief."
    assert converted.messages[0] == {"role": "user", "content": "ann: Read it."}
    assert converted.warnings == ()


def test_messages_of_the_dialect_asked_for_come_back_as_they_are():
    assert foldline.convert(CHAT, to="openai-chat").messages == CHAT
    assert foldline.convert(CHAT, to="openai-chat").warnings == ()


def test_a_call_without_a_result_is_answered_and_said():
    converted = foldline.convert([*CHAT[:3], {"role": "user", "content": "And?"}], to="anthropic")
    assert get("anthropic").validate(converted.messages, converted.system) == []
    assert "calls without a result, answered by a note (1): 'a'" in converted.warnings


@pytest.mark.parametrize(
    ("given", "told"),
    [({"to": "latin"}, "unknown dialect 'latin'"), ({"to": 4}, "to = 4"), ({"to": "anthropic", "system": 4}, "system = 4")],
)  # fmt: skip
def test_what_cannot_be_converted_to_is_refused(given, told):
    with pytest.raises(foldline.InputError, match=told):
        foldline.convert(CHAT, **given)
