import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.decide.builders import LETTERS

from foldline.core.cut.shorten import level, marker, shorten, shorten_all, splits

count = LETTERS.count


def test_a_text_that_fits_is_returned_as_it_is():
    assert shorten("abcd" * 5, 5, count, "h") == "abcd" * 5


def test_head_and_tail_stay_around_a_marker_that_says_how_much_and_where():
    text = "".join(f"{i:04}\n" for i in range(2_000))
    short = shorten(text, 200, count, "e7")
    head, rest = short.split("[…", 1)
    left_out, tail = rest.split("…]\n", 1)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert left_out == f" {len(text) - len(head) - len(tail):,} characters left out; recall e7 "
    assert abs(len(head) - len(tail)) <= 5
    assert 180 <= count(short) <= 200


def test_lines_are_kept_whole_where_that_costs_little():
    text = "".join(f"line {i} of a log\n" for i in range(500))
    short = shorten(text, 150, count, "h").splitlines()
    assert set(short) - set(text.splitlines()) == {line for line in short if "left out" in line}


def test_one_long_line_is_cut_in_its_middle():
    short = shorten("a" * 5_000 + "b" * 5_000, 100, count, "h")
    head, note, tail = short.split("\n")
    assert set(head) == {"a"}
    assert set(tail) == {"b"}
    assert len(head) > 100
    assert "left out" in note


@pytest.mark.parametrize("limit", [0, 1, 3, 8, 12])
def test_a_limit_too_small_for_the_marker_leaves_less(limit):
    short = shorten("word " * 1_000, limit, count, "handle")
    assert short
    assert count(short) <= max(1, limit)


@pytest.mark.parametrize(
    "unit",
    [
        "e\u0301\u0323",
        "\ud83d\ude00",
        "👩\u200d👩\u200d👧",
        "👍🏽",
        "🇩🇪🇫🇷",
        "\u1112\u1161\u11ab",
        "a\r\n",
        "नि",
    ],
)
def test_no_character_is_taken_apart(unit):
    text = unit * 700
    for limit in range(30, 60):
        head, rest = shorten(text, limit, count, "h").split("[…", 1)
        tail = rest.split("…]", 1)[1].removeprefix("\n")
        head = head.removesuffix("\n") if not unit.endswith("\n") else head
        whole = "🇩🇪" if unit.startswith("🇩") else unit
        assert len(head) % len(whole) == 0
        assert len(tail) % len(whole) == 0


def test_a_sequence_without_end_is_cut_all_the_same():
    assert count(shorten("e" + "\u0301" * 100_000, 100, count, "h")) <= 100


def test_splits_at_the_ends_and_between_letters_are_none():
    assert not splits("ab", 0)
    assert not splits("ab", 1)
    assert not splits("ab", 2)
    assert splits("\r\n", 1)
    assert not splits("\n\r", 1)


@given(st.text(max_size=3_000), st.integers(0, 300))
def test_the_result_fits_and_doing_it_again_changes_nothing(text, limit):
    short = shorten(text, limit, count, "h")
    assert count(short) <= max(limit, 1)
    assert shorten(short, max(limit, 1), count, "h") == short


@given(st.text(st.characters(exclude_characters="…"), min_size=400, max_size=3_000), st.integers(30, 90))
def test_what_is_kept_is_the_original_opening_and_end(text, limit):
    short = shorten(text, limit, count, "h")
    if short != text:
        head, rest = short.split("[…")
        note, tail = rest.split("…]")
        head, tail = (head, tail) if text.startswith(head) else (head[:-1], tail)
        tail = tail if len(tail) == 0 or (text.endswith(tail) and not tail.startswith("\n")) else tail[1:]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert "left out" in note


def test_the_marker_names_the_handle():
    assert marker(12_345, "abc") == "[… 12,345 characters left out; recall abc …]"


class TestLevel:
    @pytest.mark.parametrize(
        ("sizes", "budget", "cap"),
        [
            ([], 10, 0),
            ([3, 4], 10, 4),
            ([3, 40], 10, 7),
            ([30, 40], 10, 5),
            ([1, 30, 40], 10, 4),
            ([30, 40], -5, 0),
        ],
    )
    def test_only_the_largest_give_way(self, sizes, budget, cap):
        assert level(sizes, budget) == cap

    @given(st.lists(st.integers(0, 1_000), min_size=1), st.integers(0, 5_000))
    def test_the_cap_is_the_largest_that_fits(self, sizes, budget):
        cap = level(sizes, budget)
        assert sum(min(size, cap) for size in sizes) <= budget
        if cap < max(sizes):
            assert sum(min(size, cap + 1) for size in sizes) > budget


def test_small_texts_stay_whole_when_a_large_one_gives_way():
    texts = ["short", "x" * 4_000, "also short"]
    shorter = shorten_all(texts, [count(t) for t in texts], 100, count, "h")
    assert shorter[0] == "short"
    assert shorter[2] == "also short"
    assert count(shorter[1]) <= 95


def test_a_marker_never_takes_the_place_of_as_much_as_it_says_itself():
    assert len(marker(28, "")) == 28
    for size in range(2, 90):
        text = "word " * 12 + "a" * size
        for limit in range(1, len(text)):
            assert len(shorten(text, limit, len, "")) <= limit < len(text)
