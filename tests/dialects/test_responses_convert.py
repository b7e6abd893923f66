"""Responses items to the other dialects and back: what is carried, what is named as lost."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.conversations import ARGUMENTS, NAMES, SOLID, anthropic_chats, openai_chats
from tests.dialects.items import DIALECT, RESPONSES, call, message, output, reasoning, spoke
from tests.dialects.samples import (
    ANTHROPIC,
    OPENAI,
    PNG,
    answer,
    calling,
    image,
    result,
    thinking,
    turn,
    use,
    user,
)
from tests.dialects.samples import call as chat_call

from foldline.core.log.messages import Media, Message, Opaque, Text, ToolCall, ToolResult
from foldline.dialects import decode_all, get, names

ITEMS = get(DIALECT)
OTHERS = [name for name in names() if name != DIALECT]


def converted(messages, name, into):
    return get(into).render([(each, ()) for each in decode_all(messages, name)])


def texts(messages, *roles):
    found = [p.text.strip() for m in messages for p in m.parts if m.role in roles and isinstance(p, Text)]
    return [text for text in found if text and not text.startswith("[")]


def calls(messages):
    return [(c.id, c.name, c.arguments) for m in messages for c in m.calls]


def results(messages):
    return sorted((r.call_id, r.text.strip()) for m in messages for r in m.results)


# ---- lists of items that are valid


@st.composite
def item_lists(draw):
    """A valid list of items: messages, reasoning, calls of several types, outputs in any order."""
    items = [draw(_spoken_by_user(0))]
    for turn_ in range(1, draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["user", "say", "call"]))
        if kind == "user":
            items.append(draw(_spoken_by_user(turn_)))
        else:
            if draw(st.booleans()):
                items.append(reasoning(*draw(st.lists(SOLID, max_size=2)), id=f"rs_{turn_}"))
            items.append(spoke(draw(SOLID).rstrip(), id=f"msg_{turn_}", status="completed"))
            if kind == "call":
                items += draw(_batch([f"call_{turn_}_{n}" for n in range(draw(st.integers(1, 3)))]))
    return items


def _spoken_by_user(turn_):
    part = st.one_of(
        SOLID.map(lambda text: {"type": "input_text", "text": text}),
        st.just({"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"}),
    )
    parts = st.lists(part, min_size=1, max_size=3).map(
        lambda parts: message("user", *parts, id=f"msg_u{turn_}")
    )
    return st.one_of(SOLID.map(user), parts)


@st.composite
def _batch(draw, ids):
    asked, answered = [], []
    for call_id in ids:
        said = draw(SOLID)
        if draw(st.booleans()):
            asked.append(call(call_id, draw(NAMES), json.dumps(draw(ARGUMENTS)), id=f"fc_{call_id}"))
            answered.append(output(call_id, said))
        else:
            custom = {
                "type": "custom_tool_call",
                "call_id": call_id,
                "name": draw(NAMES),
                "input": f"*** {said}",
            }
            asked.append(custom)
            answered.append({"type": "custom_tool_call_output", "call_id": call_id, "output": said})
    return [*asked, *draw(st.permutations(answered))]


@given(item_lists())
@settings(max_examples=40, deadline=None)
def test_generated_lists_are_valid_and_come_back_as_received(items):
    assert ITEMS.validate(items) == []
    out = converted(items, DIALECT, DIALECT)
    assert (out.messages, out.system, out.warnings) == (items, None, ())
    assert [json.dumps(item) for item in out.messages] == [json.dumps(item) for item in items]


@pytest.mark.parametrize("name", OTHERS)
@given(items=item_lists())
@settings(max_examples=40, deadline=None)
def test_there_and_back_keeps_texts_calls_and_results(name, items):
    before = decode_all(items, DIALECT)
    there = converted(items, DIALECT, name)
    assert get(name).validate(there.messages, there.system) == []
    sealed = sum(item.get("type") == "reasoning" for item in items)
    assert any("reasoning left out" in line for line in there.warnings) == bool(sealed)
    back = converted(there.messages, name, DIALECT)
    assert ITEMS.validate(back.messages, back.system) == []
    after = decode_all(back.messages, DIALECT)
    assert texts(after, "assistant") == texts(before, "assistant")
    assert [text for text in texts(after, "user") if text in texts(before, "user")] == texts(before, "user")
    assert [c[:2] for c in calls(after)] == [c[:2] for c in calls(before)]
    assert results(after) == results(before)


@pytest.mark.parametrize("name", ["openai-chat", "anthropic"])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_valid_lists_of_others_are_valid_here(name, data):
    messages = data.draw({"openai-chat": openai_chats(), "anthropic": anthropic_chats()}[name])
    out = converted(messages, name, DIALECT)
    assert ITEMS.validate(out.messages, out.system) == [] or not out.messages
    after, before = decode_all(out.messages, DIALECT), decode_all(messages, name)
    assert texts(after, "assistant") == texts(before, "assistant")
    assert [c[1:] for c in calls(after)] == [c[1:] for c in calls(before)]


# ---- what is lost is named


def test_the_sample_as_chat():
    out = converted(RESPONSES, DIALECT, "openai-chat")
    assert get("openai-chat").validate(out.messages) == []
    assert out.messages[3] == calling(
        chat_call("c1", arguments='{"path":"a.py"}'),
        chat_call("c2", "apply_patch", '{"input":"*** Begin"}'),
        content="Reading.",
    )
    assert out.warnings == (
        "field 'phase' left out (2)",
        "custom_tool_call became a function call (1)",
        "call arguments that are not a JSON object wrapped in one (1)",
        "thinking left out (1)",
        "openai-responses reasoning left out (2)",
        "openai-responses web_search_call left out (1)",
    )


def test_the_sample_as_anthropic():
    out = converted(RESPONSES, DIALECT, "anthropic")
    assert get("anthropic").validate(out.messages, out.system) == []
    assert out.system == "Be brief."
    assert "openai-responses web_search_call left out (1)" in out.warnings
    assert "unsigned thinking left out (1)" in out.warnings


@pytest.mark.parametrize(
    ("items", "loss"),
    [
        ([spoke({"type": "output_text", "text": "x", "annotations": [{"type": "file_path"}]})], "field 'annotations' left out (1)"),
        ([message("user", {"type": "input_image", "file_id": "f", "detail": "high"})], "image left out (1)"),
        ([message("user", {"type": "input_image", "file_id": "f", "detail": "high"})], "field 'detail' left out (1)"),
        ([call(namespace="crm"), output()], "field 'namespace' left out (1)"),
        ([output(caller={"type": "direct"})], "field 'caller' left out (1)"),
        ([{"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}}], "shell_call became a function call (1)"),
        ([{"type": "compaction", "encrypted_content": "g"}], "openai-responses compaction left out (1)"),
        ([{"id": "msg_1"}], "openai-responses item_reference left out (1)"),
        ([{"type": "additional_tools", "role": "developer", "tools": []}], "openai-responses additional_tools left out (1)"),
        ([{"type": "mcp_call", "id": "m", "server_label": "s", "name": "f", "arguments": "{}"}],
         "openai-responses mcp_call left out (1)"),
        ([{"type": "function_call_output", "name": "w", "output": "x"}],
         "openai-responses function_call_output left out (1)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("into", ["openai-chat", "anthropic"])
def test_a_loss_is_named(items, loss, into):
    assert loss in converted([user("hi"), *items], DIALECT, into).warnings


def test_the_chat_sample_as_items():
    out = converted(OPENAI, "openai-chat", DIALECT)
    assert ITEMS.validate(out.messages) == []
    assert [item.get("role") or item["type"] for item in out.messages] == [
        "system", "developer", "user", "assistant", "function_call", "custom_tool_call", "custom_tool_call_output",
        "function_call_output", "assistant",
    ]  # fmt: skip
    assert out.warnings[-1] == "field 'x_took_ms' left out (1)"
    assert "thinking left out (1)" in out.warnings


def test_the_anthropic_sample_as_items():
    out = converted(ANTHROPIC, "anthropic", DIALECT)
    assert ITEMS.validate(out.messages) == []
    assert any("signed thinking left out" in line for line in out.warnings)


def test_a_result_keeps_its_image_and_loses_its_error_flag():
    out = converted(
        [user("hi"), turn(use("t1")), {"role": "user", "content": [result("t1", [image()])]},
         turn(thinking(), use("t2")), {"role": "user", "content": [result("t2", "no", is_error=True)]}],
        "anthropic",
        DIALECT,
    )  # fmt: skip
    shown = [item for item in out.messages if item["type"] == "function_call_output"]
    assert shown[0]["output"] == [
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"}
    ]
    assert shown[1]["output"] == "no"
    assert out.warnings == ("signed thinking left out (1)", "error flags of tool results left out (1)")


def test_ids_are_made_short_and_unique():
    long = "x" * 80
    messages = [
        user("hi"), calling(chat_call(long)), answer(long), calling(chat_call("c1")), answer("c1"),
        calling(chat_call("c1", name="a b")), answer("c1"),
    ]  # fmt: skip
    out = converted(messages, "openai-chat", DIALECT)
    assert ITEMS.validate(out.messages) == []
    ids = [item["call_id"] for item in out.messages if item["type"] == "function_call"]
    assert len(ids[0]) == 64
    assert ids[1:] == ["c1", "c1_2"]
    assert out.warnings == ("tool names changed (1)", "call ids changed (2)")


def test_media_without_a_form_leave_a_note():
    sound = Media("audio", mime="audio/wav", data="AAAA")
    out = ITEMS.render([(Message("user", (sound, Media("document", url="file-id:f"))), ())])
    assert out.messages[0]["content"][0]["text"] == "[audio left out: audio/wav]"
    assert out.warnings == ("audio left out (1)", "document left out (1)")


def test_made_messages_of_every_kind():
    made = [
        Message("system", (Text("x"),)),
        Message("assistant", (Text("a"), Opaque("anthropic", "redacted_thinking", {}), ToolCall("c", "f", {}), Text("b"))),
        Message("tool", (ToolResult("c", (Text("r"),)),)),
        Message("assistant", (Opaque(DIALECT, "web_search_call", {"type": "web_search_call", "id": "ws"}),)),
    ]  # fmt: skip
    out = ITEMS.render([(each, ()) for each in made])
    assert ITEMS.validate(out.messages) == []
    assert [item["type"] for item in out.messages] == [
        "message", "message", "function_call", "message", "function_call_output", "web_search_call",
    ]  # fmt: skip
    assert out.warnings == ("anthropic redacted_thinking left out (1)",)
