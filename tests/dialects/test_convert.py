"""Conversions from one dialect to another: converted content, reported losses, call ids."""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dialects.samples import (
    ANTHROPIC,
    OPENAI,
    PNG,
    assistant,
    by_model,
    by_user,
    call,
    calling,
    image,
    result,
    text,
    thinking,
    tool_answer,
    use,
    user,
)

import foldline
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.dialects import decode_all, get
from foldline.dialects.ids import Ids
from foldline.dialects.values import Losses
from foldline.dialects.writer import OPENING, SYSTEM_NOTE

CHAT = get("openai-chat")
CLAUDE = get("anthropic")


def to_claude(*messages):
    return CLAUDE.render([(message, ()) for message in decode_all(messages, "openai-chat")])


def to_chat(*messages):
    return CHAT.render([(message, ()) for message in decode_all(messages, "anthropic")])


def test_the_chat_sample_as_anthropic():
    out = to_claude(*OPENAI)
    assert out.system == [text("You are a coder."), text("Be brief.")]
    assert out.messages == [
        by_user(text("ann: Fix a.py"), image()),
        by_model(
            text("Reading."), use("c1", "read", {"path": "a.py"}), use("c2", "bash", {"input": "{broken"})
        ),
        by_user(result("c2", "E: no such file"), result("c1", "print('hi')\n")),
        assistant("I can't do that."),
    ]
    assert out.warnings == (
        "field 'x_app_id' left out (1)",
        "unsigned thinking left out (1)",
        "call arguments that are not a JSON object wrapped in one (1)",
        "field 'x_took_ms' left out (1)",
    )


def test_the_anthropic_sample_as_chat():
    out = to_chat(*ANTHROPIC)
    assert out.messages == [
        user("Fix a.py"),
        {
            "role": "assistant",
            "content": "Reading.",
            "tool_calls": [
                call("t1", "read", '{"path":"a.py","b":[1,null]}'),
                call("t2", "bash", '{"command":"ls"}'),
            ],
        },
        tool_answer("t2", [text("a.py"), text("[image left out: image/png]")]),
        tool_answer("t1", "no such file"),
        user("go on"),
        {
            "role": "assistant",
            "content": [text("[server_tool_use, run by the provider]\nweb_search\nx"), text("Done.")],
        },
        by_user(
            text("Use tabs — always."),
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            text("[image left out]"),
            text("Now?"),
        ),
    ]
    assert out.warnings == (
        "signed thinking left out (1)",
        "field 'cache_control' left out (1)",
        "image left out (2)",
        "error flags of tool results left out (1)",
        "anthropic server_tool_use became text (1)",
        "anthropic redacted_thinking left out (1)",
        "anthropic web_search_tool_result left out (1)",
    )


@pytest.mark.parametrize(
    "to", ["openai-chat", "openai-responses", "gemini", "bedrock-converse", "ui-message"]
)
def test_what_a_providers_own_tools_found_stays_as_text(to):
    found = {
        "type": "web_search_result",
        "title": "The old mill",
        "url": "https://x.org",
        "encrypted_content": "E",
    }
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "mill built"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [found]},
        text("In 1884."),
    ]
    out = foldline.convert([user("When?"), {"role": "assistant", "content": blocks}, user("Thanks")], to)
    sent = json.dumps(out.messages)
    assert all(word in sent for word in ("mill built", "The old mill", "https://x.org", "In 1884."))
    assert "encrypted" not in sent
    assert "anthropic web_search_tool_result became text (1)" in out.warnings


def test_system_messages_in_the_middle_become_user_text_that_says_so():
    out = to_claude(user("a"), {"role": "system", "content": "Use tabs."}, assistant("b"))
    assert out.messages == [by_user(text("a"), text(SYSTEM_NOTE + "Use tabs.")), assistant("b")]
    assert out.warnings == ("system messages became user messages (1)",)


def test_a_list_that_begins_with_the_assistant_gets_a_first_user_message():
    out = to_claude(assistant("Hello!"), user("hi"))
    assert out.messages == [user(OPENING), assistant("Hello!"), user("hi")]
    assert out.warnings == ("a first user message added (1)",)
    assert to_claude({"role": "system", "content": "x"}).messages == [user(OPENING)]
    assert CLAUDE.render([]).messages == []


def test_reused_and_strange_ids_are_made_valid_and_unique():
    batch = [calling(call("call:1"), call("call.1")), tool_answer("call.1", "b"), tool_answer("call:1", "a")]
    out = to_claude(user("hi"), *batch, *batch)
    ids = [
        block["id"]
        for message in out.messages
        for block in message["content"]
        if isinstance(block, dict) and "id" in block
    ]
    assert ids == ["call_1", "call_1_2", "call_1_3", "call_1_4"]
    assert CLAUDE.validate(out.messages) == []
    assert [block["content"] for block in out.messages[4]["content"]] == ["b", "a"]
    assert "call ids changed (4)" in out.warnings


def test_new_ids_keep_clear_of_those_that_stay():
    chat = decode_all([user("hi"), calling(call("t1")), tool_answer("t1"), assistant("ok")], "openai-chat")
    claude = decode_all([user("go"), by_model(use("t1")), by_user(result("t1"))], "anthropic")
    out = CLAUDE.render([(message, ()) for message in [*chat, *claude]])
    assert CLAUDE.validate(out.messages) == []
    assert out.messages[1]["content"][0]["id"] == "t1_2"
    assert out.messages[-2:] == [by_model(use("t1")), by_user(result("t1"))]


def test_a_result_of_the_other_dialect_finds_its_call():
    asked = CLAUDE.decode(by_model(use("t1"), use("t2")))
    told = CLAUDE.decode(by_user(result("t1")))
    other = CHAT.decode(tool_answer("t2"))
    first = CLAUDE.decode(user("hi"))
    out = CLAUDE.render([(message, ()) for message in (first, asked, told, other)])
    assert CLAUDE.validate(out.messages) == []
    out = CHAT.render([(message, ()) for message in (first, asked, told, other)])
    assert CHAT.validate(out.messages) == []


def test_two_calls_with_one_id_are_answered_in_order():
    message = Message("assistant", (ToolCall("c", "a", {}), ToolCall("c", "b", {})))
    answers = [Message("tool", (ToolResult("c", (Text(name),)),)) for name in ("1", "2")]
    items = [(Message("user", (Text("hi"),)), ()), (message, ()), *((found, ()) for found in answers)]
    for dialect in (CHAT, CLAUDE):
        assert dialect.validate(dialect.render(items).messages) == []


def test_long_ids_and_names_are_shortened_for_chat_completions():
    out = to_chat(user("hi"), by_model(use("t" * 64, "n" * 100)), by_user(result("t" * 64)))
    asked = out.messages[1]["tool_calls"][0]
    assert len(asked["id"]) == 40
    assert len(asked["function"]["name"]) == 64
    assert out.messages[2]["tool_call_id"] == asked["id"]
    assert out.warnings == ("tool names changed (1)", "call ids changed (1)")


def test_names_that_anthropic_refuses_are_made_valid():
    out = to_claude(user("hi"), calling(call(name="db.query é")), tool_answer())
    assert out.messages[1]["content"][0]["name"] == "db_query__"
    assert "tool names changed (1)" in out.warnings


def test_results_come_first_and_turns_are_merged():
    out = to_claude(
        user("a"), user("b"), calling(call("c1"), call("c2")), tool_answer("c1"), tool_answer("c2"), user("c")
    )
    assert out.messages == [
        by_user(text("a"), text("b")),
        by_model(use("c1", "read", {"path": "a.py"}), use("c2", "read", {"path": "a.py"})),
        by_user(result("c1"), result("c2"), text("c")),
    ]


def test_calls_over_two_assistant_messages_become_one_batch():
    out = to_chat(
        user("hi"),
        by_model(text("a"), use("t1")),
        by_model(text("b"), use("t2")),
        by_user(result("t2")),
        by_user(result("t1")),
    )
    assert CHAT.validate(out.messages) == []
    assert out.messages[1]["content"] == [text("a"), text("b")]


def test_error_results():
    out = to_claude(user("hi"), calling(call()), tool_answer())
    assert "is_error" not in out.messages[2]["content"][0]
    told = Message("tool", (ToolResult("c1", (), is_error=True),))
    asked = Message("assistant", (ToolCall("c1", "read", {}),))
    out = CLAUDE.render([(Message("user", (Text("x"),)), ()), (asked, ()), (told, ())])
    assert CLAUDE.validate(out.messages) == []
    shown = Message(
        "tool", (ToolResult("c1", (Text("E"), CLAUDE.decode(by_user(image())).parts[0]), is_error=True),)
    )
    out = CLAUDE.render([(Message("user", (Text("x"),)), ()), (asked, ()), (shown, ())])
    assert CLAUDE.validate(out.messages) == []
    assert out.warnings == ("media in error results left out (1)",)


def test_thinking_without_a_signature_and_at_the_end_is_left_out():
    made = Message("assistant", (Text("a"), Thinking("x"), Thinking("y", "sig")))
    out = CLAUDE.render([(Message("user", (Text("x"),)), ()), (made, ())])
    assert out.messages == [user("x"), assistant("a")]
    assert out.warnings == ("unsigned thinking left out (1)", "thinking at the end of a turn left out (1)")


def test_signed_thinking_of_a_made_message_is_kept():
    made = Message("assistant", (Thinking("y", "sig"), Text("a")))
    out = CLAUDE.render([(Message("user", (Text("x"),)), ()), (made, ())])
    assert out.messages[1] == by_model(thinking("y"), text("a"))


def test_own_opaque_parts_of_made_messages_are_carried():
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    made = Message("assistant", (Opaque("anthropic", "server_tool_use", search), Text("a")))
    assert CLAUDE.render([(Message("user", (Text("x"),)), ()), (made, ())]).messages[1] == by_model(
        search, text("a")
    )
    sound = Message("assistant", (Opaque("openai-chat", "audio", {"id": "a1"}),))
    assert CHAT.render([(sound, ())]).messages == [
        {"role": "assistant", "content": None, "audio": {"id": "a1"}}
    ]
    clip = {"type": "video_url", "video_url": {"url": "x"}}
    assert CHAT.render([(Message("user", (Opaque("openai-chat", "video_url", clip),)), ())]).messages == [
        by_user(clip)
    ]
    assert to_claude(user("a"), {"role": "user", "content": [clip]}).warnings == (
        "openai-chat video_url left out (1)",
    )


def test_parts_in_the_wrong_role_are_left_out():
    odd = Message("user", (ToolCall("c", "f", {}), Thinking("x", "sig"), Text("hi")))
    assert CLAUDE.render([(odd, ())]).messages == [user("hi")]
    odd = Message("assistant", (ToolResult("c"), Text("hi"), CLAUDE.decode(by_user(image())).parts[0]))
    out = CLAUDE.render([(Message("user", (Text("x"),)), ()), (odd, ())])
    assert out.messages[1] == by_model(text("hi"), text("[image left out: image/png]"))


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            text("[audio left out: audio/wav]"),
        ),
        ({"type": "file", "file": {"file_id": "f"}}, text("[document left out]")),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="},
                "title": "a.pdf",
            },
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/tiff;base64,AA=="}},
            text("[image left out: image/tiff]"),
        ),
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}, image()),
    ],
)
def test_media_into_anthropic(part, block):
    out = to_claude({"role": "user", "content": [text("see"), part]})
    assert out.messages == [by_user(text("see"), block)]
    assert CLAUDE.validate(out.messages) == []
    assert bool(out.warnings) == (block["type"] == "text")


def test_media_into_chat_completions():
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}
    out = to_chat(by_user(pdf, image()))
    assert out.messages[0]["content"][0] == {
        "type": "file",
        "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,AA=="},
    }
    assert CHAT.validate(out.messages) == []
    linked = {"type": "document", "source": {"type": "url", "url": "http://x/a.pdf"}}
    assert to_chat(by_user(text("a"), linked)).messages == [by_user(text("a"), text("[document left out]"))]


def test_edits_of_the_other_dialect():
    message = CHAT.decode(tool_answer("c1", "long"))
    edit = Edit("e", 0, "blanked", ToolResult("c1", (Text("[gone]"),)))
    asked = CHAT.decode(calling(call()))
    out = CLAUDE.render([(CHAT.decode(user("x")), ()), (asked, ()), (message, [edit])])
    assert out.messages[2] == by_user(result("c1", "[gone]"))


def test_strange_natives_of_the_other_dialect():
    """A system prompt kept apart is read, and what a system message cannot hold is named."""
    out = CHAT.render([(CLAUDE.decode_system([text("a"), text("b")]), ())])
    assert out.messages == [{"role": "system", "content": [text("a"), text("b")]}]
    odd = {"role": "system", "content": [text("a"), {"type": "image_url", "image_url": {"url": "http://x"}}]}
    out = to_claude(odd, {"role": "system", "content": "  "}, user("hi"))
    assert (out.system, out.messages) == ("a", [user("hi")])
    assert out.warnings == ("image left out (1)",)
    given = CLAUDE.decode_system([text("x")])
    out = CLAUDE.render([(CHAT.decode(odd), ()), (given, ()), (CHAT.decode(user("hi")), ())])
    assert out.system == [text("a"), text("x")]


def test_opaque_and_thinking_of_a_system_message_are_named():
    odd = Message("system", (Text("a"), Thinking("x"), Opaque("x", "y", 1)))
    assert "x y left out (1)" in CLAUDE.render([(odd, ())]).warnings
    assert "x y left out (1)" in CHAT.render([(odd, ())]).warnings


@pytest.mark.parametrize("to", ["anthropic", "gemini", "openai-responses", "bedrock-converse", "ui-message"])
def test_a_number_that_is_no_float_stays_as_it_was_written(to):
    given = [user("go"), calling(call("t1", "f", '{"n":1e400}')), tool_answer("t1", "ok"), user("on")]
    sent = json.dumps(foldline.convert(given, to).messages)
    assert "1e400" in sent
    assert "Infinity" not in sent


def test_nothing_that_was_left_out_is_not_named():
    losses = Losses()
    losses.add("empty texts left out", 0)
    assert losses.lines() == ()


def test_ten_thousand_calls_of_one_id_take_no_time():
    ids = Ids(limit=64, everywhere=True, any_text=False)
    found = set()
    for _ in range(10_000):
        ids.batch()
        found.add(ids.call("call_0"))
        assert ids.result("call_0") in found
    assert len(found) == 10_000


@given(st.lists(st.lists(st.text("a:.", min_size=1, max_size=3), unique=True, max_size=3), max_size=6))
def test_calls_and_results_agree(batches):
    ids = Ids(limit=8, everywhere=True, any_text=False, taken=["a"])
    seen = {"a"}
    for batch in batches:
        ids.batch()
        called = {old: ids.call(old) for old in batch}
        assert not seen & set(called.values())
        assert len(set(called.values())) == len(called)
        seen |= set(called.values())
        assert {old: ids.result(old) for old in reversed(batch)} == called
        assert all(len(new) <= 8 for new in called.values())
