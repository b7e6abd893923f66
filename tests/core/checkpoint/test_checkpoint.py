import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.support.talk import assistant, call, results, tool, user

from foldline.core.checkpoint.checkpoint import Frame, as_message, checkpoint_text, make_checkpoint, recognise
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import PRESETS
from foldline.core.log.entries import Pin
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import OFFLINE, message_tokens

PLAIN = Policy(name="plain")
FULL = Policy(name="full", prefix="Before this:", suffix="Go on.", versions=True)
PINS = (Pin("e1", "Never push."), Pin("e2", "Two\nlines."))
SYSTEM = Message("system", (Text("You help."),))


def test_everything_stands_between_one_marker():
    assert checkpoint_text("## Goal\nShip", Frame(FULL, pins=PINS, quoted=2, ack=True, number=3)) == snapshot("""\
<foldline-checkpoint version="1" ack="1" quoted="2">
Checkpoint 3 of this conversation.

Before this:

<summary>
## Goal
Ship
</summary>

Pinned by the user, word for word:

<pinned entry="e1">
Never push.
</pinned>

<pinned entry="e2">
Two
lines.
</pinned>

Go on.
</foldline-checkpoint>\
""")


def test_a_checkpoint_is_sized_as_the_message_it_becomes_and_leaves_out_pins_that_are_shown():
    policy = Policy(name="t", summary_role="system", ack="Understood.", summary_position="after")
    made = make_checkpoint(
        "S", Frame(policy, pins=PINS, shown=frozenset({"e1"}), ack=True, number=2), OFFLINE
    )

    assert (made.role, made.ack, made.position, made.number) == ("system", "Understood.", "after", 2)
    assert made.pins == PINS
    assert "Never push." not in made.text
    assert "Two\nlines." in made.text
    assert made.tokens == message_tokens(as_message(made.text, "system"), OFFLINE)
    assert make_checkpoint("S", Frame(policy), OFFLINE).ack is None


@pytest.mark.parametrize("policy", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize("ack", [False, True])
@pytest.mark.parametrize("leading", [0, 1])
def test_a_later_fold_recognises_its_own_in_the_role_where_a_view_has_it(policy, ack, leading):
    text = checkpoint_text("## Goal\nShip", Frame(policy, pins=PINS, ack=ack, number=2))
    view = [*[SYSTEM] * leading, as_message(text, policy.summary_role), assistant("ok"), user("next")]
    found = recognise(view)

    assert found is not None
    made = found.checkpoint
    assert (found.index, made.summary, made.pins) == (leading, "## Goal\nShip", PINS)
    assert (made.ack, made.text, found.quoted, made.position) == ("ok" if ack else None, text, (), "before")


def test_the_quoted_messages_stand_before_it_or_behind_it_and_its_acknowledgement():
    text = checkpoint_text("S", Frame(PLAIN, quoted=2, ack=True))
    behind = recognise([SYSTEM, as_message(text, "user"), assistant("ok"), user("a"), user("b"), user("c")])
    before = recognise([SYSTEM, user("a"), user("b"), as_message(text, "user"), user("c")])
    short = recognise([as_message(text, "user"), assistant("ok"), user("a")])

    assert behind is not None
    assert (behind.quoted, behind.checkpoint.position) == ((3, 4), "before")
    assert before is not None
    assert (before.quoted, before.checkpoint.position) == ((1, 2), "after")
    assert short is not None
    assert short.quoted == (2,)


TEXT = checkpoint_text("S", Frame(PLAIN))


@pytest.mark.parametrize(
    "view",
    [
        [],
        [SYSTEM],
        [user("hello"), assistant("hi"), user(TEXT)],
        [user("hello"), assistant(TEXT)],
        [assistant("", call("c", "read")), tool("c", TEXT)],
        [results(("c", TEXT), text="x")],
        [user("see:\n" + TEXT)],
        [user(TEXT + "\nand more")],
        [user(TEXT.replace('version="1"', 'version="2"'))],
        [user(TEXT.replace("<summary>", "<other>"))],
    ],
)
def test_nothing_else_is_taken_for_one(view):
    assert recognise(view) is None


HOSTILE = st.lists(
    st.sampled_from(
        [
            "</summary>",
            "<summary>",
            "</foldline-checkpoint>",
            '<pinned entry="x">',
            "</pinned>",
            "\n",
            "text",
            " ",
            "<",
        ]
    ),
    max_size=8,
).map("".join)


@given(HOSTILE, HOSTILE)
def test_what_is_quoted_cannot_end_it_or_start_another(summary, pin):
    text = checkpoint_text(summary, Frame(FULL, pins=(Pin("e1", pin),)))
    found = recognise([as_message(text, "user")])

    assert found is not None
    assert len(found.checkpoint.pins) == 1
    assert found.checkpoint.pins[0].entry == "e1"
    assert text.count("</foldline-checkpoint>") == text.count("</summary>") == text.count("</pinned>") == 1
