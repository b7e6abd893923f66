import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs import any_messages, chain, decode
from tests.support.talk import assistant, calls, developer, entries, reminder, results, tool, user

from foldline.core.cut.cut import (
    Cut,
    counted_from,
    cut_by_count,
    cut_by_tokens,
    cut_notes,
    is_split,
    places,
)
from foldline.core.cut.legal import fits_rule, legal_cuts
from foldline.core.decide.policy import Keep
from foldline.core.log.entries import Said

RULES = ["turn", "user", "user_or_plain_assistant", "not_result", "any"]
ALL = 10_000


def two_turns(*tokens: int) -> list[Said]:
    talk = (
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
    return entries(*talk, tokens=tokens or 10)


def by_tokens(kept: list[Said], wanted: int, rule="any", *, first=0, **more) -> Cut | None:
    return cut_by_tokens(places(kept, rule).since(first), wanted, **more)


def by_count(kept: list[Said], at: int, rule="any", *, budget=ALL) -> Cut | None:
    return cut_by_count(places(kept, rule), at, budget)


# ---- a number of tokens: nearest from below, half at least


def test_of_the_cuts_that_the_rule_allows_the_one_nearest_to_the_amount_from_below_is_taken():
    kept = two_turns()
    assert by_tokens(kept, 70) == Cut(3, inside_turn=True)
    assert by_tokens(kept, 69) == Cut(4, inside_turn=False)
    assert by_tokens(kept, 60, "turn") == Cut(4, inside_turn=False)
    assert by_tokens(kept, 100, "user") == Cut(4, inside_turn=False)
    assert by_tokens(kept, 75, "user_or_plain_assistant") == Cut(3, inside_turn=True)
    assert by_tokens(kept, 49, "not_result") == Cut(7, inside_turn=True)


def test_a_turn_is_split_where_the_rule_allows_no_cut_that_keeps_half():
    kept = two_turns()
    assert by_tokens(kept, 59, "turn") == Cut(5, inside_turn=True, how="split")
    assert by_tokens(kept, 35, "user") == Cut(7, inside_turn=True, how="split")
    assert by_tokens(kept, 45, "user_or_plain_assistant") == Cut(7, inside_turn=True, how="split")


def test_a_large_turn_and_a_new_user_message_do_not_end_with_the_message_alone():
    steps = [m for n in range(400) for m in (calls(f"c{n}"), tool(f"c{n}"))]
    kept = entries(user(), *steps, assistant("done"), user("next"), tokens=[6, *([12, 180] * 400), 20, 6])
    cut = by_tokens(kept, 20_000, "turn")
    assert cut.how == "split"
    assert 19_800 < sum(entry.tokens for entry in kept[cut.index :]) <= 20_000


def test_a_cut_never_lands_on_a_result():
    kept = two_turns()
    for wanted in range(1, 101):
        for rule in RULES:
            assert by_tokens(kept, wanted, rule).index not in (2, 6, 8)
            assert by_tokens(kept, wanted, rule, walk_back=True, most=ALL).index not in (2, 6, 8)


def test_a_batch_larger_than_the_other_half_is_kept_whole():
    kept = entries(user(), calls("a"), tool("a"), assistant("ok"), tokens=[50, 5, 900, 5])
    assert by_tokens(kept, 100, "turn") == Cut(1, inside_turn=True, how="split")
    assert by_tokens(kept, 100, "not_result") == Cut(1, inside_turn=True, how="walked_back")
    assert by_tokens(kept, 8, "turn") == Cut(3, inside_turn=True, how="split")


def test_where_less_was_said_than_is_kept_all_but_the_first_may_stay():
    kept = two_turns()
    assert by_tokens(kept, 500) == Cut(1, inside_turn=True)
    assert by_tokens(kept, 500, "turn") == Cut(4, inside_turn=False)
    assert by_tokens(kept, 500, "turn", first=5) == Cut(5, inside_turn=True, how="split")
    assert by_tokens(entries(user(), assistant("a")), 500, "turn") == Cut(1, inside_turn=True, how="split")


def test_what_waits_is_kept_where_nothing_else_is():
    kept = [*two_turns(), *entries(user("next"))]
    assert by_tokens(kept, 0, "turn") == Cut(10, inside_turn=False)
    held = entries(user(), assistant("ok"), user("look"), calls("a", "b"), results("a", "b"))
    assert by_tokens(held, 0, "any") == Cut(3, inside_turn=True)
    assert by_tokens(held, 5, "turn") == Cut(3, inside_turn=True, how="split")


def test_what_cannot_be_cut_is_not():
    for kept in ([], entries(user()), entries(calls("a"), tool("a"))):
        assert by_tokens(kept, 100) is None
        assert by_tokens(kept, 100, walk_back=True, most=ALL) is None
        assert by_count(kept, 0) is None
    assert by_tokens(two_turns(), 30, first=11) is None


# ---- a seed that walks back


def test_the_message_that_reaches_the_amount_is_kept_by_a_policy_that_walks_back():
    kept = entries(*(assistant(str(n)) for n in range(10)))
    assert by_tokens(kept, 30, walk_back=True, most=ALL) == Cut(7, inside_turn=True)
    assert by_tokens(kept, 31, walk_back=True, most=ALL) == Cut(6, inside_turn=True)
    assert by_tokens(kept, 31) == Cut(7, inside_turn=True)


def test_it_walks_back_from_a_place_where_no_cut_may_fall():
    kept = two_turns()
    back = by_tokens(kept, 35, "user_or_plain_assistant", walk_back=True, most=ALL)
    assert back == Cut(4, inside_turn=False, how="walked_back")
    assert by_tokens(kept, 35, "not_result", walk_back=True, most=ALL) == Cut(
        5, inside_turn=True, how="walked_back"
    )


def test_it_does_not_walk_back_to_what_does_not_fit():
    kept = two_turns()
    rule = "user_or_plain_assistant"
    assert by_tokens(kept, 35, rule, walk_back=True, most=60).index == 4
    assert by_tokens(kept, 35, rule, walk_back=True, most=59) == Cut(7, inside_turn=True, how="split")


# ---- a number of messages


def test_a_count_of_messages_is_kept_whatever_their_size():
    assert counted_from(Keep(messages=4), 10) == 6
    assert counted_from(Keep(messages=0), 10) == 10
    assert counted_from(Keep(messages=10), 10) == 0
    assert counted_from(Keep(messages=11), 10) == 0
    assert counted_from(Keep(), 10) == 0


def test_a_share_of_the_messages_is_rounded_down_and_the_smaller_count_wins():
    assert counted_from(Keep(message_fraction=0.3), 10) == 7
    assert counted_from(Keep(message_fraction=0.39), 10) == 7
    assert counted_from(Keep(messages=2, message_fraction=0.3), 10) == 8
    assert counted_from(Keep(messages=10, message_fraction=0.3), 10) == 7


def test_no_more_messages_are_kept_than_fit_the_budget():
    kept = entries(*(assistant(str(n)) for n in range(10)))
    assert by_count(kept, 2, budget=30).index == 7
    assert by_count(kept, 2, budget=39).index == 7
    assert by_count(kept, 2, budget=80).index == 2
    assert by_count(kept, 2, budget=100).index == 2
    assert by_count(kept, 2, budget=0).index == 10


def test_the_nearest_legal_index_at_or_after_the_count_is_taken():
    kept = two_turns()
    assert by_count(kept, 3) == Cut(3, inside_turn=True)
    assert by_count(kept, 2) == Cut(3, inside_turn=True)
    assert by_count(kept, 0) == Cut(1, inside_turn=True)
    assert by_count(kept, 1, "user") == Cut(4, inside_turn=False)
    assert by_count(kept, 10) == Cut(10, inside_turn=False)


def test_where_the_rule_allows_none_that_keeps_a_message_another_is_taken():
    kept = two_turns()
    assert by_count(kept, 5, "user") == Cut(5, inside_turn=True, how="split")
    assert by_count(kept, 6, "turn") == Cut(7, inside_turn=True, how="split")


def test_the_open_batch_of_a_long_turn_is_kept():
    kept = entries(user(), calls("a"), tool("a"), calls("b", "c"), tool("b"))
    assert by_count(kept, 5) == Cut(3, inside_turn=True)


# ---- what is said of a cut


@pytest.mark.parametrize(
    ("first", "inside"),
    [(user(), False), (results("x", text="and?"), False), (assistant("a"), True), (calls("a"), True)],
)
def test_a_cut_before_anything_but_a_prompt_splits_a_turn(first, inside):
    assert is_split(entries(user(), first), 1) is inside


def test_a_reminder_does_not_start_a_turn_and_the_end_splits_none():
    assert is_split(entries(user(), reminder()), 1)
    assert is_split(entries(user(), developer()), 1)
    assert not is_split(entries(user(), assistant("a")), 2)


def test_a_receipt_says_where_a_cut_is_not_as_the_policy_has_it():
    assert cut_notes(Cut(4, inside_turn=False), "turn") == []
    assert (
        "more was kept than requested" in cut_notes(Cut(4, inside_turn=False, how="walked_back"), "user")[0]
    )
    assert cut_notes(Cut(4, inside_turn=True, how="split"), "any") == []
    assert "a turn was split" in cut_notes(Cut(4, inside_turn=True, how="split"), "user")[0]


# ---- whatever was said


def made(kept_of) -> list[Said]:
    dialect, payloads = kept_of
    return [e for e in chain(decode(dialect, payloads)).path() if isinstance(e, Said)]


@given(any_messages, st.integers(0, 400), st.sampled_from(RULES), st.integers(0, 12))
def test_a_cut_is_legal_and_keeps_half_of_what_is_asked_for(talk, wanted, rule, first):
    kept = made(talk)
    found = places(kept, rule).since(first)
    cut = cut_by_tokens(found, wanted)
    legal = [index for index in legal_cuts(kept) if index >= first]
    if cut is None:
        assert not legal
        return
    tail = found.tails
    assert cut.index in legal
    assert tail[cut.index] == sum(entry.tokens for entry in kept[cut.index :])
    assert tail[cut.index] >= min(wanted, tail[legal[0]]) / 2
    near = [i for i in legal if wanted >= tail[i] >= min(wanted, tail[legal[0]]) / 2]
    allowed = [i for i in near if fits_rule(rule, kept, i)]
    assert cut.index == (min(allowed or near) if near else max(i for i in legal if tail[i] > wanted))
    assert (cut.how == "split") == (not fits_rule(rule, kept, cut.index))
    assert cut.inside_turn == (cut.index < len(kept) and not kept[cut.index].message.is_prompt)


@given(any_messages, st.integers(0, 400), st.sampled_from(RULES), st.integers(0, 600))
def test_walking_back_keeps_all_that_is_asked_for_or_what_others_keep(talk, wanted, rule, most):
    kept = made(talk)
    found = places(kept, rule)
    cut = cut_by_tokens(found, wanted, walk_back=True, most=most)
    if cut != cut_by_tokens(found, wanted):
        assert wanted <= found.tails[cut.index] <= most
        assert cut.index in found.allowed
        assert not [
            i for i in found.allowed if i > cut.index and found.tails[i] >= wanted > found.tails[i + 1]
        ]


@given(any_messages, st.integers(0, 30), st.sampled_from(RULES), st.integers(0, 600))
def test_a_cut_by_count_is_the_nearest_that_the_rule_allows(talk, start, rule, budget):
    kept = made(talk)
    found = places(kept, rule)
    cut = cut_by_count(found, start, budget)
    legal = legal_cuts(kept)
    if cut is None:
        assert not legal
        return
    after = [i for i in legal if i >= start and found.tails[i] <= budget]
    allowed = [i for i in after if i < len(kept) and fits_rule(rule, kept, i)]
    assert cut.index == min(allowed or after or legal[-1:])
