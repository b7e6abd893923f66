from __future__ import annotations

import json

import pytest
from tests.transcripts.reading import facts, folds, messages_in, records, texts, valid, warnings

from foldline.core.log.messages import Media, Thinking, Usage
from foldline.transcripts import sniff

META = {
    "sessionId": "s",
    "projectHash": "h",
    "startTime": "2026-01-02T03:04:05.000Z",
    "lastUpdated": "2026-01-02T03:05:05.000Z",
    "kind": "main",
}
TOKENS = {"input": 100, "output": 5, "cached": 60, "thoughts": 7, "tool": 2, "total": 114}


def user(key, content):
    return {"id": key, "timestamp": "2026-01-02T03:04:06.000Z", "type": "user", "content": content}


def gemini(key, content="", **fields):
    return {
        "id": key,
        "timestamp": "2026-01-02T03:04:07.000Z",
        "type": "gemini",
        "content": content,
        "model": "g-1",
        **fields,
    }


def call(key, output=None, status="success", error=None):
    response = {"error": error} if error else {"output": output}
    result = [{"functionResponse": {"id": key, "name": "read_file", "response": response}}]
    return {"id": key, "name": "read_file", "args": {"path": "a.py"}, "result": result, "status": status}


def document(*messages, indent=2, **meta):
    return json.dumps({**META, **meta, "messages": list(messages)}, indent=indent).encode()


@pytest.mark.parametrize("indent", [2, None])
def test_a_document_is_read_in_order(indent):
    thought = {"subject": "Reading", "description": "I look first."}
    parsed = records(
        document(
            user("m1", [{"text": "Read "}, {"text": "it."}]),
            gemini(
                "m2",
                "Reading.",
                thoughts=[thought],
                tokens=TOKENS,
                toolCalls=[call("c1", "A"), call("c2", "B")],
            ),
            {"id": "m3", "type": "info", "content": "Request cancelled."},
            gemini("m4", "Done."),
            indent=indent,
            summary="My try",
        )
    )
    assert facts(parsed, "format") == [{"format": "gemini-cli", "dialect": "openai-chat"}]
    assert facts(parsed, "session") == [META]
    assert facts(parsed, "title") == [{"title": "My try"}]
    assert facts(parsed, "model") == [{"model": "g-1"}]
    assert facts(parsed, "info")[0]["content"] == "Request cancelled."
    assert texts(parsed) == [
        "user: Read \nit.",
        "assistant: Reading. | call c1 | call c2",
        "tool: result c1: A",
        "tool: result c2: B",
        "assistant: Done.",
    ]
    message = messages_in(parsed)[1].message
    assert message.usage == Usage(42, 60, 0, 12)
    assert message.usage.total == TOKENS["total"]
    assert [part.text for part in message.parts if isinstance(part, Thinking)] == [
        "**Reading**\nI look first."
    ]
    assert [(record.key, record.line) for record in messages_in(parsed)] == [
        ("m1", 1), ("m2", 2), ("c1", 2), ("c2", 2), ("m4", 4)
    ]  # fmt: skip
    assert messages_in(parsed)[0].at == 1767323046.0
    assert valid(parsed)


def test_failed_and_cancelled_calls_are_marked():
    parsed = records(
        document(
            user("m1", "go"),
            gemini(
                "m2", toolCalls=[call("c1", error="not found", status="error"), call("c2", "", "cancelled")]
            ),
        )
    )
    assert [record.message.results[0].is_error for record in messages_in(parsed)[2:]] == [True, True]
    assert texts(parsed)[2] == "tool: result c1: not found"


def test_calls_and_results_in_contents_are_told_once():
    made = {"functionCall": {"id": "c1", "name": "read_file", "args": {}}}
    answered = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "A"}}}
    alone = {"functionResponse": {"id": "c2", "name": "ls", "response": {"lines": ["x"]}}}
    parsed = records(
        document(
            user("m1", "go"),
            gemini("m2", [{"text": "Hm.", "thought": True}, made], toolCalls=[call("c1", "A")]),
            user("m3", [answered]),
            gemini("m4", [{"functionCall": {"id": "c2", "name": "ls"}}]),
            user("m5", [alone]),
        )
    )
    assert texts(parsed) == [
        "user: go",
        "assistant: call c1",
        "tool: result c1: A",
        "assistant: call c2",
        'tool: result c2: {"lines":["x"]}',
    ]
    assert facts(parsed, "repeated") == [{"results": ["c1"]}]
    assert valid(parsed)


def test_images_are_kept_and_results_stay_together():
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    shown = {**call("c1", "a plot")}
    shown["result"] = [*shown["result"], picture]
    parsed = records(
        document(user("m1", [{"text": "See."}, picture]), gemini("m2", toolCalls=[shown, call("c2", "B")]))
    )
    pictures = [
        record.message.injected
        for record in messages_in(parsed)
        for p in record.message.parts
        if isinstance(p, Media)
    ]
    assert pictures == [False, True]
    assert texts(parsed)[-1] == "user: [Shown by the tool calls above]"
    assert valid(parsed)


def test_what_gemini_cli_sets_up_is_not_the_users():
    parsed = records(
        document(user("m1", "This is the Gemini CLI. We are setting up the context for our chat."))
    )
    assert messages_in(parsed)[0].message.injected


def test_files_that_the_user_named_are_not_the_users_words():
    texts = [
        "Look at @a.py",
        "\n--- Content from referenced files ---",
        "always: x",
        "\n--- End of content ---",
    ]
    parsed = records(document(user("m1", [{"text": text} for text in texts])))
    assert [(record.message.text, record.message.injected) for record in messages_in(parsed)] == [
        ("Look at @a.py", False),
        ("\n".join(texts[1:]), True),
    ]


def test_empty_replies_strange_parts_and_wrong_messages_are_named():
    parsed = records(
        document(
            user("m1", [{"text": "go"}, {"executableCode": {"code": "1"}}]),
            gemini("m2", tokens=TOKENS),
            {"id": "m3", "type": "wizard"},
            "text",
            user("m5", "on"),
        )
    )
    assert texts(parsed) == ["user: go", "user: on"]
    assert facts(parsed, "part") == [{"executableCode": {"code": "1"}}]
    assert facts(parsed, "empty")[0]["tokens"] == TOKENS
    assert [one.line for one in warnings(parsed)] == [3, 4]


def test_of_json_lines_the_newest_version_of_a_message_counts():
    parsed = records(
        META,
        user("m1", "go"),
        gemini("m2", "Read"),
        {"$set": {"lastUpdated": "2026-01-02T03:06:05.000Z", "summary": "My try"}},
        {"id": "m3", "type": "info", "content": "note"},
        gemini("m2", "Reading.", toolCalls=[call("c1", "A")]),
        user("m4", "on"),
    )
    assert texts(parsed) == ["user: go", "assistant: Reading. | call c1", "tool: result c1: A", "user: on"]
    assert facts(parsed, "title") == [{"title": "My try"}]
    assert [record.line for record in messages_in(parsed)] == [2, 6, 6, 7]
    assert valid(parsed)


def test_what_was_rewound_is_left_out_and_counted():
    parsed = records(
        META, user("m1", "a"), user("m2", "wrong"), gemini("m3", "too"), {"$rewindTo": "m2"}, user("m4", "b")
    )
    assert texts(parsed) == ["user: a", "user: b"]
    assert facts(parsed, "branches") == [{"branches": 1, "messages": 2}]


def test_a_rewind_to_a_message_that_is_not_there_takes_back_everything():
    parsed = records(META, user("m1", "a"), {"$rewindTo": "m9"}, user("m2", "b"))
    assert texts(parsed) == ["user: b"]


def test_a_compression_is_a_boundary_and_nothing_said_before_it_is_lost():
    snapshot = user("s1", [{"text": "<state_snapshot>goal</state_snapshot>"}])
    agreed = gemini("s2", [{"text": "Got it."}])
    history = [snapshot, agreed, user("m3", "c"), gemini("m4", "masked")]
    parsed = records(
        META,
        user("m1", "a"),
        gemini("m2", "b"),
        user("m3", "c"),
        gemini("m4", "d"),
        {"$set": {"messages": history, "lastUpdated": "2026-01-02T03:06:05.000Z"}},
        {"$set": {"messages": history}},
        user("m5", "e"),
    )
    assert texts(parsed) == ["user: a", "assistant: b", "user: c", "assistant: d", "user: e"]
    assert [(one.summary, one.first_kept, one.line) for one in folds(parsed)] == [
        ("<state_snapshot>goal</state_snapshot>", "m3", 6)
    ]


def test_a_history_that_only_lacks_its_end_was_taken_back():
    parsed = records(
        META, user("m1", "a"), gemini("m2", "b"), user("m3", "c"), {"$set": {"messages": [user("m1", "a")]}}
    )
    assert texts(parsed) == ["user: a"]
    assert facts(parsed, "branches") == [{"branches": 1, "messages": 2}]


def test_a_history_that_the_file_begins_with_is_read():
    parsed = records({**META, "messages": [user("m1", "a"), gemini("m2", "b")]}, user("m3", "c"))
    assert texts(parsed) == ["user: a", "assistant: b", "user: c"]


def test_messages_without_an_id_and_strange_lines_are_not_lost():
    nameless = {"type": "user", "content": "a"}
    parsed = records(
        META, nameless, {"$set": {"messages": [nameless]}}, {"x": 1}, {**nameless, "content": "b"}
    )
    assert texts(parsed) == ["user: a", "user: b"]
    assert [one.line for one in warnings(parsed)] == [4]


def test_a_compression_without_words_of_the_user_keeps_what_it_kept():
    history = [gemini("s1", "Summary."), user("m2", "b")]
    parsed = records(META, user("m1", "a"), user("m2", "b"), {"$set": {"messages": history}})
    assert texts(parsed) == ["user: a", "user: b"]
    assert [(one.summary, one.first_kept) for one in folds(parsed)] == [("Summary.", "m2")]


def test_a_chat_that_quotes_gemini_is_not_taken_for_one():
    quoted = {"messages": [{"role": "user", "content": '"projectHash": "x", "info": {'}]}
    assert sniff(json.dumps(quoted, indent=2).encode()) == "json"


def answers(key, output):
    """The results of a reply's calls as a resumed session repeats them: a user message with the reply's id."""
    response = {"functionResponse": {"id": key, "name": "read_file", "response": {"output": output}}}
    return [response]


def resumed(*messages):
    return {"$set": {"messages": list(messages), "lastUpdated": META["lastUpdated"]}}


def test_a_resumed_session_keeps_usage_and_model_of_its_older_replies():
    asked, reply = (
        user("m1", "Read a.py."),
        gemini("m2", "I read.", tokens=TOKENS, toolCalls=[call("c1", "text")]),
    )
    setup = user("m0", "<session_context>\nThis is the Gemini CLI.")
    history = [setup, asked, reply, user("m2", answers("c1", "text"))]
    later = [user("m3", "Go on."), gemini("m4", "Done.", tokens=TOKENS, model="g-2")]
    whole = records(META, asked, reply, resumed(*history), *later)
    alone = records(META, resumed(*history), *later)

    for parsed in (whole, alone):
        replies = [record.message for record in messages_in(parsed) if record.message.role == "assistant"]
        assert [(one.model, one.usage.total) for one in replies] == [("g-1", 114), ("g-2", 114)]
        assert sum(bool(record.message.results) for record in messages_in(parsed)) == 1
        assert not folds(parsed)


def test_a_newer_version_of_a_reply_without_figures_keeps_the_older_ones():
    newer = {key: value for key, value in gemini("m2", "I read on.").items() if key != "model"}
    parsed = records(
        META, user("m1", "Read."), gemini("m2", "I read.", tokens=TOKENS), newer, user("m3", "Go on.")
    )
    (reply,) = [record.message for record in messages_in(parsed) if record.message.role == "assistant"]

    assert (reply.text, reply.model, reply.usage.total) == ("I read on.", "g-1", 114)


def test_a_resumed_session_that_lacks_a_message_was_not_compressed():
    setup = user("m0", "<session_context>\nThis is the Gemini CLI.")
    parsed = records(META, user("m1", "Read."), gemini("m2", "I read."), user("m3", "/stats"), resumed(setup, user("m1", "Read."), gemini("m2", "I read.")), user("m4", "Go on."))  # fmt: skip

    assert not folds(parsed)
    assert [record.message.text for record in messages_in(parsed) if not record.message.injected] == [
        "Read.",
        "I read.",
        "Go on.",
    ]
