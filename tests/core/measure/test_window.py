import pytest

from foldline.core.measure.window import Amount, Floor, Window, share, usable_tokens

WINDOW = Window(200_000, output=8_192)


def test_the_input_limit_is_the_smaller_of_input_and_context():
    assert Window(400_000, input=272_000).input_limit == 272_000
    assert Window(100_000, input=272_000).input_limit == 100_000
    assert Window(100_000).input_limit == 100_000


@pytest.mark.parametrize(
    ("amount", "tokens"),
    [
        (Amount(), 0),
        (Amount(tokens=7), 7),
        (Amount(fraction=0.35), 70_000),
        (Amount(tokens=20_000, fraction=0.35), 20_000),
        (Amount(tokens=100_000, fraction=0.35), 70_000),
        (Amount(output=True), 8_192),
        (Amount(tokens=4_000, output=True), 4_000),
        (Amount(fraction=0.5, of="usable"), 90_000),
        (Amount(less=30_000), 170_000),
        (Amount(less=300_000), 0),
    ],
)
def test_an_amount_is_the_smallest_of_the_ways_it_is_given(amount, tokens):
    assert amount.resolve(WINDOW, usable=180_000) == tokens


def test_a_share_of_usable_is_one_of_the_context_where_usable_is_not_known():
    assert Amount(fraction=0.5, of="usable").resolve(WINDOW) == 100_000


def test_less_counts_from_the_input_limit():
    assert Amount(less=30_000).resolve(Window(400_000, input=272_000)) == 242_000


def test_a_share_does_not_lose_a_token_to_binary_fractions():
    assert share(100, 0.29) == 29  # 0.29 * 100 is 28.999999999999996
    assert share(1_000_000, 0.57) == 570_000
    assert share(101, 0.5) == 50


def test_usable_is_the_input_limit_less_the_reserve():
    assert usable_tokens(WINDOW, Amount(tokens=30_000)) == 170_000
    assert usable_tokens(Window(400_000, input=272_000), Amount(tokens=16_384)) == 255_616


def test_a_quarter_stays_usable_however_large_the_reserve():
    assert usable_tokens(Window(40_000), Amount(tokens=30_000)) == 10_000
    assert usable_tokens(Window(8_192), Amount(tokens=16_384)) == 2_048


def test_a_floor_adds_up_and_names_its_parts_largest_first():
    floor = Floor(system=300, tools=900, unanswered=50)
    assert floor.total == 1_250
    assert list(floor.breakdown.items()) == [("tools", 900), ("system", 300), ("unanswered", 50)]
    assert Floor().breakdown == {}
