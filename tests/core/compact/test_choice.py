import msgspec
import pytest
from tests.support.talk import (
    assistant,
    calls,
    developer,
    entries,
    image,
    reminder,
    repeat,
    result,
    results,
    system,
    tool,
    user,
)

from foldline.core.compact.choice import Choice, SecondPass, choose
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.room import CHECKPOINT_LEAST, Room
from foldline.core.cut.edits import tokens_of
from foldline.core.cut.elide import RESULT_FLOOR
from foldline.core.cut.pairing import pair
from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.policy import Keep, Policy
from foldline.core.log.entries import Edit, Pin, Said
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.core.measure.window import Amount, Floor, Window
from foldline.core.view import ViewState

PLAIN = Policy(name="plain", cut_rule="any", keep=Keep(amount=Amount(tokens=100)))


def policy(**more) -> Policy:
    return msgspec.structs.replace(PLAIN, **more)


def room(
    *kept: Said,
    rules=PLAIN,
    usable=1_000,
    target=False,
    cap=200,
    overhead=0,
    wrap=50,
    leading=(),
    quoted=(),
    fresh_from=0,
    edits=None,
    pinned=(),
) -> Room:
    """The room of a view that fits exactly, with a summary of at most `cap` tokens."""
    state = ViewState(counter=OFFLINE)
    state.leading, state.quoted, state.kept = list(leading), list(quoted), list(kept)
    state.pairing = pair([entry.message for entry in kept])
    state.fresh_from, state.edits = fresh_from, edits or {}
    state.pins = {entry: Pin(entry, "") for entry in pinned}
    ask = FoldRequest(
        policy=msgspec.structs.replace(rules, summary_tokens=Amount(tokens=cap), summary_share=None),
        window=Window(context=max(usable, 10_000), output=1_000),
        reason="manual",
        target=usable if target else None,
        overhead=Floor(system=overhead),
    )
    return Room(CompactionInput(state, ask, OFFLINE), state.edits, usable, wrap)


def chosen(kept, rules=PLAIN, second=None, **more) -> Choice:
    found = choose(room(*kept, rules=rules, **more), second)
    assert found is not None
    return found


def turns(n: int, tokens: int = 10) -> list[Said]:
    talk = [m for i in range(n) for m in (user(f"question {i}"), assistant(f"answer {i}"))]
    return entries(*talk, tokens=tokens)


def counted(*messages: Message) -> list[Said]:
    return entries(*messages, tokens=[message_tokens(message, OFFLINE) for message in messages])


# ---- what is folded and kept


def test_the_newest_that_reach_the_amount_are_kept_and_the_rest_is_folded():
    kept = turns(20)
    found = chosen(kept)
    assert found.kept == kept[30:]
    assert found.folded == kept[:30]
    assert found.quoted == []
    assert found.edits == {}
    assert found.cut.index == 30


def test_the_summary_may_take_what_is_left():
    assert chosen(turns(20)).room == 1_000 - 50 - 100
    assert chosen(turns(20), overhead=300).room == 1_000 - 50 - 100 - 300
    leading = entries(system(), tokens=70)
    assert chosen(turns(20), leading=leading).room == 1_000 - 50 - 100 - 70


def test_a_summary_gets_its_least_though_its_cap_is_smaller():
    assert chosen(turns(60), policy(keep=Keep(amount=Amount(tokens=5_000))), cap=10).room == 150
    small = chosen(turns(60), policy(keep=Keep(amount=Amount(tokens=5_000))), usable=250, cap=10)
    assert small.room == 100


def test_for_a_target_the_summary_gets_its_cap_or_half():
    rules = policy(keep=Keep(amount=Amount(tokens=5_000)))
    assert chosen(turns(100), rules, target=True).room == 200
    assert chosen(turns(100), rules, target=True, cap=900).room in (470, 475, 480)


def test_nothing_is_chosen_where_nothing_can_be_folded():
    assert choose(room()) is None
    assert choose(room(*entries(user()))) is None


def test_a_preset_weighs_with_its_own_estimator():
    kept = entries(*(assistant("x" * 40) for _ in range(30)), tokens=50)
    assert len(chosen(kept).kept) == 2
    assert len(chosen(kept, policy(estimator="chars/4")).kept) == 10


def test_what_an_older_boundary_kept_is_not_kept_again_where_the_policy_forbids_it():
    kept = turns(20)
    rules = policy(cross_boundary=False, keep=Keep(amount=Amount(tokens=300)))
    assert chosen(kept, rules, fresh_from=36).cut.index == 36
    assert chosen(kept, rules, fresh_from=0).cut.index == 10
    assert chosen(kept, policy(keep=Keep(amount=Amount(tokens=300))), fresh_from=36).cut.index == 10


def test_a_boundary_is_crossed_where_otherwise_nothing_could_be_folded():
    kept = entries(user(), assistant("a"), user("b"))
    rules = policy(cross_boundary=False)
    assert chosen(kept, rules, fresh_from=3).cut.index == 1
    assert chosen(kept, rules, fresh_from=2).cut.index == 2


# ---- what fits


def test_the_cut_moves_on_where_what_it_keeps_cannot_be_shortened_to_fit():
    picture, *rest = counted(image(), assistant("I see"), user("thanks"))
    first = entries(user("look"), tokens=10)
    found = chosen([*first, picture, *rest], policy(keep=Keep(amount=Amount(tokens=900))), usable=700)
    assert picture.tokens > 700
    assert found.kept == rest
    assert found.room > 0


def test_the_cut_moves_on_to_where_the_rule_allows_it():
    big = counted(user("look"), image("see"), assistant("I see"), assistant("ok"), user(repeat("next", 20)))
    found = chosen(big, policy(cut_rule="user", keep=Keep(amount=Amount(tokens=900))), usable=700)
    assert (found.cut.index, found.cut.how) == (4, "by_rule")


def test_what_no_cut_can_leave_behind_stays_and_the_room_says_that_it_does_not_fit():
    kept = counted(user("look"), assistant("ok"), image("see"))
    found = chosen(kept, policy(keep=Keep(amount=Amount(tokens=900))), usable=700)
    assert found.kept == kept[2:]
    assert found.room < 0


def test_the_keep_is_shortened_to_the_budget_not_to_the_amount():
    kept = counted(user("go"), assistant("ok"), calls("a"), tool("a", repeat("a line of the log\n", 200)))
    found = chosen(kept, usable=5_000)
    assert found.edits == {}


def test_for_a_target_the_tail_is_shortened_to_its_amount_or_half():
    kept = counted(user("go"), assistant("ok"), calls("a"), tool("a", repeat("a line of the log\n", 300)))
    live = chosen(kept, usable=3_000)
    aimed = chosen(kept, usable=3_000, target=True)
    assert live.edits == {}
    assert tokens_of(aimed.kept, aimed.edits) <= 1_475
    wide = policy(keep=Keep(amount=Amount(tokens=2_400)))
    assert chosen(kept, wide, usable=3_000, target=True).edits == {}


def test_edits_of_what_is_folded_go_with_it():
    kept = turns(20)
    old = Edit(kept[0].id, 0, "elided", Text("x"), saved=2)
    new = Edit(kept[39].id, 0, "elided", Text("y"), saved=3)
    found = chosen(kept, edits={kept[0].id: (old,), kept[39].id: (new,)})
    assert found.edits == {kept[39].id: (new,)}
    assert found.room == 1_000 - 50 - 100 + 3


# ---- quotes


def test_the_newest_user_messages_that_fit_are_quoted_oldest_first():
    kept = turns(20)
    found = chosen(kept, policy(quote_user_tokens=35, keep=Keep()))
    assert found.kept == []
    assert found.quoted == [kept[34], kept[36], kept[38]]
    assert kept[36] not in found.folded
    assert kept[37] in found.folded
    assert found.room == 1_000 - 50 - 30


def test_only_what_a_person_wrote_is_quoted():
    kept = entries(
        user("a"), reminder(), results("x"), results("y", text="b"), tool("z"), developer(), assistant("c")
    )
    assert chosen(kept, policy(quote_user_tokens=900, keep=Keep())).quoted == kept[:1]


def test_older_quotes_are_quoted_again_or_folded():
    old = entries(user("first"), user("second"))
    kept = [*old, *turns(3)][2:]
    again = chosen(kept, policy(quote_user_tokens=45, keep=Keep()), quoted=old)
    assert again.quoted == [old[1], kept[0], kept[2], kept[4]]
    assert old[0] in again.folded
    none = chosen(kept, policy(keep=Keep()), quoted=old)
    assert none.folded == [*old, *kept]


def test_quotes_leave_room_for_a_summary_and_for_a_target_half_of_what_is_free():
    kept = turns(100)
    live = chosen(kept, policy(quote_user_tokens=5_000, keep=Keep()), usable=450)
    aimed = chosen(kept, policy(quote_user_tokens=5_000, keep=Keep()), usable=450, target=True)
    assert (len(live.quoted), live.room) == (25, CHECKPOINT_LEAST)
    assert (len(aimed.quoted), aimed.room) == (20, 200)


# ---- sizes and edits


def test_what_must_stay_is_counted_as_short_as_it_may_be():
    kept = counted(user("go"), assistant("ok"), calls("a"), tool("a", repeat("a line of the log\n", 3_000)))
    least = room(*kept, usable=2_000).least_kept
    assert kept[2].tokens + RESULT_FLOOR <= least <= kept[2].tokens + RESULT_FLOOR + 15
    pinned = room(*kept, usable=2_000, pinned=[kept[3].id]).least_kept
    assert pinned == kept[2].tokens + kept[3].tokens


def test_an_edit_that_makes_a_message_smaller_than_its_elision_counts():
    kept = counted(user("go"), assistant("ok"), calls("a"), tool("a", repeat("a line of the log\n", 3_000)))
    blank = Edit(kept[3].id, 0, "blanked", result("a", "[cleared]"), saved=kept[3].tokens - 12)
    least = room(*kept, usable=2_000, edits={kept[3].id: (blank,)}).least_kept
    assert least == kept[2].tokens + 12


# ---- leading system messages


def lead(tokens_wanted: int) -> list[Said]:
    return counted(system(repeat("word", tokens_wanted)))


def test_leading_messages_are_shortened_for_a_target_where_they_take_more_than_a_quarter():
    leading = lead(900)
    made = room(leading=leading, target=True).lead_edits()
    assert [edit.kind for edit in made] == ["elided"]
    assert tokens_of(leading, {leading[0].id: made}) <= 110


@pytest.mark.parametrize(("tokens", "target"), [(900, False), (100, True)])
def test_otherwise_leading_messages_stay_as_they_are(tokens, target):
    assert room(leading=lead(tokens), target=target).lead_edits() == ()


def test_shortened_leading_messages_leave_their_room_to_the_rest():
    leading = lead(900)
    found = chosen(turns(20), usable=1_000, target=True, leading=leading)
    assert leading[0].id in found.edits
    assert found.room >= 500


# ---- for a target: what waits, and all of the room


def test_what_waits_and_nobody_typed_leaves_half_of_what_is_kept_to_the_conversation():
    talk = [m for i in range(20) for m in (user(f"go {i}"), assistant(repeat("so it is", 10)))]
    kept = counted(*talk, calls("a"), tool("a", repeat("a line of the log\n", 900)))
    rules = policy(keep=Keep(amount=Amount(tokens=600)))
    found = chosen(kept, rules, usable=3_000, target=True)
    before = [entry for entry in found.kept if entry.message.text.startswith("so it is")]
    assert len(before) >= 3
    assert [edit.kind for edit in found.edits[kept[-1].id]] == ["elided"]
    typed = counted(*talk, user(repeat("a line of what I want\n", 250)))
    assert chosen(typed, rules, usable=9_000, target=True).edits == {}


def test_what_is_left_of_a_target_takes_a_batch_that_is_shortened_to_fit():
    kept = counted(
        user("go"), calls("a"), tool("a", repeat("a line of the log\n", 900)), assistant("ok"), user("on")
    )
    first = chosen(kept, policy(keep=Keep(amount=Amount(tokens=100))), usable=2_000, target=True)
    spare = SecondPass(summary=300, leading=0)
    fuller = choose(room(*kept, usable=2_000, target=True), spare)
    assert fuller.cut.index <= first.cut.index
    assert fuller.cut.index == 1
    assert 1_400 < tokens_of(fuller.kept, fuller.edits) <= 1_650
