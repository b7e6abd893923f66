from __future__ import annotations

import json
from pathlib import Path

from tests.transcripts.reading import facts, folds, messages_in, records, texts, warnings

from foldline import dialects
from foldline.core.log.messages import Media, Usage
from foldline.transcripts import read

HEADER = {"type": "session", "id": "s", "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/repo"}


def user(text, **envelope):
    return {
        "type": "message",
        "timestamp": "2026-01-02T03:04:06.000Z",
        **envelope,
        "message": {"role": "user", "content": text},
    }


def answer(*content, **fields):
    message = {
        "role": "assistant",
        "content": list(content),
        "api": "anthropic-messages",
        "model": "m-1",
        "stopReason": "stop",
        **fields,
    }
    return {"type": "message", "message": message}


def at(row, key, parent):
    return {**row, "id": key, "parentId": parent}


CALL = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a.py"}}
RESULT = {
    "type": "message",
    "message": {
        "role": "toolResult",
        "toolCallId": "t1",
        "toolName": "read",
        "content": [{"type": "text", "text": "A"}],
        "isError": True,
    },
}


def test_version_1_is_read_in_order():
    usage = {"input": 5, "output": 7, "cacheRead": 100, "cacheWrite": 3}
    parsed = records(
        HEADER,
        user("hi"),
        answer({"type": "text", "text": "Reading."}, CALL, usage=usage, stopReason="toolUse"),
        RESULT,
    )
    assert facts(parsed, "format") == [{"format": "pi", "dialect": "anthropic"}]
    assert facts(parsed, "session")[0]["cwd"] == "/repo"
    assert texts(parsed) == ["user: hi", "assistant: Reading. | call t1", "user: result t1: A"]
    message = messages_in(parsed)[1].message
    assert (message.usage, message.model, message.stop) == (Usage(5, 100, 3, 7), "m-1", "tools")
    assert messages_in(parsed)[2].message.results[0].is_error
    assert [record.key for record in messages_in(parsed)] == ["1", "2", "3"]
    assert messages_in(parsed)[0].at == 1767323046.0
    payloads = [json.loads(record.message.native.raw) for record in messages_in(parsed)]
    assert dialects.get("anthropic").validate(payloads) == []


def test_a_compaction_of_version_1_counts_its_first_kept_entry_from_the_header():
    fold = {
        "type": "compaction",
        "summary": "So far.",
        "firstKeptEntryIndex": 2,
        "tokensBefore": 900,
        "timestamp": "2026-01-02T03:04:05Z",
    }
    level = {"type": "thinking_level_change", "thinkingLevel": "high"}
    parsed = records(HEADER, user("a"), level, user("b"), fold, user("c"))
    assert [(one.summary, one.first_kept, one.tokens_before, one.line) for one in folds(parsed)] == [
        ("So far.", "3", 900, 5)
    ]
    assert messages_in(parsed)[1].key == "3"
    assert facts(parsed, "thinking") == [{"thinkingLevel": "high"}]


def test_a_compaction_whose_first_kept_entry_is_nowhere_keeps_nothing_and_says_so():
    fold = {"type": "compaction", "summary": "So far.", "firstKeptEntryId": "zzz"}
    parsed = records(HEADER, user("a"), fold)
    assert folds(parsed)[0].first_kept is None
    assert "zzz" in warnings(parsed)[0].text


def test_version_3_follows_the_newest_branch():
    parsed = records(
        {**HEADER, "version": 3},
        at(user("a"), "e1", None),
        at(answer({"type": "text", "text": "b"}), "e2", "e1"),
        at(user("abandoned"), "e3", "e2"),
        at(answer({"type": "text", "text": "abandoned too"}), "e4", "e3"),
        at({"type": "branch_summary", "fromId": "e4", "summary": "Tried c."}, "e5", "e2"),
        at({"type": "label", "targetId": "e2", "label": "here"}, "e6", "e5"),
        at({"type": "model_change", "provider": "p", "modelId": "m-2"}, "e7", "e6"),
        at(
            {"type": "compaction", "summary": "S", "firstKeptEntryId": "e2", "tokensBefore": 5},
            "e8",
            "e7",
        ),
        at({"type": "session_info", "name": "My try"}, "e9", "e8"),
        at(
            {
                "type": "custom_message",
                "customType": "x",
                "content": "from an extension",
                "display": True,
            },
            "f1",
            "e9",
        ),
        at(user("d"), "f2", "f1"),
    )
    assert facts(parsed, "session")[0]["version"] == 3
    assert [text.split(":")[0] for text in texts(parsed)] == ["user", "assistant", "user", "user", "user"]
    assert "Tried c." in texts(parsed)[2]
    assert [record.message.injected for record in messages_in(parsed)] == [False, False, True, True, False]
    assert folds(parsed)[0].first_kept == "e2"
    assert facts(parsed, "branches") == [
        {"branches": 1, "messages": 2, "leaves": [{"leaf": "e4", "line": 5}]}
    ]
    assert facts(parsed, "label")[0]["label"] == "here"
    assert facts(parsed, "model") == [{"model": "m-1"}, {"model": "m-2"}]
    assert facts(parsed, "title") == [{"title": "My try"}]
    assert not warnings(parsed)


def test_a_session_may_start_again_from_its_root():
    parsed = records({**HEADER, "version": 3}, at(user("a"), "e1", None), at(user("b"), "e2", None))
    assert texts(parsed) == ["user: b"]
    assert facts(parsed, "branches")[0]["branches"] == 1


def test_bad_parents_lose_nothing_and_are_named():
    parsed = records(
        {**HEADER, "version": 3},
        at(user("a"), "e1", "e3"),  # a parent that stands later: a circle
        at(user("b"), "e2", "e2"),  # its own parent
        at(user("c"), "e3", "gone"),
        at(user("again"), "e3", "e2"),
        at(user("d"), "e4", "e3"),
    )
    assert texts(parsed) == ["user: a", "user: b", "user: c", "user: d"]
    lines = {warning.line: warning.text for warning in warnings(parsed)}
    assert set(lines) == {2, 3, 4, 5}
    assert "comes later, on line 4" in lines[2]
    assert "the line itself" in lines[3]
    assert "gone is not in the file" in lines[4]
    assert "already on line 4" in lines[5]


def test_thoughts_images_and_what_the_user_ran():
    image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    bash = {
        "type": "message",
        "message": {"role": "bashExecution", "command": "ls", "output": "a.py", "exitCode": 1},
    }
    parsed = records(
        HEADER,
        user([{"type": "text", "text": "look"}, image, {"type": "text", "text": " "}]),
        answer(
            {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "c2ln"},
            {"type": "text", "text": "ok"},
        ),
        answer(
            {"type": "thinking", "thinking": "Foreign.", "thinkingSignature": "{}"},
            {"type": "text", "text": "ok"},
            api="openai-responses",
        ),
        bash,
    )
    messages = [record.message for record in messages_in(parsed)]
    assert isinstance(messages[0].parts[1], Media)
    assert len(messages[0].parts) == 2
    assert messages[1].parts[0].signature == "c2ln"
    assert messages[2].text == "Foreign.\nok"
    assert messages[3].injected
    assert "`ls`" in messages[3].text
    assert "Exit code 1" in messages[3].text
    payloads = [json.loads(message.native.raw) for message in messages]
    assert dialects.get("anthropic").validate(payloads[:4]) == []


def test_a_command_hidden_from_the_model_is_left_out_and_a_compaction_keeps_what_follows_it():
    hidden = {"role": "bashExecution", "command": "cat .env", "output": "SECRET", "excludeFromContext": True}
    parsed = records(
        {**HEADER, "version": 3},
        at(user("a"), "e1", None),
        at({"type": "message", "message": hidden}, "e2", "e1"),
        at({"type": "compaction", "summary": "S", "firstKeptEntryId": "e2", "tokensBefore": 5}, "e3", "e2"),
        at(user("b"), "e4", "e3"),
    )
    assert "SECRET" not in repr(parsed)
    assert texts(parsed) == ["user: a", "user: b"]
    assert folds(parsed)[0].first_kept == "e4"
    assert [(one.line, "left out" in one.text) for one in warnings(parsed)] == [(3, True)]


def test_a_message_that_pi_never_writes_is_a_warning():
    odd = {
        "type": "message",
        "message": {
            "role": "assistant",
            "content": [{"type": "toolCall", "id": "x", "name": "y", "arguments": "z"}],
        },
    }
    parsed = records(HEADER, user("a"), odd, {"type": "message"}, {"type": "compaction"})
    assert len(messages_in(parsed)) == 1
    assert [warning.line for warning in warnings(parsed)] == [3, 4, 5]


def test_a_real_session_with_two_compactions(recorded: Path):
    parsed = list(read(recorded / "native" / "pi-1.jsonl"))
    assert len(messages_in(parsed)) == 990
    assert [(one.first_kept, one.tokens_before) for one in folds(parsed)] == [
        ("293", 175004),
        ("551", 185014),
    ]
    asked = {call.id for record in messages_in(parsed) for call in record.message.calls}
    answered = {result.call_id for record in messages_in(parsed) for result in record.message.results}
    assert len(asked - answered) == 6
    keys = {record.key for record in messages_in(parsed)}
    assert {one.first_kept for one in folds(parsed)} <= keys
    assert not warnings(parsed)


def counting(kept, **fields):
    return {"type": "compaction", "timestamp": "2026-01-02T03:04:09.000Z", "summary": "So far.", "keepLastMessages": kept,
            "tokensBefore": 900, **fields}  # fmt: skip


def test_messages_kept_are_counted_from_the_end_and_never_across_a_compaction():
    said_so = answer({"type": "text", "text": "Yes."})
    parsed = records(HEADER, user("u1"), said_so, user("u2"), said_so, counting(2), user("u3"), said_so, user("u4"), counting(9), user("u5"), counting(0))  # fmt: skip
    texts = {record.key: record.message.text for record in messages_in(parsed)}

    assert [texts.get(one.first_kept) for one in folds(parsed)] == ["u2", "u3", None]
    assert not warnings(parsed)


def test_details_of_a_compaction_stay_with_it():
    (one,) = folds(
        records(HEADER, user("u1"), counting(1, details={"readFiles": ["a.py"], "modifiedFiles": []}))
    )
    assert one.data == {"details": {"readFiles": ["a.py"], "modifiedFiles": []}}
