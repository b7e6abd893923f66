from __future__ import annotations

import json

import pytest
from tests.cli.calling import EXAMPLES, SESSION, coding_session, talk, write_lines
from tests.support.talk import assistant, call, calls, tool, user

from foldline.catalogue import DEFAULT_WINDOW
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import PRESETS, preset
from foldline.core.log.entries import Said
from foldline.errors import FormatError, InputError
from foldline.lab.run import ReplaySetup, replay_file, replay_many
from foldline.lab.runner import Failed
from foldline.lab.sources import MAX_HELD, session_files, steps
from foldline.transcripts import MessageRecord, WarningRecord

NONE = Policy(name="none", enabled=False)
COOP = EXAMPLES / "coop-trace.jsonl"
BASELINES = [20_264, 22_565, 58_884, 77_702, 77_875, 78_703, 81_427, 89_910, 90_212]
TEN = [rules for name, rules in PRESETS.items() if ":" not in name]


@pytest.fixture
def session(tmp_path):
    return str(write_lines(tmp_path / "session.jsonl", coding_session()))


@pytest.fixture(scope="module")
def trace():
    """The published trace under every system, as the command line replays it."""
    report = replay_file(str(COOP), ReplaySetup((NONE, *TEN), cuts=(0.5, 0.75)))
    return {one.policy: one for one in report.policies}, report


# ---- the stream


def heard(*messages):
    return [MessageRecord(message, line=line) for line, message in enumerate(messages, 1)]


def roles(found):
    return [step.message.role for step in found if isinstance(step, Said)]


def test_a_late_result_goes_to_its_call():
    found = list(steps(heard(user(), calls("c1"), calls("c2"), tool("c2"), tool("c1"), assistant("done"))))
    said = [step.message for step in found if isinstance(step, Said)]
    assert [m.role for m in said] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [m.results[0].call_id for m in said if m.results] == ["c1", "c2"]


def test_a_result_that_nothing_called_for_is_told_with_its_line():
    found = list(steps(heard(user(), tool("c9"), assistant("done"))))
    assert roles(found) == ["user", "assistant"]
    assert [step.line for step in found if isinstance(step, WarningRecord)] == [2]


def test_a_call_without_an_end_holds_back_only_so_many():
    talking = heard(user(), calls("c1"), *(assistant(str(n)) for n in range(3 * MAX_HELD)))
    stream = steps(iter(talking))
    assert roles([next(stream)]) == ["user"]
    assert len(roles(stream)) == 3 * MAX_HELD + 1


def test_entries_are_chained():
    said = list(steps(heard(user(), assistant("a", call("c1")), tool("c1"))))
    assert [step.parent for step in said] == [None, said[0].id, said[1].id]
    assert all(step.tokens > 0 for step in said)


# ---- one file


def test_the_same_session_under_several_policies(session):
    report = replay_file(session, ReplaySetup((NONE, preset("pi"), preset("foldline")), window=6_000))
    none, pi, own = report.policies
    assert (none.totals["compactions"], none.totals["overflows"] > 0) == (0, True)
    assert none.totals["calls"] == pi.totals["calls"] == own.totals["calls"]
    for one in (pi, own):
        assert one.totals["input_tokens"] < none.totals["input_tokens"]
        assert one.totals["compactions"] + one.totals["prunes"] > 0
        assert one.totals["invalid_views"] == 0
    for one in report.policies:
        for name in ("calls", "input_tokens", "output_tokens", "overflows"):
            assert sum(turn[name] for turn in one.turns) == one.totals[name]
        assert len(one.turns) == 8


def test_prices_are_those_of_the_catalogue():
    report = replay_file(str(SESSION), ReplaySetup((NONE,), window=200_000))
    totals = report.policies[0].totals
    sent, read, output = totals["input_tokens"], totals["cache_read_tokens"], totals["output_tokens"]
    assert report.model == "claude-sonnet-4-5"
    assert totals["price"] == pytest.approx((sent * 3 + output * 15) / 1e6)
    assert totals["price_cached"] == pytest.approx((read * 0.3 + (sent - read) * 3.75 + output * 15) / 1e6)
    assert sum(t["price"] for t in report.policies[0].turns) == pytest.approx(totals["price"], abs=1e-4)


def test_a_usage_that_cannot_be_true_is_said_and_neither_priced_nor_learnt_from(tmp_path):
    def line(uuid, parent, message):
        common = {"type": message["role"], "sessionId": "s", "cwd": "/pier", "version": "2.1.0"}
        return {
            **common,
            "uuid": uuid,
            "parentUuid": parent,
            "timestamp": "2026-01-01T10:00:00.000Z",
            "message": message,
        }

    def told(name, input_tokens, output_tokens):
        usage = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        text = [{"type": "text", "text": "The crane is mended now. " * 20}]
        reply = {
            "role": "assistant",
            "id": "m1",
            "model": "claude-sonnet-4-5",
            "content": text,
            "usage": usage,
        }
        lines = [line("a", None, {"role": "user", "content": "Mend the crane."}), line("b", "a", reply)]
        return replay_file(str(write_lines(tmp_path / f"{name}.jsonl", lines)), ReplaySetup((NONE,)))

    honest = told("honest", 40, 120)
    assert not honest.warnings
    for name, counted in (("output", (40, 10**12)), ("input", (10**12, 120)), ("both", (10**12, 10**12))):
        report = told(name, *counted)
        assert report.policies[0].totals["price"] < 2 * honest.policies[0].totals["price"] < 0.1, name
        assert "message 2: its usage cannot be true" in report.warnings[0]


def test_an_unknown_model_has_no_price_and_the_usual_window(session):
    report = replay_file(session, ReplaySetup((NONE,)))
    assert report.window == DEFAULT_WINDOW.context
    assert report.policies[0].totals["price"] is None
    named = replay_file(session, ReplaySetup((NONE,), model="claude-opus-4-1"))
    assert named.policies[0].totals["price"] > 0


def test_the_window_comes_from_the_call_then_the_file_then_the_model(tmp_path):
    said = [{"window": 9_000, "model": "gpt-5"}, *talk("one", "two")]
    file = str(write_lines(tmp_path / "s.jsonl", said))
    assert replay_file(file, ReplaySetup((NONE,))).window == 9_000
    assert replay_file(file, ReplaySetup((NONE,), window=7_000)).window == 7_000
    bare = str(write_lines(tmp_path / "t.jsonl", [{"model": "gpt-5"}, *talk("one", "two")]))
    assert replay_file(bare, ReplaySetup((NONE,))).window == 400_000


def test_bad_input_is_told(tmp_path):
    with pytest.raises(FormatError):
        replay_file(str(tmp_path / "missing.jsonl"), ReplaySetup((NONE,)))
    empty = tmp_path / "empty.json"
    empty.write_text("[]")
    with pytest.raises(InputError, match="no message"):
        replay_file(str(empty), ReplaySetup((NONE,)))


# ---- many files


def test_many_files_keep_their_order_and_a_bad_one_stops_nothing(tmp_path):
    names = [str(write_lines(tmp_path / f"s{n}.jsonl", coding_session(n + 1))) for n in range(3)]
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b"\x00\x01")
    told = []
    found = replay_many([names[0], str(bad), *names[1:]], ReplaySetup((NONE,)), 2, told.append)
    assert [isinstance(one, Failed) for one in found] == [False, True, False, False]
    assert [one.session for one in found] == [names[0], str(bad), *names[1:]]
    assert told == [1, 2, 3, 4]


def test_a_folder_stands_for_its_session_files(tmp_path):
    inner = tmp_path / "project" / "deep"
    inner.mkdir(parents=True)
    write_lines(inner / "b.jsonl", talk("one"))
    write_lines(tmp_path / "project" / "a.json", talk("one"))
    (inner / "notes.txt").write_text("no session")
    found = session_files([str(tmp_path / "project"), "x.jsonl"])
    assert [name.rpartition("/")[2] for name in found] == ["a.json", "b.jsonl", "x.jsonl"]
    (tmp_path / "bare").mkdir()
    with pytest.raises(InputError, match="no session file"):
        session_files([str(tmp_path / "bare")])


# ---- the published trace


def test_the_trace_is_the_published_one(trace):
    none = trace[0]["none"]
    assert [turn["baseline"] for turn in none.turns] == BASELINES
    assert none.turns[2]["calls"] == 13
    assert 76_000 <= none.turns[2]["peak"] < 78_000
    assert none.totals["input_tokens"] == pytest.approx(4_250_000, rel=0.001)
    assert none.totals["price"] == pytest.approx(65, abs=1)


def test_the_window_is_the_one_at_which_coop_does_what_it_published(trace):
    by_policy, report = trace
    assert report.window == json.loads(COOP.read_text().partition("\n")[0])["window"] == 52_500
    turns = by_policy["coop"].turns
    assert [turn["turn"] for turn in turns if turn["boundaries"]][:2] == [3, 4]
    assert [turn["baseline"] for turn in turns[:2]] == BASELINES[:2]
    assert all(turn["baseline"] <= 22_600 for turn in turns[2:])
    assert all(mark["call"] == 1 for turn in turns for mark in turn["boundaries"])
    assert by_policy["coop"].totals["overflows"] == 0
    assert by_policy["coop"].totals["input_tokens"] <= 1_130_000
    assert "1.1 M" in report.note


def test_foldline_sends_seven_tenths_less_and_forgets_no_more_than_coop(trace):
    by_policy = trace[0]
    sent = {name: one.totals["input_tokens"] for name, one in by_policy.items()}
    assert sent["foldline"] <= 0.3 * sent["none"]
    own, coop = by_policy["foldline"].retention, by_policy["coop"].retention
    for measure in ("handle", "far", "far-bound", "far-rare", "steps"):
        assert own[measure] >= coop[measure], measure
    assert all(cut["fits"] for cut in own["cuts"])
    assert len(own["cuts"]) == 2


def test_every_view_of_the_trace_is_valid(trace):
    assert {
        name: one.totals["invalid_views"] for name, one in trace[0].items() if one.totals["invalid_views"]
    } == {}


def test_the_model_that_the_first_reply_names_gives_the_price(tmp_path):
    lines = [
        {"type": "user", "uuid": "a", "sessionId": "s", "message": {"role": "user", "content": "Hello."}},
        {
            "type": "assistant",
            "uuid": "b",
            "parentUuid": "a",
            "sessionId": "s",
            "message": {
                "role": "assistant",
                "id": "m1",
                "model": "claude-opus-4-5-20251101",
                "content": [{"type": "text", "text": "Hi."}],
            },
        },
    ]
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    replay = replay_file(str(file), ReplaySetup((preset("pi"),)))
    assert replay.model == "claude-opus-4-5-20251101"
    (one,) = replay.policies
    assert one.totals["price"] is not None
