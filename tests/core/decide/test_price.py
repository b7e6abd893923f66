import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.core.decide.price import (
    USUAL,
    Cache,
    Economy,
    Price,
    added,
    bare,
    by_price,
    choice_note,
    cost,
    dollars,
    in_session,
)
from foldline.core.log.messages import Usage

# claude-sonnet-4-6 and claude-haiku-4-5 in November 2026, USD for a million tokens
SONNET = Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
HAIKU = Price(input=1.0, output=5.0, cache_read=0.1, cache_write=1.25)
WARM = Cache(tokens=90_000, idle=30.0)


def test_a_cache_is_warm_for_as_long_as_the_provider_keeps_it():
    assert Cache(1_000, idle=299.9).warm == 1_000
    assert Cache(1_000, idle=300.0).warm == 0
    assert Cache(1_000, idle=600.0, life=3_600.0).warm == 1_000
    assert Cache(1_000).warm == 0


def test_in_the_session_what_is_cached_is_read_and_the_rest_is_put_in():
    way = in_session("own", SONNET, prompt=100_000, asked=1_000, output=12_000, cache=WARM)
    assert way.usage == Usage(input=1_000, cache_read=90_000, cache_write=10_000, output=USUAL)
    assert way.usd == pytest.approx((1_000 * 3 + 90_000 * 0.3 + 10_000 * 3.75 + USUAL * 15) / 1e6)


def test_as_text_each_call_pays_for_the_summary_before_it():
    way = bare("own", HAIKU, prompt=40_000, calls=3, output=1_000)
    assert way.usage == Usage(input=42_000, output=3_000)
    assert bare("own", None, prompt=1, calls=1, output=1).usd is None


def test_the_cheapest_way_is_taken_and_the_receipt_says_over_which():
    warm = in_session("own", SONNET, prompt=100_000, asked=800, output=3_000, cache=WARM)
    text = bare("own", SONNET, prompt=60_000, calls=1, output=3_000)
    other = bare("small", HAIKU, prompt=60_000, calls=1, output=3_000)
    assert by_price([other, warm, text])[0] == other
    assert [way.form for way in by_price([text, warm])] == ["in-session", "bare"]
    cold = in_session("own", SONNET, prompt=100_000, asked=800, output=3_000, cache=Cache(90_000, idle=900.0))
    assert [way.form for way in by_price([cold, text])] == ["bare", "in-session"]
    words = choice_note(by_price([text, warm]))
    assert words == (
        "written in-session by own ($0.1029, 90,000 tokens from its cache): cheapest; by own ($0.2160)"
    )


def test_a_price_that_is_not_known_leaves_the_order_as_it_is():
    known, unknown = (
        bare("a", SONNET, prompt=9, calls=1, output=1),
        bare("b", None, prompt=1, calls=1, output=1),
    )
    assert by_price([known, unknown]) == [known, unknown]
    assert (
        choice_note([unknown, known])
        == "written by b (price unknown): prices are unknown, so the first choice was used"
    )
    assert choice_note([known]) == "written by a ($0.0000): the only way"


def test_a_compaction_loses_the_cache_and_pays_when_the_requests_after_have_saved_that():
    found = Economy(SONNET, Cache(100_000, idle=10.0)).balance(100_000, 20_000, same=5_000, summary=0.10)
    lost = (5_000 * 0.3 + 15_000 * 3.75 - 100_000 * 0.3) / 1e6
    assert (found.lost, found.saved) == (pytest.approx(lost), pytest.approx(80_000 * 0.3 / 1e6))
    assert found.requests == 6  # (0.10 + 0.02775) / 0.024 = 5.3
    assert found.words == (
        "pays after 6 requests: $0.1000 for the summary, $0.0278 for the cache it loses; each costs $0.0240 less"
    )


def test_with_a_cold_cache_the_next_request_is_cheaper_at_once():
    found = Economy(SONNET, Cache(100_000, idle=900.0)).balance(100_000, 20_000, same=5_000, summary=0.10)
    assert found.lost < 0
    assert found.requests == 0
    assert found.words == "pays at once: each request costs $0.0240 less"


def test_what_saves_nothing_never_pays():
    found = Economy(SONNET, Cache(1_000, idle=1.0)).balance(1_000, 1_000, same=0, summary=1.0)
    assert found.requests is None
    assert found.words == "a request costs no less than before"


def test_an_economy_reckons_with_what_it_knows():
    economy = Economy(SONNET, WARM)
    assert economy.balance(90_000, 9_000, same=0, summary=None).summary == 0.0
    assert Economy(Price(input=1.0, output=1.0)).balance(10, 5, same=0, summary=0.0).requests == 0


@given(
    before=st.integers(1, 500_000),
    share=st.floats(0.01, 1),
    same=st.integers(0, 50_000),
    idle=st.one_of(st.none(), st.floats(0, 1_000)),
    summary=st.floats(0, 5),
)
def test_the_requests_that_it_names_are_the_first_that_pay(before, share, same, idle, summary):
    after = max(1, int(before * share))
    found = Economy(SONNET, Cache(before, idle=idle)).balance(before, after, same=same, summary=summary)
    if found.requests is None:
        assert found.saved <= 0
    elif found.requests > 0:
        assert found.saved * found.requests >= summary + found.lost - 1e-9
        assert found.saved * (found.requests - 1) < summary + found.lost + 1e-9


def test_usages_add_up():
    one, other = Usage(1, 2, 3, 4), Usage(10, 20, 30, 40)
    assert added(one, other) == Usage(11, 22, 33, 44)
    assert (added(None, one), added(one, None), added(None, None)) == (one, one, None)
    assert cost(Usage(cache_read=1_000_000), Price(input=2.0, output=1.0)) == 2.0
    assert [dollars(usd) for usd in (0.0312, 1.5, 1234.0)] == ["$0.0312", "$1.50", "$1,234.00"]
