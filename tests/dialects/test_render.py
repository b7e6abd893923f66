"""Rendering within a dialect: as received, or with just the edited parts changed."""

import copy

import pytest
from tests.dialects.samples import (
    ANTHROPIC,
    OPENAI,
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

from foldline.core.log.entries import Edit
from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.dialects import decode_all, get
from foldline.errors import DialectError

CHAT = get("openai-chat")
CLAUDE = get("anthropic")
BOTH = pytest.mark.parametrize(
    ("dialect", "sample"), [(CHAT, OPENAI), (CLAUDE, ANTHROPIC)], ids=["chat", "claude"]
)


def edited(dialect, body, **replacements):
    """Render one native message with parts replaced: p0=..., p2=None."""
    edits = [Edit("e", int(name[1:]), "elided", new) for name, new in replacements.items()]
    before = copy.deepcopy(body)
    messages = dialect.render([(dialect.decode(body), edits)]).messages
    assert body == before
    return messages[0] if messages else None


@BOTH
def test_without_edits_all_is_as_received(dialect, sample):
    out = dialect.render([(message, ()) for message in decode_all(sample, dialect.name)])
    assert out.messages == sample
    assert (out.system, out.warnings) == (None, ())


@BOTH
def test_an_edit_that_changes_nothing_changes_nothing(dialect, sample):
    for body in sample:
        message = dialect.decode(body)
        edits = [Edit("e", number, "elided", part) for number, part in enumerate(message.parts)]
        assert dialect.render([(message, edits)]).messages == [body]


@BOTH
def test_an_edit_touches_nothing_beside(dialect, sample):
    messages = decode_all(sample, dialect.name)
    for place, message in enumerate(messages):
        for number in range(len(message.parts)):
            edits = {place: [Edit("e", number, "elided", None)]}
            out = dialect.render([(m, edits.get(i, ())) for i, m in enumerate(messages)]).messages
            assert out[:place] == sample[:place]
            rest = sample[place + 1 :]
            assert out[len(out) - len(rest) :] == rest
            assert len(out) >= len(sample) - 1


@BOTH
def test_a_message_whose_parts_are_all_taken_out_is_left_out(dialect, sample):
    for body in sample:
        message = dialect.decode(body)
        if message.parts:
            edits = [Edit("e", number, "elided") for number in range(len(message.parts))]
            assert dialect.render([(message, edits)]).messages == []


@BOTH
def test_an_edit_of_a_part_that_is_not_there_is_refused(dialect, sample):
    message = dialect.decode(sample[0])
    other = Message("user", (Text("x"),))
    for bad in (9, -1):
        with pytest.raises(DialectError, match="part"):
            dialect.render([(message, [Edit("e", bad, "elided")])])
        with pytest.raises(DialectError, match="message 1"):
            dialect.render([(message, ()), (other, [Edit("e", bad, "elided")])])


def test_chat_content():
    assert edited(CHAT, user("long text"), p0=Text("short")) == user("short")
    body = OPENAI[2]
    assert edited(CHAT, body, p0=Text("Fix it")) == {**body, "content": [text("Fix it"), body["content"][1]]}
    assert edited(CHAT, body, p1=Text("[image]")) == {
        **body,
        "content": [body["content"][0], text("[image]")],
    }
    assert edited(CHAT, body, p0=None) == {**body, "content": body["content"][1:]}
    assert edited(CHAT, body, p0=Text("")) == {**body, "content": body["content"][1:]}
    assert edited(CHAT, body, p0=Media("image", url="http://x/y.png"))["content"][0] == {
        "type": "image_url",
        "image_url": {"url": "http://x/y.png"},
    }


def test_chat_results():
    assert edited(CHAT, OPENAI[5], p0=ToolResult("c1", (Text("[gone]"),))) == {
        **OPENAI[5],
        "content": "[gone]",
    }
    body = tool_answer("c1", [text("a", x=1), text("b")])
    assert edited(CHAT, body, p0=ToolResult("c1", (Text("a"), Text("B")))) == tool_answer(
        "c1", [text("a", x=1), text("B")]
    )
    assert edited(CHAT, body, p0=ToolResult("c1")) == tool_answer("c1", "")
    assert edited(CHAT, tool_answer(), p0=ToolResult("c1", (Text("a"), Text("b")))) == tool_answer(
        "c1", [text("a"), text("b")]
    )


def test_chat_calls():
    body = OPENAI[3]
    out = edited(CHAT, body, p3=ToolCall("c2", "bash", {"command": "ls"}))
    assert out["tool_calls"][1] == call("c2", "bash", '{"command":"ls"}', index=1)
    assert out["tool_calls"][0] == body["tool_calls"][0]
    out = edited(CHAT, body, p2=None, p3=None)
    assert out == {key: value for key, value in body.items() if key != "tool_calls"}
    assert edited(CHAT, calling(call(), call("c2")), p0=None) == calling(call("c2"))
    custom = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "long"}}
    assert edited(CHAT, calling(custom), p0=ToolCall("c1", "patch", "short"))["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "short"}}
    ]


def test_chat_keys_that_were_not_there_stay_away():
    body = {"role": "assistant", "tool_calls": [call(), call("c2")]}
    assert edited(CHAT, body, p0=None) == {"role": "assistant", "tool_calls": [call("c2")]}


def test_chat_content_that_is_gone_leaves_a_valid_message():
    assert edited(CHAT, calling(call(), content="Reading."), p0=None) == calling(call())
    assert edited(CHAT, {"role": "assistant", "reasoning": "hm", "content": "x"}, p1=None) == {
        "role": "assistant",
        "reasoning": "hm",
        "content": "",
    }
    assert edited(CHAT, calling(call(), content=[text("a")]), p0=None) == calling(call())
    body = {"role": "assistant", "content": None, "refusal": "no", "tool_calls": [call()]}
    assert edited(CHAT, body, p1=None) == {"role": "assistant", "content": None, "refusal": "no"}


def test_chat_fields():
    body = {
        "role": "assistant",
        "reasoning": "hm",
        "reasoning_content": "hm",
        "content": "x",
        "refusal": "no",
    }
    assert edited(CHAT, body, p0=None) == {"role": "assistant", "content": "x", "refusal": "no"}
    assert edited(CHAT, body, p2=Text("No.")) == {**body, "refusal": "No."}
    assert edited(CHAT, {"role": "assistant", "content": "x", "reasoning": "hm"}, p0=Thinking("h")) == {
        "role": "assistant",
        "content": "x",
        "reasoning": "h",
    }
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}}
    assert edited(CHAT, legacy, p0=ToolCall("f", "f", {"a": 2}))["function_call"] == {
        "name": "f",
        "arguments": '{"a":2}',
    }
    sound = {"role": "assistant", "content": "x", "audio": {"id": "a"}}
    assert edited(CHAT, sound, p1=Opaque("openai-chat", "audio", {"id": "b"}))["audio"] == {"id": "b"}


def test_claude_content():
    assert edited(CLAUDE, user("long text"), p0=Text("short")) == user("short")
    assert edited(CLAUDE, user("long text"), p0=Text(" ")) is None
    body = ANTHROPIC[1]
    out = edited(CLAUDE, body, p1=Text("R."), p2=ToolCall("t1", "read", {"path": "b"}))
    assert out == by_model(
        body["content"][0], text("R.", citations=None), use("t1", "read", {"path": "b"}), body["content"][3]
    )
    assert edited(CLAUDE, body, p0=None) == by_model(*body["content"][1:])
    assert edited(CLAUDE, user("see"), p0=Media("image", url="http://x/y.png")) == by_user(
        image(type="url", url="http://x/y.png")
    )


def test_claude_results():
    body = ANTHROPIC[2]
    first = body["content"][0]
    out = edited(CLAUDE, body, p0=ToolResult("t2", (Text("[gone]"),)))
    assert out == by_user({**first, "content": [text("[gone]")]}, *body["content"][1:])
    message = CLAUDE.decode(body)
    kept = ToolResult("t2", (Text("short"), message.parts[0].content[1]))
    assert edited(CLAUDE, body, p0=kept)["content"][0] == {**first, "content": [text("short"), image()]}
    assert edited(CLAUDE, body, p1=ToolResult("t1", (), is_error=True))["content"][1] == result(
        "t1", "[no output]", is_error=True
    )
    assert edited(CLAUDE, by_user(result()), p0=ToolResult("t1")) == by_user(
        {"type": "tool_result", "tool_use_id": "t1"}
    )
    assert edited(CLAUDE, by_user(result()), p0=ToolResult("t1", (Text("E"),), is_error=True)) == by_user(
        result("t1", "E", is_error=True)
    )


def test_thinking_that_an_edit_leaves_at_the_end_goes_too():
    body = by_model(text("a"), thinking(), {"type": "redacted_thinking", "data": "x"}, use())
    assert edited(CLAUDE, body, p3=None) == by_model(text("a"))
    assert edited(CLAUDE, by_model(thinking(), use()), p1=None) is None


def test_a_server_tool_call_that_was_given_up_is_left_out_of_a_request():
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    by_it = {**use(), "caller": {"type": "code_execution_20250825", "tool_id": "s1"}}
    talk = [
        user("x"),
        by_model(thinking(), search),
        user("y"),
        by_model(search, by_it),
        by_user(result(), text("stop")),
    ]
    out = CLAUDE.render([(CLAUDE.decode(each), ()) for each in talk], whole=True)
    assert out.messages == [user("x"), user("y"), by_model(use()), talk[-1]]
    assert out.warnings == ("server tool calls without a result left out (2)",)
    paused = [*talk[:2], by_model(text("Dry."))]
    assert CLAUDE.render([(CLAUDE.decode(each), ()) for each in paused], whole=True).messages == paused


def test_messages_that_say_nothing_are_left_out():
    out = CLAUDE.render([(CLAUDE.decode(by_model()), ()), (CLAUDE.decode(user("x")), ())])
    assert out.messages == [user("x")]
    assert out.warnings == ("empty messages left out (1)",)
    out = CHAT.render(
        [(CHAT.decode({"role": "assistant", "content": None}), ()), (CHAT.decode(user("x")), ())]
    )
    assert out.messages == [user("x")]
    assert out.warnings == ("empty assistant messages left out (1)",)


def test_a_reply_that_was_cut_off_while_it_reasoned_has_content():
    body = {"role": "assistant", "content": None, "reasoning_content": "I think and"}
    out = CHAT.render([(CHAT.decode(body), ()), (CHAT.decode(user("go on")), ())])
    assert out.messages == [{**body, "content": ""}, user("go on")]
    assert CHAT.validate(out.messages) == []


def test_system_prompts_come_back_as_given():
    for system in ("Be kind.", [text("Be kind.", cache_control={"type": "ephemeral"})]):
        given = CLAUDE.decode_system(system)
        out = CLAUDE.render([(given, ()), (CLAUDE.decode(user("hi")), ())])
        assert (out.messages, out.system, out.warnings) == ([user("hi")], system, ())
        assert CLAUDE.render([(given, [Edit("e", 0, "elided", Text("Be."))])]).system in (
            "Be.",
            [text("Be.", cache_control={"type": "ephemeral"})],
        )
        assert CLAUDE.render([(given, [Edit("e", 0, "elided")])]).system == ""


def test_made_messages_are_encoded():
    made = [
        Message("user", (Text("Summary."),)),
        Message("assistant", (Text("Understood. "),)),
        Message("user", (Text("a"), Text("b"))),
    ]
    items = [(message, ()) for message in made]
    assert CLAUDE.render(items).messages == [
        user("Summary."),
        assistant("Understood."),
        by_user(text("a"), text("b")),
    ]
    assert CHAT.render(items).messages == [
        user("Summary."),
        assistant("Understood. "),
        by_user(text("a"), text("b")),
    ]


def test_a_made_system_message_stands_in_the_list():
    made = Message("system", (Text("Summary."),))
    items = [(CLAUDE.decode_system("Be kind."), ()), (made, ()), (CLAUDE.decode(by_model(text("yes"))), ())]
    out = CLAUDE.render(items)
    assert out.system == "Be kind."
    assert out.messages == [user("Summary."), by_model(text("yes"))]
    assert CLAUDE.validate(out.messages, out.system) == []
    assert CHAT.render([(made, ())]).messages == [{"role": "system", "content": "Summary."}]


def test_made_messages_with_edits():
    made = Message("user", (Text("a"), Text("b")))
    assert CHAT.render([(made, [Edit("e", 0, "elided", Text("c"))])]).messages == [
        by_user(text("c"), text("b"))
    ]
    assert CHAT.render([(made, [Edit("e", 0, "elided"), Edit("e", 1, "elided")])]).messages == []


def test_a_kept_payload_that_is_no_json_is_refused():
    broken = Message("user", native=CHAT.decode(user("x")).native.__class__("openai-chat", b"{"))
    with pytest.raises(DialectError, match="message 0"):
        CHAT.render([(broken, ())])


@pytest.mark.parametrize(
    ("dialect", "body", "new"),
    [
        (CHAT, calling(call()), Text("x")),
        (CHAT, tool_answer(), Text("x")),
        (CHAT, user("x"), ToolCall("c", "f", {})),
        (CLAUDE, by_model(use()), Text("x")),
        (CLAUDE, by_user(result()), ToolCall("t1", "f", {})),
        (CLAUDE, user("x"), ToolResult("t1")),
    ],
)
def test_an_edit_cannot_break_a_pair(dialect, body, new):
    for native in (dialect, CHAT if dialect is CLAUDE else CLAUDE):
        with pytest.raises(DialectError, match="cannot replace part 0, a"):
            native.render([(dialect.decode(body), [Edit("e", 0, "elided", new)])])


def test_other_parts_as_replacements():
    clip = {"type": "video_url", "video_url": {"url": "x"}}
    listed = {"role": "user", "content": [text("a"), text("b")]}
    assert edited(CHAT, listed, p0=Opaque("openai-chat", "video_url", clip))["content"][0] == clip
    assert edited(CHAT, listed, p0=Media("image"))["content"][0] == text("[image left out]")
    assert (
        edited(CHAT, {**assistant("x"), "refusal": "no"}, p1=Media("image"))["refusal"] == "[image left out]"
    )
    parts = tool_answer("c1", [text("a"), text("b")])
    shown = ToolResult("c1", (Text("a"), Media("image", mime="image/png", data="AA"), Text("")))
    assert edited(CHAT, parts, p0=shown)["content"] == [text("a"), text("[image left out: image/png]")]
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,BB"}}
    smaller = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    assert edited(CHAT, tool_answer("c1", [text("a"), picture]), p0=shown)["content"] == [text("a"), smaller]
    legacy = {"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}}
    assert edited(CHAT, legacy, p1=None) == assistant("x")
    assert edited(CLAUDE, by_model(text("a"), text("b")), p0=Thinking("hm")) == by_model(text("b"))
