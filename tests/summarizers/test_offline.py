import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.talk import Letters, assistant, call, entries, tool, user

from foldline.core.checkpoint.request import SummaryRequest
from foldline.core.ledger.facts.kinds import (
    CheckFact,
    ConstraintFact,
    FileFact,
    Item,
    Ledger,
    PlanStep,
)
from foldline.core.ledger.table import collect
from foldline.core.measure.tokens import OFFLINE
from foldline.summarizers import OfflineSummarizer, Summarizer

KEY = "gh" + "p_" + "a1B2c3D4e5" * 4
TALK = entries(
    user("Rename the table users to members in db/schema.sql. Never drop any data."),
    assistant("I look at the schema first.", call("c1", "read", path="db/schema.sql")),
    tool("c1", "CREATE TABLE users (id int);\n" * 40),
    assistant(
        "Now I rename it.", call("c2", "edit", path="db/schema.sql", old_string="users", new_string="members")
    ),
    tool("c2", "ok"),
    assistant("The tests next.", call("c3", "bash", command="make test")),
    tool("c3", "exit code: 1\nFAILED tests/test_db.py::test_name - no such table: users"),
    assistant("One test still uses the old name; next I fix tests/test_db.py."),
    tokens=400,
)
LEDGER = collect(TALK)


def asked(kind="first", *, tokens=900, ledger=LEDGER, **more):
    return SummaryRequest(
        kind=kind,
        system="",
        prompt="",
        folded=tuple(TALK),
        previous=None,
        ledger=ledger,
        tokens=tokens,
        **more,
    )


def write(request):
    return OfflineSummarizer().write(request)


def test_it_tells_what_was_said_and_done():
    reply = write(asked())
    assert (reply.summarizer, reply.stop, reply.usage) == ("offline", "end", None)
    for words in (
        "- Never drop any data.",
        "[User] Rename the table users to members in db/schema.sql.",
        "edit db/schema.sql",
        "make test",
        "no such table: users",
        "[Assistant] One test still uses the old name; next I fix tests/test_db.py.",
    ):
        assert words in reply.text


def test_it_keeps_to_its_budget_and_carries_the_ledger_on():
    for tokens in (0, 1, 40, 150, 400):
        reply = write(asked(tokens=tokens))
        assert OFFLINE.count(reply.text) <= max(tokens, 1)
        assert reply.ledger is not None
        assert reply.ledger.constraints == LEDGER.constraints


def test_the_async_form_gives_the_same_and_fits_the_protocol():
    summarizer: Summarizer = OfflineSummarizer()

    assert asyncio.run(summarizer.summarize(asked())) == write(asked())
    assert summarizer.name == "offline"


@pytest.mark.parametrize("kind", ["first", "update", "split_turn", "branch", "merge", "handoff", "display"])
def test_no_text_holds_a_secret(kind):
    facts = Ledger(
        items=(Item("user", f"Log in with {KEY}", "e1"), Item("ran", f"$ curl -H {KEY}", "e2")),
        constraints=(ConstraintFact(f"Always send {KEY} along.", "e1"),),
        files=(FileFact(f"{KEY}/a.py", "modified"),),
        plan=(PlanStep(f"try {KEY}", "todo"),),
    )
    reply = write(asked(kind, ledger=facts, instructions=KEY, goal=KEY))

    assert KEY not in reply.text
    assert "[redacted: GitHub token]" in reply.text


def test_a_line_for_display_says_what_was_done_and_what_is_open():
    display = write(asked("display")).text
    assert display.startswith(
        "Rename the table users to members in db/schema.sql. Never drop any data (1 file"
    )
    files = (FileFact("a", "modified"), FileFact("b", "created"), FileFact("c", "read"))
    checks = (CheckFact("make test", "1 failed", False),)
    failing = Ledger(items=(Item("user", "Do it.", "e"),), files=files, checks=checks)

    assert (
        write(asked("display", ledger=failing)).text == "Do it (2 files changed). Open: make test: 1 failed."
    )
    assert (
        write(asked("display", ledger=Ledger())).text == "Nothing was asked yet. Open: nothing that is known."
    )


PARTS = ("cellar", "chimney", "attic", "porch", "stairs", "larder", "garden", "pantry", "gutter", "balcony")


def test_a_focus_and_the_goal_of_a_hand_off_pick_what_is_kept():
    talk = [user("Look at the house.")]
    for n in range(60):
        part = PARTS[n % len(PARTS)]
        talk += [
            assistant(
                f"I read src/{part}_{n}.py: it says how the {part} is built.",
                call(f"c{n}", "read", path=f"src/{part}_{n}.py"),
            ),
            tool(f"c{n}", f"def build_{part}_{n}(): ..."),
        ]
    folded = collect(entries(*talk, assistant("All read."), tokens=400))

    handed = write(asked("handoff", tokens=500, ledger=folded, goal="rebuild the chimney")).text
    focused = write(asked(tokens=500, ledger=folded, instructions="the cellar matters")).text
    for told, wanted in ((handed, "chimney"), (focused, "cellar")):
        others = [told.count(f"src/{part}") for part in PARTS if part != wanted]
        assert told.count(f"src/{wanted}") > 2 * max(others)


@pytest.mark.parametrize(
    ("counter", "budgets"), [(OFFLINE, range(15, 70, 4)), (Letters(), range(60, 400, 17))]
)
def test_a_secret_that_only_the_written_text_spells_is_taken_out_within_the_budget(counter, budgets):
    ledger = Ledger(items=(Item("user", "Log in.\n" + "password:\nhunter2\n" * 12, "e"),))
    for tokens in budgets:
        reply = OfflineSummarizer(counter).write(asked(ledger=ledger, tokens=tokens))
        assert "hunter2" not in reply.text
        assert counter.count(reply.text) <= tokens


SPLIT_SECRET = st.sampled_from(
    ["password:", "token =", "hunter2-is-it", KEY, KEY[:20], KEY[20:], "AUTH_TOKEN=", "x y"]
)


@given(st.lists(SPLIT_SECRET, min_size=1, max_size=6), st.integers(1, 120))
def test_the_budget_holds_though_redacting_makes_a_text_longer(pieces, tokens):
    ledger = Ledger(
        items=(Item("user", " ".join(pieces), "e"),),
        constraints=tuple(ConstraintFact(piece, "e") for piece in pieces),
    )
    reply = write(asked(ledger=ledger, tokens=tokens))

    assert KEY not in reply.text
    assert OFFLINE.count(reply.text) <= tokens
