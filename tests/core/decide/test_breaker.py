from hypothesis import given
from hypothesis import strategies as st
from tests.core.decide.builders import entries
from tests.support.talk import user

from foldline.core.decide.breaker import (
    NEW_MESSAGES,
    STRIKES,
    BreakerState,
    breaker_state,
)
from foldline.core.log.entries import Checkpoint, Compacted, Lifted, Noted, Pruned, Receipt, Said

SAID: Said = entries([(user(), 1)])[0]


def strike(reason="threshold", why="empty summary"):
    return Noted("n", None, "strike", {"reason": reason, "why": why})


COMPACTED = Compacted("c", None, Checkpoint("t", "s"), Receipt("threshold"))
PRUNED = Pruned("p", None, Receipt("threshold"))


def test_a_session_without_failures_has_a_closed_breaker():
    assert breaker_state([]) == BreakerState()
    assert not breaker_state([SAID, COMPACTED, SAID]).open


def test_three_failures_open_it_two_do_not():
    assert not breaker_state([strike(), SAID, strike()]).open
    opened = breaker_state([strike(), SAID, strike(), SAID, strike()])
    assert opened.open
    assert opened.strikes == STRIKES
    assert not opened.open_on_overflow


def test_a_success_forgets_failures():
    for success in (COMPACTED, PRUNED):
        assert breaker_state([strike(), strike(), success, strike()]).strikes == 1
    assert breaker_state([strike(), strike(), strike(), COMPACTED]) == BreakerState()


def test_lifting_a_boundary_is_no_success():
    assert breaker_state([strike(), strike(), strike(), Lifted("l", None, "c", lifted=True)]).open


def test_new_messages_close_it_and_failures_count_anew():
    failed = [strike()] * STRIKES
    assert breaker_state([*failed, *[SAID] * (NEW_MESSAGES - 1)]).open
    assert breaker_state([*failed, *[SAID] * NEW_MESSAGES]) == BreakerState()
    assert breaker_state([*failed, *[SAID] * NEW_MESSAGES, strike()]).strikes == 1


def test_failures_far_apart_still_add_up():
    apart = [strike(), *[SAID] * 100, strike(), *[SAID] * 100, strike()]
    assert breaker_state(apart).open


def test_another_failure_while_open_starts_the_wait_again():
    failed = [*[strike()] * STRIKES, SAID, SAID, strike()]
    assert breaker_state([*failed, *[SAID] * (NEW_MESSAGES - 1)]).open
    assert not breaker_state([*failed, *[SAID] * NEW_MESSAGES]).open


def test_a_no_op_and_a_cancelled_one_are_no_failures():
    harmless = [strike(why="no_op"), strike(why="cancelled")] * STRIKES
    assert breaker_state(harmless) == BreakerState()


def test_only_failures_after_overflows_hold_back_an_overflow():
    assert breaker_state([strike("overflow")] * STRIKES).open_on_overflow
    mixed = [strike("overflow"), strike("overflow"), strike("threshold")]
    assert breaker_state(mixed).open
    assert not breaker_state(mixed).open_on_overflow


def test_a_cool_down_lasts_until_its_time_or_a_success():
    waiting = [SAID, Noted("n", None, "cooldown", {"until": 1_000.0, "why": "rate limit"}), SAID]
    assert breaker_state(waiting, now=999.0).open
    assert not breaker_state(waiting, now=1_000.0).open
    assert not breaker_state(waiting).open, "without the time nothing can be said of it"
    assert not breaker_state([*waiting, COMPACTED], now=999.0).open
    with_strikes = [*waiting, *[strike()] * STRIKES, *[SAID] * NEW_MESSAGES]
    assert breaker_state(with_strikes, now=999.0) == BreakerState(until=1_000.0)


def test_notes_of_other_kinds_and_broken_ones_are_passed_over():
    odd = [Noted("n", None, "title", {"why": "x"}), Noted("n", None, "cooldown", {"until": "soon"})]
    assert breaker_state(odd, now=0.0) == BreakerState()


@given(st.lists(st.sampled_from([SAID, COMPACTED, PRUNED, strike(), strike("overflow")]), max_size=60))
def test_what_came_before_a_success_never_matters(path):
    last = max((i for i, entry in enumerate(path) if entry in (COMPACTED, PRUNED)), default=-1)
    assert breaker_state(path) == breaker_state(path[last + 1 :])
    assert breaker_state([*path, *[SAID] * NEW_MESSAGES]).open is False
