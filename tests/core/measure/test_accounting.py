import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.decide.builders import assistant, entries, tool, usage, user

from foldline.core.log.messages import Usage
from foldline.core.measure.accounting import anchor_index, context_size, last_input, real_usage


def session(*pairs):
    return entries(pairs)


def test_the_last_real_usage_counts_and_what_follows_is_estimated():
    kept = session(
        (user(), 900), (assistant("a", usage=usage(5_000)), 100), (user(), 30), (tool("c", "x"), 12)
    )
    size = context_size(kept, overhead=700, made=50)
    assert (size.tokens, size.measured, size.estimated) == (5_042, 5_000, 42)
    assert size.anchor == kept[1].id


def test_all_four_kinds_of_usage_count():
    spent = Usage(input=1, cache_read=20, cache_write=300, output=4_000)
    assert context_size(session((assistant("a", usage=spent), 5))).tokens == 4_321


def test_without_usage_everything_is_estimated_system_prompt_and_tools_included():
    size = context_size(session((user(), 900), (assistant("a"), 100)), overhead=700, made=50)
    assert (size.tokens, size.measured, size.anchor) == (1_750, 0, None)


def test_what_edits_save_counts_where_no_usage_includes_it():
    kept = session((user(), 900), (assistant("a"), 100))
    assert context_size(kept, saved=400).tokens == 600
    assert context_size(kept, saved=4_000).tokens == 0
    measured = session((assistant("a", usage=usage(5_000)), 100), (user(), 30))
    assert context_size(measured, saved=400).tokens == 5_030


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
    kept = session((assistant("a", usage=usage(5_000)), 100), (worthless, 40))
    assert real_usage(worthless) is None
    assert context_size(kept).tokens == 5_040


def test_a_reply_cut_off_by_its_length_is_complete():
    kept = session((user(), 1), (assistant("a", usage=usage(5_000), stop="length"), 100))
    assert context_size(kept).tokens == 5_000


def test_usage_from_before_the_boundary_is_stale():
    kept = session((user(), 10), (assistant("a", usage=usage(180_000)), 20), (user(), 30))
    assert context_size(kept, fresh_from=2, overhead=1_000, made=400).tokens == 1_460
    assert context_size(kept, fresh_from=1).tokens == 180_030
    fresh = session(*[(e.message, e.tokens) for e in kept], (assistant("b", usage=usage(2_000)), 9))
    assert context_size(fresh, fresh_from=2, overhead=1_000, made=400).tokens == 2_000


def test_calibration_scales_estimates_alone():
    kept = session((assistant("a", usage=usage(5_000)), 100), (user(), 101))
    assert context_size(kept, ratio=1.25).tokens == 5_000 + 127
    assert context_size(kept[1:], overhead=9, ratio=1.25).tokens == 138


def test_another_estimator_can_weigh_the_entries():
    kept = session((user("twelve chars"), 900), (assistant("a"), 100))
    assert context_size(kept, weigh=lambda entry: len(entry.message.text)).tokens == 13


def test_an_empty_view_is_its_overhead():
    assert context_size([], overhead=70, made=5).tokens == 75
    assert anchor_index([]) is None


def test_the_last_input_leaves_the_output_out():
    spent = Usage(input=100, cache_read=20, cache_write=3, output=4_000)
    kept = session((assistant("a", usage=spent), 5), (user(), 50))
    assert last_input(kept) == 123
    assert last_input(kept, fresh_from=1) is None


def test_only_the_tail_is_looked_at_where_usage_exists():
    class Watched(list):
        touched = 0

        def __getitem__(self, index):
            Watched.touched += 1
            return super().__getitem__(index)

    old = session(*[(user(str(i)), 3) for i in range(2_000)], (assistant("a", usage=usage(5_000)), 1))
    kept = Watched([*old, *session((user("new"), 4), (user("newer"), 5))])
    assert context_size(kept).tokens == 5_009
    assert Watched.touched <= 10


tokens = st.integers(0, 100_000)
plain = st.tuples(
    st.sampled_from([user("u"), assistant("a"), tool("c", "t"), assistant("x", stop="error")]), tokens
)
measured = st.builds(lambda n, t: (assistant("a", usage=usage(n)), t), st.integers(10, 10**6), tokens)


@given(
    st.lists(st.one_of(plain, plain, measured), max_size=12),
    plain,
    st.fixed_dictionaries(
        {
            "fresh_from": st.integers(0, 14),
            "overhead": st.integers(0, 5_000),
            "made": st.integers(0, 5_000),
            "ratio": st.floats(0.1, 4.0),
        }
    ),
)
def test_an_estimate_never_falls_when_a_message_is_appended(before, new, more):
    kept = entries(before)
    longer = [*kept, *entries([new])]
    first, then = context_size(kept, **more), context_size(longer, **more)
    assert then.tokens >= first.tokens
    assert then.anchor == first.anchor
    assert then.tokens == then.measured + then.estimated


@given(st.lists(st.one_of(plain, measured), min_size=1, max_size=12), st.data())
def test_no_usage_from_before_a_boundary_counts_after_it(items, data):
    kept = entries(items)
    fresh = data.draw(st.integers(0, len(kept)))
    blind = [
        e
        if i >= fresh
        else msgspec.structs.replace(e, message=msgspec.structs.replace(e.message, usage=None))
        for i, e in enumerate(kept)
    ]
    assert context_size(kept, fresh_from=fresh).tokens == context_size(blind).tokens
