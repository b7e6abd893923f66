from __future__ import annotations

import json

from tests.transcripts.reading import facts, folds, lines, messages_in, records, texts

from foldline import dialects
from foldline.core.log.messages import Media, Thinking
from foldline.transcripts import sniff

START = {
    "type": "session.start",
    "data": {
        "sessionId": "s",
        "copilotVersion": "1.0",
        "selectedModel": "m-1",
        "context": {"cwd": "/repo", "branch": "main"},
    },
    "id": "e0",
    "timestamp": "2026-01-02T03:04:05.000Z",
    "parentId": None,
}


def event(kind, key, *, at="2026-01-02T03:04:06.000Z", agent=None, **data):
    row = {"type": kind, "data": data, "id": key, "timestamp": at, "parentId": "e0"}
    return {**row, "agentId": agent} if agent else row


def user(text, key="u1", **data):
    return event("user.message", key, content=text, attachments=[], **data)


def reply(text="", key="a1", calls=(), **data):
    requests = [{"toolCallId": call, "name": "bash", "arguments": {"command": "ls"}} for call in calls]
    return event("assistant.message", key, content=text, toolRequests=requests, model="m-1", **data)


def result(call, text, key="r1", **data):
    return event(
        "tool.execution_complete", key, toolCallId=call, success=True, result={"content": text}, **data
    )


def test_messages_calls_and_results_are_read_in_order():
    parsed = records(
        START,
        event("system.message", "s1", role="system", content="You are a terminal assistant."),
        user("List the files."),
        reply("Looking.", calls=("c1", "c2"), reasoningText="Hm.", reasoningOpaque="sealed", outputTokens=9),
        event("tool.execution_start", "t1", toolCallId="c1"),
        result("c1", "a.py"),
        result("c2", "b.py", "r2"),
        reply("Two files.", "a2"),
    )
    assert facts(parsed, "format") == [{"format": "copilot-cli", "dialect": "openai-chat"}]
    assert facts(parsed, "session") == [
        {"sessionId": "s", "copilotVersion": "1.0", "cwd": "/repo", "branch": "main"}
    ]
    assert facts(parsed, "model") == [{"model": "m-1"}]
    assert facts(parsed, "usage") == [{"output": 9, "key": "a1"}]
    assert facts(parsed, "left_out") == [{"tool.execution_start": 1}]
    assert texts(parsed) == [
        "system: You are a terminal assistant.",
        "user: List the files.",
        "assistant: Looking. | call c1 | call c2",
        "tool: result c1: a.py",
        "tool: result c2: b.py",
        "assistant: Two files.",
    ]
    message = messages_in(parsed)[2].message
    assert message.stop == "tools"
    assert message.usage is None  # the file has only what was written, not the size of the context
    assert [part.text for part in message.parts if isinstance(part, Thinking)] == ["Hm."]
    assert json.loads(message.native.raw)["reasoning_opaque"] == [
        {"type": "reasoning.encrypted", "data": "sealed"}
    ]
    assert messages_in(parsed)[1].key == "u1"
    assert messages_in(parsed)[1].at == 1767323046.0
    payloads = [json.loads(record.message.native.raw) for record in messages_in(parsed)]
    assert dialects.get("openai-chat").validate(payloads) == []


def test_what_copilot_put_around_a_prompt_is_not_the_users():
    sent = "<current_datetime>now</current_datetime>\n\nFix it.\n\n<system_reminder>tables</system_reminder>"
    parsed = records(START, user("Fix it.", transformedContent=sent))
    prompt, around = (record.message for record in messages_in(parsed))
    assert (prompt.text, prompt.is_prompt) == ("Fix it.", True)
    assert (
        around.text
        == "<current_datetime>now</current_datetime>\n\n\n\n<system_reminder>tables</system_reminder>"
    )
    assert around.injected


def test_prompts_of_other_sources_and_notices_are_injected():
    notice = event("system.notification", "n1", content="<system_notification>done</system_notification>")
    parsed = records(START, user("Go on.", source="autopilot"), notice)
    assert [record.message.injected for record in messages_in(parsed)] == [True, True]


def test_a_failed_call_is_marked_and_says_why():
    failed = event(
        "tool.execution_complete", "r1", toolCallId="c1", success=False, error={"message": "no such shell"}
    )
    parsed = records(START, user("x"), reply(calls=("c1",)), failed)
    assert messages_in(parsed)[-1].message.results[0].is_error
    assert texts(parsed)[-1] == "tool: result c1: no such shell"


def test_a_compaction_keeps_what_was_said_while_it_worked():
    parsed = records(
        START,
        user("a"),
        reply("b", "a1"),
        event("session.compaction_start", "x1"),
        reply("said meanwhile", "a2"),
        event(
            "session.compaction_complete",
            "x2",
            success=True,
            summaryContent="So far.",
            preCompactionTokens=900,
        ),
        user("c", "u2"),
    )
    assert [(one.summary, one.first_kept, one.tokens_before, one.line) for one in folds(parsed)] == [
        ("So far.", "a2", 900, 6)
    ]


def test_a_compaction_that_failed_or_has_no_summary_is_named():
    parsed = records(
        START,
        user("a"),
        event("session.compaction_complete", "x1", success=False, error="timeout"),
        event("session.compaction_complete", "x2", success=True, preCompactionTokens=7),
    )
    assert folds(parsed) == []
    assert facts(parsed, "compaction_failed")[0]["error"] == "timeout"
    assert facts(parsed, "boundary")[0]["preCompactionTokens"] == 7


def test_what_was_rewound_is_left_out_and_counted():
    parsed = records(
        START,
        user("a", "u1"),
        user("wrong", "u2"),
        reply("wrong too", "a2"),
        event("session.snapshot_rewind", "x", upToEventId="u2", eventsRemoved=2),
        user("right", "u3"),
    )
    assert texts(parsed) == ["user: a", "user: right"]
    assert facts(parsed, "branches") == [{"branches": 1, "messages": 2}]


def test_sub_agents_are_left_out_and_counted():
    parsed = records(
        START,
        user("a"),
        reply(calls=("c1",)),
        reply("deep", "a2", parentToolCallId="c1"),
        event("tool.execution_complete", "r9", agent="agent-1", toolCallId="c9", result={"content": "deep"}),
        result("c1", "shallow"),
    )
    assert texts(parsed) == ["user: a", "assistant: call c1", "tool: result c1: shallow"]
    assert facts(parsed, "sidechains") == [{"messages": 2}]


def test_images_of_users_and_results_are_kept():
    picture = {"type": "blob", "mimeType": "image/png", "data": "aGk="}
    shown = {"content": "a plot", "contents": [{"type": "image", "mimeType": "image/png", "data": "aGk="}]}
    parsed = records(
        START,
        event("user.message", "u1", content="See.", attachments=[picture, {"type": "file", "path": "a.py"}]),
        reply(calls=("c1", "c2")),
        event("tool.execution_complete", "r1", toolCallId="c1", success=True, result=shown),
        result("c2", "text", "r2"),
        reply("Seen.", "a2"),
    )
    pictures = [
        record.message.role
        for record in messages_in(parsed)
        for part in record.message.parts
        if isinstance(part, Media) and part.data == "aGk="
    ]
    assert pictures == ["user", "user"]
    assert facts(parsed, "attachment") == [{"type": "file", "path": "a.py"}]
    assert texts(parsed)[-2] == "user: [Shown by the tool calls above]"
    assert messages_in(parsed)[-2].message.injected
    payloads = [json.loads(record.message.native.raw) for record in messages_in(parsed)]
    assert dialects.get("openai-chat").validate(payloads) == []


def test_models_titles_and_other_events_are_told():
    parsed = records(
        START,
        event("session.model_change", "x1", newModel="m-2"),
        event("session.title_changed", "x2", title="My try"),
        event("session.shutdown", "x3", currentTokens=12),
        event("session.error", "x4", message="quota"),
        event("abort", "x5", reason="user"),
        user("a"),
    )
    assert facts(parsed, "model") == [{"model": "m-1"}, {"model": "m-2"}]
    assert facts(parsed, "title") == [{"title": "My try"}]
    assert facts(parsed, "usage") == [{"currentTokens": 12}]
    assert facts(parsed, "session.error") == [{"message": "quota"}]
    assert facts(parsed, "abort") == [{"reason": "user"}]


def test_a_reply_that_says_nothing_is_named_and_left_out():
    parsed = records(START, user("a"), reply("", outputTokens=3))
    assert texts(parsed) == ["user: a"]
    assert facts(parsed, "empty")[0]["outputTokens"] == 3


def test_a_system_prompt_that_is_sent_again_counts_once():
    prompt = event("system.message", "s1", role="system", content="Rules.")
    parsed = records(START, prompt, user("a"), prompt, event("system.message", "s2", content="New rules."))
    assert texts(parsed) == ["system: Rules.", "user: a", "system: New rules."]
    assert facts(parsed, "left_out") == [{"system.message again": 1}]


def test_a_file_without_its_first_line_is_recognised():
    assert sniff(lines(user("a"))) == "copilot-cli"
