from __future__ import annotations

import json

import pytest
from tests.support.synthetic import SYNTHETIC
from tests.transcripts.reading import facts, folds, messages_in, places, records, texts, warnings

from foldline import dialects
from foldline.core.log.entries import Compacted
from foldline.core.log.messages import Usage
from foldline.core.measure.tokens import OFFLINE
from foldline.errors import FormatError
from foldline.loading import from_records
from foldline.transcripts import read

CONVERSATION = SYNTHETIC / "moldable.json"


def message(role, text, **more):
    return {"id": text, "role": role, "parts": [{"type": "text", "text": text}], **more}


def state(start, **more):
    summary = message("user", "So far.")
    return {
        "version": 2,
        "compactedAt": "2026-01-14T11:00:00Z",
        "summaryMessage": summary,
        "apiStartIndex": start,
        **more,
    }


def conversation(*messages, indent=2, **more):
    around = {"id": "c", "title": "T", "createdAt": "2026-01-14T10:00:00Z", **more}
    return json.dumps({**around, "messages": list(messages)}, indent=indent).encode()


def test_a_conversation_and_its_compaction():
    parsed = list(read(CONVERSATION))
    assert facts(parsed, "format") == [{"format": "moldable", "dialect": "ui-message"}]
    assert facts(parsed, "title")[0]["title"].startswith("Build me a to-do app.")
    assert facts(parsed, "session")[0]["id"] == "1768384800000-k3x9q2"
    assert places(parsed) == [*(str(place) for place in range(10)), ">6"]
    payloads = [json.loads(record.message.native.raw) for record in messages_in(parsed)]
    assert payloads == json.loads(CONVERSATION.read_bytes())["messages"]
    assert dialects.get("ui-message").validate(payloads) == []
    assert not warnings(parsed)


def test_the_summary_is_read_without_what_stands_around_it():
    [one] = folds(list(read(CONVERSATION)))
    assert one.summary.startswith("The user builds a to-do app")
    assert one.summary.endswith("sorting by due date.")
    assert one.at == 1768390800.0


def test_its_state_is_readable_on_our_boundary():
    loaded = from_records(read(CONVERSATION), OFFLINE)
    [boundary] = [entry for entry in loaded.entries if isinstance(entry, Compacted)]
    origin = boundary.receipt.origin
    assert origin["version"] == boundary.checkpoint.number == 1
    assert origin["compacted_at"] == "2026-01-14T11:40:00.000Z"
    assert origin["summarized_range"] == {"from_index": 0, "to_index": 5, "message_count": 6}
    assert origin["api_start_index"] == loaded.index[boundary.first_kept] == 6


@pytest.mark.parametrize("indent", [None, 2])
def test_the_compaction_stands_where_the_times_say(indent):
    said_at = [message("user", f"t{hour}", createdAt=f"2026-01-14T{hour}:30:00Z") for hour in (9, 10, 11, 12)]
    parsed = records(conversation(*said_at, compaction=state(1), indent=indent))
    assert places(parsed) == ["0", "1", ">1", "2", "3"]
    assert folds(parsed)[0].number == 2


def test_usage_and_model_of_a_reply_are_kept():
    usage = {"inputTokens": 50, "outputTokens": 7, "cachedInputTokens": 40}
    reply = message("assistant", "b", metadata={"model": "m-1", "usage": usage})
    parsed = records(conversation(message("user", "a"), reply, compaction=None))
    assert messages_in(parsed)[1].message.usage == Usage(10, 40, 0, 7)
    assert facts(parsed, "model") == [{"model": "m-1"}]


@pytest.mark.parametrize(
    ("broken", "missing"),
    [({"apiStartIndex": None}, "apiStartIndex"), ({"summaryMessage": {"parts": []}}, "summary")],
)
def test_a_state_that_lacks_something_is_named(broken, missing):
    parsed = records(conversation(message("user", "a"), compaction={**state(0), **broken}))
    assert missing in warnings(parsed)[0].text
    assert folds(parsed) == []


def test_a_start_behind_the_last_message_keeps_nothing():
    assert places(records(conversation(message("user", "a"), compaction=state(5)))) == ["0", ">None"]


def test_messages_that_are_none_are_named_and_keep_their_place():
    parsed = records(
        conversation(message("user", "a"), {"role": "user", "parts": 3}, message("assistant", "b"))
    )
    assert texts(parsed) == ["user: a", "assistant: b"]
    assert [record.key for record in messages_in(parsed)] == ["0", "2"]
    assert [one.line for one in warnings(parsed)] == [2]
    with pytest.raises(FormatError, match="session:15: not JSON"):
        records(conversation(message("user", "a"))[:-5])
