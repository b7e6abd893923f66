"""A malformed message is mended while it is read: noted, nothing lost, and every view of it can be sent."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.ugly import CASES, nest

import foldline
from foldline.core.cut.repair import repair
from foldline.dialects import decode_all, get, names
from foldline.errors import DialectError


def problems(dialect, view):
    return get(dialect).validate(list(view), getattr(view, "system", None))


async def session_view(dialect, messages):
    async with foldline.open("memory://", "s", dialect=dialect, window=200_000) as session:
        for message in messages:
            await session.append(message)
        return await session.context()


@pytest.mark.parametrize(("dialect", "wrong"), CASES)
def test_a_session_with_a_malformed_message_goes_on(dialect, wrong):
    view = asyncio.run(session_view(dialect, CASES[dialect, wrong]))
    assert problems(dialect, view) == []
    assert json.dumps(view[-1]).count("n")  # the user's last word is there


@pytest.mark.parametrize(("dialect", "wrong"), CASES)
def test_a_malformed_message_can_be_written_in_every_dialect(dialect, wrong):
    decoded = [message for _, message in repair(decode_all(CASES[dialect, wrong], dialect)).messages]
    for name in names():
        out = get(name).render([(message, ()) for message in decoded], whole=True)
        assert get(name).validate(out.messages, out.system) == [], name
    done = foldline.compact(CASES[dialect, wrong], target=50_000, dialect=dialect)
    assert problems(dialect, done.messages) == []


MENDED = [
    key
    for key in CASES
    if key[1] in {"args null", "args object", "id empty", "name missing", "content number", "args list"}
    and key not in {("gemini", "args null"), ("gemini", "id empty")}  # as if they were not there
]


@pytest.mark.parametrize(("dialect", "wrong"), MENDED)
def test_what_was_changed_is_noted_and_what_came_is_kept(dialect, wrong):
    given = CASES[dialect, wrong]
    decoded = decode_all(given, dialect)
    changed = [message.native for message in decoded if message.native.mended]
    assert changed
    for native in changed:
        assert all(native.mended)
        assert native.received != native.raw
        assert json.loads(native.received) in given
    assert all(not message.native.received for message in decoded if not message.native.mended)


def test_a_well_formed_list_is_kept_byte_for_byte():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ' {"a": 1}'}}
    given = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": ""},
    ]
    for message, native in zip(decode_all(given), given, strict=True):
        assert json.loads(message.native.raw) == native
        assert not message.native.mended
    raw = [json.dumps(message, indent=3).encode() for message in given]
    assert [message.native.raw for message in decode_all(raw, "openai-chat")] == raw


def test_results_without_ids_answer_their_calls_in_order():
    for dialect in ("openai-chat", "anthropic", "openai-responses", "bedrock-converse"):
        decoded = decode_all(CASES[dialect, "two empty ids"], dialect)
        calls = [call.id for message in decoded for call in message.calls]
        answers = [result.call_id for message in decoded for result in message.results]
        assert calls == answers
        assert len(set(calls)) == 2


async def test_results_without_ids_that_are_appended_later_answer_the_open_calls():
    given = CASES["openai-chat", "empty ids in two steps"]
    async with foldline.open("memory://", "s", window=200_000) as session:
        for message in given:
            await session.append(message)
        view = await session.context()
    calls = [call["id"] for message in view for call in message.get("tool_calls", ())]
    assert calls == [message["tool_call_id"] for message in view if message["role"] == "tool"]
    assert len(set(calls)) == 2


def test_deep_arguments_are_text_and_shallow_ones_are_not():
    text = json.dumps({"a": nest(500)})
    (message,) = decode_all([{"role": "assistant", "content": None, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}]}])  # fmt: skip
    assert message.calls[0].arguments == text
    shallow = json.dumps({"path": "[[[" * 200, "x": nest(20)})
    (message,) = decode_all([{"role": "assistant", "content": None, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": shallow}}]}])  # fmt: skip
    assert message.calls[0].arguments == json.loads(shallow)


async def test_a_warning_tells_of_a_mended_message():
    told = []
    async with foldline.open("memory://", "s") as session:
        session.on("warning", told.append)
        await session.append(*CASES["openai-chat", "args null"])
    assert [event.kind for event in told] == ["mended"]
    assert "arguments" in told[0].text


async def test_a_malformed_reply_is_mended():
    call = {"id": "", "type": "function", "function": {"name": "f", "arguments": None}}
    reply = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}],
             "model": "m", "usage": {"prompt_tokens": 5, "completion_tokens": 2}}  # fmt: skip
    async with foldline.open("memory://", "s", window=200_000) as session:
        await session.append({"role": "user", "content": "go"})
        await session.append(reply)
        await session.append({"role": "tool", "tool_call_id": "", "content": "done"})
        view = await session.context()
        assert problems("openai-chat", view) == []
        assert view[1]["tool_calls"][0]["id"] == view[2]["tool_call_id"] != ""


def test_anthropic_results_of_one_turn_stand_in_one_message():
    for wrong in ("split results", "split results text between"):
        view = asyncio.run(session_view("anthropic", CASES["anthropic", wrong]))
        (held,) = [
            m for m in view if isinstance(m["content"], list) and m["content"][0]["type"] == "tool_result"
        ]
        assert sorted(block["tool_use_id"] for block in held["content"][:2]) == ["a", "b"]
    view = asyncio.run(session_view("anthropic", CASES["anthropic", "content missing"]))
    assert view[2]["content"][0]["content"]


def test_ids_that_differ_in_refused_letters_alone_stay_two():
    asked = [{"type": "tool_use", "id": own, "name": "read", "input": {}} for own in ("a.1", "a:1", "ok")]
    told = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": block["id"]} for block in asked[::-1]
    ]
    talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": asked}]
    messages = decode_all([*talk, {"role": "user", "content": told}], "anthropic")
    calls = [call.id for call in messages[1].calls]
    assert [(result.call_id, result.text) for result in messages[2].results] == list(
        zip(calls[::-1], ["ok", "a:1", "a.1"], strict=True)
    )
    assert calls[2] == "ok"


def called(**result):
    """A call for Anthropic whose result holds what is given, and nothing after it."""
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", **result}]},
    ]


EMPTY = [{}, {"content": ""}, {"content": []}, {"content": None}, {"content": [{"type": "text", "text": ""}]}]


@pytest.mark.parametrize("more", [{}, {"is_error": True}], ids=["result", "error"])
@pytest.mark.parametrize("empty", EMPTY, ids=["none", "text", "list", "null", "block"])
def test_an_empty_result_has_a_content_for_anthropic(empty, more):
    """Their SDKs write all five where a tool says nothing."""
    view = asyncio.run(session_view("anthropic", called(**empty, **more)))
    assert view[2]["content"][0]["content"] == "[no output]"
    assert problems("anthropic", view) == []


@pytest.mark.parametrize("empty", ["", [], [{"type": "text", "text": ""}]], ids=["text", "list", "block"])
def test_an_empty_result_of_another_dialect_has_a_content_for_anthropic(empty):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": empty},
    ]
    out = get("anthropic").render([(message, ()) for message in decode_all(chat, "openai-chat")], whole=True)
    assert out.messages[2]["content"][0]["content"] == "[no output]"
    assert get("anthropic").validate(out.messages, out.system) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "a"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
WILD = {
    "openai-chat": lambda a, b, c: [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": a, "type": "function", "function": {"name": b, "arguments": c}}]},
        {"role": "tool", "tool_call_id": a, "content": [text for text in c if isinstance(text, str)] if isinstance(c, list) else c if not isinstance(c, dict) else json.dumps(c)},
        {"role": "user", "content": "on"},
    ],
    "anthropic": lambda a, b, c: [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": a, "name": b, "input": c}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": a, "content": c}]},
        {"role": "user", "content": "on"},
    ],
    "bedrock-converse": lambda a, b, c: [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": a, "name": b, "input": c}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": a, "content": c, "status": b}}]},
        {"role": "user", "content": "on"},
    ],
    "openai-responses": lambda a, b, c: [
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": a, "name": b, "arguments": c},
        {"type": "function_call_output", "call_id": a, "output": c},
        {"role": "user", "content": "on"},
    ],
    "ui-message": lambda a, b, c: [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "go"}]},
        {"id": "2", "role": "assistant", "parts": [{"type": "dynamic-tool", "toolCallId": a, "toolName": b, "state": "output-available", "input": c, "output": c}]},
        {"id": "3", "role": "user", "parts": [{"type": "text", "text": "on"}]},
    ],
    "gemini": lambda a, b, c: [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"id": a, "name": b, "args": c}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": a, "name": b, "response": c, "parts": c}}]},
        {"role": "user", "parts": [{"text": "on"}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("dialect", WILD)
@given(a=JSON, b=JSON, c=JSON)
@settings(deadline=None)
def test_any_values_in_a_call_and_its_result_give_a_view_that_can_be_sent(dialect, a, b, c):
    messages = WILD[dialect](a, b, c)
    view = asyncio.run(session_view(dialect, messages))
    assert problems(dialect, view) == []


async def test_a_system_message_in_an_anthropic_list_moves_to_the_system_prompt():
    mark = {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}
    talk = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [mark]},
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hello."},
        {"role": "system", "content": "Be quick."},
        {"role": "user", "content": "Go on."},
    ]
    done = foldline.compact(talk, target=9_000, dialect="anthropic", system="Given.")
    async with foldline.open("memory://", "s", dialect="anthropic", system="Given.") as session:
        await session.append(*talk)
        views = [(done.messages, done.system), (await session.context(), session.system)]
    for messages, system in views:
        assert get("anthropic").validate(messages, system) == []
        assert [block["text"] for block in system] == ["Given.", "Be brief.", "Be kind."]
        assert system[-1] == mark
        assert "[System message]\nBe quick." in str(messages[2]["content"]).replace("\\n", "\n")


@pytest.mark.parametrize("calls", [["x"], [{}], "x"])
def test_calls_of_an_unknown_role_are_refused_by_the_role(calls):
    with pytest.raises(DialectError, match="role is 'bot'"):
        decode_all([{"role": "bot", "content": "a", "tool_calls": calls}], "openai-chat")
