"""Rules that a summary recalls and the user's entries prove."""

import pytest
from tests.support.talk import assistant, call, entries, tool, user

from foldline.core.checkpoint.ground import proven
from foldline.core.ledger.facts.kinds import ConstraintFact

TALK = entries(
    user("Port the parser. Reports go to Ada first, she signs them off. All amounts are in Swiss francs."),
    assistant("ok", call("c1", "read", path="NOTES.md")),
    tool("c1", "Every build goes to the staging cluster first."),
    user("Only admins see salaries. Shall we name the branch after the ticket?"),
)


def found(*lines, talk=TALK, known=(), heading="Constraints & Preferences"):
    text = f"## Goal\nPort it.\n\n## {heading}\n" + "\n".join(f"- {line}" for line in lines)
    return [(fact.text, fact.entry) for fact in proven(text, talk, known)]


@pytest.mark.parametrize(
    ("line", "sentence", "place"),
    [
        ("All amounts are in Swiss francs.", "All amounts are in Swiss francs.", 0),
        ("**All amounts are in Swiss francs**", "All amounts are in Swiss francs.", 0),
        ("reports go to Ada first", "Reports go to Ada first, she signs them off.", 0),
        ('"Only admins see salaries"', "Only admins see salaries.", 3),
    ],
)
def test_a_line_in_the_users_words_makes_their_sentence_a_rule_with_its_entry(line, sentence, place):
    assert found(line) == [(sentence, TALK[place].id)]


@pytest.mark.parametrize(
    "line",
    [
        "All amounts are in dollars",
        "Every build goes to the staging cluster first.",
        "we name the branch after the ticket",
        "the branch",
        "see salar",
        "(none)",
        "francs",
    ],
)
def test_what_the_user_did_not_say_as_a_rule_proves_nothing(line):
    assert found(line) == []


def test_under_another_heading_nothing_is_proposed():
    assert found("All amounts are in Swiss francs.", heading="Progress") == []


def test_a_rule_that_is_known_is_not_found_again():
    known = (ConstraintFact("Only admins see salaries.", "e9"),)
    assert found("Only admins see salaries.", known=known) == []


def test_a_rule_that_the_user_replaced_later_does_not_come_back():
    talk = [
        *TALK,
        *entries(user("Change of plan, actually: amounts are in US dollars instead of Swiss francs.")),
    ]
    assert "All amounts are in Swiss francs." not in [
        text for text, _ in found("All amounts are in Swiss francs.", talk=talk)
    ]


def test_half_a_sentence_that_says_the_opposite_brings_the_whole_one():
    talk = entries(user("Nobody may restart the billing worker by hand."))
    assert found("restart the billing worker by hand", talk=talk) == [
        ("Nobody may restart the billing worker by hand.", talk[0].id)
    ]
