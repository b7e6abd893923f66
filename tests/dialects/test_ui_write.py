"""UI messages are written: edits, results joined to their calls, ids, and what is named as lost."""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false

import pytest
from tests.dialects.samples import (
    ANTHROPIC,
    OPENAI,
    assistant,
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
from tests.dialects.ui_samples import PNG, STEP, UI, V4, answered, failed, file, reasoning, say, tool, ui

from foldline.core.cut.notes import UNANSWERED
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.dialects import decode_all, get
from foldline.errors import DialectError

VERCEL, CHAT, CLAUDE = get("ui-message"), get("openai-chat"), get("anthropic")
NOTE = Message("tool", (ToolResult("c1", (Text(UNANSWERED),), is_error=True),))


def written(*messages):
    return VERCEL.render([(message, ()) for message in messages])


def edited(native, *edits):
    items = [(VERCEL.decode(native), [Edit("e", number, "elided", new) for number, new in edits])]
    return VERCEL.render(items).messages


def bare(messages):
    """Messages without the ids that were made for them."""
    return [{key: value for key, value in message.items() if key != "id"} for message in messages]


# ---- edits


def test_edits_change_their_parts_alone():
    out = edited(UI[2], (2, Text("R.")), (4, ToolResult("c1", (Text("[cleared]"),))), (10, None))
    kept = UI[2]["parts"]
    assert out == [
        {
            **UI[2],
            "parts": [*kept[:2], {**kept[2], "text": "R."}, {**kept[3], "output": "[cleared]"}, *kept[4:8]],
        }
    ]


def test_a_shortened_error_stays_an_error():
    [out] = edited(ui("assistant", failed()), (1, ToolResult("c1", (Text("no"),), is_error=True)))
    assert out["parts"] == [failed(text="no")]


def test_an_edited_call():
    [out] = edited(ui("assistant", answered()), (0, ToolCall("c9", "write", {"path": "b"})))
    assert out["parts"] == [{**answered("c9"), "type": "tool-write", "input": {"path": "b"}}]
    dynamic = {**failed(), "type": "dynamic-tool", "toolName": "read", "rawInput": "{oops"}
    del dynamic["input"]
    [out] = edited(ui("assistant", dynamic), (0, ToolCall("c1", "bash", "{…")))
    assert out["parts"] == [{**dynamic, "toolName": "bash", "rawInput": "{…"}]


def test_a_call_goes_with_its_result():
    [out] = edited(ui("assistant", answered(), "x"), (0, None), (1, None))
    assert out["parts"] == [say("x")]
    assert edited(ui("assistant", STEP, answered()), (1, None)) == []


def test_a_result_alone_taken_out_leaves_the_call_waiting():
    [out] = edited(ui("assistant", answered(preliminary=True)), (1, None))
    assert out["parts"] == [tool()]


def test_blocks_of_an_output_that_stay_are_as_received():
    image = {"type": "image", "data": PNG, "mimeType": "image/png", "_meta": 1}
    native = ui("assistant", answered(output={"content": [say("long"), image], "x": 1}))
    kept = Media("image", "image/png", PNG)
    [out] = edited(native, (1, ToolResult("c1", (Text("…"), kept))))
    assert out["parts"][0]["output"] == {"content": [say("…"), image], "x": 1}
    [out] = edited(native, (1, ToolResult("c1", (Text("…"), Text("[image left out]")))))
    assert out["parts"][0]["output"] == "…\n[image left out]"


def test_media_and_thinking_give_way_to_notes():
    [out] = edited(ui("user", "see", file()), (1, Text("[image left out; recall 1]")))
    assert out["parts"] == [say("see"), say("[image left out; recall 1]")]
    [out] = edited(ui("assistant", reasoning("long"), "x"), (0, Thinking("…")))
    assert out["parts"] == [reasoning("…"), say("x")]
    [out] = edited(ui("assistant", reasoning("a", signature="s"), "x"), (0, None))
    assert out["parts"] == [say("x")]


def test_an_edit_that_cannot_be_made():
    with pytest.raises(DialectError, match="with a text"):
        edited(ui("assistant", answered()), (1, Text("x")))
    with pytest.raises(DialectError, match="refers to part 9"):
        edited(UI[1], (9, None))


def test_edits_of_sdk_4():
    [out] = edited(V4[1], (2, ToolResult("c1", (Text("…"),))), (4, Text("D.")), (0, None))
    old = V4[1]["toolInvocations"]
    assert out == {
        **V4[1],
        "reasoning": "",
        "content": "D.",
        "toolInvocations": [{**old[0], "result": "…"}, old[1]],
    }
    [out] = edited(V4[2], (3, ToolResult("c3", (Text("…"),))), (5, Text("D.")))
    inner = out["parts"][2]["toolInvocation"]
    assert (inner["result"], inner["args"], out["content"], out["parts"][4]) == ("…", {}, "D.", say("D."))
    assert "toolInvocations" not in out
    assert edited(V4[0], (0, None)) == []


# ---- results that other messages bring


def test_a_result_goes_into_the_part_of_its_call():
    asked = VERCEL.decode(ui("assistant", tool("c1"), tool("c2")))
    out = written(asked, CHAT.decode(tool_answer("c2", "b")), CHAT.decode(tool_answer("c1", "a")))
    assert out.messages == [ui("assistant", answered("c1", "a"), answered("c2", "b"))]
    out = written(VERCEL.decode(UI[0]), VERCEL.decode(V4[1]), CHAT.decode(tool_answer("c2", "a.py")))
    assert out.messages[1]["toolInvocations"][1]["result"] == "a.py"
    assert out.warnings == ()


def test_an_approval_that_was_given_stays_and_one_that_waits_goes():
    given = tool(state="approval-responded", approval={"id": "p", "approved": True})
    asks = tool("c2", state="approval-requested", approval={"id": "p"})
    out = written(
        VERCEL.decode(ui("assistant", given, asks)),
        CHAT.decode(tool_answer("c1")),
        CHAT.decode(tool_answer("c2")),
    )
    assert [part.get("approval") for part in out.messages[0]["parts"]] == [
        {"id": "p", "approved": True},
        None,
    ]
    assert VERCEL.validate(out.messages) == []


def test_a_note_for_an_unanswered_call_is_written_only_where_more_was_said():
    asked = VERCEL.decode(ui("assistant", tool()))
    assert written(asked, NOTE).messages == [ui("assistant", tool())]
    out = written(asked, NOTE, CHAT.decode(user("stop")))
    assert out.messages[0]["parts"] == [failed(text=UNANSWERED)]
    assert VERCEL.validate(out.messages) == []


def test_a_result_without_its_call_is_named():
    out = written(CHAT.decode(user("x")), CHAT.decode(tool_answer("nobody")))
    assert (len(out.messages), out.warnings) == (1, ("results without their call left out (1)",))


def test_ids_used_again_are_told_apart_by_place():
    batch = decode_all([calling(call("c")), tool_answer("c", "1"), assistant("x")])
    out = written(*batch, *batch)
    outputs = [part["output"] for message in out.messages for part in message["parts"] if "output" in part]
    assert outputs == ["1", "1"]
    assert VERCEL.validate(out.messages) == []
    twice = Message("assistant", (ToolCall("c", "a", {}), ToolCall("c", "b", {})))
    told = [Message("tool", (ToolResult("c", (Text(name),)),)) for name in ("1", "2")]
    out = written(twice, *told)
    assert [(p["toolCallId"], p["output"]) for p in out.messages[0]["parts"]] == [("c", "1"), ("c_2", "2")]
    assert out.warnings == ("call ids changed (1)",)


# ---- conversions


def test_the_chat_sample():
    out = written(*decode_all(OPENAI))
    assert VERCEL.validate(out.messages) == []
    assert bare(out.messages) == bare(
        [
            ui("system", "You are a coder."),
            ui("system", "Be brief."),
            ui("user", "ann: Fix a.py", file()),
            ui(
                "assistant",
                reasoning("I should look first."),
                "Reading.",
                answered("c1", "print('hi')\n"),
                {**answered("c2", "E: no such file"), "type": "tool-bash", "input": "{broken"},
            ),
            ui("assistant", "I can't do that."),
        ]
    )
    assert out.warnings == (
        "developer messages became system messages (1)",
        "field 'x_app_id' left out (1)",
        "field 'x_took_ms' left out (1)",
    )


def test_the_anthropic_sample():
    searched = "[server_tool_use, run by the provider]\nweb_search\nx"
    out = written(*decode_all(ANTHROPIC))
    assert VERCEL.validate(out.messages) == []
    assert bare(out.messages) == bare(
        [
            ui("user", "Fix a.py"),
            ui(
                "assistant",
                reasoning("Let me look.", signature="sig"),
                "Reading.",
                {**failed("t1"), "input": {"path": "a.py", "b": [1, None]}},
                {
                    **answered("t2", "a.py\n[image left out: image/png]"),
                    "type": "tool-bash",
                    "input": {"command": "ls"},
                },
            ),
            ui("user", "go on"),
            ui("assistant", reasoning("", redactedData="xyz"), searched, "Done."),
            ui(
                "user",
                file("data:text/plain;base64,VXNlIHRhYnMg4oCUIGFsd2F5cy4=", "text/plain", filename="notes"),
                file("https://example.com/a.png", "image/*"),
                "[image left out]",
                "Now?",
            ),
        ]
    )
    assert out.warnings == (
        "field 'cache_control' left out (1)",
        "image in a result left out (1)",
        "anthropic server_tool_use became text (1)",
        "anthropic web_search_tool_result left out (1)",
        "image left out (1)",
    )


def test_ui_messages_as_chat_completions():
    out = CHAT.render([(message, ()) for message in decode_all(UI[:4])])
    assert CHAT.validate(out.messages) == []
    assert [message["role"] for message in out.messages] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "user"
    ]  # fmt: skip
    assert out.messages[4:6] == [tool_answer("c2", "E: no such file"), assistant("Done.")]
    assert out.warnings == (
        "field 'metadata' left out (1)",
        "field 'callProviderMetadata' left out (1)",
        "call arguments that are not a JSON object wrapped in one (1)",
        "ui-message step-start left out (2)",
        "signed thinking left out (1)",
        "ui-message source-url left out (1)",
        "ui-message data-chart left out (1)",
        "error flags of tool results left out (1)",
    )


def test_ui_messages_as_anthropic():
    out = CLAUDE.render([(message, ()) for message in decode_all(UI[:4])], whole=True)
    assert CLAUDE.validate(out.messages, out.system) == []
    assert out.system == "You are a coder."
    assert out.messages[1:4] == [
        by_model(
            {"type": "thinking", "thinking": "Let me look.", "signature": "sig"},
            text("Reading."),
            use("c1", "read", {"path": "a.py"}),
            use("c2", "bash", {"input": "{broken"}),
        ),
        by_user(result("c1", "x = 1"), result("c2", "E: no such file", is_error=True)),
        assistant("Done."),
    ]
    assert "ui-message source-url left out (1)" in out.warnings


def test_steps_without_marks_are_told_apart_by_the_order_of_their_parts():
    native = ui("assistant", answered("c1"), answered("c2"), "then", answered("c3"))
    out = CHAT.render([(VERCEL.decode(native), ())])
    assert [(m["role"], len(m.get("tool_calls", ()))) for m in out.messages] == [
        ("assistant", 2), ("tool", 0), ("tool", 0), ("assistant", 1), ("tool", 0)
    ]  # fmt: skip


def test_a_made_message_of_several_steps_gets_its_marks():
    made = Message(
        "assistant", (ToolCall("c1", "read", {"path": "a.py"}), ToolResult("c1", (Text("ok"),)), Text("x"))
    )
    assert bare(written(made).messages) == bare([ui("assistant", answered(), STEP, "x")])


def test_provider_metadata_beside_a_signature_is_named():
    signed = reasoning("x", signature="s", cacheControl=1)
    said_ = ui("assistant", signed, say("x", providerMetadata={"openai": {"itemId": "m"}}))
    out = CLAUDE.render([(CLAUDE.decode(user("hi")), ()), (VERCEL.decode(said_), ())])
    assert out.warnings == ("field 'providerMetadata' left out (2)",)


def test_parts_in_the_wrong_role_and_uploaded_files_are_named():
    odd = Message(
        "user", (ToolCall("c", "f", {}), Thinking("x"), Media("image", url="file-id:f"), Text("hi"))
    )
    out = written(odd, Message("system", (Text("s"), Media("image", data=PNG), Opaque("x", "y", 1))))
    assert bare(out.messages) == bare([ui("user", "[image left out]", "hi"), ui("system", "s")])
    assert out.warnings == (
        "calls of a user message left out (1)",
        "thinking of a user message left out (1)",
        "image left out (2)",
        "x y left out (1)",
    )


# ---- ids


def test_made_ids_are_the_same_each_time_and_unique():
    twice = [Message("user", (Text("go on"),)), Message("user", (Text("go on"),))]
    first, second = (message["id"] for message in written(*twice).messages)
    assert second == f"{first}_2"
    taken = VERCEL.decode(ui("user", "x", id=first))
    assert [message["id"] for message in written(twice[0], taken).messages] == [second, first]


def test_an_edit_does_not_change_a_made_id():
    message = CHAT.decode(user("a long text"))
    plain, shorter = (
        VERCEL.render([(message, edits)]).messages[0] for edits in ((), [Edit("e", 0, "elided", Text("a"))])
    )
    assert plain["id"] == shorter["id"]
    assert plain["parts"] != shorter["parts"]


def test_a_message_without_parts_is_left_out():
    out = written(VERCEL.decode(ui("assistant")), VERCEL.decode(UI[1]))
    assert (out.messages, out.warnings) == ([UI[1]], ("empty messages left out (1)",))


def test_every_loss_is_named_in_every_dialect():
    parts = [
        {"type": "source-url", "sourceId": "s", "url": "u"},
        {"type": "source-document", "sourceId": "s", "mediaType": "text/plain", "title": "t"},
        {"type": "data-chart", "data": 1},
        {"type": "custom", "kind": "openai.compaction"},
        say("x", providerMetadata={"openai": {"itemId": "i"}}),
    ]
    first = {"id": "u", "role": "user", "parts": [say("hi")]}
    message = {"id": "m", "role": "assistant", "metadata": {"a": 1}, "parts": [STEP, *parts]}
    for name in ("anthropic", "openai-chat", "openai-responses"):
        lost = "\n".join(
            get(name).render([(each, ()) for each in decode_all([first, message])], whole=True).warnings
        )
        for kind in ("step-start", "source-url", "source-document", "data-chart", "custom"):
            assert f"ui-message {kind} left out (1)" in lost
        for field in ("metadata", "providerMetadata"):
            assert f"field {field!r} left out (1)" in lost
