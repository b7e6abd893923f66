"""The files written by hand: wrong values beside them, cut off anywhere, and texts of any kind."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.synthetic import SYNTHETIC
from tests.transcripts.reading import lines, messages_in, records, warnings
from tests.transcripts.test_wrong_values import (
    COOP,
    GENCODE,
    KLAUDE,
    MOLDABLE,
    WRONG,
    as_document,
    places,
    replaced,
)

from foldline.errors import FormatError
from foldline.transcripts import WarningRecord, read, sniff
from foldline.transcripts.aider import read_aider
from foldline.transcripts.markdown import read_markdown

STATE = json.loads((SYNTHETIC / "coop" / "coop_dm_signal_alice-uuid_compaction.json").read_bytes())
META = json.loads((SYNTHETIC / "klaude-code" / "meta.json").read_bytes())


@pytest.mark.parametrize(
    ("session", "name", "state"),
    [
        ("klaude-code/events.jsonl", "meta.json", META),
        ("coop/coop_dm_signal_alice-uuid.jsonl", "coop_dm_signal_alice-uuid_compaction.json", STATE),
    ],
)
def test_what_stands_beside_a_session_never_stops_the_reader(tmp_path: Path, session, name, state):
    file = tmp_path / Path(session).name
    file.write_bytes((SYNTHETIC / session).read_bytes())
    told = len(messages_in(list(read(file))))
    for at in places(state):
        for new in WRONG:
            (tmp_path / name).write_text(json.dumps(replaced(state, at, new)))
            assert len(messages_in(list(read(file)))) == told, (at, new)


@pytest.mark.parametrize("name", ["klaude-code/events.jsonl", "coop/coop_dm_signal_alice-uuid.jsonl"])
def test_a_session_cut_off_in_any_line_names_it(name):
    whole = (SYNTHETIC / name).read_bytes().splitlines(keepends=True)
    for count in range(2, len(whole)):
        parsed = records(b"".join(whole[:count]) + whole[count][: len(whole[count]) // 2])
        assert warnings(parsed)[-1].line == count + 1
        assert "the file ends inside this line" in warnings(parsed)[-1].text


@pytest.mark.parametrize("name", ["gencode.json", "moldable.json"])
def test_a_document_cut_off_is_refused_with_its_line(name):
    raw = (SYNTHETIC / name).read_bytes()
    for cut in range(1500, len(raw) - 3, 211):
        with pytest.raises(FormatError, match=r"^session:\d+: not JSON"):
            records(raw[:cut])


MARKS = st.sampled_from(
    ["# aider chat started at 2026-01-01 00:00:00", "#### a  ", "#### /clear  ", "> Tokens: 1.2k sent, 3 received.  ",
     "> x", ">", "```", "~~~~", "## User", "**Assistant:** b", "## Compacted, 9 tokens before", "**call** `x` (1)",
     "**result** (1)", "> *thinking*", "---", "", "text"]
)  # fmt: skip


@given(st.lists(MARKS | st.text(max_size=9), max_size=30))
def test_every_text_is_read_to_its_end(told):
    raw = "\n".join(told).encode("utf-8", "replace")
    for reader in (read_aider, read_markdown):
        parsed = list(reader(io.BytesIO(raw), "session"))
        numbers = range(raw.count(b"\n") + 2)
        assert all(record.line in numbers for record in parsed)
        for record in messages_in(parsed):
            assert (
                record.message.text.strip()
                or record.message.calls
                or record.message.results
                or record.message.parts
            )


@given(st.lists(st.sampled_from(["a", "b", "> c", "# d", "1. e", "*f*"]), min_size=1, max_size=9))
def test_no_line_of_a_speaker_is_lost(told):
    text = "## User\n" + "\n".join(told) + "\n## Assistant\n" + "\n".join(told) + "\n"
    parsed = records(text.encode())
    assert not [one for one in parsed if isinstance(one, WarningRecord)]
    said = "\n".join(record.message.text for record in messages_in(parsed))
    for line in ("a", "b", "c", "# d", "1. e", "*f*"):
        written = f"> {line}" if line == "c" else line
        # behind a speaker of replies a quote stands without its mark
        assert said.count(line if line != "c" else "c") >= 2 * sum(one == written for one in told)


USER = {"role": "user", "content": "hello"}


def test_sniff_names_each_format():
    assert sniff(b'[{"role": "user"}]') == "json"
    assert sniff(b'{"messages": [], "system": "x"}') == "json"
    assert sniff(b'{\n  "messages": [\n    {"role": "user", "content": "x"}\n  ]\n}') == "json"
    assert sniff(lines(USER)) == "jsonl"
    assert sniff(lines({"system": "Be brief."}, USER)) == "jsonl"
    assert sniff(lines({"format": "foldline", "version": 1})) == "foldline"
    assert sniff(lines({"meta": {"agent": "pi"}}, {"role": "user", "text": "x"})) == "plain"
    assert sniff(lines({"role": "user", "text": "x"})) == "plain"
    assert sniff(lines({"type": "session", "id": "x", "cwd": "/"})) == "pi"
    assert sniff(lines('{"broken', {"type": "message", "message": {"role": "user", "content": "x"}})) == "pi"
    assert sniff(lines({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}})) == "claude-code"
    assert sniff(lines({"type": "summary", "summary": "x", "leafUuid": "y"})) == "claude-code"
    assert sniff(lines(*KLAUDE[:1])) == "klaude-code"
    assert sniff(lines(*COOP[:1])) == "coop"
    assert sniff(as_document(GENCODE)[:400]) == "gencode"
    assert sniff(lines(GENCODE)) == "gencode"
    assert sniff(as_document(MOLDABLE)) == "moldable"
    assert sniff(lines(MOLDABLE)) == "moldable"
    assert sniff(b"# aider chat started at 2026-01-01 00:00:00\n\n> Aider v0.86.1\n") == "aider"
    assert sniff(b"## User\n\na\n\n## Assistant\n\nb\n") == "markdown"
    assert sniff(b"**User:** " + b"pasted " * 10_000) == "markdown"
    plain = [{"role": "user", "content": [{"type": "text", "text": "x"}], "id": "1", "created": 5}]
    assert sniff(lines(*plain)) == "jsonl"
    assert sniff(json.dumps({"metadata": {"topic": "x"}, "messages": plain}).encode()) == "json"
