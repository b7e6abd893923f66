import pytest
from tests.core.decide.builders import assistant, entries, tool, usage, user

from foldline.core.log.messages import Usage
from foldline.core.measure.accounting import context_size, last_input, real_usage


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
