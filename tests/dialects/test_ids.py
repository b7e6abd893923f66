"""Ids and names in another dialect."""

# pyright: basic

from hypothesis import given
from hypothesis import strategies as st

from foldline.dialects.ids import Ids


def test_ten_thousand_calls_of_one_id_take_no_time():
    ids = Ids(limit=64, everywhere=True, any_text=False)
    found = set()
    for _ in range(10_000):
        ids.batch()
        found.add(ids.call("call_0"))
        assert ids.result("call_0") in found
    assert len(found) == 10_000


@given(st.lists(st.lists(st.text("a:.", min_size=1, max_size=3), unique=True, max_size=3), max_size=6))
def test_calls_and_results_agree(batches):
    ids = Ids(limit=8, everywhere=True, any_text=False, taken=["a"])
    seen = {"a"}
    for batch in batches:
        ids.batch()
        called = {old: ids.call(old) for old in batch}
        assert not seen & set(called.values())
        assert len(set(called.values())) == len(called)
        seen |= set(called.values())
        assert {old: ids.result(old) for old in reversed(batch)} == called
        assert all(len(new) <= 8 for new in called.values())
