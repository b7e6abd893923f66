"""Reading blocks that only their dialect understands."""

import json

from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.opaque import opened, words
from foldline.dialects import decode_all

SEALED = "QUJDREVG" * 60


def answer(call_id, *content, **more):
    return ToolResult(call_id, content, served=True, **more)


def read(dialect, *natives):
    return [part for message in decode_all(list(natives), dialect) for part in opened(message).parts]


def anthropic(*blocks):
    return read("anthropic", {"role": "assistant", "content": list(blocks)})


def test_an_mcp_call_and_its_result_read_as_any_other():
    assert anthropic(
        {"type": "mcp_tool_use", "id": "m1", "name": "berths", "server_name": "port", "input": {"id": "B-9"}},
        {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": True, "content": [{"type": "text", "text": "no berth"}]},
    ) == [ToolCall("m1", "berths", {"id": "B-9"}), answer("m1", Text("no berth"), is_error=True)]  # fmt: skip


def test_results_of_search_fetch_and_code_are_read_without_what_is_encrypted():
    found = {
        "type": "web_search_result",
        "title": "Tides",
        "url": "https://tides.test",
        "encrypted_content": SEALED,
    }
    page = {
        "type": "document",
        "title": "Almanac",
        "source": {"type": "text", "media_type": "text/plain", "data": "High water 04:17"},
    }
    ran = {
        "type": "bash_code_execution_result",
        "stdout": "",
        "stderr": "no such table",
        "return_code": 1,
        "content": [],
    }
    parts = anthropic(
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "tides"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [found]},
        {"type": "web_fetch_tool_result", "tool_use_id": "s2", "content": {"type": "web_fetch_result", "url": "https://a.test", "content": page}},
        {"type": "bash_code_execution_tool_result", "tool_use_id": "s3", "content": ran},
        {"type": "web_search_tool_result", "tool_use_id": "s4", "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}},
    )  # fmt: skip
    assert parts == [
        ToolCall("s1", "web_search", {"query": "tides"}),
        answer("s1", Text("Tides\nhttps://tides.test")),
        answer("s2", Text("https://a.test\nAlmanac\nHigh water 04:17")),
        answer("s3", Text("no such table"), is_error=True),
        answer("s4", Text("max_uses_exceeded"), is_error=True),
    ]


def test_items_of_responses_are_a_call_and_its_result():
    parts = read(
        "openai-responses",
        {"type": "mcp_call", "id": "m", "name": "berths", "server_label": "port", "arguments": '{"n": 9}', "output": "free"},
        {"type": "code_interpreter_call", "id": "c", "container_id": "k", "code": "print(2)", "outputs": [{"type": "logs", "logs": "2"}]},
        {"type": "file_search_call", "id": "f", "queries": ["dues"], "results": [{"file_id": "file-1", "filename": "dues.md", "text": "4,250 a year"}]},
        {"type": "web_search_call", "id": "w", "status": "failed", "action": {"type": "search", "query": "dues"}},
        {"type": "image_generation_call", "id": "i", "status": "completed", "result": SEALED, "revised_prompt": "a pier"},
    )  # fmt: skip
    assert parts == [
        ToolCall("m", "berths", {"arguments": '{"n": 9}'}),
        answer("m", Text("free")),
        ToolCall("c", "code_interpreter", {"code": "print(2)"}),
        answer("c", Text("2")),
        ToolCall("f", "file_search", {"queries": ["dues"]}),
        answer("f", Text("file-1\ndues.md\n4,250 a year")),
        ToolCall("w", "web_search", {"type": "search", "query": "dues"}),
        answer("w", is_error=True),
        ToolCall("i", "image_generation", {"prompt": "a pier"}),
        answer("i", Media("image")),
    ]


def test_a_tool_that_the_provider_ran_for_a_user_interface_is_read():
    tool = {
        "type": "tool-web_search", "toolCallId": "t", "state": "output-available", "providerExecuted": True,
        "input": {"query": "dues"}, "output": [{"title": "Dues", "encryptedContent": SEALED}],
    }  # fmt: skip
    private = {"type": "data-state", "data": {"text": "the app's own"}}
    parts = read(
        "ui-message", {"id": "1", "role": "assistant", "parts": [{"type": "step-start"}, tool, private]}
    )
    assert parts[1:3] == [ToolCall("t", "web_search", {"query": "dues"}), answer("t", Text("Dues"))]


def test_a_block_inside_a_result_is_text_of_it():
    block = {
        "type": "search_result",
        "source": "https://a.test",
        "title": "Dues",
        "content": [{"type": "text", "text": "4,250"}],
    }
    result = {"type": "tool_result", "tool_use_id": "t", "content": [block]}
    (part,) = read("anthropic", {"role": "user", "content": [result]})
    assert part == ToolResult("t", (Text("https://a.test\nDues\n4,250"),))


def test_words_spoken_are_the_assistants_and_words_given_are_nobodys_request():
    audio = {"id": "a", "data": SEALED, "transcript": "High water at four."}
    assert read("openai-chat", {"role": "assistant", "content": None, "audio": audio}) == [
        Text("High water at four.")
    ]
    fields = {
        "type": "search_result",
        "source": "s",
        "title": "t",
        "content": [{"type": "text", "text": "Never dock."}],
    }
    (message,) = decode_all([{"role": "user", "content": [fields]}], "anthropic")
    assert opened(message).text == ""
    assert not opened(message).is_prompt


def test_thoughts_and_sealed_blocks_are_not_opened():
    parts = (
        Opaque(
            "openai-responses", "reasoning", {"type": "reasoning", "summary": [], "encrypted_content": SEALED}
        ),
        Opaque("openai-chat", "reasoning_details", [{"type": "reasoning.text", "text": "hm"}]),
        Opaque("anthropic", "redacted_thinking", {"type": "redacted_thinking", "data": SEALED}),
        Opaque("anthropic", "container_upload", {"type": "container_upload", "file_id": "file_1"}),
        Opaque("openai-responses", "mcp_list_tools", {"tools": [{"name": "roll", "description": "d"}]}),
    )
    message = Message("assistant", (Thinking("hm"), *parts))
    assert opened(message) is message
    assert [words(part) for part in parts[:4]] == ["", "", "", ""]


def test_a_block_nested_without_end_is_read_as_far_as_it_is_sensible():
    deep = json.loads("[" * 200 + '"x"' + "]" * 200)
    assert words(Opaque("anthropic", "new_block", {"text": "near", "content": deep})) == "near"


def test_a_message_without_such_blocks_is_the_same_object():
    message = Message("user", (Text("a"), ToolResult("c", (Text("b"), Media("image")))))
    assert opened(message) is message
