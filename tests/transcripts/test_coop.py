from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from tests.support.synthetic import SYNTHETIC
from tests.transcripts.reading import facts, folds, lines, messages_in, places, records, texts, warnings

from foldline import dialects
from foldline.core.log.messages import Usage
from foldline.transcripts import read

SESSION = SYNTHETIC / "coop" / "coop_dm_signal_alice-uuid.jsonl"
STATE = SYNTHETIC / "coop" / "coop_dm_signal_alice-uuid_compaction.json"


def message(key, role, minute, *content, **metadata):
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    row = {"id": key, "role": role, "created": f"2026-02-09T08:{minute:02d}:00Z", "content": blocks}
    return {**row, "metadata": metadata} if metadata else row


def beside(folder: Path, state: object, name: str = "s") -> Path:
    """Four messages, at minutes 1 to 4, and the compaction of that state."""
    rows = [message(f"m{n}", role, n, f"t{n}") for n, role in enumerate(("user", "assistant") * 2, 1)]
    (folder / f"{name}.jsonl").write_bytes(lines(*rows))
    (folder / f"{name}_compaction.json").write_text(state if isinstance(state, str) else json.dumps(state))
    return folder / f"{name}.jsonl"


def test_a_session_and_its_compaction():
    parsed = list(read(SESSION))
    assert facts(parsed, "format") == [{"format": "coop", "dialect": "anthropic"}]
    assert facts(parsed, "session") == [{"id": "coop_dm_signal_alice-uuid"}]
    assert facts(parsed, "model") == [{"model": "claude-opus-4-5"}]
    assert len(messages_in(parsed)) == 12
    payloads = [json.loads(record.message.native.raw) for record in messages_in(parsed)]
    assert dialects.get("anthropic").validate(payloads) == []
    first = messages_in(parsed)[1].message
    assert (first.usage, first.stop) == (Usage(20264, 0, 0, 71), "tools")
    assert messages_in(parsed)[6].message.results[1].is_error
    assert not warnings(parsed)


def test_the_compaction_stands_where_its_time_says_and_keeps_no_result_without_its_call():
    parsed = list(read(SESSION))
    [one] = folds(parsed)
    assert one.line == 8
    assert one.first_kept is not None
    assert one.first_kept.startswith("msg_00000008")  # its state names the results before it
    assert (one.tokens_before, one.at) == (22763, 1770624480.0)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"first_kept_message_id": "m2", "created_at": "2026-02-09T08:03:30Z"}, ["m1", "m2", "m3", ">m2", "m4"]),
        ({"messages_at_compaction": 1, "created_at": "2026-02-09T08:03:30Z"}, ["m1", "m2", "m3", ">m2", "m4"]),
        ({"messages_at_compaction": 3, "created_at": "2026-02-09T08:03:30Z"}, ["m1", "m2", "m3", ">None", "m4"]),
        ({"messages_at_compaction": 9, "created_at": "2026-02-09T08:03:30Z"}, ["m1", "m2", "m3", "m4", ">None"]),
        ({"first_kept_message_id": "m4", "created_at": "2026-02-09T08:01:30Z"}, ["m1", "m2", "m3", "m4", ">m4"]),
        ({"first_kept_message_id": "m3"}, ["m1", "m2", "m3", "m4", ">m3"]),
        ({"created_at": "2026-02-09T08:02:30Z"}, ["m1", "m2", ">None", "m3", "m4"]),
    ],
)  # fmt: skip
def test_what_a_compaction_kept_is_named_or_counted(tmp_path: Path, state, expected):
    parsed = list(read(beside(tmp_path, {"summary": "S", **state})))
    assert places(parsed) == expected
    assert not warnings(parsed)


def test_more_that_the_state_says_stays_with_the_compaction(tmp_path: Path):
    touched = [{"path": "a.rs", "action": "Modified"}]
    state = {"summary": "S", "files_touched": touched, "compaction_count": 3, "tokens_at_compaction": 9}
    [one] = folds(list(read(beside(tmp_path, {**state, "messages_at_compaction": 2}))))
    assert (one.number, one.tokens_before) == (3, 9)
    assert one.data["files_touched"] == touched


def test_a_first_kept_message_that_is_not_here_is_named(tmp_path: Path):
    parsed = list(read(beside(tmp_path, {"summary": "S", "first_kept_message_id": "gone"})))
    assert places(parsed)[-1] == ">None"
    assert "gone" in warnings(parsed)[0].text


@pytest.mark.parametrize("state", ['{"summary": ', "[]", "\0\0\0", "", '{"first_kept_message_id": "m2"}'])
def test_a_state_that_cannot_be_read_is_a_warning(tmp_path: Path, state):
    parsed = list(read(beside(tmp_path, state)))
    assert places(parsed) == ["m1", "m2", "m3", "m4"]  # the full context
    assert len(warnings(parsed)) == 1
    assert "_compaction.json" in warnings(parsed)[0].text or "s.jsonl" in warnings(parsed)[0].text


def test_the_compaction_is_found_beside_a_packed_file(tmp_path: Path):
    packed = tmp_path / "coop_dm_signal_alice-uuid.jsonl.gz"
    packed.write_bytes(gzip.compress(SESSION.read_bytes()))
    shutil.copy(STATE, tmp_path)
    assert folds(list(read(packed))) == folds(list(read(SESSION)))


def test_bad_lines_are_named():
    bad = {"type": "tool_request", "id": "x", "name": "y", "arguments": "z"}
    raw = lines(
        message("m1", "user", 1, "a"),
        message("m2", "assistant", 2, bad),
        message("m3", "assistant", 3),
        message("m4", "assistant", 4, "b"),
    )
    parsed = records(raw + b'{"id": "m5", "role": "us')
    assert texts(parsed) == ["user: a", "assistant: b"]
    assert [one.line for one in warnings(parsed)] == [2, 3, 5]
    assert folds(parsed) == []


def test_images_and_thoughts_without_a_signature():
    image = {"type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png"}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": None}
    parsed = records(message("m1", "user", 1, "look", image), message("m2", "assistant", 2, thought, "ok"))
    payloads = [json.loads(record.message.native.raw) for record in messages_in(parsed)]
    assert dialects.get("anthropic").validate(payloads) == []
    assert messages_in(parsed)[1].message.text == "Hm.\nok"


def test_a_compaction_under_another_name_is_taken_by_the_message_it_keeps_from(tmp_path):
    state = {"summary": "Then.", "first_kept_message_id": "m3", "created_at": "2026-02-09T08:09:00Z"}
    beside(tmp_path, state, "old").rename(tmp_path / "new.jsonl")
    parsed = list(read(tmp_path / "new.jsonl"))
    assert [one.summary for one in folds(parsed)] == ["Then."]
    assert "old_compaction.json" in warnings(parsed)[0].text


def test_the_compaction_of_another_session_is_none_of_ours(tmp_path):
    beside(tmp_path, {"summary": "Theirs.", "first_kept_message_id": "x9"}, "other")
    beside(tmp_path, {"summary": "Ours.", "first_kept_message_id": "m3"}, "ours")
    (tmp_path / "ours_compaction.json").unlink()
    parsed = list(read(tmp_path / "ours.jsonl"))
    assert (folds(parsed), warnings(parsed)) == ([], [])
