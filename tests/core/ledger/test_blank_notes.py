"""What placeholders say of the results that they stand for."""

from __future__ import annotations

import msgspec
from tests.support.talk import assistant, call, entries, result, results, tool, user

from foldline.core.ledger.worth.blank_notes import notes_for
from foldline.core.log.messages import Text
from foldline.core.measure.tokens import OFFLINE

LISTING = "\n".join(f"src/ledgerbook/{name}.py" for name in ("postings", "accounts", "balances"))
SOURCE = """\
# Rounds half away from zero, as the auditors ask.
def round_posting(amount, digits):
    return amount
MAX_POSTINGS = 4817
"""


def session():
    return entries(
        user("Find out where postings are rounded."),
        assistant("The package is listed first.", call("c1", "bash", command="ls src/ledgerbook")),
        tool("c1", LISTING),
        assistant("Now the postings.", call("c2", "read", path="src/ledgerbook/postings.py")),
        tool("c2", SOURCE),
        assistant("Rounding is in round_posting."),
    )


def lines(said, *at, budget=400):
    """What is said of the results at these indices, by index."""
    index = {entry.id: number for number, entry in enumerate(said)}
    found = notes_for(said, {(said[number].id, 0) for number in at}, budget, OFFLINE.count)
    return {index[entry]: line for (entry, _), line in found.items()}


def test_the_names_of_a_result_are_said_with_their_words_on_one_line():
    found = lines(session(), 2, 4)
    assert found[2] == "src/ledgerbook/: postings.py, accounts.py, balances.py"
    assert found[4] == "`round_posting`: Rounds half away from zero, as the auditors ask"
    assert all("\n" not in line for line in found.values())


def test_only_results_that_go_are_spoken_of():
    assert set(lines(session(), 2)) == {2}
    assert lines(session()) == {}
    assert notes_for([], set(), 100, OFFLINE.count) == {}


def test_the_budget_holds():
    for budget in (20, 40, 80, 160):
        said = sum(OFFLINE.count(line) for line in lines(session(), 2, 4, budget=budget).values())
        assert said <= budget


def test_what_stays_in_the_view_comes_last():
    said = session()
    again = entries(*(entry.message for entry in said), user("See balances.py, accounts.py and postings.py."))
    small = lines(again, 2, 4, budget=30)
    assert 4 in small  # the listing's names stand in the request
    assert "auditors" in small[4]


def test_of_several_results_in_a_message_each_gets_its_own():
    both = results("c1", "c2")
    both = msgspec.structs.replace(both, parts=(result("c1", LISTING), result("c2", SOURCE)))
    said = entries(
        user("Find out where postings are rounded."),
        assistant(
            "I'll look.",
            call("c1", "bash", command="ls src/ledgerbook"),
            call("c2", "read", path="src/ledgerbook/postings.py"),
        ),
        both,
        assistant("Rounding is in round_posting."),
    )
    found = notes_for(said, {(said[2].id, 0), (said[2].id, 1)}, 400, OFFLINE.count)
    assert "accounts.py" in found[said[2].id, 0]
    assert "auditors" in found[said[2].id, 1]
    alone = notes_for(said, {(said[2].id, 1)}, 400, OFFLINE.count)
    assert set(alone) == {(said[2].id, 1)}


def test_a_message_without_results_holds_nothing():
    said = session()
    assert isinstance(said[0].message.parts[0], Text)
    assert notes_for(said, {(said[0].id, 0)}, 400, OFFLINE.count) == {}
