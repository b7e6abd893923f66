import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.talk import assistant, call, calls, entries, image, repeat, result, signed, tool, user

from foldline.core.cut.elide import RESULT_FLOOR, candidates_in, elide, saving, shrink
from foldline.core.log.entries import Edit, Said
from foldline.core.log.messages import Message, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.tokens import OFFLINE, message_tokens, part_tokens

USABLE = 4_000


def most_saved(entry, usable):
    return saving(candidates_in([entry], usable, OFFLINE, edits={}))


def counted(*messages: Message) -> list[Said]:
    return entries(*messages, tokens=[message_tokens(message, OFFLINE) for message in messages])


def shortened(kept, need, *, usable=USABLE, edits=None) -> tuple[Edit, ...]:
    return shrink(candidates_in(kept, usable, OFFLINE, edits=edits or {}), need, OFFLINE)


def lines(n: int) -> str:
    return "\n".join(f"line {i} of the log says something" for i in range(n))


def size(part) -> int:
    return part_tokens(part, OFFLINE)


def test_results_are_shortened_first_and_alone_where_they_suffice():
    kept = counted(user(lines(200)), calls("a"), tool("a", lines(200)))
    edits = shortened(kept, 500)
    assert [(edit.entry, edit.kind) for edit in edits] == [(kept[2].id, "elided")]
    assert sum(edit.saved for edit in edits) >= 500


def test_where_results_do_not_suffice_every_large_part_gives():
    kept = counted(user(lines(400)), calls("a"), tool("a", lines(30)))
    need = sum(size(kept[i].message.parts[0]) for i in (0, 2)) - 550
    edits = shortened(kept, need)
    assert {edit.entry for edit in edits} == {kept[0].id, kept[2].id}
    assert sum(edit.saved for edit in edits) >= need
    assert {edit.entry for edit in shortened(kept, size(kept[2].message.parts[0]) + 500)} == {kept[0].id}


def test_the_largest_give_first_down_to_one_common_size():
    kept = counted(calls("a", "b", "c"), tool("a", lines(100)), tool("b", lines(300)), tool("c", lines(310)))
    edits = shortened(kept, 1_000)
    assert {edit.entry for edit in edits} == {kept[2].id, kept[3].id}
    left = [size(edit.replacement) for edit in edits]
    assert abs(left[0] - left[1]) < 60


def test_what_is_saved_is_what_the_shorter_part_takes_less():
    kept = counted(calls("a"), tool("a", lines(300)))
    (edit,) = shortened(kept, 700)
    assert edit.saved == size(kept[1].message.parts[0]) - size(edit.replacement)
    assert edit.replacement == elide(kept[1].message.parts[0], size(edit.replacement), OFFLINE, kept[1].id)


def test_a_result_keeps_at_least_its_floor():
    kept = counted(calls("a"), tool("a", lines(300)))
    (edit,) = shortened(kept, 10**6)
    assert RESULT_FLOOR - 25 <= size(edit.replacement) <= RESULT_FLOOR


def test_a_message_may_be_shortened_only_when_it_is_larger_than_a_tenth_of_usable():
    small, large = counted(user(repeat("word", 250)), user(repeat("word", 450)))
    assert small.tokens < USABLE // 10 < large.tokens
    assert shortened([small], 10) == ()
    (edit,) = shortened([large], 10)
    assert edit.saved >= 10


def test_a_large_message_keeps_a_tenth_of_usable():
    (large,) = counted(user(repeat("word", 3_000)))
    (edit,) = shortened([large], 10**6)
    assert USABLE // 10 - 40 <= size(edit.replacement) <= USABLE // 10


@pytest.mark.parametrize(
    "part",
    [
        Thinking(lines(400), "signed"),
        Opaque("anthropic", "redacted_thinking", {"data": "x" * 9_000}),
        image().parts[0],
    ],
)
def test_what_is_whole_or_nothing_is_left_alone(part):
    (entry,) = entries(Message("assistant", (part,)), tokens=3_000)
    assert shortened([entry], 10**6) == ()


@pytest.mark.parametrize(
    "part", [Text(lines(400)), Thinking(lines(400)), ToolCall("a", "write", {"content": lines(400)})]
)
def test_texts_unsigned_thinking_and_arguments_of_a_large_message_give(part):
    (entry,) = counted(Message("assistant", (part,)))
    (edit,) = shortened([entry], 500)
    assert type(edit.replacement) is type(part)
    assert edit.saved >= 500


def test_signed_thinking_stays_beside_a_text_that_gives():
    (entry,) = counted(signed(lines(400), thought=lines(100)))
    (edit,) = shortened([entry], 500)
    assert (edit.part, type(edit.replacement)) == (1, Text)


def test_a_part_edited_before_is_taken_as_it_is_then():
    kept = counted(calls("a", "b"), tool("a", lines(300)), tool("b", lines(100)))
    blank = Edit(kept[1].id, 0, "blanked", result("a", "[cleared]"), saved=2_000)
    (edit,) = shortened(kept, 300, edits={kept[1].id: (blank,)})
    assert edit.entry == kept[2].id


def test_a_part_taken_out_before_stays_out():
    (entry,) = counted(Message("assistant", (Text(lines(300)), Text("short"))))
    gone = Edit(entry.id, 0, "stripped", None, saved=1_500)
    assert shortened([entry], 300, edits={entry.id: (gone,)}) == ()


def test_an_elision_can_be_taken_further():
    kept = counted(calls("a"), tool("a", lines(300)))
    (first,) = shortened(kept, 1_000)
    (second,) = shortened(kept, 300, edits={kept[1].id: (first,)})
    assert second.saved >= 300
    assert second.saved == size(kept[1].message.parts[0]) - size(second.replacement)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(0, 3_000), st.integers(600, 8_000))
def test_as_much_as_needed_is_saved_or_as_much_as_may_be(counts, need, usable):
    ids = [f"c{i}" for i in range(len(counts))]
    kept = counted(
        assistant(lines(counts[0] * 4), *(call(i) for i in ids)),
        *(tool(i, lines(n)) for i, n in zip(ids, counts, strict=True)),
    )
    edits = shortened(kept, need, usable=usable)
    most = sum(most_saved(e, usable) for e in kept)
    assert sum(edit.saved for edit in edits) >= min(need, most)
    for edit in edits:
        part = next(e for e in kept if e.id == edit.entry).message.parts[edit.part]
        assert edit.saved == size(part) - size(edit.replacement) > 0
        assert isinstance(edit.replacement, ToolResult | Text)
        assert msgspec.to_builtins(edit.replacement) != msgspec.to_builtins(part)


def test_the_earlier_steps_of_a_turn_in_one_message_are_shortened_as_results_are():
    """The last step keeps what every message keeps; earlier writes may shrink to one line."""
    written = [part for n in range(3) for part in (call(f"c{n}", content=lines(100)), result(f"c{n}", "ok"))]
    turn = Message("assistant", (*written, Text(lines(200))))
    [kept] = counted(turn)
    edits = shortened([kept], 10_000)
    left = {edit.part: size(edit.replacement) for edit in edits}
    assert set(left) == {0, 2, 4, 6}
    assert all(left[part] <= RESULT_FLOOR for part in (0, 2, 4))
    assert RESULT_FLOOR < left[6] <= USABLE // 10
    assert most_saved(kept, USABLE) > 1_000


def test_eliding_that_saves_nothing_is_not_done():
    """The name of a call may exceed the budget of the call: a marker would only add to it."""
    name = " ".join(f"tool{i}" for i in range(300))
    kept = counted(assistant("", call("a", name, n=1)), tool("a", lines(60)))
    assert size(kept[0].message.parts[-1]) > USABLE // 10
    assert [edit.entry for edit in shortened(kept, 10_000)] == [kept[1].id]
