"""What no reader may choke on: each of these ends in a clear error with file and line, or in a warning."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transcripts.reading import lines, messages_in, records, texts, warnings

from foldline.errors import FormatError
from foldline.transcripts import WarningRecord, read
from foldline.transcripts import lines as reading
from foldline.transcripts import records as limits

USER = {"role": "user", "content": "hello"}
ANSWER = {"role": "assistant", "content": "hi"}


def outcome(raw: bytes) -> str:
    """Whether bytes were read, or refused in the way that they may be; anything else raises."""
    try:
        records(raw)
    except FormatError as error:
        return "read" if str(error).startswith("session") else f"an error without a place: {error}"
    return "read"


def test_a_cut_off_last_line_is_a_warning_that_names_it():
    parsed = records(lines(USER, ANSWER)[:-1] + b'\n{"role": "user", "content": "unfini')
    assert texts(parsed) == ["user: hello", "assistant: hi"]
    assert [warning.line for warning in warnings(parsed)] == [3]
    assert "the file ends inside this line" in warnings(parsed)[0].text


@pytest.mark.parametrize(
    ("row", "words", "told"),
    [
        ('{"role": "user", "content": "unfini', None, "Unterminated string starting at column 29 (left out)"),
        ('{"role": "user", "content"', None, "(left out)"),
        ("3", None, "a JSON number, not an object"),
        ('"text"', None, "a JSON string, not an object"),
        ("null", None, "a JSON null, not an object"),
        ("[1]", None, "a JSON list, not an object"),
        ("true", None, "a JSON boolean, not an object"),
        (
            '{"role": "user", "content": "x", "score": NaN, "other": 1e999}',
            "x",
            "NaN is not JSON; read as null",
        ),
        (b"\0\0\0" + json.dumps(USER).encode(), "hello", "NUL bytes around it skipped"),
        (b"\0" * 40, None, "only NUL bytes"),
        (
            f'{{"role": "user", "content": "x", "n": {"9" * 5_000}}}',
            None,
            "a number of more than 4,300 digits",
        ),
        (b'{"role": "user", "content": "caf\xe9"}', "caf\ufffd", "is not UTF-8; replaced"),
    ],
)
def test_a_line_that_is_not_as_it_should_be_is_named_and_the_others_are_read(row, words, told):
    parsed = records(USER, row, ANSWER)
    assert texts(parsed) == ["user: hello", *([f"user: {words}"] if words else []), "assistant: hi"]
    [warning] = warnings(parsed)
    assert (warning.line, told in warning.text) == (2, True)
    assert b"NaN" not in messages_in(parsed)[1].message.native.raw


def test_a_last_line_without_a_line_break_is_whole():
    parsed = records(lines(USER, ANSWER)[:-1])
    assert len(messages_in(parsed)) == 2
    assert not warnings(parsed)


@pytest.mark.parametrize(
    "row",
    [
        {"role": 5, "content": "x"},
        {"role": "user", "content": 7},
        {"role": "user"},
        {"role": "martian", "content": "x"},
        {"role": "assistant", "content": [3]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": [], "name": {}, "input": 1}]},
        {"nothing": "known"},
    ],
)
def test_a_message_of_wrong_types_is_a_warning_with_its_line(row):
    parsed = records(USER, {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}, row, USER)
    assert len(messages_in(parsed)) >= 3
    assert [warning.line for warning in warnings(parsed)] in ([3], [])
    assert len(messages_in(parsed)) + len(warnings(parsed)) == 4


def test_in_a_json_list_a_wrong_message_is_an_error_with_its_index():
    with pytest.raises(FormatError, match="session: message 1: "):
        records(json.dumps([USER, {"role": 7, "content": "b"}]).encode())


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\0" * 100, "only NUL"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG"),
        (b"SQLite format 3\0" + b"\0" * 100, "SQLite"),
        (b"\x7fELF\x02\x01", "a program"),
        (bytes(range(256)) * 10, "binary"),
        ("hello".encode("utf-16"), "UTF-16"),
        (b"just some notes\nof mine\n", "not a session file"),
        (b'{"a": 1}\n{"b": 2}\n', "without messages"),
        (b"[1, 2", "not JSON"),
        (b'{"messages": [', "not JSON"),
        (b'{"messages": 3}', "without messages"),
        (b'{\n "messages": {}\n}', "list of messages"),
        (b'{"projectHash": "x", "messages": []}', "Gemini"),
        (b'[\n {"role": "user"},\n {"role": "user" "content"}\n]', "session:3: not JSON"),
        (lines({"messages": [USER]}, {"messages": [USER]}), "not JSON"),
        (
            lines({"role": "user", "content": 7}, {"role": "user", "content": 8}),
            "session:1: nothing in this file can be read",
        ),
    ],
)
def test_what_is_no_session_says_what_it_is(raw, text):
    with pytest.raises(FormatError, match=text) as caught:
        records(raw)
    assert str(caught.value).startswith("session")
    assert caught.value.exit_code == 2


def test_a_byte_order_mark_and_windows_line_ends():
    raw = b"\xef\xbb\xbf" + lines(USER, ANSWER).replace(b"\n", b"\r\n")
    assert texts(records(raw)) == ["user: hello", "assistant: hi"]
    assert texts(records(b"\xef\xbb\xbf" + json.dumps([USER]).encode())) == ["user: hello"]


def test_lone_surrogates_become_the_replacement_character():
    parsed = records('{"role": "user", "content": "half \\ud83d of it"}')
    assert messages_in(parsed)[0].message.text == "half \ufffd of it"
    assert not warnings(parsed)


@pytest.mark.parametrize("depth", [300, 100_000])
def test_deep_nesting_is_a_warning_or_an_error_with_its_line(depth):
    deep = '{"role": "user", "content": ' + "[" * depth + "]" * depth + "}"
    parsed = records(USER, deep, ANSWER)
    assert texts(parsed) == ["user: hello", "assistant: hi"]
    assert warnings(parsed)[0].line == 2
    assert "nested" in warnings(parsed)[0].text
    with pytest.raises(FormatError, match=r"nested|not JSON"):
        records(b"[" * depth)
    with pytest.raises(FormatError, match="nested"):
        records(b"[" * depth + b"]" * depth)


def test_a_line_of_fifty_megabytes_is_read():
    big = {"role": "user", "content": "x" * 50_000_000}
    parsed = records(USER, big, ANSWER)
    assert [len(record.message.text) for record in messages_in(parsed)] == [5, 50_000_000, 2]


def test_a_line_over_the_limit_is_passed_over_with_its_size(monkeypatch):
    raw = lines(USER, {"role": "user", "content": "y" * 5000}, ANSWER)
    parsed = list(reading.lines(io.BytesIO(raw), limit=1000))
    assert [item.number for item in parsed if isinstance(item, reading.Line)] == [1, 3]
    warning = next(item for item in parsed if isinstance(item, WarningRecord))
    assert warning.line == 2
    assert "5,0" in warning.text


def test_a_json_document_over_the_limit_says_so(monkeypatch):
    monkeypatch.setattr(reading, "MAX_WHOLE", 100)
    with pytest.raises(FormatError, match="JSON lines"):
        records(json.dumps([USER] * 20).encode())
    assert limits.MAX_WHOLE == 256 * 1024 * 1024


def test_a_directory_a_missing_and_an_unreadable_file(tmp_path: Path):
    with pytest.raises(FormatError, match="is a directory"):
        read(tmp_path)
    with pytest.raises(FormatError, match="no such file"):
        read(tmp_path / "missing.jsonl")
    closed = tmp_path / "closed.jsonl"
    closed.write_bytes(lines(USER))
    closed.chmod(0)
    if os.geteuid() != 0:
        with pytest.raises(FormatError, match="cannot be opened"):
            read(closed)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(FormatError, match="cannot be opened"):
        read(loop)


def test_gzip_is_seen_through_also_cut_off_and_broken(tmp_path: Path):
    packed = gzip.compress(
        lines(USER, ANSWER, *[{"role": "user", "content": os.urandom(400).hex()} for _ in range(50)])
    )
    path = tmp_path / "session.jsonl.gz"
    path.write_bytes(packed)
    assert len(messages_in(list(read(path)))) == 52
    path.write_bytes(packed[: len(packed) // 2])
    parsed = list(read(path))
    assert 2 <= len(messages_in(parsed)) < 52
    half = gzip.compress(lines(USER, ANSWER))
    path.write_bytes(half[:-8])  # the data end at a line's end, the archive's own end is missing
    parsed = list(read(path))
    assert len(messages_in(parsed)) == 2
    assert [(w.line, "cut off" in w.text) for w in parsed if isinstance(w, WarningRecord)] == [(2, True)]
    path.write_bytes(half[:12])  # a head and nothing that can be unpacked
    with pytest.raises(FormatError, match="cut off before the first whole message"):
        list(read(path))
    path.write_bytes(packed[:20] + b"\xff" * 200 + packed[220:])
    with pytest.raises(FormatError, match="gzip"):
        list(read(path))


def test_standard_input_is_read(tmp_path: Path):
    code = (
        "from foldline.transcripts import read, MessageRecord\n"
        "print([r.message.text for r in read('-') if isinstance(r, MessageRecord)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=lines(USER, ANSWER), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == "['hello', 'hi']"


def test_an_open_stream_stays_open():
    stream = io.BytesIO(lines(USER))
    assert len(messages_in(list(read(stream)))) == 1
    assert not stream.closed


def test_memory_stays_small_on_a_long_file(tmp_path: Path):
    path = tmp_path / "long.jsonl"
    row = lines({"role": "user", "content": "x" * 10_000})
    with path.open("wb") as stream:
        for _ in range(8_000):  # 80 MB
            stream.write(row)
    code = (
        "import resource, sys\nfrom foldline.transcripts import read\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"n = sum(1 for _ in read({str(path)!r}))\n"
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    number, kibibytes = map(int, done.stdout.split())
    assert number == 8_001
    assert kibibytes < 20_000


@given(st.binary(max_size=400))
def test_no_bytes_raise_anything_but_a_format_error(raw):
    assert outcome(raw) == "read"


KEYS = (
    "role content type id parentId uuid parentUuid message text calls call_id tool_calls tool_call_id meta messages summary "
    "isSidechain isMeta isCompactSummary sessionId attachment timestamp subtype compactMetadata firstKeptEntryId "
    "firstKeptEntryIndex tokensBefore usage api stopReason toolCallId arguments input name args thinking signature "
    "source data mimeType tool_use_id is_error prompt commandMode version cwd leaf parent said_key native raw"
).split()
WORDS = (
    "user assistant tool system developer tool_use tool_result toolCall toolResult text thinking image session message "
    "compaction branch_summary custom_message bashExecution attachment queued_command compact_boundary summary boundary "
    "anthropic-messages a b said compacted"
).split()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats() | st.sampled_from(["", "text", *WORDS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=7),
    max_leaves=25,
)
ROWS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8) | VALUES
FIRST = st.sampled_from(
    [
        USER,
        {"meta": {"agent": "x"}},
        {"type": "session", "version": 3, "cwd": "/"},
        {"type": "summary", "summary": "x", "leafUuid": "y"},
        {"format": "foldline", "version": 1},
        {"dialect": "anthropic", "system": "x"},
    ]
)


@given(FIRST, st.lists(ROWS, max_size=8))
def test_no_json_lines_raise_anything_but_a_format_error(first, rows):
    raw = b"".join(json.dumps(row).encode() + b"\n" for row in [first, *rows])
    assert outcome(raw) == "read"


@given(st.lists(ROWS, max_size=5))
def test_no_json_list_raises_anything_but_a_format_error(rows):
    assert outcome(json.dumps(rows).encode()) == "read"


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["user", "assistant", "system", "progress", "attachment"])},
            optional={
                "uuid": st.sampled_from("abcdefgh"),
                "parentUuid": st.sampled_from("abcdefgh") | st.none(),
                "isSidechain": st.booleans(),
                "isCompactSummary": st.booleans(),
                "message": st.fixed_dictionaries(
                    {
                        "content": st.sampled_from(
                            [
                                "hi",
                                [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}],
                                [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}],
                                [{"type": "text", "text": " "}],
                            ]
                        )
                    },
                    optional={"id": st.sampled_from(["m1", "m2"])},
                ),
                "subtype": st.sampled_from(["compact_boundary", "other"]),
            },
        ),
        max_size=14,
    )
)
def test_no_tree_of_claude_code_loops_or_loses_its_last_message(rows):
    raw = lines(
        {"type": "summary", "summary": "x", "leafUuid": "y"}, *[{"sessionId": "s", **row} for row in rows]
    )
    try:
        parsed = records(raw)
    except FormatError:
        return
    told = {record.line for record in messages_in(parsed)}
    assert len(told) == len(messages_in(parsed))
