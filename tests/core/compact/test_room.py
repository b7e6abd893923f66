"""The room of one compaction, and its floor."""

import msgspec
from tests.support.logs import add_entry, ask_for, compact_log, view_of
from tests.support.talk import assistant, calls, entries, log_of, repeat, system, user

from foldline.core.checkpoint.checkpoint import Frame, make_checkpoint
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.receipt import balance_notes
from foldline.core.compact.room import floor_of, least_floor, room_of
from foldline.core.decide.continuation import Continuation
from foldline.core.decide.policy import Keep, Policy
from foldline.core.decide.price import Cache, Economy, Price
from foldline.core.log.entries import Live, Pin, Pinned
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Amount, Floor

RULES = Policy(name="rules", reserve=Amount(tokens=1_000), summary_tokens=Amount(fraction=0.1, of="usable"))
ACK = msgspec.structs.replace(RULES, ack="Understood. I go on from there.")
APART = Floor(system=30, tools=12)


def room(log, rules=RULES, **more):
    return room_of(
        CompactionInput(view_of(log), ask_for(rules, context=6_000, overhead=APART, **more), OFFLINE)
    )


def test_the_limits_are_those_of_the_window_or_of_the_target():
    log = log_of(user("a"), assistant("b"), user("c"))
    live, aimed = room(log), room(log, target=700, reason="target")
    assert (live.usable, live.overhead, live.target, live.summary_cap) == (5_000, 42, False, 500)
    assert (aimed.usable, aimed.overhead, aimed.target, aimed.summary_cap) == (700, 42, True, 70)


def test_the_note_for_open_calls_stands_apart_too():
    log = log_of(user("a"), calls("x"))
    assert room(log).overhead == 42 + view_of(log).open_call_tokens


def test_a_checkpoint_takes_its_marker_its_pins_and_its_acknowledgement():
    log = log_of(user("a"), assistant("b"), user("c"))
    bare = make_checkpoint("", Frame(RULES), OFFLINE).tokens
    assert room(log).wrap == bare
    assert room(log, ACK).wrap == bare + OFFLINE.count(ACK.ack) + 8
    numbered = msgspec.structs.replace(RULES, versions=True)
    wrapped = make_checkpoint("", Frame(numbered, number=123_456_789), OFFLINE).tokens
    assert room(log, numbered, number=123_456_789).wrap == wrapped > bare
    first = log.path()[0]
    add_entry(log, Pinned("", None, first.id, on=True, text="a"))
    pinned = make_checkpoint("", Frame(RULES, pins=(Pin(first.id, "a"),)), OFFLINE).tokens
    assert room(log).wrap == pinned > bare


def test_a_pin_that_has_to_stay_in_the_view_takes_nothing_of_the_checkpoint():
    log = log_of(system("s"), user("a"), assistant("b"), user("c"))
    bare = room(log).wrap
    for entry in (log.path()[0], log.path()[3]):
        add_entry(log, Pinned("", None, entry.id, on=True, text=entry.message.text))
    assert room(log).wrap == bare


def test_the_floor_counts_every_part_once():
    log = log_of(system("s"), user("a"), assistant("b"), user("c"))
    ask = ask_for(ACK, context=6_000, overhead=APART)
    floor = floor_of(CompactionInput(view_of(log), ask, OFFLINE))
    path = log.path()
    assert floor.system == 30 + path[0].tokens
    assert floor.tools == 12
    assert floor.unanswered == path[3].tokens
    assert floor.checkpoint == make_checkpoint("", Frame(ACK), OFFLINE).tokens + 150
    assert floor.pins == OFFLINE.count(ACK.ack) + 8


def test_the_least_target_is_one_that_holds_its_own_floor():
    log = log_of(system("s"), user(repeat("Where is the bug in all of this?", 400)))
    fold, ask = view_of(log), ask_for(RULES, context=6_000, reason="target", target=100, overhead=APART)
    floor = floor_of(CompactionInput(fold, ask, OFFLINE))
    least = least_floor(CompactionInput(fold, ask, OFFLINE), floor)
    again = floor_of(CompactionInput(fold, msgspec.structs.replace(ask, target=least.total), OFFLINE))
    assert again.total <= least.total
    assert (
        floor.total
        <= least.total
        < floor_of(CompactionInput(fold, ask_for(RULES, context=6_000, overhead=APART), OFFLINE)).total
    )
    fits = msgspec.structs.replace(ask, target=least.total)
    assert least_floor(CompactionInput(fold, fits, OFFLINE), again) == again


def test_the_balance_is_that_of_the_sizes_of_what_stays_and_of_the_price_of_the_summary():
    log = log_of(system(repeat("Be brief.", 4_000)), user("a"), assistant("b"))
    economy = Economy(
        Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75), Cache(tokens=90_000, idle=1.0)
    )
    ask = ask_for(RULES, overhead=APART, economy=economy)
    same = 42 + log.path()[0].tokens
    expected = economy.balance(90_000, 20_000, same=same, summary=0.5).words
    assert balance_notes(CompactionInput(view_of(log), ask, OFFLINE), 90_000, 20_000, 0.5) == [expected]
    assert expected != economy.balance(90_000, 20_000, same=0, summary=0.5).words
    assert expected != economy.balance(90_000, 20_000, same=same, summary=None).words
    assert balance_notes(CompactionInput(view_of(log), ask_for(RULES), OFFLINE), 90_000, 20_000, 0.5) == []


def test_what_a_program_says_of_itself_counts_in_the_checkpoint_and_in_the_floor():
    log, live = log_of(user("a"), assistant("b"), user("c")), (Live("todos", "- mend the page"),)
    question = Continuation("waiting", "question", question="Shall I go on?")
    bare = room(log).wrap
    tokens = make_checkpoint("", Frame(RULES, live=live), OFFLINE).tokens
    stands = make_checkpoint("", Frame(RULES, standing=question), OFFLINE).tokens
    assert room(log, live=live).wrap == tokens > bare
    assert room(log, continuation=question).wrap == stands > bare
    floor = floor_of(CompactionInput(view_of(log), ask_for(RULES, context=6_000), OFFLINE))
    for more, size in (({"live": live}, tokens), ({"continuation": question}, stands)):
        higher = floor_of(CompactionInput(view_of(log), ask_for(RULES, context=6_000, **more), OFFLINE))
        assert higher.checkpoint - floor.checkpoint == size - bare


def test_a_target_takes_the_policys_cap_as_it_is_and_a_window_a_share_of_it():
    wide = msgspec.structs.replace(RULES, summary_tokens=Amount(tokens=4_000))
    log = log_of(user("a"), assistant("b"), user("c"))
    assert room(log, wide).summary_cap == 1_250
    assert room(log, wide, target=5_000, reason="target").summary_cap == 4_000


def test_a_live_summary_grows_with_all_that_it_stands_for():
    growing = msgspec.structs.replace(
        RULES, reserve=Amount(), summary_tokens=Amount(tokens=9_000), summary_share=0.1
    )
    log = log_of(user("a"), assistant("b"), user("c"))
    found = room_of(CompactionInput(view_of(log), ask_for(growing, context=100_000), OFFLINE))
    assert found.most_summary(entries(user(), tokens=500)) == 2_000
    assert found.most_summary(entries(user(), tokens=30_000)) == 3_000
    assert found.most_summary(entries(user(), tokens=300_000)) == 9_000
    assert room(log).most_summary(entries(user(), tokens=10)) == room(log).summary_cap


def test_the_summary_before_counts_as_it_stands_in_the_view():
    growing = msgspec.structs.replace(
        RULES, keep=Keep(messages=2), summary_share=0.1, summary_tokens=Amount(tokens=9_000)
    )
    log = log_of(*(turn for i in range(40) for turn in (user(f"go {i}"), assistant("so be it " * 40))))
    compact_log(log, ask_for(growing, context=6_000))
    taken = OFFLINE.count(view_of(log).boundary.checkpoint.summary)
    room = room_of(CompactionInput(view_of(log), ask_for(growing, context=100_000), OFFLINE))
    assert room.most_summary(entries(user(), tokens=30_000)) == 3_000 + taken > 3_000
