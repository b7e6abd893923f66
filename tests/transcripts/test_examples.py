"""The sessions under examples/ are what their readers and the README say they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.transcripts.reading import facts, folds, messages_in, warnings

from foldline import dialects
from foldline.core.log.messages import Media, Thinking
from foldline.transcripts import read

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    return list(read(EXAMPLES / name))


def problems(parsed):
    dialect = dialects.get(facts(parsed, "format")[0]["dialect"])
    return dialect.validate([json.loads(record.message.native.raw) for record in messages_in(parsed)])


def test_the_coding_session_holds_all_that_a_fold_must_mind():
    parsed = load("session.jsonl")
    messages = [record.message for record in messages_in(parsed)]
    assert len(messages) >= 150
    assert any(len(message.calls) == 3 for message in messages)
    assert any(isinstance(part, Media) for message in messages for part in message.parts)
    assert (
        sum(
            isinstance(part, Thinking) and bool(part.signature)
            for message in messages
            for part in message.parts
        )
        >= 5
    )
    assert facts(parsed, "system")
    assert facts(parsed, "tools")
    prompts = "\n".join(message.text for message in messages if message.is_prompt)
    assert "\nNever touch anything under migrations/ without asking me first.\n" in prompts
    assert "\nAll public functions must keep type hints and a one-line docstring.\n" in prompts
    assert messages[-1].role == "user"
    assert "GET /v1/limits" in messages[-1].text
    results = "\n".join(result.text for message in messages for result in message.results)
    assert "1 failed, 4 passed" in results
    assert "32 passed" in results
    assert not warnings(parsed)


def test_one_call_of_the_coding_session_is_never_answered_and_all_else_is_valid():
    parsed = load("session.jsonl")
    asked = {call.id for record in messages_in(parsed) for call in record.message.calls}
    answered = {result.call_id for record in messages_in(parsed) for result in record.message.results}
    assert len(asked - answered) == 1
    assert [problem.rule for problem in problems(parsed)] == ["result-missing"]


@pytest.mark.parametrize(("name", "least"), [("support-chat.json", 40), ("research.jsonl", 60)])
def test_the_other_examples_are_valid(name, least):
    parsed = load(name)
    assert len(messages_in(parsed)) >= least
    assert problems(parsed) == []
    assert not warnings(parsed)


def test_the_research_session_has_a_branch_and_a_compaction_of_its_own():
    parsed = load("research.jsonl")
    assert folds(parsed)[0].first_kept in {record.key for record in messages_in(parsed)}
    assert facts(parsed, "branches")[0]["branches"] == 1
