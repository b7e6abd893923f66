import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.decide.builders import LETTERS
from tests.support.talk import call, result

from foldline.core.cut.elide import elide, level, marker, shorten, shorten_all, splits
from foldline.core.log.messages import Media, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.tokens import OFFLINE, part_tokens

LONG = "".join(f"line {i} of something long\n" for i in range(2_000))


def short(part, limit=200, counter=LETTERS):
    return elide(part, limit, counter, "e7")


def test_what_fits_is_returned_itself():
    for part in (
        Text("a"),
        call("c", path="x"),
        Thinking("a", "signed"),
        Media("image"),
        Opaque("x", "y", {}),
    ):
        assert elide(part, 10_000, LETTERS, "e7") is part


@pytest.mark.parametrize("part", [Text(LONG), Thinking(LONG), result("c", LONG, is_error=True)])
def test_texts_keep_head_and_tail(part):
    made = short(part)
    assert type(made) is type(part)
    assert made.text.startswith("line 0 of")
    assert made.text.endswith("line 1999 of something long\n")
    assert "recall e7" in made.text
    assert 150 <= part_tokens(made, LETTERS) <= 200


def test_a_result_keeps_its_call_and_its_error():
    made = short(result("c9", LONG, is_error=True))
    assert (made.call_id, made.is_error) == ("c9", True)


def test_signed_thinking_and_foreign_blocks_are_not_shortened():
    assert short(Thinking(LONG, "signature")) is None
    assert short(Opaque("anthropic", "redacted_thinking", {"data": LONG})) is None


def test_media_give_way_to_a_note():
    assert elide(Media("image", data="A" * 9_999), 9, LETTERS, "e7") == Text("[image left out; recall e7]")
    assert elide(Media("image", data="A" * 9_999), 3, LETTERS, "e7") == Text("…")


def test_the_largest_of_a_results_texts_gives_way_first():
    mixed = ToolResult("c", (Text("short"), Text(LONG), Media("image", data="A")))
    limit = part_tokens(ToolResult("c", (mixed.content[2],)), LETTERS) + 200
    made = short(mixed, limit)
    assert made.content[0] == Text("short")
    assert made.content[2] == mixed.content[2]
    assert part_tokens(made, LETTERS) <= limit


def test_media_in_a_result_give_way_where_texts_do_not_suffice():
    made = short(ToolResult("c", (Text("short"), Media("image", data="A"), Opaque("x", "y", LONG))), 30)
    assert made.content == (
        Text("short"),
        Text("[image left out; recall e7]"),
        Text("[block left out; recall e7]"),
    )


def test_arguments_stay_an_object_with_its_keys_in_order():
    made = short(call("c", "write", path="src/a.py", content=LONG, mode="w", flags=[1, None, True]))
    assert list(made.arguments) == ["path", "content", "mode", "flags"]
    assert (made.arguments["path"], made.arguments["mode"]) == ("src/a.py", "w")
    assert made.arguments["flags"] == [1, None, True]
    assert made.arguments["content"].startswith("line 0 of")
    assert "recall e7" in made.arguments["content"]
    assert (made.id, made.name) == ("c", "write")


def test_strings_inside_lists_and_objects_give_way():
    edits = [{"old": LONG, "new": "x", "line": 3}, {"old": "y", "new": LONG, "line": 4}]
    made = short(call("c", "edit", path="a", edits=edits), 400)
    first, second = made.arguments["edits"]
    assert (first["new"], first["line"], second["old"], second["line"]) == ("x", 3, "y", 4)
    assert "recall e7" in first["old"]
    assert "recall e7" in second["new"]


def test_escapes_in_arguments_are_paid_for():
    made = short(call("c", "write", content='"\n\\' * 5_000))
    assert part_tokens(made, LETTERS) <= 200


def test_lists_and_objects_give_way_where_strings_do_not_suffice():
    nested: object = "bottom"
    for _ in range(60):
        nested = {"level": nested}
    made = short(call("c", "plot", title="t", points=list(range(10_000)), tree=nested, none=[]), 60)
    note = "[… {} items left out; recall e7 …]"
    assert made.arguments == {
        "title": "t",
        "points": note.format("10,000"),
        "tree": note.format(1),
        "none": "…",
    }


def test_arguments_that_cannot_be_shortened_are_replaced():
    many = short(call("c", "save", **{f"key{i}": i for i in range(9_999)}), 20)
    assert many.arguments == {"elided": "…"}


def test_a_result_that_cannot_be_shortened_is_replaced():
    pictures = ToolResult("c", tuple(Media("image", data="A") for _ in range(50)))
    assert short(pictures, 30).content == (Text("…"),)


def test_arguments_that_did_not_parse_are_shortened_as_text():
    made = short(ToolCall("c", "bash", '{"command": "' + LONG))
    assert isinstance(made.arguments, str)
    assert made.arguments.startswith('{"command": "line 0 of')


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.text(max_size=200)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=8), st.dictionaries(st.text(max_size=8), inner, max_size=5)
    ),
    max_leaves=25,
)
texts = st.one_of(st.text(max_size=2_000), st.text(max_size=80).map(lambda t: t * 40))
any_part = st.one_of(
    st.builds(Text, texts),
    st.builds(Thinking, texts),
    st.builds(
        ToolResult, st.just("c"), st.lists(st.builds(Text, texts), max_size=4).map(tuple), st.booleans()
    ),
    st.builds(
        ToolCall, st.just("c"), st.just("tool"), st.dictionaries(st.text(max_size=8), json_values, max_size=6)
    ),
    st.builds(ToolCall, st.just("c"), st.just("tool"), texts),
)


@pytest.mark.parametrize("counter", [LETTERS, OFFLINE], ids=lambda c: c.name)
@given(part=any_part, limit=st.integers(24, 400))
def test_the_result_fits_is_of_its_kind_and_doing_it_again_changes_nothing(counter, part, limit):
    made = elide(part, limit, counter, "e7")
    assert type(made) is type(part)
    assert part_tokens(made, counter) <= limit
    assert elide(made, limit, counter, "e7") is made
    if isinstance(part, ToolCall) and isinstance(part.arguments, dict) and made.arguments != {"elided": "…"}:
        assert list(made.arguments) == list(part.arguments)


# ---- texts


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
    "unit", ["e\u0301\u0323", "\ud83d\ude00", "👩\u200d👩\u200d👧", "👍🏽", "a\r\n", "नि"]
)
def test_no_character_is_taken_apart(unit):
    for limit in range(30, 60):
        head, rest = shorten(unit * 700, limit, count, "h").split("[…", 1)
        tail = rest.split("…]", 1)[1].removeprefix("\n")
        head = head.removesuffix("\n") if not unit.endswith("\n") else head
        assert len(head) % len(unit) == 0
        assert len(tail) % len(unit) == 0


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


@given(st.lists(st.integers(0, 1_000), max_size=9), st.integers(-5, 5_000))
def test_the_cap_is_the_largest_that_fits(sizes, budget):
    cap = level(sizes, budget)
    assert sum(min(size, cap) for size in sizes) <= max(budget, 0)
    if cap < max(sizes, default=0):
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
