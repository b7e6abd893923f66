import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.talk import Letters, user

from foldline.core.lab.composition import composition
from foldline.core.log.entries import Checkpoint, Compacted, Receipt
from foldline.core.log.log import chained, said
from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.tokens import OFFLINE, message_tokens


def history(*messages):
    entries, parent, key = [], None, ""
    for message in messages:
        entries.append(said(message, parent=parent, said_key=key))
        parent, key = entries[-1].id, entries[-1].said_key
    return entries


def asks(*calls, text=""):
    parts = [Text(text)] if text else []
    return Message("assistant", (*parts, *(ToolCall(key, name, arguments) for key, name, arguments in calls)))


def answers(*results, role="tool"):
    return Message(role, tuple(ToolResult(key, (Text(text),)) for key, text in results))


READ = {"path": "src/a.py"}


def shares(found):
    return {share.name: (share.tokens, share.count) for share in found}


def test_where_the_tokens_are():
    count = Letters()
    found = composition(
        history(
            Message("system", (Text("Be brief."),)),
            user("Read it"),
            asks(("1", "read", READ), text="Sure."),
            answers(("1", "x" * 100), role="user"),
            Message("assistant", (Thinking("Hm."), Text("Done"))),
        ),
        counter=count,
    )
    call = 8 + 4 + len('{"path":"src/a.py"}')
    assert shares(found.by_role) == {
        "tool": (112, 1),
        "assistant": (5 + call + 3 + 4 + 8, 2),
        "system": (13, 1),
        "user": (11, 1),
    }
    assert shares(found.by_kind) == {
        "results": (108, 1),
        "calls": (call, 1),
        "text": (9 + 7 + 5 + 4, 4),
        "framing": (20, 5),
        "thinking": (3, 1),
    }
    assert shares(found.by_tool) == {"read": (108 + call, 1)}
    assert shares(found.by_file) == {"src/a.py": (108 + call, 1)}
    assert found.messages == 5
    assert found.problems == ()


def test_turns_begin_with_the_users_words():
    found = composition(
        history(
            Message("system", (Text("x"),)),
            user("First\n  thing"),
            user("and this"),
            asks(("1", "read", READ)),
            answers(("1", "y"), role="user"),
            Message("user", (Text("a reminder"),), injected=True),
            asks(text="ok"),
            user("Second"),
        ),
        counter=OFFLINE,
    )
    assert [(turn.index, turn.request, turn.messages, turn.calls) for turn in found.by_turn] == [
        (0, "", 1, 0),
        (1, "First thing", 6, 1),
        (7, "Second", 1, 0),
    ]
    assert sum(turn.tokens for turn in found.by_turn) == found.tokens


def test_the_largest_are_named():
    found = composition(
        history(
            user("short"),
            asks(("1", "bash", {"command": "ls -R"}), ("2", "read", READ)),
            answers(("1", "a " * 500), ("2", "b"), role="user"),
            Message("user", (Media("image", "image/png", "aGk="),)),
            asks(text="z " * 300),
        ),
        counter=OFFLINE,
        largest=3,
    )
    assert [(one.index, one.what[:40]) for one in found.largest] == [
        (3, "user: "),
        (2, "tool result: bash ls -R, read src/a.py"),
        (4, "assistant: " + "z " * 14 + "z"),
    ]
    assert [one.tokens for one in found.largest] == sorted(
        (one.tokens for one in found.largest), reverse=True
    )
    assert len(found.largest[2].what) <= 100


def test_repeated_reads_cost_what_the_older_ones_take():
    found = composition(
        history(
            user("go"),
            asks(
                ("1", "read", READ), ("2", "read", {"path": "src/b.py"}), ("3", "bash", {"command": "make"})
            ),
            answers(("1", "x" * 50), ("2", "y"), ("3", "z")),
            asks(
                ("4", "read", READ), ("5", "bash", {"command": "make"}), ("6", "read", {**READ, "offset": 5})
            ),
            answers(("4", "x" * 60), ("5", "z"), ("6", "w")),
            asks(("7", "write", {**READ, "content": "c" * 900})),
            answers(("7", "ok")),
            asks(("8", "write", {**READ, "content": "c" * 900})),
            answers(("8", "ok")),
        ),
        counter=Letters(),
    )
    assert [(one.tool, one.what, one.times, one.tokens) for one in found.repeated] == [
        ("read", "read src/a.py", 2, 58)
    ]


def test_a_call_that_touches_several_files_counts_for_each():
    patch = "*** Begin Patch\n*** Update File: x.py\n+1\n*** Add File: y.py\n*** End Patch"
    found = composition(history(user("go"), asks(("1", "apply_patch", {"input": patch}))), counter=OFFLINE)
    assert [(share.name, share.count) for share in found.by_file] == [("x.py", 1), ("y.py", 1)]


def test_boundaries_are_shown_with_what_they_kept():
    entries = history(user("a"), asks(text="b"), user("c"))
    receipt = Receipt("manual", tokens_before=100, tokens_after=40)
    compacted = chained(
        Compacted("", None, Checkpoint("t", "s"), receipt, first_kept=entries[2].id), entries[-1].id
    )
    shown = composition(entries, counter=OFFLINE, boundaries=[compacted]).boundaries
    assert [(one.reason, one.tokens_before, one.tokens_after, one.first_kept) for one in shown] == [
        ("manual", 100, 40, 2)
    ]


def test_nothing_said():
    found = composition([], counter=OFFLINE)
    assert (found.tokens, found.messages, found.by_turn, found.largest) == (0, 0, (), ())


@pytest.mark.parametrize(
    ("messages", "problems"),
    [
        (
            (asks(("1", "t", {}), ("2", "t", {})), answers(("1", "x")), answers(("2", "y")), asks(text="b")),
            [],
        ),
        ((asks(("1", "t", {})), asks(("2", "t", {})), answers(("1", "x")), answers(("2", "y"))), []),
        ((asks(("0", "t", {})), answers(("0", "x")), asks(("0", "t", {})), answers(("0", "x"))), []),
        (
            (
                asks(("1", "t", {})),
                Message("user", (ToolResult("1", (Text("x"),)), Text("and go on"))),
                asks(text="ok"),
            ),
            [],
        ),
        ((asks(("1", "t", {})), user("stop")), [("unanswered", "1", 1)]),
        ((asks(("1", "t", {}), ("2", "t", {})), answers(("2", "x"))), [("open", "1", 1)]),
        ((answers(("9", "x")),), [("orphan", "9", 1)]),
        ((asks(("1", "t", {})), user("b"), answers(("1", "x"))), [("late", "1", 3)]),
        ((asks(("1", "t", {})), answers(("1", "x")), answers(("1", "x"))), [("answered_twice", "1", 3)]),
        (
            (asks(("1", "t", {}), ("1", "t", {})), answers(("1", "x"))),
            [("duplicate_id", "1", 1), ("open", "1", 1)],
        ),
    ],
)
def test_calls_and_results_that_do_not_pair_are_named(messages, problems):
    found = composition(history(user("a"), *messages), counter=OFFLINE).problems
    assert [(problem.kind, problem.call_id, problem.index) for problem in found] == problems


PARTS = st.one_of(
    st.builds(Text, st.text(max_size=20)),
    st.builds(Thinking, st.text(max_size=20)),
    st.builds(
        ToolCall,
        st.sampled_from("123"),
        st.sampled_from(["read", "bash"]),
        st.sampled_from([READ, {"command": "ls"}, "raw", {}]),
    ),
    st.builds(
        lambda key, text: ToolResult(key, (Text(text),)), st.sampled_from("1234"), st.text(max_size=20)
    ),
    st.builds(Media, st.just("image"), st.just("image/png"), st.just("aGk=")),
    st.builds(
        Opaque, st.just("anthropic"), st.just("x"), st.dictionaries(st.text(max_size=3), st.integers())
    ),
)
MESSAGES = st.lists(
    st.builds(
        Message,
        st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
        st.lists(PARTS, max_size=4).map(tuple),
        injected=st.booleans(),
    ),
    max_size=12,
)


@given(MESSAGES)
def test_every_division_adds_up(messages):
    found = composition(history(*messages), counter=OFFLINE)
    total = sum(message_tokens(message) for message in messages)
    assert found.tokens == total
    assert sum(share.tokens for share in found.by_role) == total
    assert sum(share.tokens for share in found.by_kind) == total
    assert sum(turn.tokens for turn in found.by_turn) == total
    assert sum(turn.messages for turn in found.by_turn) == len(messages)
    assert len(found.largest) == min(10, len(messages))
    calls = sum(len(message.calls) for message in messages)
    results = sum(len(message.results) for message in messages)
    kinds = [problem.kind for problem in found.problems]
    paired = results - kinds.count("orphan") - kinds.count("answered_twice")
    assert kinds.count("open") + kinds.count("unanswered") == calls - paired
