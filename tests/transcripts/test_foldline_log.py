from __future__ import annotations

import io
import json

import msgspec
import pytest
from tests.support.log import Log
from tests.transcripts.reading import facts, folds, messages_in, records

from foldline import dialects
from foldline.core.log.codec import encode
from foldline.core.log.entries import (
    Checkpoint,
    Compacted,
    Edit,
    Lifted,
    Noted,
    Pinned,
    Pruned,
    Receipt,
    Said,
)
from foldline.core.log.log import chained, said
from foldline.core.log.messages import Text
from foldline.errors import FormatError
from foldline.transcripts import WarningRecord, dump, load
from foldline.transcripts.lines import moment

MESSAGES = [
    {"role": "user", "content": "half \ud83d of it"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "ä.py"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x\u2028y"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
]


def chain(entries):
    """Place entries one after the other."""
    parent, placed = None, []
    for entry in entries:
        placed.append(chained(entry, parent))
        parent = placed[-1].id
    return placed


@pytest.fixture
def history():
    codec = dialects.get("anthropic")
    entries, parent, key = [], None, ""
    for number, payload in enumerate(MESSAGES):
        entry = said(codec.decode(payload), parent=parent, said_key=key, tokens=number, at=1000.5 + number)
        entries.append(entry)
        parent, key = entry.id, entry.said_key
    receipt = Receipt(
        "manual", created_at="2026-01-02T03:04:05Z", tokens_before=9, by_category={"text": (9, 3)}
    )
    others = [
        Compacted(
            "",
            None,
            Checkpoint("marker Summary.", "Summary.", tokens=3),
            receipt,
            first_kept=entries[2].id,
            ledger={"turns": 1},
        ),
        Pruned("", None, receipt, (Edit(entries[2].id, 0, "blanked", Text("[old]")),)),
        Pinned("", None, entries[0].id, on=True, text="half \ud83d"),
        Noted("", None, "title", {"title": "T"}, at=3.0),
    ]
    for other in others:
        entries.append(chained(other, entries[-1].id))
    return entries


def written(entries, **header) -> bytes:
    stream = io.BytesIO()
    assert dump(entries, stream, **header) == len(list(entries))
    return stream.getvalue()


def test_every_entry_comes_back_as_it_was(history):
    raw = written(history, session="s")
    assert json.loads(raw.split(b"\n")[0]) == {"format": "foldline", "version": 1, "session": "s"}
    back = list(load(io.BytesIO(raw)))
    assert back == history
    assert Log(back).verify() == []
    assert [entry.message.native.raw for entry in back[:4]] == [encode(payload) for payload in MESSAGES]


def test_read_gives_messages_boundaries_and_notes(history):
    parsed = records(written(history, session="s"))
    assert [record.key for record in messages_in(parsed)] == [entry.id for entry in history[:4]]
    assert messages_in(parsed)[0].message.text == "half \ufffd of it"
    assert [(one.summary, one.first_kept, one.tokens_before) for one in folds(parsed)] == [
        ("Summary.", history[2].id, 9)
    ]
    assert facts(parsed, "title") == [{"title": "T"}]
    assert facts(parsed, "pinned")[0]["entry"] == history[0].id


def test_an_undone_compaction_is_left_out_unless_it_was_redone(history):
    undone = [*history, chained(Lifted("", None, history[4].id, lifted=True), history[-1].id)]
    assert folds(records(written(undone))) == []
    redone = [*undone, chained(Lifted("", None, history[4].id, lifted=False), undone[-1].id)]
    assert len(folds(records(written(redone)))) == 1


def test_the_header_names_the_leaf_of_a_branched_log(history):
    codec = dialects.get("anthropic")
    side = said(
        codec.decode({"role": "user", "content": "other"}), parent=history[3].id, said_key=history[3].said_key
    )
    raw = written([*history, side])
    assert messages_in(records(raw))[-1].message.text == "other"
    assert folds(records(raw)) == []
    chosen = records(written([*history, side], leaf=history[-1].id))
    assert len(folds(chosen)) == 1
    assert facts(chosen, "branches")[0]["branches"] == 1


def test_a_cut_off_last_line_loses_that_line_alone(history):
    raw = written(history)[:-20]
    warnings: list[WarningRecord] = []
    assert list(load(io.BytesIO(raw), warn=warnings.append)) == history[:-1]
    assert [warning.line for warning in warnings] == [9]
    with pytest.raises(FormatError, match="file ends inside") as caught:
        list(load(io.BytesIO(raw), name="f"))
    assert caught.value.line == 9


def test_a_changed_entry_is_left_out_and_what_follows_it_is_read(history):
    rows = written(history).split(b"\n")
    rows[2] = rows[2].replace(b'"t1"', b'"t2"')
    warnings: list[WarningRecord] = []
    back = list(load(io.BytesIO(b"\n".join(rows)), warn=warnings.append))
    assert back[0] == history[0]
    kept = [entry.message for entry in history[2:4]]
    assert [entry.message for entry in back if isinstance(entry, Said)][1:] == kept
    assert Log(back).verify() == []
    assert len(warnings) == 1
    assert "does not match its id" in warnings[0].text
    assert warnings[0].line == 3
    with pytest.raises(FormatError, match="does not match its id"):
        list(load(io.BytesIO(b"\n".join(rows))))


def test_a_wrong_said_key_is_found(history):
    wrong = msgspec.structs.replace(history[0], said_key="0" * 32)
    with pytest.raises(FormatError, match="said-key"):
        list(load(io.BytesIO(written([wrong]))))


@pytest.mark.parametrize(
    "row",
    [
        b"{}",
        b'{"type":"said"}',
        b'{"type":"unknown","id":"x"}',
        b"[]",
        b"nonsense",
        b'{"type":"noted","id":"x","parent":null,"kind":"\\ud83d","data":{"a":NaN}}',
    ],
)
def test_a_line_that_is_no_entry_is_named(history, row):
    warnings: list[WarningRecord] = []
    raw = written(history) + row + b"\n"
    assert list(load(io.BytesIO(raw), warn=warnings.append)) == history
    assert [warning.line for warning in warnings] == [10]


def test_an_entry_written_twice_counts_once(history):
    warnings: list[WarningRecord] = []
    assert list(load(io.BytesIO(written([*history, history[0]])), warn=warnings.append)) == history
    assert "twice" in warnings[0].text


def test_a_line_nested_too_deep_or_too_long_is_named(history):
    warnings: list[WarningRecord] = []
    deep = (
        b'{"type":"noted","id":"x","parent":null,"kind":"k","data":{"a":'
        + b"[" * 200_000
        + b"]" * 200_000
        + b"}}"
    )
    assert list(load(io.BytesIO(written(history) + deep + b"\n"), warn=warnings.append)) == history
    assert "nested" in warnings[0].text


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b'{"format": "foldline", "version": 2}', "newer Foldline"),
        (b'{"role": "user"}', "header"),
        (b'{"format": "foldline"', "bad header: not JSON"),
    ],
)
def test_a_file_that_begins_with_something_else_is_refused(header, message):
    with pytest.raises(FormatError, match=message):
        list(load(io.BytesIO(header + b"\n")))


@pytest.mark.parametrize("at", ["1e18", "-1e18", "-1", "253402300800"])
def test_a_time_that_no_calendar_has_is_none_and_the_entry_stays_as_it_is(history, at):
    raw = written(history).replace(b'"at":1000.5', b'"at":' + at.encode())
    back = list(load(io.BytesIO(raw)))
    assert back[0].at is None
    assert [entry.id for entry in back] == [entry.id for entry in history]


def test_what_an_agent_wrote_for_such_a_time_is_none():
    absurd = [1e18, -1.0, -(10**400), 10**400, 253_402_300_800_000, "9999-12-31T23:59-01:00"]
    assert [moment(at) for at in absurd] == [None] * 6
    assert moment("9999-12-31T23:59:59Z") == moment(253_402_300_799_000) == 253_402_300_799
