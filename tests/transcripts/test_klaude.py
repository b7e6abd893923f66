from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.dialects.samples import text
from tests.support.synthetic import SYNTHETIC
from tests.transcripts.reading import facts, folds, lines, messages_in, records, texts, warnings

from foldline import dialects
from foldline.core.log.messages import Media, Usage
from foldline.transcripts import read

SESSION = SYNTHETIC / "klaude-code" / "events.jsonl"


def item(kind, **data):
    return {"type": kind, "data": {"created_at": "2026-01-18T10:00:00", **data}}


def user(text, **data):
    return item("UserMessage", role="user", parts=[{"type": "text", "text": text}], **data)


def reply(*parts, **data):
    return item("AssistantMessage", role="assistant", parts=list(parts), **data)


def call(call_id, arguments="{}"):
    return {"type": "tool_call", "call_id": call_id, "tool_name": "Read", "arguments_json": arguments}


def result(call_id, output="ok", **data):
    return item("ToolResultMessage", call_id=call_id, output_text=output, **{"status": "success", **data})


def checkpoint(number):
    words = f"<system-reminder>Checkpoint {number}</system-reminder>"
    return item("DeveloperMessage", role="developer", parts=[text(words)])


def fold(first, **data):
    return item("CompactionEntry", summary="So far.", first_kept_index=first, **data)


def test_a_session_is_read_as_it_stands_after_its_rewind():
    parsed = list(read(SESSION))
    assert facts(parsed, "format") == [{"format": "klaude-code", "dialect": "openai-chat"}]
    assert [told.split(":")[0] for told in texts(parsed)] == [
        "user", "user", "user", "assistant", "tool", "tool", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert "The edit needs more context" in texts(parsed)[2]
    assert not any("call toolu_2" in told for told in texts(parsed))
    assert facts(parsed, "branches") == [{"branches": 1, "messages": 4}]
    assert [record.message.injected for record in messages_in(parsed)[:4]] == [False, True, True, False]
    assert not warnings(parsed)


def test_title_model_times_and_usage_are_kept():
    parsed = list(read(SESSION))
    assert facts(parsed, "title") == [{"title": "Retry the upload"}]
    assert facts(parsed, "model")[0] == {"model": "claude-opus-4-5"}
    assert facts(parsed, "session")[0]["work_dir"] == "/home/user/uploader"
    last = messages_in(parsed)[-1]
    assert last.message.usage == Usage(100, 0, 1800, 24)  # its input holds what was written to the cache
    assert last.message.model == "claude-opus-4-5"
    assert (last.message.stop, last.at) == ("end", 1768730880.0)


def test_a_compaction_names_its_first_kept_message():
    [one] = folds(list(read(SESSION)))
    assert one.first_kept == "6"  # place 4 is a result, whose call was folded
    assert one.tokens_before == 5630
    assert one.data["details"]["modified_files"] == ["src/upload.py"]
    assert one.line == 14


def test_payloads_are_valid_and_images_of_a_batch_stand_behind_it():
    parsed = list(read(SESSION))
    payloads = [json.loads(record.message.native.raw) for record in messages_in(parsed)]
    assert dialects.get("openai-chat").validate(payloads) == []
    shown = messages_in(parsed)[6].message
    assert isinstance(shown.parts[1], Media)
    assert shown.injected


def test_thoughts_and_their_signature_are_kept():
    sealed = {"type": "thinking_signature", "signature": "c2ln", "format": "f"}
    thought = {"type": "thinking_text", "text": "Hm."}
    parsed = records(user("a"), reply(thought, sealed, text("b")))
    payload = json.loads(messages_in(parsed)[1].message.native.raw)
    assert payload["reasoning_content"] == "Hm."
    assert "c2ln" in json.dumps(payload)


def test_without_the_file_beside_it_a_session_reads_the_same(tmp_path: Path):
    alone = tmp_path / "events.jsonl"
    shutil.copy(SESSION, alone)
    parsed = list(read(alone))
    assert texts(parsed) == texts(list(read(SESSION)))
    assert facts(parsed, "title") == []


def test_a_session_from_standard_input_takes_no_facts_from_the_folder(tmp_path):
    (tmp_path / "meta.json").write_text('{"title": "Another session"}')
    with SESSION.open("rb") as stdin:
        code = "from foldline.transcripts import read\nprint([*read('-')])"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            stdin=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
    assert "Another session" not in done.stdout
    assert "MessageRecord" in done.stdout


def test_a_broken_file_beside_it_is_a_warning(tmp_path: Path):
    shutil.copy(SESSION, tmp_path / "events.jsonl")
    (tmp_path / "meta.json").write_text('{"title": ')
    parsed = list(read(tmp_path / "events.jsonl"))
    assert "meta.json" in warnings(parsed)[0].text
    assert len(messages_in(parsed)) == 10


def test_a_message_taken_back_is_left_out_and_counts_for_no_place():
    parsed = records(
        user("a"),
        reply(text("b")),
        user("typo"),
        item("InterruptEntry", show_notice=False),
        item("RetractEntry", retracted_text="typo"),
        user("c"),
        reply(text("d")),
        fold(4),
    )
    assert texts(parsed) == ["user: a", "assistant: b", "user: c", "assistant: d"]
    assert messages_in(parsed)[2].key == "4"
    assert folds(parsed)[0].first_kept == "4"
    assert facts(parsed, "branches") == [{"branches": 1, "messages": 1}]


def test_a_line_number_says_what_was_kept_and_wins_over_the_index():
    history = [user("a"), reply(text("b")), user("typo"), user("c"), reply(text("d")), user("e")]
    retracted = item("RetractEntry", retracted_text="typo", retracted_line=2)
    parsed = records(*history, retracted, fold(5, first_kept_line=3), user("f"))

    assert texts(parsed) == ["user: a", "assistant: b", "user: c", "assistant: d", "user: e", "user: f"]
    assert folds(parsed)[0].first_kept == messages_in(parsed)[2].key
    assert folds(parsed)[0].data["first_kept_line"] == 3


def test_a_retraction_names_the_line_that_it_takes_back():
    parsed = records(
        user("same"),
        reply(text("b")),
        user("same"),
        item("RetractEntry", retracted_text="same", retracted_line=0),
    )
    assert texts(parsed) == ["assistant: b", "user: same"]


def test_a_kept_line_behind_everything_keeps_nothing():
    parsed = records(user("a"), reply(text("b")), fold(1, first_kept_line=2), user("c"))
    assert folds(parsed)[0].first_kept is None


def test_a_rewind_to_a_checkpoint_that_is_not_there_changes_nothing():
    parsed = records(user("a"), checkpoint(0), reply(text("b")), item("RewindEntry", checkpoint_id=7))
    assert len(messages_in(parsed)) == 4
    assert facts(parsed, "branches") == []


def test_a_compaction_that_keeps_nothing_and_one_without_a_summary():
    parsed = records(user("a"), reply(text("b")), fold(9), item("CompactionEntry"), user("c"))
    assert [one.first_kept for one in folds(parsed)] == [None]
    assert [one.line for one in warnings(parsed)] == [4]


def test_failed_results_empty_replies_and_what_is_no_message():
    parsed = records(
        user("a"),
        reply(call("t1")),
        result("t1", "no such file", status="error"),
        reply(stop_reason="aborted"),
        item("CacheHitRateEntry", cache_hit_rate=0.5),
        item("StreamErrorItem", error="overloaded"),
    )
    assert messages_in(parsed)[2].message.results[0].is_error
    assert len(messages_in(parsed)) == 3
    assert facts(parsed, "empty") == [{"stop_reason": "aborted"}]
    assert facts(parsed, "cache_hit_rate")[0]["cache_hit_rate"] == 0.5
    assert facts(parsed, "stream_error")[0]["error"] == "overloaded"


def test_lines_that_are_none_are_named_and_a_cut_off_end_too():
    raw = lines(user("a"), {"type": "Odd"}, reply(text("b"))) + b'{"type": "UserMess'
    parsed = records(raw)
    assert texts(parsed) == ["user: a", "assistant: b"]
    assert [one.line for one in warnings(parsed)] == [2, 4]
    assert "the file ends inside this line" in warnings(parsed)[1].text
