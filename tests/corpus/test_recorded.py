"""The count of recorded tokens in docs/results/README.md, on records made for it."""

from __future__ import annotations

from tools.recorded_tokens import Counter, error

from foldline.core.log.messages import Message, Text, Usage
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.transcripts import CompactionRecord, FactRecord, MessageRecord


def heard(role, text, key, usage=None):
    return MessageRecord(Message(role, (Text(text),), usage=usage), key=key)


def counted(*records):
    counter = Counter("session")
    for record in records:
        counter.take(record)
    return counter


def tokens(*records):
    return sum(message_tokens(record.message, OFFLINE) for record in records)


ASK = heard("user", "List the files of the importer.", "u1")
REPLY = heard("assistant", "There are two of them.", "a1", Usage(100, 50, 0, 6))
MORE = heard("user", "Now read the first one, please.", "u2")
NEXT = heard("assistant", "Done.", "a2", Usage(20, 150, 0, 2))


def test_an_increment_is_the_reply_before_and_what_followed_it():
    found = counted(
        FactRecord("format", {"format": "pi"}),
        FactRecord("system", {"system": "Be brief."}),
        ASK,
        REPLY,
        MORE,
        NEXT,
    ).found
    assert [(step.recorded, step.ours) for step in found.steps] == [(20, tokens(REPLY, MORE))]
    assert (found.contexts[0].recorded, found.contexts[0].ours) == (
        156,
        tokens(ASK, REPLY) + OFFLINE.count("Be brief."),
    )
    assert [count.recorded for count in found.outputs] == [6, 2]
    assert (found.agent, found.messages) == ("pi", 4)


def test_after_a_compaction_only_what_was_kept_counts():
    fold = CompactionRecord("So far.", first_kept="u2", tokens_before=170, quoted=("u1",))
    counter = counted(ASK, REPLY, MORE, fold)
    assert [(count.recorded, count.ours) for count in counter.found.folds] == [
        (170, tokens(ASK, REPLY, MORE))
    ]
    assert counter.size == OFFLINE.count("So far.") + tokens(ASK, MORE)
    counter.take(NEXT)
    assert counter.found.steps == []


def test_the_error_is_signed():
    assert [error(100, 90), error(100, 117), error(0, 5)] == ["-10%", "+17%", ""]
