"""UI messages are read: what each part becomes, what is refused, and that everything comes back as received."""

import pytest
from tests.dialects.samples import as_json
from tests.dialects.ui_samples import PNG, STEP, UI, V4, answered, failed, file, reasoning, say, tool, ui

from foldline.core.log.messages import Media, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.steps import steps
from foldline.dialects import decode_all, detect, get
from foldline.errors import DialectError

VERCEL = get("ui-message")


def parts(*native, role="assistant"):
    return VERCEL.decode(ui(role, *native)).parts


def opaque(native):
    return Opaque("ui-message", native["type"], native)


def test_a_list_comes_back_as_received():
    messages = decode_all(UI)
    assert VERCEL.render([(message, ()) for message in messages]).messages == UI
    raw = [as_json(message) for message in UI]
    assert [VERCEL.decode(one).native.raw for one in raw] == raw


def test_the_parts_of_an_assistant_message_in_order():
    found = VERCEL.decode(UI[2]).parts
    assert found == (
        opaque(STEP),
        Thinking("Let me look.", "sig"),
        Text("Reading."),
        ToolCall("c1", "read", {"path": "a.py"}),
        ToolResult("c1", (Text("x = 1"),)),
        ToolCall("c2", "bash", "{broken"),
        ToolResult("c2", (Text("E: no such file"),), is_error=True),
        opaque(UI[2]["parts"][5]),
        opaque(UI[2]["parts"][6]),
        opaque(STEP),
        Text("Done."),
    )
    assert steps(VERCEL.decode(UI[2])) == [(0, 9), (9, 11)]


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ("text", (Text("text"),)),
        ("", ()),
        (None, ()),
        ({"n": [1, None]}, (Text('{"n":[1,null]}'),)),
        ([1, 2], (Text("[1,2]"),)),
        (False, (Text("false"),)),
        ({"content": [say("a"), say("b")]}, (Text("a"), Text("b"))),
        (
            {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]},
            (Media("image", "image/png", PNG),),
        ),
        (
            {
                "type": "content",
                "value": [say("a"), {"type": "media", "data": "AA", "mediaType": "audio/wav"}],
            },
            (Text("a"), Media("audio", "audio/wav", "AA")),
        ),
        ({"content": [{"type": "new"}]}, (Text('{"content":[{"type":"new"}]}'),)),
        ({"content": []}, (Text('{"content":[]}'),)),
    ],
)
def test_outputs(output, content):
    assert parts(answered(output=output))[1] == ToolResult("c1", content)


def test_an_mcp_result_says_itself_that_it_is_an_error():
    assert parts(answered(output={"content": [say("boom")], "isError": True}))[1].is_error


@pytest.mark.parametrize(
    ("given", "arguments"),
    [({"a": 1}, {"a": 1}), ("{oops", "{oops"), (None, {}), ([1], "[1]"), (5, "5")],
)
def test_inputs(given, arguments):
    assert parts({**tool(), "input": given}) == (ToolCall("c1", "read", arguments),)


@pytest.mark.parametrize("state", ["input-available", "approval-requested", "approval-responded"])
def test_a_call_without_an_output_is_open(state):
    assert parts(tool(state=state)) == (ToolCall("c1", "read", {"path": "a.py"}),)


@pytest.mark.parametrize(
    ("approval", "text"),
    [
        ({"id": "p", "approved": False, "reason": "no"}, "no"),
        ({"id": "p", "approved": False}, "Tool execution denied."),
    ],
)
def test_a_call_that_was_denied_has_a_result_that_says_so(approval, text):
    denied = tool(state="output-denied", approval=approval)
    assert parts(denied)[1] == ToolResult("c1", (Text(text),), is_error=True)


@pytest.mark.parametrize(
    "native",
    [
        tool(state="input-streaming"),
        answered(providerExecuted=True),
        tool(state="new-state"),
        {"type": "source-document", "sourceId": "s", "mediaType": "text/plain", "title": "t"},
        {"type": "data-x", "data": 1},
        {"type": "custom", "kind": "openai.compaction"},
        {"type": "never-heard-of"},
    ],
)
def test_what_no_model_is_sent_and_what_the_provider_ran_stays_in_its_dialect(native):
    assert parts(native) == (opaque(native),)


def test_tool_parts_and_reasoning_of_a_user_are_no_calls():
    assert parts(answered(), reasoning(), role="user") == (opaque(answered()), opaque(reasoning()))


def test_reasoning():
    assert parts(reasoning("a"), reasoning("b", signature="s")) == (Thinking("a"), Thinking("b", "s"))
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    assert parts(reasoning("", redactedData="xyz")) == (Opaque("anthropic", "redacted_thinking", hidden),)


@pytest.mark.parametrize(
    ("native", "media"),
    [
        (file(), Media("image", "image/png", PNG)),
        (file("https://x/a.pdf", "application/pdf", filename="a"), Media("document", "application/pdf", None, "https://x/a.pdf", "a")),
        (file("https://x/a", "image/*"), Media("image", "", None, "https://x/a")),
        (file("data:audio/wav;base64,AA", "audio/wav"), Media("audio", "audio/wav", "AA")),
        (file("data:text/plain,hi", "text/plain"), Media("document", "text/plain", None, "data:text/plain,hi")),
    ],
)  # fmt: skip
def test_files(native, media):
    assert parts(native, role="user") == (media,)


def test_messages_of_sdk_4():
    user, old, newer = decode_all(V4)
    assert user.parts == (Text("Fix a.py"),)
    assert old.parts == (
        Thinking("hm"),
        ToolCall("c1", "read", {"path": "a.py"}),
        ToolResult("c1", (Text("x = 1"),)),
        ToolCall("c2", "ls", {}),
        Text("Done."),
    )
    assert newer.parts == (
        opaque(STEP),
        Thinking("hm", "sig"),
        ToolCall("c3", "ls", {}),
        ToolResult("c3", (Text('{"n":1}'),)),
        Media("image", "image/png", PNG),
        Text("Done."),
    )
    assert VERCEL.render([(message, ()) for message in (user, old, newer)]).messages == V4


def test_attachments_and_partial_calls_of_sdk_4():
    attached = [{"name": "a.png", "contentType": "image/png", "url": "https://x/a.png"}, {"name": "lost"}]
    partial = {"state": "partial-call", "toolCallId": "c", "toolName": "ls", "args": {}}
    user = {"id": "1", "role": "user", "content": "see", "experimental_attachments": attached}
    assert VERCEL.decode(user).parts == (
        Text("see"),
        Media("image", "image/png", None, "https://x/a.png", "a.png"),
        Opaque("ui-message", "attachment", {"name": "lost"}),
    )
    said = {"id": "2", "role": "assistant", "content": "", "toolInvocations": [partial, "odd"]}
    assert [part.kind for part in VERCEL.decode(said).parts] == ["tool-invocation", "tool-invocation"]


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ({"role": "user", "content": "hi"}, "no parts"),
        ({"id": "1", "role": "user"}, "no parts"),
        ({"id": "1", "role": "user", "parts": {}}, "parts must be a list"),
        (ui("data", "x"), "never sent to a model"),
        (ui("tool", "x"), "must be one of system, user, assistant"),
        (ui("user", {"text": "x"}), "object with a type"),
        (ui("user", 5), "object with a type"),
        (ui("user", {"type": "text"}), "text must be a string"),
        (ui("assistant", {**answered(), "toolCallId": 5}), "toolCallId must be a string"),
        (ui("assistant", {**answered(), "type": "dynamic-tool"}), "toolName must be a string"),
        (ui("user", {"type": "file", "url": "x"}), "mediaType must be a string"),
        ([ui("user", "x")], "not a list"),
    ],
)
def test_what_is_no_ui_message_is_refused_with_its_place(body, match):
    with pytest.raises(DialectError, match=match) as caught:
        VERCEL.decode(body, index=3)
    assert caught.value.index == 3
    assert VERCEL.validate([body])


@pytest.mark.parametrize(
    ("messages", "name"),
    [
        (UI, "ui-message"),
        (UI[1:2], "ui-message"),
        (V4, "ui-message"),
        (V4[1:2], "ui-message"),
        ([ui("user", "hi")], "ui-message"),
        ([{"role": "user", "content": "hi"}, ui("assistant", "x")], "ui-message"),
        ([{"role": "user", "parts": [{"text": "of Gemini's"}]}], "gemini"),
        ([{"role": "model", "parts": [say("x")]}], "openai-chat"),
    ],
)
def test_detect(messages, name):
    assert detect(messages) == name
    assert detect([as_json(message) for message in messages]) == name


def test_a_system_prompt_given_apart():
    message = VERCEL.decode_system("Be kind.")
    assert VERCEL.render([(message, ())]).system == "Be kind."
    blocks = VERCEL.decode_system([say("a"), say("b")])
    assert (blocks.role, blocks.text) == ("system", "a\nb")
    assert VERCEL.render([(message, ()), (blocks, ())]).system == "Be kind.\n\na\n\nb"
    with pytest.raises(DialectError, match="system must be"):
        VERCEL.decode_system([5])


def test_an_error_without_words_has_an_empty_result():
    assert parts(failed(text=""))[1] == ToolResult("c1", (), is_error=True)
