import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.decide.builders import LETTERS, entries
from tests.support.talk import assistant, call, result, tool, user

from foldline.core.cut.notes import with_held
from foldline.core.cut.prune import Read, placeholder, prune, read_of, superseded
from foldline.core.decide.policy import Policy
from foldline.core.log.messages import Media, Message, Text, ToolCall, ToolResult
from foldline.core.measure.tokens import MESSAGE_OVERHEAD, OFFLINE, message_tokens
from foldline.core.measure.window import Amount, Window

WINDOW = Window(200_000)
POLICY = Policy(name="p", prune_minimum=Amount(tokens=1), prune_protect=Amount(tokens=0))
DATE = "2026-11-21"
LONG = "line of text\n" * 400  # 1,300 tokens by letters


def run(kept, policy=POLICY, **more):
    return prune(kept, policy, WINDOW, 180_000, LETTERS, **{"date": DATE, **more})


def with_limits(minimum, protect, **more):
    return msgspec.structs.replace(
        POLICY, prune_minimum=Amount(tokens=minimum), prune_protect=Amount(tokens=protect), **more
    )


def rounds(*sizes, name="bash"):
    """A session of tool rounds with results of so many tokens, all answered."""
    messages = [user("go")]
    for i, size in enumerate(sizes):
        messages.append(assistant("", call(f"c{i}", name, command=f"run {i}")))
        messages.append((tool(f"c{i}", "x" * size * 4), size + MESSAGE_OVERHEAD))
    return entries([*messages, assistant("done")])


def blanked(kept, pruning):
    """The numbers of the rounds whose results are blanked."""
    index = {entry.id: i for i, entry in enumerate(kept)}
    return [(index[edit.entry] - 2) // 2 for edit in pruning.edits]


def test_results_outside_the_newest_protected_tokens_are_blanked():
    kept = rounds(500, 500, 500, 500)
    assert blanked(kept, run(kept, with_limits(1, 1_000))) == [0, 1]
    assert blanked(kept, run(kept, with_limits(1, 1_001))) == [0], "one that begins inside is kept whole"
    assert blanked(kept, run(kept, with_limits(1, 2_000))) == []


def test_nothing_is_blanked_unless_the_minimum_can_be_freed():
    kept = rounds(500, 500, 500, 500)
    freed = run(kept, with_limits(1, 1_000)).freed
    assert blanked(kept, run(kept, with_limits(freed, 1_000))) == [0, 1]
    assert run(kept, with_limits(freed + 1, 1_000)) == run([])


def test_what_is_freed_is_the_result_less_its_placeholder():
    kept = rounds(500, 500)
    pruning = run(kept, with_limits(1, 500))
    (edit,) = pruning.edits
    before, after = kept[2].tokens, message_tokens(Message("tool", (edit.replacement,)), LETTERS)
    assert pruning.freed == edit.saved == before - after


def test_both_forms_of_results_are_blanked():
    messages = [
        user("go"),
        assistant("", call("a", "bash", command="x"), call("b", "bash", command="y")),
        Message("user", (result("a", LONG), Text("look at this"), result("b", LONG))),
        assistant("", call("c", "bash", command="z")),
        tool("c", LONG),
        assistant("done"),
    ]
    kept = entries(messages)
    edits = run(kept).edits
    assert [(edit.entry, edit.part) for edit in edits] == [(kept[2].id, 0), (kept[2].id, 2), (kept[4].id, 0)]
    assert [edit.replacement.call_id for edit in edits] == ["a", "b", "c"]
    assert {edit.kind for edit in edits} == {"blanked"}


def test_entries_that_were_never_counted_are_counted_now():
    both = Message("user", (result("a", LONG), result("b", LONG)))
    kept = entries([(both, 0), (tool("c", LONG), 0), (assistant("done"), 0)])
    edits = run(kept).edits
    assert [edit.part for edit in edits] == [0, 1, 0]
    assert len({edit.saved for edit in edits}) == 1


def test_results_that_no_reply_has_seen_are_kept():
    kept = entries([user(), assistant("", call("a"), call("b")), tool("a", LONG), tool("b", LONG)])
    assert run(kept) == run([])
    kept = entries([user(), assistant("", call("a"), call("b")), tool("a", LONG)])
    assert run(kept) == run([])


def test_named_tools_are_exempt():
    kept = rounds(500, 500, name="skill")
    assert blanked(kept, run(kept)) == [0, 1]
    assert run(kept, with_limits(1, 0, prune_exempt=("skill",))) == run([])


def test_a_placeholder_is_not_blanked_again():
    blank = run(rounds(500)).edits[0].replacement.text
    note = with_held(blank, "src/a.py: " + "what it held, " * 40)
    kept = entries(
        [user(), assistant("", call("c0", "bash", command="x")), tool("c0", note), assistant("done")]
    )
    assert run(kept) == run([])


def test_a_policy_that_does_not_prune_prunes_nothing():
    kept = rounds(500, 500)
    assert run(kept, with_limits(1, 0, enable_pruning=False)) == run([])


def reread(*calls):
    messages = [user("go")]
    for i, made in enumerate(calls):
        messages += [assistant("", msgspec.structs.replace(made, id=f"c{i}")), tool(f"c{i}", LONG)]
    return entries([*messages, assistant("done")])


def test_a_file_read_again_is_blanked_even_when_nothing_else_needs_to_be():
    kept = reread(call("", "read", path="a.py"), call("", "read", path="b.py"), call("", "read", path="a.py"))
    pruning = run(kept, with_limits(100_000, 100_000))
    assert blanked(kept, pruning) == [0]
    assert pruning.superseded == 1
    assert pruning.freed == pruning.edits[0].saved > 0


def test_reads_made_again_count_towards_the_minimum():
    kept = reread(
        call("", "read", path="a.py"), call("", "bash", command="ls"), call("", "read", path="a.py")
    )
    both = run(kept, with_limits(1, 1_000))
    assert blanked(kept, both) == [0, 1]
    assert run(kept, with_limits(both.freed, 1_000)) == both
    assert blanked(kept, run(kept, with_limits(both.freed + 1, 1_000))) == [0]


def test_a_failed_read_covers_nothing():
    messages = [
        assistant("", call("a", "read", path="a.py")),
        tool("a", LONG),
        assistant("", call("b", "read", path="a.py")),
        tool("b", LONG, is_error=True),
        assistant("done"),
    ]
    assert run(entries(messages), with_limits(10**6, 10**6)) == run([])


def test_an_exempt_read_made_again_is_kept():
    kept = reread(call("", "read", path="a.py"), call("", "read", path="a.py"))
    assert run(kept, with_limits(10**6, 10**6, prune_exempt=("read",))) == run([])


def test_media_are_freed():
    picture = ToolResult("a", (Text("here"), Media("image", mime="image/png", data="A" * 40_000)))
    kept = entries([assistant("", call("a", "shot")), Message("tool", (picture,)), assistant("I see")])
    (edit,) = run(kept).edits
    assert edit.replacement.content == (Text(f"[Old tool result cleared {DATE}: shot, 1 line, 1 image]"),)
    beside = entries([
        assistant("", call("a", "shot"), call("b", "shot")),
        Message("user", (picture, result("b", LONG))),
        assistant("I see"),
    ])  # fmt: skip
    assert [edit.part for edit in run(beside).edits] == [0, 1]


class TestPlaceholder:
    def test_says_which_call_it_was_and_how_much(self):
        made = placeholder(result("c", "x\n" * 412), call("c", "read", path="src/a.py"), DATE)
        assert made == "[Old tool result cleared 2026-11-21: read src/a.py, 412 lines]"

    @pytest.mark.parametrize(
        ("made", "label"),
        [
            (call("c", "bash", description="lists", command="ls -l"), "bash ls -l"),
            (call("c", "grep", pattern="x y", path="src"), "grep x y"),
            (call("c", "odd", n=3, note="hello"), "odd hello"),
            (call("c", "none"), "none"),
            (call("c", "bash", command="a\n  b"), "bash a b"),
            (ToolCall("c", "broken", '{"a'), "broken"),
        ],
    )
    def test_names_the_telling_argument(self, made, label):
        assert (
            placeholder(result("c", "one"), made, DATE)
            == f"[Old tool result cleared {DATE}: {label}, 1 line]"
        )

    def test_shows_the_end_of_a_long_path(self):
        long = call("c", "read", path="/home/somebody" + "/very/deep" * 20 + "/src/a.py")
        made = placeholder(result("c", "one"), long, DATE)
        assert made.startswith(f"[Old tool result cleared {DATE}: read …")
        assert made.endswith("/very/deep/src/a.py, 1 line]")

    def test_keeps_the_telling_line_of_an_error(self):
        text = "Traceback (most recent call last):\n  File x\nValueError: bad port\n"
        made = placeholder(result("c", text, is_error=True), call("c", "bash", command="run"), DATE)
        assert made == f"[Old tool result cleared {DATE}: bash run, 3 lines; ValueError: bad port]"
        other = placeholder(result("c", "\nexit 3\n", is_error=True), None, DATE)
        assert other == f"[Old tool result cleared {DATE}: 2 lines; exit 3]"

    def test_an_empty_result_says_so(self):
        assert placeholder(ToolResult("c"), None, DATE) == f"[Old tool result cleared {DATE}: empty]"


parts = st.one_of(
    st.builds(Text, st.text(max_size=20)),
    st.builds(call, st.sampled_from("abc"), st.just("read"), path=st.sampled_from(["x", "y"])),
    st.builds(result, st.sampled_from("abcd"), st.text(max_size=300), is_error=st.booleans()),
    st.builds(lambda i: ToolResult(i, (Media("image", data="A"),)), st.sampled_from("abcd")),
)
messages = st.lists(
    st.builds(
        Message, st.sampled_from(["user", "assistant", "tool"]), st.lists(parts, max_size=4).map(tuple)
    ),
    max_size=20,
)


@given(messages, st.integers(0, 400), st.integers(0, 400))
def test_only_answered_results_are_edited_once_each_and_the_sums_agree(said, minimum, protect):
    kept = entries(said)
    pruning = run(kept, with_limits(minimum, protect))
    assert pruning.freed == sum(edit.saved for edit in pruning.edits)
    assert len({(e.entry, e.part) for e in pruning.edits}) == len(pruning.edits)
    index = {entry.id: i for i, entry in enumerate(kept)}
    for edit in pruning.edits:
        before = kept[index[edit.entry]].message.parts[edit.part]
        assert isinstance(before, ToolResult)
        assert edit.saved > 0
        assert (edit.replacement.call_id, edit.replacement.is_error) == (before.call_id, before.is_error)
        assert any(entry.message.role == "assistant" for entry in kept[index[edit.entry] + 1 :])
    done = frozenset((e.entry, e.part) for e in pruning.edits)
    again = run(kept, with_limits(minimum, protect), already=done)
    assert not done & {(e.entry, e.part) for e in again.edits}


def _counted_to_prune(results: int) -> int:
    kept = []
    for i in range(results):
        kept += [user(f"do {i}"), assistant("", call(f"c{i}", "read", path=f"f{i}")), tool(f"c{i}", LONG)]
    kept = entries([(message, 1_300) for message in [*kept, assistant("done")]])
    counter = Tallying()
    pruning = prune(kept, with_limits(20_000, 40_000), WINDOW, 180_000, counter, date=DATE)
    assert len(pruning.edits) == results - 31
    return counter.times


class Tallying:
    """A counter that counts its calls."""

    name = "tallying"

    def __init__(self):
        self.times = 0

    def count(self, text):
        self.times += 1
        return OFFLINE.count(text)


def test_ten_times_the_messages_are_counted_about_ten_times_as_often():
    assert _counted_to_prune(1_000) <= 11 * _counted_to_prune(131)


@given(st.text(max_size=120), st.text(max_size=30), st.booleans())
def test_a_result_is_left_alone_only_where_its_placeholder_is_no_smaller(text, name, failed):
    answer = ToolResult("c", (Text(text),), is_error=failed)
    command = call("c", name, command="run")
    messages = [user("go"), assistant("", command), Message("user", (answer,)), assistant("done")]
    counted = [(message, message_tokens(message)) for message in messages]
    pruning = prune(entries(counted), POLICY, WINDOW, 180_000, OFFLINE, date=DATE)
    freed = OFFLINE.count(text) - OFFLINE.count(placeholder(answer, command, DATE))
    assert pruning.freed == max(0, freed)


# ---- reads


@pytest.mark.parametrize(
    ("tool", "read"),
    [
        (call("c", "read", path="src/a.py"), Read("read", "src/a.py", "")),
        (call("c", "Read", file_path="./src/a.py", offset=3), Read("Read", "src/a.py", '{"offset":3}')),
        (call("c", "whatever", target_file="a", limit=None), Read("whatever", "a", "")),
        (call("c", "str_editor", command="view", path="a"), Read("str_editor", "a", '{"command":"view"}')),
        (call("c", "grep", path="src", pattern="x"), Read("grep", "src", '{"pattern":"x"}')),
    ],
)
def test_a_read_is_told_by_its_arguments(tool, read):
    assert read_of(tool) == read


@pytest.mark.parametrize(
    "tool",
    [
        call("c", "write", path="a", content="x"),
        call("c", "Edit", file_path="a", old_string="x", new_string="y"),
        call("c", "notebookEdit", notebook_path="a", source="y"),
        call("c", "create_file", path="a"),
        call("c", "apply", path="a", newText="y"),
        call("c", "editor", command="create", path="a"),
        call("c", "editor", command="view", path=["a", "b"]),
        call("c", "bash", command="cat a"),
        call("c", "copy", path="a", file="b"),
        ToolCall("c", "read", '{"path": "a"'),
    ],
)
def test_what_changes_a_file_or_names_none_is_no_read(tool):
    assert read_of(tool) is None


def test_a_later_read_of_the_same_or_of_the_whole_covers_an_earlier_one():
    whole, part, other = Read("r", "a", ""), Read("r", "a", "1-9"), Read("r", "b", "")
    assert superseded({1: (whole, 9), 2: (other, 9), 3: (whole, 9)}) == {1}
    assert superseded({1: (part, 9), 2: (whole, 9)}) == {1}
    assert superseded({1: (part, 9), 2: (part, 9)}) == {1}
    assert superseded({1: (whole, 9), 2: (part, 9)}) == set()
    assert superseded({1: (part, 9), 2: (Read("r", "a", "10-19"), 9)}) == set()
    assert superseded({1: (whole, 9), 2: (Read("other", "a", ""), 9)}) == set()
    assert superseded({1: (whole, 9), 2: (whole, 9), 3: (whole, 9)}) == {1, 2}


def test_a_note_that_nothing_changed_covers_nothing():
    whole = Read("r", "a", "")
    assert superseded({1: (whole, 900), 2: (whole, 10)}) == set()
    assert superseded({1: (whole, 900), 2: (whole, 500), 3: (whole, 10)}) == {1}


@pytest.mark.parametrize("beside", ["run 1", "a\\", "echo '", 'say "'])
def test_no_placeholder_says_a_secret_whatever_the_other_calls_say(beside):
    key = f"PMAK-{'4bad26dbfb3ea079d4681591'}-{'4b35e7ed14fb9c2d47df2b51660b77dd57'}"
    commands = [beside, key, beside]
    messages = [user("go")]
    for i, command in enumerate(commands):
        messages += [assistant("", call(f"c{i}", "bash", command=command)), tool(f"c{i}", LONG)]
    pruning = run(entries([*messages, assistant("done")]))
    notes = [edit.replacement.text for edit in pruning.edits]
    assert [text.count("[redacted: ") for text in notes] == [0, 1, 0]
    assert key not in "".join(notes)
