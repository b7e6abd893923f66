import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs import any_list, chain, decode
from tests.support.talk import assistant, calls, developer, entries, reminder, results, tool, user

from foldline.core.cut.cut import Cut, choose_cut, is_split, keep_index
from foldline.core.cut.legal import fits_rule, legal_cuts
from foldline.core.cut.pairing import pair
from foldline.core.decide.policy import Keep
from foldline.core.log.entries import Said
from foldline.core.measure.window import Amount, Window

WINDOW = Window(context=1_000, output=100)
RULES = ["turn", "user", "user_or_plain_assistant", "not_result", "any"]


def at(keep: Keep, *, tokens=(10,) * 10, budget=1_000, weights=None) -> int:
    kept = entries(*(user(str(i)) for i in range(len(tokens))), tokens=tokens)
    return keep_index(kept, keep, budget, window=WINDOW, usable=900, weights=weights)


def keep(tokens: int) -> Keep:
    return Keep(amount=Amount(tokens=tokens))


# ---- how far back


def test_the_message_that_reaches_the_amount_is_kept():
    assert at(keep(30)) == 7
    assert at(keep(31)) == 6
    assert at(keep(29)) == 7
    assert at(keep(1)) == 9
    assert at(keep(99)) == 0


def test_an_amount_of_all_or_more_keeps_all():
    assert at(keep(100)) == 0
    assert at(keep(101)) == 0
    assert at(keep(5), tokens=()) == 0


def test_an_amount_of_nothing_keeps_nothing():
    assert at(keep(0)) == 10


def test_a_policy_that_names_nothing_to_keep_keeps_nothing():
    assert at(Keep()) == 10
    assert at(Keep(), tokens=()) == 0


def test_the_budget_caps_the_amount():
    assert at(keep(100), budget=30) == 7
    assert at(keep(20), budget=30) == 8
    assert at(keep(100), budget=0) == 10


def test_an_amount_is_resolved_by_window_and_usable():
    assert at(Keep(amount=Amount(fraction=0.05))) == 5
    assert at(Keep(amount=Amount(fraction=0.1, of="usable"))) == 1


def test_a_count_of_messages_is_kept_whatever_their_size():
    assert at(Keep(messages=4)) == 6
    assert at(Keep(messages=0)) == 10
    assert at(Keep(messages=10)) == 0
    assert at(Keep(messages=11)) == 0


def test_a_share_of_the_messages_is_rounded_down_and_the_smaller_count_wins():
    assert at(Keep(message_fraction=0.3)) == 7
    assert at(Keep(message_fraction=0.39)) == 7
    assert at(Keep(messages=2, message_fraction=0.3)) == 8
    assert at(Keep(messages=10, message_fraction=0.3)) == 7


def test_no_more_messages_are_kept_than_fit_the_budget():
    assert at(Keep(messages=8), budget=30) == 7
    assert at(Keep(messages=8), budget=39) == 7
    assert at(Keep(messages=8), budget=80) == 2
    assert at(Keep(messages=8), budget=100) == 2
    assert at(Keep(messages=8), budget=0) == 10


def test_the_budget_is_met_to_the_token_by_a_policys_own_weights():
    assert at(Keep(messages=2), tokens=(1, 9), budget=9, weights=[1, 9]) == 1
    assert at(Keep(messages=2), tokens=(1, 9), budget=10, weights=[1, 9]) == 0


def test_of_an_amount_and_a_count_the_smaller_tail_wins():
    assert at(Keep(amount=Amount(tokens=30), messages=5)) == 7
    assert at(Keep(amount=Amount(tokens=30), messages=2)) == 8
    assert at(Keep(amount=Amount(tokens=500), messages=20)) == 0


def test_one_message_larger_than_the_budget_is_reached_not_skipped():
    assert at(keep(50), tokens=(10, 10, 900, 10)) == 2


def test_a_policys_own_weights_replace_the_tokens():
    assert at(keep(30), weights=[30] * 10) == 9
    assert at(keep(30), weights=[1] * 10) == 0
    assert at(Keep(messages=8), budget=30, weights=[15] * 10) == 8


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(0, 600), st.integers(0, 600))
def test_the_tail_is_the_shortest_that_reaches_the_amount(tokens, amount, budget):
    index = at(keep(amount), tokens=tokens, budget=budget)
    wanted = min(amount, budget)
    assert 0 <= index <= len(tokens)
    if sum(tokens) >= wanted:
        assert sum(tokens[index:]) >= wanted
        assert index == len(tokens) or sum(tokens[index + 1 :]) < wanted
    else:
        assert index == 0


# ---- where


def two_turns() -> list[Said]:
    return entries(
        user("one"),  # 0
        calls("a"),
        tool("a"),
        assistant("done"),
        user("two"),  # 4
        calls("b"),
        tool("b"),
        calls("c"),
        tool("c"),
        assistant("done"),
    )


def test_the_nearest_legal_index_at_or_after_is_taken():
    kept = two_turns()
    assert choose_cut(kept, 3, "any") == Cut(3, split=True, by_rule=True)
    assert choose_cut(kept, 4, "any") == Cut(4, split=False, by_rule=True)
    assert choose_cut(kept, 0, "any") == Cut(1, split=True, by_rule=True)


def test_a_cut_landing_on_a_result_moves_on():
    kept = two_turns()
    assert choose_cut(kept, 2, "not_result") == Cut(3, split=True, by_rule=True)
    assert choose_cut(kept, 6, "not_result") == Cut(7, split=True, by_rule=True)


def test_a_rule_moves_the_cut_to_a_message_that_it_allows():
    kept = two_turns()
    assert choose_cut(kept, 1, "user") == Cut(4, split=False, by_rule=True)
    assert choose_cut(kept, 1, "turn") == Cut(4, split=False, by_rule=True)
    assert choose_cut(kept, 1, "user_or_plain_assistant") == Cut(3, split=True, by_rule=True)
    assert choose_cut(kept, 5, "user_or_plain_assistant") == Cut(9, split=True, by_rule=True)


def test_a_turn_larger_than_the_budget_is_split_and_that_is_told():
    kept = two_turns()
    assert choose_cut(kept, 6, "turn") == Cut(7, split=True, by_rule=False)
    assert choose_cut(kept, 5, "user") == Cut(5, split=True, by_rule=False)


def test_keeping_nothing_follows_every_rule():
    kept = two_turns()
    for rule in RULES:
        assert choose_cut(kept, 10, rule) == Cut(10, split=False, by_rule=True)


def test_where_a_rule_leaves_only_keeping_nothing_that_is_told():
    kept = entries(user(), assistant("a"), assistant("b"))
    assert choose_cut(kept, 3, "user") == Cut(3, split=False, by_rule=True)
    assert choose_cut(kept, 2, "user") == Cut(2, split=True, by_rule=False)


def test_trailing_results_alone_larger_than_the_keep_are_kept_with_their_call():
    kept = entries(user(), assistant("ok"), user("look"), calls("a", "b"), results("a", "b"))
    assert choose_cut(kept, 5, "not_result") == Cut(3, split=True, by_rule=False)
    assert choose_cut(kept, 4, "turn") == Cut(3, split=True, by_rule=False)


def test_the_open_batch_of_a_long_turn_is_kept():
    kept = entries(user(), calls("a"), tool("a"), calls("b", "c"), tool("b"))
    assert choose_cut(kept, 5, "any") == Cut(3, split=True, by_rule=False)


def test_no_user_message_but_the_first_splits_the_turn():
    kept = entries(user(), *(m for n in range(9) for m in (calls(f"c{n}"), tool(f"c{n}"))))
    assert choose_cut(kept, 12, "turn") == Cut(13, split=True, by_rule=False)


def test_a_pairing_that_is_known_is_used():
    kept = entries(user(), calls("a"), tool("a"), assistant("ok"))
    assert choose_cut(kept, 2, "any") == Cut(3, split=True, by_rule=True)
    assert choose_cut(kept, 2, "any", pairing=pair([])) == Cut(2, split=True, by_rule=True)


def test_what_cannot_be_cut_is_not():
    assert choose_cut([], 0, "any") is None
    assert choose_cut(entries(user()), 0, "any") is None
    assert choose_cut(entries(calls("a"), tool("a")), 1, "any") is None


def test_a_boundary_is_not_crossed_where_the_policy_forbids_it():
    kept = two_turns()
    assert choose_cut(kept, 1, "user", first=4) == Cut(4, split=False, by_rule=True)
    assert choose_cut(kept, 1, "user", first=5) == Cut(5, split=True, by_rule=False)
    assert choose_cut(kept, 1, "user", first=10) == Cut(10, split=False, by_rule=False)
    assert choose_cut(kept, 1, "user", first=11) is None


@pytest.mark.parametrize(
    ("first", "split"),
    [(user(), False), (results("x", text="and?"), False), (assistant("a"), True), (calls("a"), True)],
)
def test_a_cut_before_anything_but_a_prompt_splits_a_turn(first, split):
    assert is_split(entries(user(), first), 1) is split


def test_a_reminder_does_not_start_a_turn_and_the_end_splits_none():
    assert is_split(entries(user(), reminder()), 1)
    assert is_split(entries(user(), developer()), 1)
    assert not is_split(entries(user(), assistant("a")), 2)


@given(any_list, st.integers(0, 30), st.sampled_from(RULES), st.integers(0, 12))
def test_a_cut_is_legal_by_rule_where_one_follows_and_the_nearest(made, start, rule, first):
    dialect, payloads = made
    kept = [e for e in chain(decode(dialect, payloads)).path() if isinstance(e, Said)]
    legal = [i for i in legal_cuts(kept) if i >= first]
    cut = choose_cut(kept, start, rule, first=first)
    if cut is None:
        assert not legal
        return
    allowed = [i for i in legal if i >= start and i < len(kept) and fits_rule(rule, kept, i)]
    after = [i for i in legal if i >= start]
    assert cut.index in legal
    assert cut.index == min(allowed or after or legal[-1:])
    assert cut.by_rule is bool(allowed) or (cut.by_rule and start >= cut.index == len(kept))
    assert cut.split == (cut.index < len(kept) and not kept[cut.index].message.is_prompt)
