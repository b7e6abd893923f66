from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.transcripts.reading import facts, folds, messages_in, records, texts, warnings

from foldline import dialects
from foldline.transcripts import read

META = {"meta": {"agent": "codex", "id": "x", "model": "m"}}


def test_messages_become_openai_payloads():
    parsed = records(
        META,
        {"role": "system", "text": "You are an agent."},
        {"role": "user", "text": "Look at both."},
        {
            "role": "assistant",
            "text": "",
            "calls": [
                {"id": "a", "name": "read", "args": {"path": "ä.py"}},
                {"id": "b", "name": "ls", "args": {}},
            ],
        },
        {"role": "tool", "text": "A", "call_id": "a"},
        {"role": "tool", "text": "B", "call_id": "b"},
        {"role": "assistant", "text": "Done."},
    )
    assert facts(parsed, "session") == [META["meta"]]
    assert facts(parsed, "model") == [{"model": "m"}]
    assert texts(parsed)[2:5] == ["assistant: call a | call b", "tool: result a: A", "tool: result b: B"]
    payload = json.loads(messages_in(parsed)[2].message.native.raw)
    assert payload["content"] is None
    assert json.loads(payload["tool_calls"][0]["function"]["arguments"]) == {"path": "ä.py"}
    assert (
        dialects.get("openai-chat").validate(
            [json.loads(record.message.native.raw) for record in messages_in(parsed)]
        )
        == []
    )


def test_a_boundary_gives_its_size_to_the_summary_after_it():
    parsed = records(
        META,
        {"role": "user", "text": "a"},
        {"role": "boundary", "text": "", "pre_tokens": 1234},
        {"role": "summary", "text": "So far: a."},
        {"role": "assistant", "text": "b"},
        {"role": "boundary", "text": "", "pre_tokens": 99},
        {"role": "user", "text": "c"},
        {"role": "boundary", "text": ""},
    )
    assert [(one.summary, one.first_kept, one.tokens_before) for one in folds(parsed)] == [
        ("So far: a.", None, 1234)
    ]
    assert facts(parsed, "boundary") == [{"tokens_before": 99}, {"tokens_before": None}]


def test_what_a_program_wrote_in_the_users_name_is_marked():
    parsed = records(
        META,
        {"role": "user", "text": "<system-reminder>never mind</system-reminder>"},
        {"role": "user", "text": "Fix it. <system-reminder>be brief</system-reminder>"},
    )
    assert [record.message.injected for record in messages_in(parsed)] == [True, False]


@pytest.mark.parametrize("row", [{"role": "user", "text": 4}, {"role": "robot", "text": "x"}, {"text": "x"}])
def test_a_line_of_wrong_types_is_a_warning(row):
    parsed = records(META, {"role": "user", "text": "a"}, row)
    assert len(messages_in(parsed)) == 1
    assert [warning.line for warning in warnings(parsed)] == [3]


@pytest.mark.corpus
def test_every_recorded_session_is_read_whole(recorded: Path):
    read_in = 0
    for path in sorted((recorded / "sessions").rglob("*.jsonl.gz")):
        parsed = list(read(path))
        assert not warnings(parsed), path
        meta = facts(parsed, "session")[0]
        assert (
            len(messages_in(parsed)) + len(folds(parsed)) + 2 * meta["compactions"]
            >= meta["messages"] - meta["compactions"]
        )
        read_in += 1
    assert read_in >= 200
