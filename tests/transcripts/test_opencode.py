from __future__ import annotations

import json

import pytest
from tests.transcripts.reading import facts, folds, messages_in, records, texts, valid, warnings

from foldline.core.log.messages import Media, Opaque, Thinking, Usage

INFO = {"id": "ses_1", "slug": "calm-sailor", "directory": "/repo", "title": "My try", "version": "1.4.3"}
TOKENS = {"input": 40, "output": 5, "reasoning": 7, "cache": {"read": 60, "write": 3}}


def text(value, **fields):
    return {"type": "text", "id": f"prt_{value[:4]}", "text": value, **fields}


def user(key, *parts, **info):
    told = {"id": key, "role": "user", "sessionID": "ses_1", "time": {"created": 1767323046000}, **info}
    return {"info": told, "parts": list(parts)}


def reply(key, *parts, parent="msg_1", **info):
    told = {
        "id": key, "role": "assistant", "sessionID": "ses_1", "parentID": parent, "modelID": "m-1",
        "providerID": "p", "time": {"created": 1767323047000, "completed": 1767323048000}, **info,
    }  # fmt: skip
    return {"info": told, "parts": list(parts)}


def tool(call, status="completed", **state):
    return {
        "type": "tool",
        "id": f"prt_{call}",
        "callID": call,
        "tool": "read",
        "state": {"status": status, "input": {"path": "a.py"}, **state},
    }


STEP = {"type": "step-start", "id": "prt_s"}


def finish(reason="stop", **tokens):
    return {"type": "step-finish", "reason": reason, "tokens": {**TOKENS, **tokens}}


def document(*messages, indent=2):
    return json.dumps({"info": INFO, "messages": list(messages)}, indent=indent).encode()


@pytest.mark.parametrize("indent", [2, None])
def test_messages_calls_and_results_are_read_in_order(indent):
    thought = {
        "type": "reasoning",
        "text": "Hm.",
        "metadata": {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "sealed"}},
    }
    parsed = records(
        document(
            user("msg_1", text("Read it.")),
            reply(
                "msg_2", STEP, thought, text("Reading."), tool("c1", output="A"), tool("c2", "error", error="no file"),
                finish("tool-calls"), tokens=TOKENS, finish="tool-calls",
            ),
            reply("msg_3", STEP, text("Done."), finish(), {"type": "patch", "hash": "h", "files": ["a.py"]}),
            indent=indent,
        )
    )  # fmt: skip
    assert facts(parsed, "format") == [{"format": "opencode", "dialect": "openai-chat"}]
    assert facts(parsed, "session")[0]["cwd"] == "/repo"
    assert facts(parsed, "title") == [{"title": "My try"}]
    assert facts(parsed, "model") == [{"model": "m-1"}]
    assert texts(parsed) == [
        "user: Read it.",
        "assistant: Reading. | call c1 | call c2",
        "tool: result c1: A",
        "tool: result c2: no file",
        "assistant: Done.",
    ]
    message = messages_in(parsed)[1].message
    assert (message.usage, message.model, message.stop) == (Usage(40, 60, 3, 12), "m-1", "tools")
    assert [part.text for part in message.parts if isinstance(part, Thinking)] == ["Hm."]
    sealed = [{"type": "reasoning.encrypted", "data": "sealed", "provider": "openai", "id": "rs_1"}]
    assert json.loads(message.native.raw)["reasoning_opaque"] == sealed
    assert [record.message.results[0].is_error for record in messages_in(parsed)[2:4]] == [False, True]
    assert (messages_in(parsed)[0].key, messages_in(parsed)[0].at) == ("msg_1", 1767323046.0)
    assert valid(parsed)


def test_sealed_thoughts_without_words_are_kept_once():
    thought = {
        "type": "reasoning",
        "text": "",
        "metadata": {"openai": {"reasoningEncryptedContent": "sealed"}},
    }
    parsed = records(document(user("msg_1", text("go")), reply("msg_2", thought, thought, text("Done."))))
    sealed = [part for part in messages_in(parsed)[1].message.parts if isinstance(part, Opaque)]
    assert [len(part.data) for part in sealed] == [1]
    assert not any(isinstance(part, Thinking) for part in messages_in(parsed)[1].message.parts)


def test_a_message_of_several_steps_is_read_step_by_step():
    parsed = records(
        document(
            user("msg_1", text("go")),
            reply(
                "msg_2", STEP, text("one"), tool("c1", output="A"), finish("tool-calls", input=1),
                {**STEP, "id": "prt_s2"}, text("two"), finish(input=2),
            ),
        )
    )  # fmt: skip
    assert texts(parsed) == ["user: go", "assistant: one | call c1", "tool: result c1: A", "assistant: two"]
    usages = [record.message.usage for record in messages_in(parsed) if record.message.usage]
    assert [usage.input for usage in usages] == [1, 2]
    assert messages_in(parsed)[-1].key == "prt_s2"


def test_what_opencode_added_to_a_prompt_is_not_the_users():
    listed = {"type": "file", "mime": "text/plain", "filename": "a.py", "url": "file:///repo/a.py"}
    parsed = records(
        document(
            user(
                "msg_1",
                text("Look at @a.py"),
                listed,
                text("Called the Read tool", synthetic=True),
                text("<content>", synthetic=True),
                text("shown only", ignored=True),
            ),
            user("msg_2", text("Continue if you have next steps", synthetic=True)),
        )
    )
    assert [(record.message.text, record.message.injected, record.key) for record in messages_in(parsed)] == [
        ("Look at @a.py", False, "msg_1"),
        ("Called the Read tool\n<content>", True, "prt_Call"),
        ("Continue if you have next steps", True, "msg_2"),
    ]
    assert facts(parsed, "attachment")[0]["filename"] == "a.py"
    assert facts(parsed, "text")[0]["text"] == "shown only"


def test_images_of_users_and_results_are_kept():
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk="}
    parsed = records(
        document(
            user("msg_1", text("See."), picture),
            reply("msg_2", tool("c1", output="a plot", attachments=[picture]), tool("c2", output="B")),
        )
    )
    pictures = [
        record.message.injected
        for record in messages_in(parsed)
        for p in record.message.parts
        if isinstance(p, Media)
    ]
    assert pictures == [False, True]
    assert valid(parsed)


def summary(key, parent, *parts, **info):
    return reply(key, STEP, *parts, finish(), parent=parent, summary=True, **info)


def asked(key, **fields):
    return user(key, {"type": "compaction", "auto": True, **fields})


def test_a_compaction_is_a_boundary():
    parsed = records(
        document(
            user("msg_1", text("a")),
            reply("msg_2", text("b"), tokens=TOKENS),
            asked("msg_3"),
            summary("msg_4", "msg_3", text("## Goal"), tokens=TOKENS, finish="stop"),
            user("msg_5", text("Continue", synthetic=True)),
        )
    )
    assert [(one.summary, one.first_kept, one.tokens_before, one.at, one.line) for one in folds(parsed)] == [
        ("## Goal", None, 115, 1767323048.0, 4)
    ]
    assert facts(parsed, "usage") == [{"compaction": 4, "tokens": 115}]
    assert texts(parsed) == ["user: a", "assistant: b", "user: Continue"]


def test_a_compaction_names_the_first_message_that_it_kept():
    def session(tail):
        return records(
            document(
                user("msg_1", text("a")),
                user("msg_2", text("b")),
                asked("msg_3", tail_start_id=tail),
                summary("msg_4", "msg_3", text("## Goal"), finish="stop"),
            )
        )

    assert folds(session("msg_2"))[0].first_kept == "msg_2"
    lost = session("msg_9")
    assert folds(lost)[0].first_kept is None
    assert "msg_9" in warnings(lost)[0].text


@pytest.mark.parametrize("fields", [{"error": {"name": "Aborted"}, "finish": "stop"}, {}])
def test_a_compaction_that_was_not_finished_is_no_boundary(fields):
    parsed = records(
        document(user("msg_1", text("a")), asked("msg_3"), summary("msg_4", "msg_3", text("## Go"), **fields))
    )
    assert folds(parsed) == []
    assert [one["id"] for one in facts(parsed, "compaction_failed")] == ["msg_3", "msg_4"]


def test_a_compaction_without_words_is_named():
    parsed = records(
        document(user("msg_1", text("a")), asked("msg_3"), summary("msg_4", "msg_3", finish="stop"))
    )
    assert facts(parsed, "boundary") == [{"tokens_before": None}]


def test_other_sessions_are_left_out_and_counted():
    parsed = records(document(user("msg_1", text("a")), user("msg_2", text("deep"), sessionID="ses_2")))
    assert texts(parsed) == ["user: a"]
    assert facts(parsed, "sidechains") == [{"sessions": 1, "messages": 1}]


def undone(*messages, **revert):
    return json.dumps({"info": {**INFO, "revert": revert}, "messages": list(messages)}).encode()


def test_what_was_undone_is_left_out_and_counted():
    talk = (
        user("msg_1", text("a")),
        reply("msg_2", text("b")),
        user("msg_3", text("c")),
        reply("msg_4", text("d")),
    )
    parsed = records(undone(*talk, messageID="msg_3"))
    assert texts(parsed) == ["user: a", "assistant: b"]
    assert facts(parsed, "branches") == [{"branches": 1, "messages": 2}]
    assert facts(records(undone(*talk, messageID="msg_9")), "branches") == []


def test_of_a_message_undone_from_a_part_on_the_parts_before_it_stay():
    def session(part):
        return records(
            undone(
                user("msg_1", text("a")),
                reply("msg_2", STEP, text("one"), tool("c1", output="A"), text("two")),
                user("msg_3", text("c")),
                messageID="msg_2",
                partID=part,
            )
        )

    assert texts(session("prt_c1")) == ["user: a", "assistant: one"]
    assert texts(session("prt_two")) == ["user: a", "assistant: one | call c1", "tool: result c1: A"]
    assert texts(session("prt_s")) == ["user: a"]
    assert facts(session("prt_c1"), "branches") == [{"branches": 1, "messages": 2}]


def test_running_calls_errors_and_empty_replies():
    parsed = records(
        document(
            user("msg_1", text("a")),
            reply("msg_2", tool("c1", "running"), tool("c2", "pending", input={}, raw='{"pa')),
            reply("msg_3", error={"name": "APIError"}),
            reply("msg_4", text("cut"), error={"name": "Aborted"}),
            reply(
                "msg_5", tool("c5", output="gone", time={"end": 1767323048000, "compacted": 1767323049000})
            ),
        )
    )
    assert texts(parsed)[1:] == [
        "assistant: call c1 | call c2",
        "assistant: cut",
        "assistant: call c5",
        "tool: result c5: gone",
    ]
    assert messages_in(parsed)[1].message.calls[1].arguments == '{"pa'
    assert messages_in(parsed)[2].message.stop == "error"
    assert facts(parsed, "empty")[0]["id"] == "msg_3"
    assert [one["name"] for one in facts(parsed, "error")] == ["APIError", "Aborted"]
    assert facts(parsed, "pruned") == [{"call": "c5", "at": 1767323049.0}]


def test_wrong_messages_are_warnings_with_their_place():
    parsed = records(
        document(
            user("msg_1", text("a")),
            "text",
            {"info": {"role": "wizard"}},
            user("m", {"type": "text", "text": 3}),
        )
    )
    assert [one.line for one in warnings(parsed)] == [2, 3, 4]
    assert texts(parsed) == ["user: a"]
