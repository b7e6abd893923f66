from __future__ import annotations

import json

import pytest
from tests.support.synthetic import SYNTHETIC
from tests.transcripts.reading import about, folded, heard, records, said, warned

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
    found = list(read(SESSION))
    assert about(found, "format") == [{"format": "gencode", "dialect": "anthropic"}]
    assert about(found, "title") == [{"title": "Implement Auth System"}]
    assert about(found, "model") == [{"model": "claude-opus-4-5"}]
    assert about(found, "system") == [{"system": "You are GenCode, a coding agent."}]
    assert about(found, "session")[0]["completions"][0]["usage"]["inputTokens"] == 61000
    assert said(found)[0].startswith("user: Limit /login")
    assert heard(found)[4].message.results[1].is_error
    assert about(found, "pruned") == [{"call": "toolu_11", "at": "2026-01-18T10:30:00.000Z"}]
    payloads = [json.loads(record.message.native.raw) for record in heard(found)]
    assert dialects.get("anthropic").validate(payloads) == []
    assert not warned(found)


def test_its_summary_is_what_its_model_read_and_its_facts_stay_with_it():
    [one] = folded(list(read(SESSION)))
    assert one.summary.startswith("We added JWT authentication")
    assert "Decided to use JWT" in one.summary
    assert (one.first_kept, one.at, one.line) == (None, 1768732200.0, 2)
    assert one.data["coveringMessages"] == [1, 100]
    assert one.data["toolsUsed"][0]["count"] == 5


def test_summaries_add_up():
    found = records(session(summary(9, "First."), summary(7, "Second."), user("a")))
    assert [one.summary for one in folded(found)] == ["First.", "First.\n\nSecond."]
    assert [one.number for one in folded(found)] == [1, 2]
    assert said(found) == ["user: a"]


def test_a_summary_that_no_message_holds_is_read_from_the_list():
    told = {"id": "sum-1", "content": "We did X.", "generatedAt": "2026-01-18T10:30:00Z"}
    found = records(session(user("a"), summaries=[told]))
    assert [one.summary for one in folded(found)] == ["We did X."]


def test_a_summary_that_a_later_one_covers_is_not_read_beside_it():
    first = {"content": "We did X.", "coveringMessages": [1, 9]}
    second = {"content": "We did X, then Y.", "coveringMessages": [1, 20]}
    found = records(session(summary(20, "We did X, then Y."), user("a"), summaries=[first, second]))
    assert [(one.summary, one.number) for one in folded(found)] == [("We did X, then Y.", 2)]
    apart = {**second, "coveringMessages": [10, 20]}
    found = records(session(summary(20, "We did X, then Y."), user("a"), summaries=[first, apart]))
    assert [one.number for one in folded(found)] == [1, 2]


def test_one_line_reads_as_many():
    rows = [user("a"), {"role": "assistant", "content": [{"type": "text", "text": "b"}]}]
    assert said(records(session(*rows, indent=None))) == said(records(session(*rows)))


def test_a_system_message_in_the_middle_is_a_program_s_word():
    found = records(session(user("a"), {"role": "system", "content": "Plan mode is on."}))
    assert [record.message.injected for record in heard(found)] == [False, True]
    assert about(found, "system") == []


def test_what_is_no_message_is_named_and_a_broken_document_refused():
    bad = {"role": "assistant", "content": [{"type": "video"}]}
    found = records(session(user("a"), bad, {"role": "user"}, "x"))
    assert said(found) == ["user: a"]
    assert [one.line for one in warned(found)] == [2, 3, 4]
    with pytest.raises(FormatError, match="session:10: not JSON"):
        records(session(user("a"))[:-20])
