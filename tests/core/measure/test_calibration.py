import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.core.measure.accounting import Calibration, update


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
