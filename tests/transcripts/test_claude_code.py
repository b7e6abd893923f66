from __future__ import annotations

import json

from tests.dialects.samples import text
from tests.transcripts.reading import facts, folds, messages_in, records, texts, warnings

from foldline import dialects
from foldline.core.log.messages import Usage


class File:
    """Lines of a session, each the child of the one before unless told otherwise."""

    def __init__(self):
        self.rows = []

    def add(self, kind, message=None, **fields):
        key = fields.pop("key", f"u{len(self.rows)}")
        before = next((row["uuid"] for row in reversed(self.rows) if "uuid" in row), None)
        row = {
            "parentUuid": fields.pop("parent", before),
            "isSidechain": False,
            "sessionId": "s",
            "cwd": "/repo",
            "version": "2.1.0",
            "type": kind,
            "uuid": key,
            "timestamp": "2026-01-02T03:04:05.000Z",
        }
        if message is not None:
            row["message"] = message
        self.rows.append({**row, **fields})
        return key

    def user(self, content, **fields):
        return self.add("user", {"role": "user", "content": content}, **fields)

    def reply(self, reply, *blocks, stop=None, **fields):
        usage = {
            "input_tokens": 3,
            "cache_read_input_tokens": 50,
            "cache_creation_input_tokens": 20,
            "output_tokens": len(self.rows),
        }
        return self.add(
            "assistant",
            {
                "id": reply,
                "type": "message",
                "role": "assistant",
                "model": "m-1",
                "content": list(blocks),
                "stop_reason": stop,
                "usage": usage,
            },
            **fields,
        )

    def result(self, call, text="ok", **fields):
        return self.user(
            [{"type": "tool_result", "tool_use_id": call, "content": text}],
            toolUseResult={"stdout": text},
            **fields,
        )

    def outside(self, **row):
        self.rows.append(row)

    def read(self):
        return records(*self.rows)


def call(key, name="Read"):
    return {"type": "tool_use", "id": key, "name": name, "input": {"file_path": f"/{key}"}}


def test_what_is_cached_for_an_hour_is_counted_since_it_costs_more():
    file = File()
    file.user("Fix it")
    file.reply("m1", text("Done."))
    usage = file.rows[-1]["message"]["usage"]
    for hourly, expected in ((15, 15), (99, 20), ("x", 0)):
        usage["cache_creation"] = {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": hourly}
        [_, reply] = messages_in(file.read())
        assert reply.message.usage == Usage(3, 50, 20, 1, cache_write_hour=expected)


def test_the_lines_of_one_reply_become_one_message():
    file = File()
    file.user("Fix it")
    file.reply("m1", {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"})
    file.reply("m1", text("\n\n"))
    file.reply("m1", text("Reading."))
    file.reply("m1", call("t1"), stop="tool_use")
    file.result("t1")
    file.reply("m2", text("Done."), stop="end_turn")
    parsed = file.read()
    assert texts(parsed) == [
        "user: Fix it",
        "assistant: Reading. | call t1",
        "user: result t1: ok",
        "assistant: Done.",
    ]
    message = messages_in(parsed)[1].message
    assert (message.usage, message.model, message.stop) == (Usage(3, 50, 20, 4), "m-1", "tools")
    assert messages_in(parsed)[1].key == "u1"
    assert facts(parsed, "session") == [{"sessionId": "s", "cwd": "/repo", "version": "2.1.0"}]
    assert facts(parsed, "model") == [{"model": "m-1"}]
    payloads = [json.loads(record.message.native.raw) for record in messages_in(parsed)]
    assert set(payloads[1]) == {"role", "content"}
    assert dialects.get("anthropic").validate(payloads) == []


def test_a_parallel_batch_is_read_whole_though_its_results_hang_beside_the_path():
    file = File()
    file.user("Read all")
    first = file.reply("m1", call("t1"))
    second = file.reply("m1", call("t2"))
    third = file.reply("m1", call("t3"))
    file.add("progress", data={"type": "hook_progress"})
    file.result("t3", "C", parent=third)
    file.result("t2", "B", parent=second)
    last = file.result("t1", "A", parent=first)
    file.reply("m2", text("All read."), parent=last)
    parsed = file.read()
    assert texts(parsed) == [
        "user: Read all",
        "assistant: call t1 | call t2 | call t3",
        "user: result t3: C | result t2: B | result t1: A",
        "assistant: All read.",
    ]
    assert facts(parsed, "branches") == []


def test_a_result_between_the_lines_of_its_reply_comes_after_it():
    file = File()
    file.user("Read both")
    first = file.reply("m1", call("t1"))
    early = file.result("t1", "A")
    file.reply("m1", call("t2"), parent=first)
    file.result("t2", "B")
    file.reply("m2", text("Done."), parent=early)
    assert texts(file.read())[1:] == [
        "assistant: call t1 | call t2",
        "user: result t1: A | result t2: B",
        "assistant: Done.",
    ]


def test_sub_agents_are_left_out_unless_there_is_nothing_else():
    file = File()
    file.user("Ask an agent")
    main = file.reply("m1", call("t1", "Task"))
    file.user("You are a sub-agent", isSidechain=True, parent=None)
    file.reply("m9", text("I looked."), isSidechain=True)
    file.result("t1", parent=main)
    parsed = file.read()
    assert texts(parsed) == ["user: Ask an agent", "assistant: call t1", "user: result t1: ok"]
    assert facts(parsed, "sidechains") == [{"messages": 2}]
    only = records(*[row for row in file.rows if row["isSidechain"]])
    assert texts(only) == ["user: You are a sub-agent", "assistant: I looked."]


def test_what_programs_write_in_the_users_name_is_marked():
    file = File()
    file.user("Caveat: ...", isMeta=True)
    file.user(
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"
    )
    file.user("<command-name>/review</command-name>\n<command-args>the parser</command-args>")
    file.user([text("[Request interrupted by user]")])
    file.user("Go on.")
    assert [record.message.injected for record in file.read() if hasattr(record, "message")] == [
        True,
        True,
        False,
        True,
        False,
    ]


def test_a_compaction_with_its_boundary_line():
    file = File()
    file.user("Long work")
    file.reply("m1", text("Working."), stop="end_turn")
    file.add(
        "system",
        parent=None,
        logicalParentUuid="u1",
        subtype="compact_boundary",
        content="Conversation compacted",
        compactMetadata={"trigger": "auto", "preTokens": 167998},
    )
    file.user("This session is being continued ... summary", isCompactSummary=True)
    file.reply("m2", text("Continuing."))
    parsed = file.read()
    assert texts(parsed) == ["user: Long work", "assistant: Working.", "assistant: Continuing."]
    assert [(one.first_kept, one.tokens_before) for one in folds(parsed)] == [(None, 167998)]
    assert not warnings(parsed)


def test_a_compaction_that_kept_messages_names_the_first_and_one_without_a_summary_is_told():
    file = File()
    file.user("a", key="head")
    file.add(
        "system",
        subtype="compact_boundary",
        compactMetadata={"preservedSegment": {"headUuid": "head", "tailUuid": "head"}},
    )
    file.user("Summary", isCompactSummary=True)
    file.user("b")
    file.add("system", subtype="compact_boundary", compactMetadata={"preTokens": 7})
    file.user("c")
    parsed = file.read()
    assert folds(parsed)[0].first_kept == "head"
    assert facts(parsed, "boundary") == [{"preTokens": 7}]
    assert texts(parsed) == ["user: a", "user: b", "user: c"]


def test_a_checkpoint_that_our_plugin_handed_back_is_a_compaction_one_that_the_user_typed_is_not():
    for source, count in (("hook", 1), ("local", 0)):
        file = File()
        file.user("Long work")
        file.add("system", parent=None, logicalParentUuid="u1", subtype="compact_boundary")
        file.user('<foldline-checkpoint version="1" ack="0" quoted="0">\n...', rowSource=source)
        file.user("Go on")
        assert len(folds(file.read())) == count


def test_a_compaction_may_name_any_line_of_the_first_message_that_it_kept():
    def session(head):
        file = File()
        file.user("a", key="first")
        file.reply("m1", text("b"), key="reply")
        file.reply("m1", {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}, key="call")
        file.user([{"type": "tool_result", "tool_use_id": "t1", "content": "x"}], key="result")
        file.add("system", subtype="turn_duration", key="silent")
        file.user("c", key="last")
        file.add(
            "system",
            subtype="compact_boundary",
            compactMetadata={"preservedMessages": {"uuids": [head, "last"]}},
        )
        file.user("Summary", isCompactSummary=True)
        return folds(file.read())[0].first_kept

    assert [session(key) for key in ("first", "call", "silent", "nowhere")] == [
        "first",
        "reply",
        "last",
        None,
    ]


def test_sub_agents_shown_as_progress_are_counted():
    file = File()
    file.user("a")
    file.add("progress", data={"type": "agent_progress", "message": {"type": "user"}})
    file.add("progress", data={"type": "hook_progress"})
    assert facts(file.read(), "sidechains") == [{"messages": 1}]


def test_the_newest_branch_counts_and_the_others_are_named():
    file = File()
    start = file.user("a")
    file.reply("m1", text("b"))
    file.user("abandoned")
    file.reply("m2", text("abandoned too"), key="old")
    file.user("c", parent=start)
    parsed = file.read()
    assert texts(parsed) == ["user: a", "user: c"]
    assert facts(parsed, "branches")[0]["leaves"] == [{"leaf": "old", "line": 4}]


def test_a_resumed_file_whose_parents_are_missing_loses_nothing():
    file = File()
    file.user("a", parent="in-another-file")
    file.reply("m1", text("b"), parent="dropped")
    file.user("c")
    parsed = file.read()
    assert texts(parsed) == ["user: a", "assistant: b", "user: c"]
    assert [warning.line for warning in warnings(parsed)] == [1, 2]


def test_errors_of_the_api_shown_as_replies_are_marked():
    file = File()
    file.user("a")
    file.add(
        "assistant",
        {
            "id": "x",
            "role": "assistant",
            "model": "<synthetic>",
            "content": [text("API Error: 529")],
            "usage": {"input_tokens": 0, "output_tokens": 0},
        },
        isApiErrorMessage=True,
    )
    message = messages_in(file.read())[1].message
    assert (message.stop, message.usage, message.model) == ("error", None, None)


def test_attachments_titles_and_queued_prompts():
    file = File()
    file.outside(type="summary", summary="A title", leafUuid="u0")
    file.outside(type="file-history-snapshot", messageId="x", snapshot={})
    file.outside(type="queue-operation", operation="enqueue", content="and the docs", sessionId="s")
    file.user("a", parent=None)
    file.add(
        "attachment", attachment={"type": "queued_command", "prompt": "and the docs", "commandMode": "prompt"}
    )
    file.add(
        "attachment",
        attachment={"type": "queued_command", "prompt": "done", "commandMode": "task-notification"},
    )
    file.add(
        "attachment",
        attachment={
            "type": "file",
            "filename": "a.py",
            "content": {"type": "text", "file": {"content": "print(1)"}},
        },
    )
    file.add("attachment", attachment={"type": "todo_reminder", "content": []})
    file.add("system", subtype="turn_duration", durationMs=5)
    file.add("system", subtype="local_command", content="<command-name>/cost</command-name>")
    parsed = file.read()
    assert [
        (record.message.text.split("\n")[0], record.message.injected) for record in messages_in(parsed)
    ] == [
        ("a", False),
        ("and the docs", False),
        ("done", True),
        ("<system-reminder>", True),
    ]
    assert facts(parsed, "title") == [{"title": "A title"}]
    assert facts(parsed, "queued") == [{"operation": "enqueue", "content": "and the docs"}]
    assert facts(parsed, "attachment") == [{"type": "todo_reminder", "content": []}]
    assert facts(parsed, "local_command")[0]["content"].startswith("<command-name>")


def test_a_broken_line_and_a_summary_that_is_no_text():
    file = File()
    file.user("a")
    file.user(7, isCompactSummary=True)
    file.user("b")
    parsed = records(*file.rows[:1], "{broken", *file.rows[1:])
    assert texts(parsed) == ["user: a", "user: b"]
    assert [warning.line for warning in warnings(parsed)] == [2, 3]


def test_words_beside_a_result_stay_with_it():
    file = File()
    file.user("a")
    file.reply("m1", call("t1"), call("t2"))
    file.user([{"type": "tool_result", "tool_use_id": "t1", "content": "A"}, text("and mind this")])
    file.result("t2", "B")
    file.add("assistant", {"id": "m2", "content": "plain text", "stop_reason": "end_turn"})
    assert texts(file.read())[2:] == [
        "user: and mind this | result t1: A",
        "user: result t2: B",
        "assistant: plain text",
    ]
