import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.decide.builders import LETTERS, call, result

from foldline.core.cut.elide import elide
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


def test_long_lists_and_deep_objects_give_way_where_strings_do_not_suffice():
    numbers = call("c", "plot", title="t", points=list(range(10_000)))
    made = short(numbers, 60)
    assert made.arguments["title"] == "t"
    assert made.arguments["points"] == [0, 1, "[… 9,996 items left out; recall e7 …]", 9_998, 9_999]
    nested: object = "bottom"
    for _ in range(60):
        nested = {"level": nested, "also": [nested] if len(str(nested)) < 50 else 1}
    deep = short(call("c", "save", tree=nested), 60)
    assert list(deep.arguments) == ["tree"]
    assert part_tokens(deep, LETTERS) <= 60
    wide = short(call("c", "save", a={str(i): i for i in range(999)}), 40)
    assert wide.arguments == {"a": "[… 999 items left out; recall e7 …]"}


def test_lists_deep_inside_are_named_only():
    rows = [[[list(range(500))]], [[]], {"x": {"y": list(range(500))}}]
    made = short(call("c", "save", rows=rows), 80)
    one, none = "[… 1 items left out; recall e7 …]", "…"
    assert made.arguments == {"rows": [[one], [none], {"x": one}]}


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
