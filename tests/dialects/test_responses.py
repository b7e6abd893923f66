"""Responses items: read whole replies, rendered as received, edited in just the parts that an edit names."""

import json

import pytest
from tests.dialects.items import DIALECT, RESPONSES, call, message, output, reasoning, response, spoke
from tests.dialects.samples import as_json, user

from foldline.core.log.entries import Edit
from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult, Usage
from foldline.dialects import decode_all, decode_placed, detect, get
from foldline.errors import DialectError

ITEMS = get(DIALECT)
SHELL = {"type": "shell_call", "call_id": "s1", "action": {"commands": ["ls"]}, "status": "completed"}
RAN = {"stdout": "a.py\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 2}}
CLICK = {"type": "computer_call", "id": "cu_1", "call_id": "k1", "action": {"type": "click", "x": 1, "y": 2}}
SHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
ASK = {
    "type": "mcp_approval_request",
    "id": "mr1",
    "server_label": "s",
    "name": "rm",
    "arguments": '{"all": 1}',
}


def edited(payload, **replacements):
    """Render one message with parts replaced: p0=..., p2=None."""
    edits = [Edit("e", int(name[1:]), "elided", new) for name, new in replacements.items()]
    return ITEMS.render([(ITEMS.decode(payload), edits)]).messages


def whole(items):
    return ITEMS.render([(message, ()) for message in decode_all(items, DIALECT)], whole=True)


# ---- reading


def test_items_of_one_reply_are_one_message():
    placed = decode_placed(RESPONSES, DIALECT)
    assert [place for place, _ in placed] == [0, 1, 2, 3, 7, 8, 9, 12]
    first = placed[3][1]
    assert [type(part) for part in first.parts] == [Thinking, Opaque, Text, ToolCall, ToolCall]
    assert [c.id for c in first.calls] == ["c1", "c2"]
    assert first.calls[1].arguments == "*** Begin"
    assert json.loads(first.native.raw) == RESPONSES[3:7]


def test_bytes_are_kept_as_they_came():
    spaced = [
        b'{ "type":"function_call","call_id":"a",\n "name":"f","arguments":"{}" }',
        as_json(spoke("ok")),
    ]
    read = ITEMS.decode(spaced)
    assert read.native.raw == b"[" + b",".join(spaced) + b"]"
    assert ITEMS.decode(spaced[0]).native.raw == spaced[0]


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        (reasoning("a", "b", sealed=None), (Thinking("a\n\nb"),)),
        (reasoning(content=[{"type": "reasoning_text", "text": "all of it"}], sealed=None), (Thinking("all of it"),)),
        (SHELL, (ToolCall("s1", "shell", {"commands": ["ls"]}),)),
        (CLICK, (ToolCall("k1", "computer", {"action": {"type": "click", "x": 1, "y": 2}}),)),
        (ASK, (ToolCall("mr1", "rm", {"all": 1}),)),
        (call(arguments=""), (ToolCall("c1", "read", {}),)),
        (call(arguments="{oops"), (ToolCall("c1", "read", "{oops"),)),
        (spoke({"type": "refusal", "refusal": "no"}), (Text("no"),)),
        (output("c1", [{"type": "input_file", "file_id": "f"}]), (ToolResult("c1", (Media("document", url="file-id:f"),)),)),
        ({**output("s1", [RAN]), "type": "shell_call_output"}, (ToolResult("s1", (Text("a.py\n\n[exit code 2]"),)),)),
        ({**output("k1", SHOT), "type": "computer_call_output"},
         (ToolResult("k1", (Media("image", mime="image/png", data="AAAA"),)),)),
        ({"type": "apply_patch_call_output", "call_id": "a1", "status": "failed", "output": "no"},
         (ToolResult("a1", (Text("no"),), is_error=True),)),
        ({"type": "local_shell_call_output", "id": "l1", "output": "a"}, (ToolResult("l1", (Text("a"),)),)),
        ({"type": "mcp_approval_response", "approval_request_id": "mr1", "approve": False, "reason": "never"},
         (ToolResult("mr1", (Text("denied: never"),)),)),
    ],
)  # fmt: skip
def test_what_an_item_says(item, parts):
    assert ITEMS.decode(item).parts == parts


@pytest.mark.parametrize(
    ("item", "role"),
    [
        (user("x"), "user"),
        ({"role": "developer", "content": "x"}, "developer"),
        (output(), "tool"),
        (call(), "assistant"),
        ({"id": "msg_1"}, "assistant"),
        ({"type": "telepathy", "mind": 1}, "assistant"),
        ({"type": "compaction", "encrypted_content": "gAAA"}, "assistant"),
        ({"type": "compaction_trigger"}, "developer"),
        ({"type": "tool_search_output", "execution": "server", "tools": []}, "assistant"),
        ({"type": "function_call_output", "name": "watcher", "output": "red"}, "user"),
    ],
)
def test_whose_an_item_is(item, role):
    read = ITEMS.decode(item)
    assert read.role == role
    assert read.is_prompt == (role == "user" and "role" in item)
    assert ITEMS.render([(read, ())]).messages == [item]


@pytest.mark.parametrize(
    "junk",
    [[], {}, {"type": 5}, [user("a"), user("b")], [spoke("a"), output()], user(None), call(call_id=5), call(name=None),
     {"role": "tool", "content": "x"}, {**reasoning(), "summary": None}, output("c1", 5), output(None)],
)  # fmt: skip
def test_what_is_no_item_is_refused_with_its_place(junk):
    with pytest.raises(DialectError) as caught:
        ITEMS.decode(junk, index=3)
    assert caught.value.index == 3


@pytest.mark.parametrize(
    ("items", "name"),
    [
        (RESPONSES, DIALECT),
        ([user("a"), call(), output()], DIALECT),
        ([message("user", {"type": "input_text", "text": "a"})], DIALECT),
        ([{"type": "message", "role": "user", "content": "a"}], DIALECT),
        ([user("a"), {"type": "compaction", "encrypted_content": "g"}], DIALECT),
        ([user("a"), {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "b"}]}], "openai-chat"),
    ],
)  # fmt: skip
def test_the_dialect_is_told_by_content(items, name):
    assert detect(items) == name


def test_an_item_without_a_role_among_chat_messages_is_refused():
    with pytest.raises(DialectError) as caught:
        detect([user("a"), {"type": "image_url"}])
    assert caught.value.index == 1


# ---- rendering


def test_without_edits_all_is_as_received():
    out = whole(RESPONSES)
    assert out.messages == RESPONSES
    assert [list(item) for item in out.messages] == [list(item) for item in RESPONSES]
    assert (out.system, out.warnings) == (None, ())


def test_an_edit_that_changes_nothing_changes_nothing():
    for read in decode_all(RESPONSES, DIALECT):
        edits = [Edit("e", number, "elided", part) for number, part in enumerate(read.parts)]
        assert ITEMS.render([(read, edits)]).messages == ITEMS.render([(read, ())]).messages


def test_edits_change_the_parts_that_they_name():
    reply = RESPONSES[3:7]
    out = edited(
        reply,
        p2=Text("…"),
        p3=ToolCall("c1", "read", {"path": "b.py"}),
        p4=ToolCall("c9", "apply_patch", "…"),
    )
    assert out[0] == reply[0]
    assert out[1] == {**reply[1], "content": [{**reply[1]["content"][0], "text": "…"}]}
    assert out[2] == {**reply[2], "arguments": '{"path":"b.py"}'}
    assert out[3] == {**reply[3], "call_id": "c9", "input": "…"}
    assert edited(output("c1", "x" * 99, id="fco_1"), p0=ToolResult("c1", (Text("blank"),))) == [
        output("c1", "blank", id="fco_1")
    ]
    assert edited(spoke("x"), p0=None) == []


def test_parts_of_an_output_that_stay_are_as_received():
    shown = {"type": "input_image", "detail": "high", "image_url": "data:image/png;base64,AAAA"}
    item = output("c1", [{"type": "input_text", "text": "long"}, shown])
    old = ITEMS.decode(item).results[0]
    assert edited(item, p0=ToolResult("c1", (Text("short"), old.content[1])))[0]["output"] == [
        {"type": "input_text", "text": "short"},
        shown,
    ]


def test_thinking_is_taken_out_or_shortened_and_what_is_sealed_stays():
    assert edited([reasoning("long"), spoke("ok")], p0=None)[0]["summary"] == []
    short = edited([reasoning("long"), spoke("ok")], p0=Thinking("l…"))[0]
    assert short == reasoning("l…")


def test_what_follows_reasoning_that_is_gone_loses_its_id():
    reply = [
        reasoning(),
        spoke("hm", id="msg_1"),
        call(id="fc_1"),
        reasoning(id="rs_2"),
        call("c2", id="fc_2"),
    ]
    assert edited(reply, p0=None) == [spoke("hm"), call(), *reply[3:]]


def test_reasoning_goes_with_what_it_led_to():
    reply = [reasoning(), spoke("hm", id="msg_1"), call(id="fc_1")]
    assert edited(reply, p1=None) == [call()]


def test_an_elided_call_of_a_fixed_form_and_its_output_become_a_function_call():
    ask = ITEMS.decode(SHELL)
    answer = ITEMS.decode({**output("s1", [RAN]), "type": "shell_call_output"})
    short = Edit("e", 0, "elided", ToolCall("s1", "shell", {"commands": "…"}))
    out = ITEMS.render([(ITEMS.decode(user("hi")), ()), (ask, [short]), (answer, ())]).messages
    assert ITEMS.validate(out) == []
    assert [item.get("type") for item in out] == [None, "function_call", "function_call_output"]


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (SHELL, {**output("s1", [RAN, RAN]), "type": "shell_call_output"}),
        (CLICK, {**output("k1", SHOT), "type": "computer_call_output", "id": "cuo_1"}),
        (ASK, {"type": "mcp_approval_response", "approval_request_id": "mr1", "approve": True}),
        ({"type": "local_shell_call", "id": "l", "call_id": "l1", "action": {"command": ["ls"]}},
         {"type": "local_shell_call_output", "id": "l1", "output": "a"}),
        ({"type": "local_shell_call", "id": "l", "call_id": "l1", "action": {"command": ["ls"]}},
         {"type": "local_shell_call_output", "id": "lo", "call_id": "l1", "output": "a"}),
        ({"type": "tool_search_call", "call_id": "t1", "execution": "client", "arguments": {}},
         {"type": "tool_search_output", "call_id": "t1", "execution": "client", "tools": [{"type": "function"}]}),
        ({"type": "apply_patch_call", "call_id": "a1", "operation": {"type": "delete_file", "path": "a"}},
         {"type": "apply_patch_call_output", "call_id": "a1", "status": "failed", "output": "no"}),
    ],
)  # fmt: skip
def test_every_kind_of_call_can_be_blanked_or_left_unanswered(ask, answer):
    first, call_, back = ITEMS.decode(user("hi")), ITEMS.decode(ask), ITEMS.decode(answer)
    old = back.results[0]
    blank = Edit("e", 0, "blanked", ToolResult(old.call_id, (Text("[blanked]"),), old.is_error))
    out = ITEMS.render([(first, ()), (call_, ()), (back, [blank])]).messages
    assert ITEMS.validate(out) == []
    assert out[1] == ask
    assert {k: out[2][k] for k in ("approve", "status") if k in answer} == {
        k: answer[k] for k in ("approve", "status") if k in answer
    }
    note = Message("tool", (ToolResult(old.call_id, (Text("interrupted"),), is_error=True),))
    out = ITEMS.render([(first, ()), (call_, ()), (note, ())]).messages
    assert ITEMS.validate(out) == []
    assert out[2].get("approve") in (None, False)


def test_a_whole_request_holds_nothing_that_the_api_refuses():
    program = {"type": "program_output", "id": "po", "call_id": "p1", "result": "1", "status": "completed"}
    by_program = call("c7", caller={"type": "program", "caller_id": "p1"})
    items = [user("hi"), {"type": "compaction_trigger"}, program, by_program, output("c7"), spoke("a", id="m1"),
             user("and?"), spoke("b", id="m1"), reasoning()]  # fmt: skip
    out = whole(items)
    assert out.messages == [
        user("hi"),
        call("c7"),
        output("c7"),
        spoke("a", id="m1"),
        user("and?"),
        spoke("b"),
    ]
    assert ITEMS.validate(out.messages) == []
    assert out.warnings == (
        "compaction triggers left out (1)",
        "outputs of folded programs left out (1)",
        "callers that are folded left out (1)",
        "repeated item ids left out (1)",
        "reasoning that nothing follows left out (1)",
    )
    assert ITEMS.render([(m, ()) for m in decode_all(items, DIALECT)]).messages == items


# ---- replies


def test_a_reply():
    usage = {
        "input_tokens": 1_000,
        "input_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 40},
    }
    noted = spoke(
        {"type": "output_text", "text": "ok", "annotations": [], "parsed": {"x": 1}}, id="m", phase=None
    )
    read = ITEMS.decode_reply(
        response(reasoning(content=None), noted, call(parsed_arguments={}), usage=usage)
    )
    assert read.usage == Usage(input=300, cache_read=600, cache_write=100, output=50)
    assert (read.role, read.model, read.stop) == ("assistant", "gpt-5.2", "tools")
    assert ITEMS.render([(read, ())]).messages == [reasoning(), spoke("ok", id="m"), call()]


@pytest.mark.parametrize(
    ("more", "stop"),
    [
        ({}, "end"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "error"),
        ({"status": "failed"}, "error"),
        ({"status": "cancelled"}, "aborted"),
        ({"status": "in_progress"}, None),
    ],
)
def test_why_it_stopped(more, stop):
    assert ITEMS.decode_reply(response(spoke("ok"), **more)).stop == stop


def test_a_reply_cut_off_while_thinking_leaves_nothing_to_send():
    read = ITEMS.decode_reply(response(reasoning(), status="incomplete"))
    out = ITEMS.render([(ITEMS.decode(user("hi")), ()), (read, ())], whole=True)
    assert out.messages == [user("hi")]
    assert ITEMS.decode_reply(response()).parts == ()


def test_what_is_no_reply():
    with pytest.raises(DialectError, match="no output"):
        ITEMS.decode_reply({"object": "response", "status": "queued"})
    with pytest.raises(DialectError, match="must be an object"):
        ITEMS.decode_reply(response(5))
    assert ITEMS.decode_reply(spoke("ok")).text == "ok"


def test_instructions_come_back_as_such():
    read = ITEMS.decode_system("Be kind.")
    out = ITEMS.render([(read, ()), (ITEMS.decode(user("hi")), ())])
    assert (out.system, out.messages) == ("Be kind.", [user("hi")])
    with pytest.raises(DialectError):
        ITEMS.decode_system([{"type": "input_text", "text": "x"}])
