"""`foldline bench` on small sessions: real systems, and controls whose figures anybody can work out."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from tests.cli.calling import EXAMPLES

from foldline.bench import public
from foldline.bench.corpus import RULES, DirtyTalk, Talk, context, planted
from foldline.bench.decision import sample_calls
from foldline.bench.measures import MEASURES, BenchSetup
from foldline.bench.report import comparable, headline, page
from foldline.bench.run import Cell, SystemRow, run_bench
from foldline.bench.system import System, installed, texts
from foldline.bench.systems import SYSTEMS, select_systems
from foldline.dialects import get
from foldline.errors import InputError
from foldline.testing import Refusal, Scripted, call, serve_in_thread

SMALL = BenchSetup(messages=160, window=8_000, context=40_000, contexts=1, sizes=(20, 60), seconds=60)


def taken(name, measure, setup=SMALL):
    return MEASURES[measure].take(SYSTEMS[name], setup)


def row(found, name):
    return next(one for one in found.rows if one.name == name)


# ---- what is said


def test_a_seed_gives_the_same_session_again():
    assert DirtyTalk(3).messages(300) == DirtyTalk(3).messages(300)
    assert DirtyTalk(3).messages(300) != DirtyTalk(4).messages(300)
    assert context(2_000, 3) == context(2_000, 3)


def test_a_clean_session_is_valid_and_a_dirty_one_has_what_providers_refuse():
    check = get("openai-chat").validate
    assert check(Talk(5).messages(400)) == []
    broken = {problem.rule for problem in check(DirtyTalk(5).messages(1_000))}
    assert {"result-missing", "result-orphan", "result-duplicate"} <= broken


def test_rules_are_planted_one_a_message_in_their_place():
    whole = context(30_000, 1)
    full = planted(whole, RULES[:3], (0.4, 0.9))
    changed = [at for at, (one, other) in enumerate(zip(whole, full, strict=True)) if one != other]
    assert len(changed) == 3
    assert all(whole[at]["role"] == "user" for at in changed)
    assert [full[at]["content"].partition("\n")[0] for at in changed] == list(RULES[:3])
    assert changed[0] > 0.3 * len(whole)


# ---- what is measured


def test_foldline_sends_nothing_that_a_provider_refuses_and_keeps_everything():
    found = taken("foldline", "valid")
    assert found["requests"] > 50
    assert (found["invalid"], found["raised"], found["overflows"], found["left"]) == (0, 0, 0, 1.0)


def test_controls_are_refused_or_overflow():
    assert taken("newest", "valid")["invalid"] > 10
    whole = taken("everything", "valid")
    assert whole["overflows"] > 10
    assert whole["left"] is None  # its caller has them


def test_rules_that_foldline_keeps_and_the_newest_messages_do_not():
    ours = taken("foldline", "rules")
    assert ours["own_top_0.1"] > 0.6
    assert ours["over"] == 0
    newest = taken("newest-turns", "rules")
    assert newest["own_top_0.1"] == newest["own_middle_0.1"] == 0
    assert newest["view"] <= 1
    whole = taken("everything", "rules")
    assert whole["own_top_0.1"] == 1
    assert whole["over"] == 4


def test_retention_on_sessions_of_ones_own():
    setup = BenchSetup(sessions=(str(EXAMPLES / "session.jsonl"),))
    ours, newest, whole = (taken(name, "retention", setup) for name in ("foldline", "newest", "everything"))
    assert whole["handle_0.1"] == whole["far_0.1"] == 1
    assert ours["handle_0.1"] > newest["handle_0.1"]
    assert ours["cuts"] == newest["cuts"] > 0


def test_what_a_session_costs():
    setup = msgspec.structs.replace(SMALL, messages=320)
    ours, whole = (taken(name, "cost", setup) for name in ("foldline", "everything"))
    assert ours["turn_20"] > 0
    assert ours["fold"] > 0
    assert ours["tokens"] < whole["tokens"]
    assert ours["usd"] < whole["usd"]
    assert whole["cached"] > 0.9


def test_arguments_that_later_calls_take_from_the_first_half():
    turns = [
        ("Open the order.", ["get_order(order_id=12446)"], ['{"item": "lamp-77", "price": 30}']),
        ("Tell Ann of 12446.", ["send(to='ann@example.org', text='lamp-77')"], ["sent"]),
        ("Again.", ["send('ann@example.org', 'lamp-77', 12446, True)"], ["sent"]),
    ]
    past = "\n".join(map(str, turns[0]))
    assert list(public._needed(past, turns[1:])) == ["lamp-77"]  # later calls can take it from the first call
    said = list(public._turn_messages("task", 0, *turns[0]))
    assert get("openai-chat").validate(said) == []
    assert json.loads(said[1]["tool_calls"][0]["function"]["arguments"]) == {"order_id": 12446}


def test_a_measure_without_its_package_says_what_to_install():
    found = run_bench(select_systems(["newest"]), ["canaries", "arguments"], SMALL, "", jobs=1)
    for name, package in (("canaries", "compaction-conformance-kit"), ("arguments", "bfcl-eval")):
        cell = row(found, "newest").cells[name]
        if installed(package) is None:
            assert cell.problem == f"not installed: pip install {package}"
        else:
            assert 0 < cell.figures["kept_0.2"] <= 1


# ---- what a model decides


@pytest.fixture
def recorded(tmp_path):
    """A session that comes back, after long work, to a file that was named at its beginning."""
    talk = Talk(5)
    work = [message for _ in range(40) for message in talk.turn()]
    call = {"name": "read_file", "arguments": '{"path": "src/ledger/rates.py", "note": "again"}'}
    said = [
        {"role": "user", "content": "Never read another file than src/ledger/rates.py for the rates."},
        {"role": "assistant", "content": "I see."},
        *(one for one in work if one["role"] != "tool" and "tool_calls" not in one),
        {"role": "user", "content": "Read the rates."},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "c", "content": "RATE = 3"},
        {"role": "assistant", "content": "It is 3."},
    ]
    file = tmp_path / "session.json"
    file.write_text(json.dumps(said))
    return file


def knows(asked):
    """Read the file that a request names."""
    known = "src/ledger/rates.py" in str(asked.messages)
    return call("read_file", path="src/ledger/rates.py" if known else "src/rates.py", note="now")


def decisions(name, model, recorded):
    """The cell of one row, whose model is asked over HTTP."""
    with serve_in_thread(model) as url:
        setup = BenchSetup(sessions=(str(recorded),), model=f"openai-compatible:scripted@{url}/v1")
        return run_bench(select_systems([name]), ["decision"], setup, "", jobs=1).rows[0].cells["decision"]


@pytest.mark.parametrize(
    ("name", "argument"), [("everything", 1), ("foldline", 1), ("newest", 0)], ids=lambda one: str(one)
)
def test_a_model_decides_from_a_view_what_the_view_lets_it(recorded, name, argument):
    model = Scripted(knows)
    found = decisions(name, model, recorded).figures
    assert (found["decisions"], found["refused"]) == (1, 0)
    assert (found["tool"], found["argument"]) == (1, argument)
    (asked,) = model.requests
    assert [one["function"]["name"] for one in asked.tools] == ["read_file"]
    assert "RATE = 3" not in str(asked.messages)  # what came of it


def test_a_fold_that_raises_is_not_asked_about(recorded, others):
    model = Scripted(knows)
    cell = decisions("raises", model, recorded)
    assert cell.problem == "failed: ValueError: no such message"
    assert not model.requests


def test_another_tool_words_and_a_request_that_is_refused_are_other_decisions(recorded):
    for answer in (call("bash", command="cat src/ledger/rates.py"), "It is 3."):
        found = decisions("everything", Scripted(lambda _, said=answer: said), recorded).figures
        assert (found["tool"], found["argument"], found["refused"]) == (0, 0, 0)
    found = decisions("everything", Scripted(knows, window=200), recorded).figures
    assert (found["tool"], found["refused"]) == (0, 1)


def test_a_model_that_cannot_be_asked_is_told(recorded):
    cell = decisions("everything", Scripted(lambda _: Refusal(401)), recorded)
    assert cell.problem.startswith("failed: ProviderError: ")


def test_calls_are_taken_from_all_of_the_second_half():
    messages = Talk(5).messages(400)
    found = sample_calls(messages)
    assert 5 < len(found) <= 10
    assert all(
        len(one.past) >= len(messages) // 2 and one.past[-1]["role"] in ("user", "tool") for one in found
    )
    assert len(found[-1].past) > 350
    assert sample_calls([]) == []


# ---- the run and its report


def raising(messages):
    raise ValueError("no such message")


@pytest.fixture
def others(monkeypatch):
    """Rows that go wrong, in each way a row can."""
    made = [
        System("raises", "rival", "raises(messages)", lambda _: raising, "msgspec"),
        System("hangs", "rival", "hangs(messages)", lambda _: lambda _: time.sleep(1_000), "msgspec"),
        System("absent", "rival", "absent(messages)", lambda _: raising, "no-such-package"),
        System("writes", "rival", "writes(messages)", lambda _: list, "msgspec", writer=True),
    ]
    for one in made:
        monkeypatch.setitem(SYSTEMS, one.name, one)
    return made


@pytest.mark.parametrize(
    ("names", "seconds", "problems", "ticks"),
    [
        (
            ["raises", "absent", "writes"],
            600,
            [
                "failed: ValueError: no such message",
                "not installed: pip install no-such-package",
                "needs a model",
            ],
            [2, 3],
        ),
        (["hangs"], 1, ["stopped after 1 seconds: allow more with --timeout"], [0, 1]),
    ],
    ids=["wrong", "hangs"],
)
def test_a_row_that_goes_wrong_says_so(others, names, seconds, problems, ticks):
    tiny = BenchSetup(context=4_000, contexts=1, seconds=seconds)
    done = []
    systems = [one for one in others if one.name in names]
    found = run_bench(systems, ["rules"], tiny, "foldline bench", jobs=1, tick=done.append)
    assert [one.cells["rules"].problem for one in found.rows] == problems
    assert [one.version is None for one in found.rows] == [name == "absent" for name in names]
    assert done == ticks
    text = page(found)
    assert all(problem in text for problem in problems)


@pytest.fixture(scope="module")
def measured():
    systems = select_systems(["foldline", "everything", "newest"])
    return run_bench(systems, ["valid", "rules"], SMALL, "foldline bench --html <page>", jobs=1)


def test_the_first_lines_say_in_what_foldline_is_not_first(measured):
    first, *others = headline(measured)
    assert "foldline is first, alone or with others, in " in first
    assert others == []  # nobody else is valid, or keeps a rule
    assert "all" in first

    cells = row(measured, "newest").cells
    cells["rules"].figures["own_top_0.1"] = 1.1  # as if it kept more
    first, *others = headline(measured)
    assert first.endswith("It is not first in:")
    assert others[0].startswith("rules, ours, top, 10%: foldline ")
    assert others[0].endswith("; newest 110%")
    cells["rules"].figures["own_top_0.1"] = 0.0


def test_a_view_that_is_too_large_wins_nothing(measured):
    assert row(measured, "everything").cells["rules"].figures["own_top_0.05"] == 1
    assert not any("everything" in line for line in headline(measured))


def test_one_whose_requests_raise_wins_nothing(monkeypatch):
    def fold(messages):
        return raising(messages) if 4 < len(messages) < 20 else messages[-1:]

    fails = System("fails", "rival", "fails(messages)", lambda _: fold, "msgspec")
    found = MEASURES["cost"].take(fails, msgspec.structs.replace(SMALL, messages=80))
    assert found["raised"] > 2
    cheap = SystemRow("fails", "rival", "msgspec", "1", "", {"cost": Cell(found)})
    usd = next(one for one in MEASURES["cost"].columns if one.key == "usd")
    assert comparable(cheap, MEASURES["cost"], usd) is None


def test_the_page_has_every_figure_and_how_it_was_made(measured):
    text = page(measured)
    body = text[text.index("<body>") :]
    assert body.index("foldline is first") < body.index("<table>")
    assert "foldline bench --html &lt;page&gt;" in body
    assert measured.machine.split(",")[0] in body
    assert body.count("<tr class=preset>") == 2
    assert 'class="best">100%' in body


def test_names_that_there_are_not():
    with pytest.raises(InputError, match=r"no system 'foldlin' \(did you mean 'foldline'\?\)"):
        select_systems(["foldlin"])
    with pytest.raises(InputError, match="no measure 'rule'"):
        run_bench([], ["rule"], SMALL, "")


def test_groups_of_systems():
    assert [one.name for one in select_systems(["presets"])][:2] == ["foldline", "coop"]
    assert len(select_systems([])) == len(SYSTEMS)
    assert {one.kind for one in select_systems(["controls", "newest"])} == {"control"}


def test_texts_of_anything():
    class Part:
        def __init__(self, text):
            self.text = text

    assert list(texts([{"a": ("x", Part("y"))}, 3, None])) == ["x", "y"]
