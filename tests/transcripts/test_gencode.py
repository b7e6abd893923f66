from __future__ import annotations

import json

import pytest
from tests.support.synthetic import SYNTHETIC
from tests.transcripts.reading import facts, folds, messages_in, records, texts, warnings

from foldline import dialects
from foldline.errors import FormatError
from foldline.transcripts import read

SESSION = SYNTHETIC / "gencode.json"


def session(*messages, indent=2, **more):
    whole = {"metadata": {"id": "s", "title": "T", "model": "m"}, "messages": list(messages), **more}
    return json.dumps(whole, indent=indent).encode()


def summary(number, text):
    content = f"[Earlier conversation - {number} messages summarized]\n\n{text}"
    return {"role": "system", "content": content}


def user(text):
    return {"role": "user", "content": text}


def test_a_session_with_a_compaction():
    parsed = list(read(SESSION))
    assert facts(parsed, "format") == [{"format": "gencode", "dialect": "anthropic"}]
    assert facts(parsed, "title") == [{"title": "Implement Auth System"}]
    assert facts(parsed, "model") == [{"model": "claude-opus-4-5"}]
    assert facts(parsed, "system") == [{"system": "You are GenCode, a coding agent."}]
    assert facts(parsed, "session")[0]["completions"][0]["usage"]["inputTokens"] == 61000
    assert texts(parsed)[0].startswith("user: Limit /login")
    assert messages_in(parsed)[4].message.results[1].is_error
    assert facts(parsed, "pruned") == [{"call": "toolu_11", "at": "2026-01-18T10:30:00.000Z"}]
    payloads = [json.loads(record.message.native.raw) for record in messages_in(parsed)]
    assert dialects.get("anthropic").validate(payloads) == []
    assert not warnings(parsed)


def test_its_summary_is_what_its_model_read_and_its_facts_stay_with_it():
    [one] = folds(list(read(SESSION)))
    assert one.summary.startswith("We added JWT authentication")
    assert "Decided to use JWT" in one.summary
    assert (one.first_kept, one.at, one.line) == (None, 1768732200.0, 2)
    assert one.data["coveringMessages"] == [1, 100]
    assert one.data["toolsUsed"][0]["count"] == 5


def test_summaries_add_up():
    parsed = records(session(summary(9, "First."), summary(7, "Second."), user("a")))
    assert [one.summary for one in folds(parsed)] == ["First.", "First.\n\nSecond."]
    assert [one.number for one in folds(parsed)] == [1, 2]
    assert texts(parsed) == ["user: a"]


def test_a_summary_that_no_message_holds_is_read_from_the_list():
    told = {"id": "sum-1", "content": "We did X.", "generatedAt": "2026-01-18T10:30:00Z"}
    parsed = records(session(user("a"), summaries=[told]))
    assert [one.summary for one in folds(parsed)] == ["We did X."]


def test_a_summary_that_a_later_one_covers_is_not_read_beside_it():
    first = {"content": "We did X.", "coveringMessages": [1, 9]}
    second = {"content": "We did X, then Y.", "coveringMessages": [1, 20]}
    parsed = records(session(summary(20, "We did X, then Y."), user("a"), summaries=[first, second]))
    assert [(one.summary, one.number) for one in folds(parsed)] == [("We did X, then Y.", 2)]
    apart = {**second, "coveringMessages": [10, 20]}
    parsed = records(session(summary(20, "We did X, then Y."), user("a"), summaries=[first, apart]))
    assert [one.number for one in folds(parsed)] == [1, 2]


def test_one_line_reads_as_many():
    rows = [user("a"), {"role": "assistant", "content": [{"type": "text", "text": "b"}]}]
    assert texts(records(session(*rows, indent=None))) == texts(records(session(*rows)))


def test_a_system_message_in_the_middle_is_a_program_s_word():
    parsed = records(session(user("a"), {"role": "system", "content": "Plan mode is on."}))
    assert [record.message.injected for record in messages_in(parsed)] == [False, True]
    assert facts(parsed, "system") == []


def test_what_is_no_message_is_named_and_a_broken_document_refused():
    bad = {"role": "assistant", "content": [{"type": "video"}]}
    parsed = records(session(user("a"), bad, {"role": "user"}, "x"))
    assert texts(parsed) == ["user: a"]
    assert [one.line for one in warnings(parsed)] == [2, 3, 4]
    with pytest.raises(FormatError, match="session:10: not JSON"):
        records(session(user("a"))[:-20])
