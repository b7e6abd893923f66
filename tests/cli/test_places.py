"""`first_kept`, and every place that a report names, counts the messages of the input from 0."""

import pytest
from tests.cli.calling import write_lines
from tests.dialects.items import long_list

WORDS = " ".join(f"word{n}" for n in range(40))
HEADER = {"type": "session", "id": "s1", "timestamp": "2026-01-02T03:04:05Z", "cwd": "/w"}


def said(role, text):
    content = text if role == "user" else [{"type": "text", "text": text}]
    return {"type": "message", "message": {"role": role, "content": content}}


def turns(first, last):
    """Pi's lines of turns; turn n's request is message 2 n of the file."""
    for n in range(first, last):
        yield said("user", f"Request {n}: {WORDS}")
        yield said("assistant", f"Answer {n}. {WORDS}")


def compaction(kept_line):
    return {"type": "compaction", "summary": "So far.", "firstKeptEntryIndex": kept_line, "tokensBefore": 900}


@pytest.fixture
def pi(tmp_path):
    """A file whose three compactions keep messages 6, 14 and 18; its lines are one more for the header and each compaction."""
    lines = [HEADER, *turns(0, 5), compaction(7), *turns(5, 9), compaction(16), *turns(9, 14), compaction(21)]
    lines += [*turns(14, 20)]
    assert [lines[at]["message"]["content"].split(":")[0] for at in (7, 16, 21)] == [
        "Request 3", "Request 7", "Request 9",
    ]  # fmt: skip
    return write_lines(tmp_path / "pi.jsonl", lines)


def test_inspect_shows_what_each_of_several_compactions_kept(foldline, pi):
    assert [one["first_kept"] for one in foldline("inspect", pi, "--json").json["boundaries"]] == [6, 14, 18]
    told = foldline("inspect", pi).out
    assert [f"kept from message {place}" in told for place in (6, 14, 18)] == [True] * 3


def test_a_fold_of_a_transcript_counts_its_messages_and_not_its_lines_or_boundaries(foldline, pi):
    done = foldline("compact", pi, "--target", 1500, "--policy", "pi", "--json").json
    first = done["cut"]["first_kept"]
    assert done["receipt"]["first_kept"] == first
    assert first > 18
    assert first % 2 == 0
    kept = done["messages"][first - 40]
    assert kept["role"] == "user"
    assert kept["content"].startswith(f"Request {first // 2}:")
    assert (
        f"messages from {first} on would be kept"
        in foldline("compact", pi, "--target", 1500, "--policy", "pi", "--preview").out
    )


def test_a_result_that_is_left_out_moves_no_place(foldline, tmp_path):
    orphan = {
        "role": "toolResult",
        "toolCallId": "gone",
        "toolName": "bash",
        "content": [{"type": "text", "text": "x"}],
    }
    lines = [HEADER, *turns(0, 1), {"type": "message", "message": orphan}, *turns(1, 5), compaction(8)]
    found = foldline("inspect", write_lines(tmp_path / "pi.jsonl", [*lines, *turns(5, 6)]), "--json").json
    assert [(one["kind"], one["index"]) for one in found["problems"]] == [("orphan", 2)]
    assert [one["first_kept"] for one in found["boundaries"]] == [7]


def test_inspect_counts_items_where_a_message_is_several_of_them(foldline, tmp_path):
    items = long_list()
    found = foldline("inspect", write_lines(tmp_path / "items.jsonl", items), "--json").json
    asked = [place for place, one in enumerate(items) if one.get("role") == "user"]
    assert len(asked) > 2
    assert [turn["index"] for turn in found["by_turn"] if turn["request"]] == asked
    assert {large["index"] for large in found["largest"]} <= set(range(len(items)))
