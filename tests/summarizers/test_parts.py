import msgspec
import pytest
from tests.support.talk import assistant, call, entries, tool, user

from foldline.core.checkpoint.request import SummaryRequest
from foldline.core.checkpoint.serialize import serialize
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.summarizers.candidate import Candidate, smaller
from foldline.summarizers.parts import MOST_PARTS, size_of, split
from foldline.testing import Scripted

LEDGER = Ledger(constraints=(ConstraintFact("Never drop data.", "e1"),))


def talk(rounds, long=100):
    said = [user("Mend it. Never drop data.")]
    for n in range(rounds):
        said += [
            assistant(f"Step {n}", call(f"c{n}", "read", path=f"a{n}.py")),
            tool(f"c{n}", f"line {n}\n" * long),
        ]
    return tuple(entries(*said))


def asked(folded, **more):
    fields = {"kind": "split_turn", "previous": None, "ledger": LEDGER, "tokens": 300, **more}
    return SummaryRequest(system="", prompt="", folded=folded, **fields)


def test_what_fits_is_one_part():
    request = asked(talk(3))
    assert split(request, size_of(request, OFFLINE), 300, OFFLINE) == ([request], False)
    assert request.result_cap == 2_000


def test_parts_hold_everything_once_and_each_fits():
    request = asked(talk(20))
    room = size_of(request, OFFLINE) // 3
    parts, _ = split(request, room, 300, OFFLINE)
    assert 3 <= len(parts) <= MOST_PARTS
    assert tuple(entry for part in parts for entry in part.folded) == request.folded
    for part in parts:
        whole = msgspec.structs.replace(part, previous="word " * 250)
        assert size_of(whole, OFFLINE) <= room * 1.1
        calls = {c.id for e in part.folded for c in e.message.calls}
        assert calls == {r.call_id for e in part.folded for r in e.message.results}, (
            "no call without its result"
        )


def test_the_last_part_is_of_the_requests_own_kind_and_the_others_carry_on():
    request = asked(talk(20), goal="ship", instructions="the tests", rejected="empty", attempt=1)
    room = size_of(request, OFFLINE) // 3
    made, _ = split(request, room, 200, OFFLINE)
    assert [part.kind for part in made] == ["first", *["update"] * (len(made) - 2), "split_turn"]
    assert [part.goal for part in made] == [*[None] * (len(made) - 1), "ship"]
    assert [part.rejected for part in made] == [*[""] * (len(made) - 1), "empty"]
    assert {part.instructions for part in made} == {"the tests"}
    assert {part.tokens for part in made} == {200}
    again, _ = split(msgspec.structs.replace(request, previous="## Goal\nx"), room, 200, OFFLINE)
    assert again[0].kind == "update"


def test_results_are_shortened_before_there_are_too_many_parts():
    request = asked(talk(60, long=150))
    room = size_of(request, OFFLINE) // 20
    parts, _ = split(request, room, 300, OFFLINE)
    assert len(parts) <= MOST_PARTS
    assert parts[0].result_cap < 2_000
    text = serialize(parts[0].folded, result_cap=parts[0].result_cap, thinking=True)
    assert "characters left out" in text


def test_at_last_neighbours_are_put_together_and_the_middle_of_each_is_left_out():
    request = asked(talk(300, long=2))
    parts, left_out = split(request, 1_000, 300, OFFLINE)
    assert (len(parts), left_out) == (MOST_PARTS, True)
    assert tuple(entry for part in parts for entry in part.folded) == request.folded


def test_two_sentences_for_a_list_are_said_of_one_part():
    request = asked(talk(20), kind="display")
    parts, _ = split(request, 500, 300, OFFLINE)
    assert len(parts) == 1


@pytest.mark.parametrize(
    ("sent", "overflow", "room"),
    [
        (10_000, None, 7_000),
        (10_000, Overflow(limit=4_000), 7_000),
        (10_000, Overflow(limit=4_000, asked=12_000), 3_000),
        (10_000, Overflow(limit=4_000, asked=12_000, max_tokens=1_000), 2_250),
        (10_000, Overflow(limit=200_000, asked=10_000), 9_000),
        (10_000, Overflow(limit=100, asked=90_000), 500),
    ],
)
def test_after_an_overflow_there_is_always_less(sent, overflow, room):
    assert smaller(sent, overflow) == room < sent


def test_a_candidate_keeps_inside_its_window():
    request = asked((), tokens=50_000)
    for context in (2_000, 8_192, 128_000, 1_000_000):
        for limit in (None, context // 2):
            window = Window(context=context, input=limit, output=4_096)
            who = Candidate(Scripted([]), window)
            cap, room = who.max_tokens(request), who.room(request)
            assert 1 <= who.tokens(request) <= cap <= window.output
            assert room < window.input_limit
            assert room + cap < context
            again = msgspec.structs.replace(request, attempt=1)
            assert cap <= who.max_tokens(again, room) <= window.output
            assert room + who.max_tokens(again, room) <= context
