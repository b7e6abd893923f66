import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.decide.builders import entries, usage
from tests.support.talk import assistant, tool, user

from foldline.core.log.messages import Usage
from foldline.core.measure.accounting import Calibration, context_size, last_input, real_usage, update


def session(*pairs):
    return entries(pairs)


def test_the_last_real_usage_counts_and_what_follows_is_estimated():
    since = session((assistant("a", usage=usage(5_000)), 100), (user(), 30), (tool("c", "x"), 12))
    assert context_size(since) == 5_042


def test_all_four_kinds_of_usage_count():
    spent = Usage(input=1, cache_read=20, cache_write=300, output=4_000)
    assert context_size(session((assistant("a", usage=spent), 5))) == 4_321


@pytest.mark.parametrize(
    "worthless",
    [
        assistant("cut", usage=usage(9_000), stop="aborted"),
        assistant("cut", usage=usage(9_000), stop="error"),
        assistant("cut", usage=Usage()),
        assistant("cut", usage=Usage(output=10)),
        assistant("cut"),
        user(usage=usage(9_000)),
    ],
)
def test_aborted_errored_and_empty_usages_count_for_nothing(worthless):
    assert real_usage(worthless) is None


def test_a_reply_cut_off_by_its_length_is_complete():
    assert real_usage(assistant("a", usage=usage(5_000), stop="length")) == usage(5_000)


def test_calibration_scales_estimates_alone():
    since = session((assistant("a", usage=usage(5_000)), 100), (user(), 101))
    assert context_size(since, ratio=1.25) == 5_000 + 127


def test_another_estimator_can_weigh_the_entries():
    since = session((assistant("a", usage=usage(5_000)), 100), (user("twelve chars"), 900))
    assert context_size(since, weigh=lambda entry: len(entry.message.text)) == 5_012


def test_the_last_input_leaves_the_output_out():
    spent = Usage(input=100, cache_read=20, cache_write=3, output=4_000)
    kept = session((assistant("a", usage=spent), 5), (user(), 50))
    assert last_input(kept) == 123
    assert last_input(kept[1:]) is None


# ---- calibration


def learn(pairs, start=None):
    start = start or Calibration()
    for estimated, actual in pairs:
        start = update(start, estimated, actual)
    return start


@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.35, 2.1])
def test_it_converges_to_the_real_ratio(ratio):
    learned = learn([(10_000 + 100 * n, round((10_000 + 100 * n) * ratio)) for n in range(25)])
    assert learned.ratio == pytest.approx(ratio, rel=0.02)
    assert learned.samples == 25


def test_the_first_sample_already_helps():
    assert learn([(10_000, 14_000)]).ratio == pytest.approx(1.2)


@pytest.mark.parametrize(("estimated", "actual"), [(5_000, 0), (0, 5_000), (-3, 10), (5_000, -1), (199, 400)])
def test_zero_and_tiny_usage_teaches_nothing(estimated, actual):
    known = Calibration(ratio=1.3, samples=4)
    assert update(known, estimated, actual) is known


@pytest.mark.parametrize("outlier", [100, 1_000_000])
def test_an_outlier_does_not_wreck_it(outlier):
    known = learn([(10_000, 12_500)] * 10)
    hit = update(known, 10_000, outlier)
    assert hit.ratio == pytest.approx(known.ratio, rel=0.11)
    assert learn([(10_000, 12_500)] * 10, hit).ratio == pytest.approx(1.25, rel=0.03)


def test_a_changed_tokenizer_is_followed_within_twenty_replies():
    known = learn([(10_000, 10_000)] * 30)
    assert learn([(10_000, 20_000)] * 20, known).ratio == pytest.approx(2.0, rel=0.05)


@given(st.lists(st.tuples(st.integers(-10, 10**7), st.integers(-10, 10**8)), max_size=30))
def test_it_stays_within_bounds(pairs):
    assert 0.5 <= learn(pairs).ratio <= 3.0
