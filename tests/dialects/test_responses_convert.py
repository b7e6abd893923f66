"""Responses items to the other dialects: what is carried, what is named as lost."""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false

import pytest
from tests.dialects.items import DIALECT, RESPONSES, call, message, output, spoke
from tests.dialects.samples import (
    ANTHROPIC,
    OPENAI,
    PNG,
    by_model,
    calling,
    image,
    result,
    thinking,
    tool_answer,
    use,
    user,
)
from tests.dialects.samples import call as chat_call

from foldline.core.log.messages import Media, Message, Opaque, Text, ToolCall, ToolResult
from foldline.dialects import decode_all, get

ITEMS = get(DIALECT)


def converted(messages, name, into):
    return get(into).render([(each, ()) for each in decode_all(messages, name)])


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
        "openai-responses web_search_call became text (1)",
    )


def test_the_sample_as_anthropic():
    out = converted(RESPONSES, DIALECT, "anthropic")
    assert get("anthropic").validate(out.messages, out.system) == []
    assert out.system == "Be brief."
    assert "openai-responses web_search_call became text (1)" in out.warnings
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
         "openai-responses mcp_call became text (1)"),
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
        [user("hi"), by_model(use("t1")), {"role": "user", "content": [result("t1", [image()])]},
         by_model(thinking(), use("t2")), {"role": "user", "content": [result("t2", "no", is_error=True)]}],
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
        user("hi"), calling(chat_call(long)), tool_answer(long), calling(chat_call("c1")), tool_answer("c1"),
        calling(chat_call("c1", name="a b")), tool_answer("c1"),
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
