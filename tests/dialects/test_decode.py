"""Native messages -> parts."""

import base64

import pytest
from pydantic import BaseModel
from tests.dialects.samples import (
    ANTHROPIC,
    OPENAI,
    PNG,
    as_json,
    by_model,
    by_user,
    call,
    calling,
    result,
    text,
    tool_answer,
    use,
    user,
)

from foldline.core.log import codec
from foldline.core.log.messages import Media, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.dialects import decode_all, get
from foldline.errors import DialectError

CHAT = get("openai-chat")
CLAUDE = get("anthropic")


def test_openai_parts():
    messages = decode_all(OPENAI, "openai-chat")
    assert [m.role for m in messages] == [
        "system", "developer", "user", "assistant", "tool", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert messages[0].parts == (Text("You are a coder."),)
    assert messages[2].parts == (Text("Fix a.py"), Media("image", mime="image/png", data=PNG))
    assert messages[3].parts == (
        Thinking("I should look first."),
        Text("Reading."),
        ToolCall("c1", "read", {"path": "a.py"}),
        ToolCall("c2", "bash", "{broken"),
    )
    assert messages[4].parts == (ToolResult("c2", (Text("E: no such file"),)),)
    assert messages[6].parts == (Text("I can't do that."),)
    assert messages[7].parts == messages[8].parts == ()


def test_anthropic_parts():
    messages = decode_all(ANTHROPIC, "anthropic")
    assert messages[0].parts == (Text("Fix a.py"),)
    assert messages[1].parts == (
        Thinking("Let me look.", "sig"),
        Text("Reading."),
        ToolCall("t1", "read", {"path": "a.py", "b": [1, None]}),
        ToolCall("t2", "bash", {"command": "ls"}),
    )
    assert messages[2].parts == (
        ToolResult("t2", (Text("a.py"), Media("image", mime="image/png", data=PNG))),
        ToolResult("t1", (Text("no such file"),), is_error=True),
        Text("go on"),
    )
    assert [type(part) for part in messages[3].parts] == [Opaque, Opaque, Opaque, Text]
    assert messages[3].parts[1].kind == "server_tool_use"
    packed = base64.b64encode("Use tabs — always.".encode()).decode()
    assert messages[4].parts == (
        Media("document", mime="text/plain", data=packed, name="notes"),
        Media("image", url="https://example.com/a.png"),
        Media("image", url="file-id:file_1"),
        Text("Now?"),
    )


def test_bytes_are_kept_as_they_came():
    raw = b'{ "role":"user", "content": "h\\u00e9", "content": "h\\u00e9" }'
    message = CHAT.decode(raw)
    assert message.native.raw == raw
    assert message.text == "hé"


@pytest.mark.parametrize("arguments", ["", " ", None, "{}", {}])
def test_no_arguments_are_an_empty_object(arguments):
    assert CHAT.decode(calling(call(arguments=arguments))).calls[0].arguments == {}


@pytest.mark.parametrize(
    "arguments", ["{oops", "[1]", "null", "NaN", '{"a": NaN}', "{" * 100_000, '{"a":' * 5_000]
)
def test_arguments_that_are_no_object_stay_text(arguments):
    assert CHAT.decode(calling(call(arguments=arguments))).calls[0].arguments == arguments


def test_lone_surrogates_stay_in_the_log_and_are_never_sent():
    body = calling(call(arguments='{"path": "\\ud83d"}'), content="half \ud83d")
    message = CHAT.decode(body)
    assert message.text == "half \ufffd"
    assert message.calls[0].arguments == {"path": "\ufffd"}
    assert codec.decode(message.native.raw) == body
    sent = {**body, "content": "half \ufffd"}  # the arguments are JSON text: six characters for the half
    assert CHAT.render([(message, ())]).messages == [sent]
    assert [problem.rule for problem in CHAT.validate([user("hi"), body])][:1] == ["text-surrogate"]


def test_the_same_reasoning_under_two_names_is_one_thought():
    body = {"role": "assistant", "content": "x", "reasoning": "hm", "reasoning_content": "hm"}
    assert CHAT.decode(body).parts == (Thinking("hm"), Text("x"))
    body["reasoning"] = "more"
    body["reasoning_details"] = [{"type": "reasoning.encrypted", "data": "x"}]
    kinds = [type(part) for part in CHAT.decode(body).parts]
    assert kinds == [Thinking, Thinking, Opaque, Text]


def test_legacy_functions_pair_by_name():
    asked = CHAT.decode(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    )
    told = CHAT.decode({"role": "function", "name": "f", "content": "1"})
    assert asked.calls == (ToolCall("f", "f", {}),)
    assert told.role == "tool"
    assert told.results == (ToolResult("f", (Text("1"),)),)


def test_custom_calls_have_text_arguments():
    body = calling({"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}})
    assert CHAT.decode(body).calls == (ToolCall("c1", "patch", "*** Begin"),)


def test_media_of_chat_completions():
    parts = [
        {"type": "image_url", "image_url": "https://example.com/a.png"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}},
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "video_url", "video_url": {"url": "x"}},
    ]
    assert CHAT.decode({"role": "user", "content": parts}).parts == (
        Media("image", url="https://example.com/a.png"),
        Media("audio", mime="audio/mp3", data="AAAA"),
        Media("document", mime="application/pdf", data="AA==", name="a.pdf"),
        Media("document", url="file-id:f1"),
        Opaque("openai-chat", "video_url", parts[4]),
    )


def test_empty_results():
    assert CHAT.decode(tool_answer(content="")).results == (ToolResult("c1"),)
    assert CLAUDE.decode(by_user({"type": "tool_result", "tool_use_id": "t1"})).results == (ToolResult("t1"),)
    assert CLAUDE.decode(by_user(result(content=[]))).results == (ToolResult("t1"),)


def test_strange_blocks_inside_results_are_kept():
    block = {"type": "tool_reference", "tool_name": "x"}
    assert CLAUDE.decode(by_user(result(content=[block]))).results[0].content == (
        Opaque("anthropic", "tool_reference", block),
    )
    inner = use("t9")
    assert CLAUDE.decode(by_user(result(content=[inner]))).results[0].content == (
        Opaque("anthropic", "tool_use", inner),
    )


def test_empty_text_blocks_are_parts_so_that_an_edit_can_take_them_out():
    assert CLAUDE.decode(by_model(text(""), text("x"))).parts == (Text(""), Text("x"))
    assert CHAT.decode({"role": "user", "content": [text("")]}).parts == (Text(""),)


class Block(BaseModel):
    type: str
    text: str
    citations: list[str] | None = None


class Said(BaseModel):
    role: str
    content: list[Block]
    id: str | None = None


def test_sdk_objects_become_dicts_without_fields_never_set():
    message = Said(role="assistant", content=[Block(type="text", text="hi")])
    body = {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}
    assert CLAUDE.decode(message).native.raw == CLAUDE.decode(body).native.raw
    assert (
        CLAUDE.decode({"role": "assistant", "content": message.content}).native == CLAUDE.decode(body).native
    )
    assert CLAUDE.validate([user("hi"), message]) == []


def test_objects_with_to_dict():
    class Old:
        def to_dict(self):
            return user("hi")

    assert CHAT.decode(Old()).text == "hi"


def test_objects_that_fail_are_refused():
    class Broken:
        def model_dump(self, **options):
            raise RuntimeError("no")

    with pytest.raises(DialectError, match="Broken"):
        CHAT.decode({"role": "user", "content": Broken()})


def test_tuples_and_whole_numbers_as_keys_are_data():
    message = CLAUDE.decode(by_model({**use(), "input": {1: (1, 2), "big": 10**40}}))
    assert message.calls[0].arguments == {"1": [1, 2], "big": 10**40}


JUNK = [
    None,
    5,
    "hi",
    b"{",
    b"[1]",
    b"\xff",
    [],
    {},
    {"role": 5},
    {"role": ["user"]},
    {"content": "x"},
    object,
    object(),
]
JUNK += [{"role": "user", "content": value} for value in (5, {"a": 1}, [5], [None], [{}], [{"type": []}], [{"type": "text", "text": 5}])]  # fmt: skip
JUNK += [{"role": "user", "content": float("nan")}, {"role": "user", "content": {1, object()}}]
NESTED = []
for _ in range(100_000):
    NESTED = [NESTED]
JUNK += [{"role": "user", "content": NESTED}, b"[" * 100_000]


@pytest.mark.parametrize("dialect", [CHAT, CLAUDE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_junk_is_refused_with_its_place(dialect, junk):
    with pytest.raises(DialectError) as caught:
        dialect.decode(junk, index=3)
    assert caught.value.index == 3
    assert "message 3" in str(caught.value)
    assert dialect.validate([user("hi"), junk]) != []


@pytest.mark.parametrize(
    "body",
    [
        {"role": "robot", "content": "x"},
        {"role": "tool", "content": "x"},
        {"role": "function", "content": "x"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "tool_calls": 5},
        {"role": "assistant", "tool_calls": [5]},
        {"role": "assistant", "tool_calls": [{"id": 5}]},
        {"role": "assistant", "tool_calls": [{"id": "x"}]},
        {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": 5}}]},
        {"role": "assistant", "tool_calls": [call(arguments=5)]},
        {"role": "assistant", "tool_calls": [{"id": "x", "type": "custom", "custom": {"name": "f"}}]},
    ],
)
def test_wrong_types_in_chat_completions(body):
    with pytest.raises(DialectError):
        CHAT.decode(body)
    assert CHAT.validate([body]) != []


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": 5},
        {"type": "thinking", "thinking": "x", "signature": 5},
        {"type": "tool_use", "id": 5, "name": "x", "input": {}},
        {"type": "tool_use", "id": "x", "name": None, "input": {}},
        {"type": "tool_use", "id": "x", "name": "x", "input": 5},
        {"type": "tool_result"},
        {"type": "tool_result", "tool_use_id": "x", "content": 5},
        {"type": "tool_result", "tool_use_id": "x", "content": [5]},
    ],
)
def test_wrong_types_in_anthropic(block):
    with pytest.raises(DialectError):
        CLAUDE.decode(by_model(block))
    assert CLAUDE.validate([user("hi"), by_model(block)]) != []


def test_a_tool_role_in_an_anthropic_list_names_the_other_dialect():
    with pytest.raises(DialectError, match="openai-chat"):
        CLAUDE.decode(tool_answer())


def test_ten_megabytes():
    body = user("x" * 10_000_000)
    for dialect in (CHAT, CLAUDE):
        message = dialect.decode(body)
        assert dialect.render([(message, ())]).messages == [body]
        assert dialect.decode(as_json(body)).parts == message.parts


def test_strange_sources_stay_opaque():
    block = {"type": "image", "source": {"type": "gcs", "uri": "x"}}
    assert CLAUDE.decode(by_user(block, {"type": "image"})).parts[0] == Opaque("anthropic", "image", block)


def test_system_prompts():
    assert CHAT.decode_system("Be kind.").text == "Be kind."
    message = CLAUDE.decode_system([text("Be kind.", cache_control={"type": "ephemeral"})])
    assert (message.role, message.text) == ("system", "Be kind.")
    with pytest.raises(DialectError):
        CLAUDE.decode_system({"type": "text", "text": "x"})
    with pytest.raises(DialectError):
        CLAUDE.decode_system([{"type": "image", "source": {}}])


def test_a_system_message_in_the_middle_is_read():
    assert CLAUDE.decode({"role": "system", "content": "From now on: tabs."}).role == "system"
