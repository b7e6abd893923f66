"""A summary that another system wrote is taken sentence by sentence."""

from __future__ import annotations

from foldline.core.ledger.facts import earlier_summary
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text

SUMMARY = "## Goal\nFind a pie for the party on Sunday.\n- The oven is old and runs too hot."


def said(text: str, entry: str = "") -> Said:
    return Said(entry, None, Message("assistant", (Text(text),)), "")


def test_another_systems_summary_is_taken_sentence_by_sentence() -> None:
    assert [fact.text for fact in earlier_summary.collect([said(SUMMARY)])] == [
        "Find a pie for the party on Sunday.",
        "The oven is old and runs too hot.",
    ]


def test_what_holds_no_more_is_left_out() -> None:
    (fact,) = earlier_summary.collect([said(SUMMARY)], frozenset(["Find a pie"]))
    assert fact.text == "The oven is old and runs too hot."


def test_a_message_of_this_session_is_no_earlier_summary() -> None:
    assert earlier_summary.collect([said(SUMMARY, "e1")]) == ()
